//! [`Dictionaries`]: the dictionaries of a database, and which of them new images use.

use super::dictionary::{CompressionDictionary, Dictionary, DictionaryId, DictionaryPlace};
use crate::base::TableId;
use crate::base::counted::Counted;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximum number of dictionaries that are kept prepared for compression. Each takes about a megabyte.
const MAX_CDICTS: usize = 16;

/// The dictionaries of a database.
#[derive(Debug, Default)]
pub(in crate::store) struct Dictionaries {
    known: Counted<BTreeMap<DictionaryId, KnownDictionary>>,
    /// The dictionaries that were used last, the latest one at the end.
    cdicts: Mutex<Vec<Arc<CompressionDictionary>>>,
}

#[derive(Debug)]
struct KnownDictionary {
    /// `None` if it was found in a rescue, without a note of it.
    place: Option<DictionaryPlace>,
    /// `None` if it is missing or damaged.
    dictionary: Option<Arc<Dictionary>>,
    usage: Usage,
}

/// The stages of a dictionary, in their order. A dictionary never goes back to an earlier stage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Usage {
    /// Its place is in the store's own bytes of the next checkpoint. No image may name it before.
    Waiting,
    /// New images of its table may name it.
    Active,
    /// No new image names it.
    Retired,
    /// No image names it, and the own bytes of the next checkpoint do not either.
    Unnamed,
}

impl Dictionaries {
    /// The dictionary that a frame names.
    pub(in crate::store) fn get(&self, id: DictionaryId) -> Option<Arc<Dictionary>> {
        self.known.read().get(&id)?.dictionary.clone()
    }

    /// The dictionary for new images of a table: the newest one that can be used.
    pub(super) fn active_of(&self, table: TableId) -> Option<Arc<Dictionary>> {
        let known = self.known.read();
        let is_of_table = |known: &&KnownDictionary| {
            known.usage == Usage::Active && known.place.is_some_and(|place| place.table == table)
        };
        known.values().rev().filter(is_of_table).find_map(|known| known.dictionary.clone())
    }

    /// The dictionary for new images of a table, prepared for a level.
    pub(super) fn for_table(&self, table: TableId, level: u8) -> Option<Arc<CompressionDictionary>> {
        let dictionary = self.active_of(table)?;
        let mut cdicts = self.cdicts.lock();
        let is_it = |one: &Arc<CompressionDictionary>| one.dictionary.id() == dictionary.id() && one.level == level;
        let found = match cdicts.iter().position(is_it) {
            Some(at) => cdicts.remove(at),
            None => Arc::new(CompressionDictionary::new(dictionary, level)?),
        };
        if cdicts.len() >= MAX_CDICTS {
            cdicts.remove(0);
        }
        cdicts.push(found.clone());
        Some(found)
    }

    /// Adds a dictionary that the store's own bytes name, or `None` if it cannot be read there.
    pub(in crate::store) fn add_named(&self, place: DictionaryPlace, dictionary: Option<Dictionary>) {
        self.known.change(|all| {
            let found = all.remove(&place.id).and_then(|found| found.dictionary);
            let known = KnownDictionary {
                place: Some(place),
                dictionary: dictionary.map(Arc::new).or(found),
                usage: Usage::Active,
            };
            all.insert(place.id, known);
        });
    }

    /// Adds a dictionary that was found without a note of it.
    pub(in crate::store) fn add_found(&self, dictionary: Dictionary) {
        let unknown = KnownDictionary { place: None, dictionary: None, usage: Usage::Retired };
        self.known.change(|all| {
            all.entry(dictionary.id()).or_insert(unknown).dictionary.get_or_insert(Arc::new(dictionary));
        });
    }

    /// Adds a new dictionary.
    pub(super) fn add_new(&self, place: DictionaryPlace, dictionary: Arc<Dictionary>) {
        let known = KnownDictionary { place: Some(place), dictionary: Some(dictionary), usage: Usage::Waiting };
        self.known.change(|all| all.insert(place.id, known));
    }

    /// The places that the store's own bytes name.
    pub(in crate::store) fn places(&self) -> Vec<DictionaryPlace> {
        let known = self.known.read();
        known.values().filter(|known| known.usage < Usage::Unnamed).filter_map(|known| known.place).collect()
    }

    /// How many places there are at most.
    pub(in crate::store) fn len(&self) -> usize {
        self.known.len()
    }

    /// New images may name it.
    pub(super) fn activate(&self, id: DictionaryId) {
        self.move_on(id, Usage::Active);
    }

    /// From now on no new image may name it.
    pub(super) fn retire(&self, id: DictionaryId) {
        self.move_on(id, Usage::Retired);
    }

    /// No image names it.
    pub(super) fn leave_out(&self, id: DictionaryId) {
        self.move_on(id, Usage::Unnamed);
    }

    fn move_on(&self, id: DictionaryId, usage: Usage) {
        self.known.change(|all| {
            if let Some(known) = all.get_mut(&id) {
                known.usage = known.usage.max(usage);
            }
        });
        if usage > Usage::Active {
            self.cdicts.lock().retain(|cdict| cdict.dictionary.id() != id);
        }
    }

    /// Its pages are free.
    pub(super) fn remove(&self, id: DictionaryId) {
        self.known.change(|all| all.remove(&id));
    }
}
