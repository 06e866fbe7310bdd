//! Dictionaries of tables in the file: adds those that pay, and drops those that no image names. The choice is in
//! `dictionary_gain`.
//!
//! An image must never name a dictionary that is not in the file. So a dictionary is used only when it is durable and
//! both superblocks name it. It is dropped only when no image names it, neither a current image nor one that a
//! superblock leads to. Then a recovery from either superblock neither needs it nor uses it.

use super::analyze::STEP;
use super::dictionary_gain::{Gain, STEPS, SampledPages, gain};
use super::progress::{Phase, Progress};
use crate::base::{Result, TableId};
use crate::db::Database;
use crate::db::catalog::dictionary::{DictionaryEntry, dictionaries};
use crate::db::transaction::read::each_table;
use crate::page::Page;
use crate::store::{
    CompressionDictionary, Dictionary, DictionaryId, DictionaryPlace, MAX_DICTIONARIES, PageCompression, PagePolicy,
    PageStore,
};
use crate::txn::Durability;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// About the most pages of the file that are sampled.
const SAMPLED_PAGES: usize = 20_000;

/// A dictionary of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DictionaryInfo {
    /// The table on whose pages it was trained; `None` if the table was dropped.
    pub table: Option<String>,
    /// Its number.
    pub number: u32,
    /// Its bytes. The file has them twice.
    pub bytes: u64,
    /// True if new images of the table are compressed with it.
    pub is_used: bool,
}

impl Database {
    /// The dictionaries in the file, in the order of their numbers. An unused dictionary stays until a compaction finds
    /// that no page needs it.
    ///
    /// ```
    /// assert_eq!(duramen::Database::in_memory()?.dictionaries()?, []);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading the catalog.
    pub fn dictionaries(&self) -> Result<Vec<DictionaryInfo>> {
        // It stays open, so that all reads here see the same commits.
        let tx = self.begin_read()?;
        let snapshot = tx.snapshot.lsn;
        let engine = &self.shared().engine;
        let (all, mut tables) = (dictionaries(engine, snapshot)?, HashMap::new());
        each_table(engine, snapshot, |name, entry| drop(tables.insert(entry.tree.table, (name, entry.policy))))?;
        let active = |table| engine.compression().and_then(|compression| compression.active_dictionary(table));
        let info = |entry: &DictionaryEntry| {
            let table = tables.get(&entry.place.table);
            DictionaryInfo {
                table: table.map(|(name, _)| name.clone()),
                number: entry.place.id.0,
                bytes: entry.len,
                is_used: table.is_some_and(|(_, policy)| policy.dictionary)
                    && active(entry.place.table) == Some(entry.place.id),
            }
        };
        Ok(all.iter().map(info).collect())
    }

    /// Trains dictionaries for the tables that may have one after the compaction, adds those that pay, and makes the
    /// store use them. Returns the tables that have got one. `choices`: the new policies of the tables that are
    /// rebuilt, by name. `None`: all are rebuilt with the policies that they have.
    pub(super) fn add_dictionaries(
        &self,
        choices: Option<&HashMap<String, PagePolicy>>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<HashSet<TableId>> {
        let engine = &self.shared().engine;
        let (Some(compression), Some(store)) = (engine.compression(), engine.page_store()) else {
            return Ok(HashSet::new());
        };
        let mut wanted = Vec::new();
        let tx = self.begin_read()?;
        each_table(engine, tx.snapshot.lsn, |name, entry| {
            let policy = choices.map_or(Some(entry.policy), |choices| choices.get(&name).copied());
            wanted.extend(policy.filter(|policy| policy.dictionary).map(|policy| (entry.tree.table, policy)));
        })?;
        let dictionaries = dictionaries(engine, tx.snapshot.lsn)?.len();
        drop(tx);
        if wanted.is_empty() {
            return Ok(HashSet::new());
        }
        self.checkpoint()?;
        let current = |table, policy| compression.compression_dictionary(table, policy);
        let gains = gains(compression, &*store, engine.page_size(), &wanted, current, progress)?;
        let room = MAX_DICTIONARIES.saturating_sub(dictionaries);
        let gains: Vec<(TableId, Gain)> = gains.into_iter().filter(|(_, gain)| gain.pays).take(room).collect();
        if gains.is_empty() {
            return Ok(HashSet::new());
        }
        let ids = self.dictionary_ids(gains.len())?;
        let mut tx = self.begin_write()?;
        tx.set_durability(Durability::Commit);
        let mut added = Vec::new();
        for (id, (table, gain)) in ids.into_iter().zip(&gains) {
            added.push(tx.add_dictionary(id, *table, &gain.trained)?);
        }
        tx.commit()?;
        let mut tables = HashSet::new();
        for (place, sealed) in &added {
            if let Some(dictionary) = Dictionary::open(sealed) {
                compression.add_dictionary(*place, dictionary);
            }
        }
        self.checkpoint()?;
        for (place, _) in &added {
            compression.activate(place.id, place.table);
            tables.insert(place.table);
        }
        Ok(tables)
    }

    /// Takes ids for dictionaries. That is durable before a dictionary is written: if its commit fails, its pages stay
    /// in free space, and a rescue must not find another dictionary with the same id.
    pub(in crate::db) fn dictionary_ids(&self, count: usize) -> Result<Vec<DictionaryId>> {
        let mut tx = self.begin_write()?;
        tx.set_durability(Durability::Commit);
        let ids = (0..count).map(|_| tx.take_number().map(DictionaryId)).collect::<Result<_>>()?;
        tx.commit()?;
        Ok(ids)
    }

    /// The dictionaries in the catalog that no new image will name. Older images may name them.
    pub(super) fn unused_dictionaries(&self) -> Result<Vec<DictionaryPlace>> {
        let engine = &self.shared().engine;
        let Some(compression) = engine.compression() else { return Ok(Vec::new()) };
        let mut live = HashSet::new();
        // Without a snapshot, a table that is being renamed could have neither name.
        let tx = self.begin_read()?;
        each_table(engine, tx.snapshot.lsn, |_, entry| {
            live.extend(compression.active_dictionary(entry.tree.table).filter(|_| entry.policy.dictionary));
        })?;
        let places = dictionaries(engine, tx.snapshot.lsn)?.into_iter().map(|entry| entry.place);
        Ok(places.filter(|place| !live.contains(&place.id)).collect())
    }

    /// Drops the dictionaries that no image names and no new image will name.
    pub(super) fn drop_dictionaries(&self, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let engine = &self.shared().engine;
        let (Some(compression), Some(store)) = (engine.compression(), engine.page_store()) else { return Ok(()) };
        let all = self.unused_dictionaries()?;
        let mut unused: Vec<DictionaryId> = all.iter().map(|place| place.id).collect();
        if unused.is_empty() {
            return Ok(());
        }
        compression.retire(&unused);
        // The images are those of pages that may be dirty: an old image counts as long as it is in the file.
        let named = store.pages().and_then(|pages| {
            let of = pages.len() as u64;
            (1..).zip(pages).try_for_each(|(done, page)| {
                let named = store.dictionary_of(page)?;
                unused.retain(|id| Some(*id) != named);
                if done % STEP == 0 || done == of {
                    progress(Progress { phase: Phase::Searching, done, of });
                }
                Ok(())
            })
        });
        if let Err(error) = &named {
            tracing::warn!(%error, "no dictionary is dropped: it is unknown which one a page needs");
        }
        if named.is_err() || unused.is_empty() {
            return Ok(());
        }
        engine.leave_out_dictionaries(&unused);
        self.checkpoint()?;
        let mut tx = self.begin_write()?;
        tx.set_durability(Durability::Commit);
        all.iter().filter(|place| unused.contains(&place.id)).for_each(|place| tx.remove_dictionary(place));
        tx.commit()?;
        unused.iter().for_each(|id| compression.forget_dictionary(*id));
        Ok(())
    }
}

/// Computes what new dictionaries would save for these tables. `current`: the dictionary that a table has now. Tables
/// with too few pages are left out.
pub(super) fn gains(
    compression: &PageCompression,
    store: &dyn PageStore,
    page_size: usize,
    wanted: &[(TableId, PagePolicy)],
    current: impl Fn(TableId, PagePolicy) -> Option<Arc<CompressionDictionary>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<(TableId, Gain)>> {
    let mut sampled: HashMap<TableId, SampledPages> =
        wanted.iter().map(|(table, _)| (*table, SampledPages::new(wanted.len()))).collect();
    let all = store.pages()?;
    let step = all.len().div_ceil(SAMPLED_PAGES).max(1);
    let (mut page, mut packed) = (vec![0; page_size], Vec::new());
    let of = all.len().div_ceil(step) as u64;
    for (done, id) in (1..).zip(all.into_iter().step_by(step)) {
        // A damaged page is left out; a check reports it.
        let is_read = matches!(store.read(id, &mut page), Ok(Some(_)));
        if let Some(of_table) = sampled.get_mut(&Page::new(&page).table()).filter(|_| is_read) {
            packed.clear();
            Page::new(&page).packed_into(&mut packed);
            of_table.add(&packed);
        }
        if done % STEP == 0 || done == of {
            progress(Progress { phase: Phase::Sampling, done, of });
        }
    }
    sampled.retain(|_, pages| pages.are_enough());
    let mut training = Progress { phase: Phase::Training, done: 0, of: STEPS * sampled.len() as u64 };
    if training.of > 0 {
        progress(training);
    }
    let trained = |(table, policy): &(TableId, PagePolicy)| {
        let pages = sampled.get(table)?;
        let step_done = || {
            training.done += 1;
            progress(training);
        };
        let current = current(*table, *policy);
        let gain = gain(pages, step as f64, *policy, compression.places(), page_size, current, step_done)?;
        Some((*table, gain))
    };
    Ok(wanted.iter().filter_map(trained).collect())
}
