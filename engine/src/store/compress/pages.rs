//! [`PageCompression`]: compresses the pages of tables according to their policies, for any store. `places` has the
//! lengths of places.

use super::attempts::Attempts;
use super::totals::CompressionCounters;
use super::{
    Coders, Compression, CompressionDictionary, CompressionTotals, Dictionaries, Dictionary, DictionaryId,
    DictionaryPlace, Encoding, Places,
};
use crate::base::counted::Counted;
use crate::base::{PageId, TableId};
use crate::page::Page;
use crate::store::{Overflow, PagePolicy};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The maximum number of pages to be split that are remembered. Others stay as they are until they are written again.
const MAX_TO_BE_SPLIT: usize = 1 << 16;

/// Pages that a thread compresses before it asks for others. A thread for fewer is not worth it.
const PAGES_OF_PART: usize = 8;

/// The policies of tables that do not have the default one.
pub(in crate::store) type Policies = HashMap<TableId, PagePolicy>;

/// The policies, dictionaries and counters of a store that compresses pages.
#[derive(Debug)]
pub struct PageCompression {
    places: Places,
    policies: Counted<Policies>,
    /// Leaves that missed the targets of their tables and are to be split.
    to_be_split: Counted<BTreeSet<PageId>>,
    attempts: Attempts,
    dictionaries: Dictionaries,
    /// Read by a thread from when it compresses the pages of a batch until they are written.
    batches: RwLock<()>,
    counters: CompressionCounters,
    /// The maximum number of threads for one batch: the thread that writes it, and the helpers.
    threads: AtomicUsize,
    /// The helpers of all batches: threads that compress pages beside the threads that write the batches.
    helpers: AtomicUsize,
    /// Coders that are not in use.
    coders: Mutex<Vec<Coders>>,
}

/// How a page is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) struct Prepared {
    /// How the content was made from the packed page.
    pub(in crate::store) encoding: Encoding,
    /// Bytes of the place.
    pub(in crate::store) place: usize,
    /// True if a coder has tried to compress the page, with or without success.
    pub(in crate::store) was_tried: bool,
    /// It missed the target of its table and is to be split.
    pub(in crate::store) is_to_be_split: bool,
}

impl Prepared {
    /// A page that was not prepared yet.
    pub(in crate::store) const NOT_YET: Prepared =
        Prepared { encoding: Encoding::Plain, place: 0, was_tried: false, is_to_be_split: false };
}

/// A page to be prepared.
pub(in crate::store) struct Job<'a> {
    packed: &'a [u8],
    out: &'a mut Vec<u8>,
    pub(in crate::store) prepared: Prepared,
}

impl<'a> Job<'a> {
    /// A job for a packed page. `out` gets the content if it is compressed.
    pub(in crate::store) fn new(packed: &'a [u8], out: &'a mut Vec<u8>) -> Job<'a> {
        Job { packed, out, prepared: Prepared::NOT_YET }
    }

    /// True if the packed page is the content, once the page is prepared.
    pub(in crate::store) fn is_plain(&self) -> bool {
        self.prepared.encoding == Encoding::Plain
    }

    /// The bytes to write, once the page is prepared.
    pub(in crate::store) fn content(&self) -> &[u8] {
        if self.is_plain() { self.packed } else { self.out }
    }
}

/// The helpers of a batch. Other batches can take them when this is dropped.
struct Helpers<'a> {
    taken: &'a AtomicUsize,
    count: usize,
}

impl Drop for Helpers<'_> {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl PageCompression {
    /// The compression of a store with these places.
    pub(in crate::store) fn new(places: Places, policies: Policies, dictionaries: Dictionaries) -> PageCompression {
        PageCompression {
            places,
            dictionaries,
            batches: RwLock::default(),
            policies: Counted::new(policies),
            to_be_split: Counted::default(),
            attempts: Attempts::default(),
            counters: CompressionCounters::default(),
            threads: AtomicUsize::new(1),
            helpers: AtomicUsize::new(0),
            coders: Mutex::default(),
        }
    }

    /// Sets the maximum number of threads that compress the pages of a batch, the one that writes the batch among them.
    /// Batches that are written at the same time share the other threads.
    pub fn set_threads(&self, threads: usize) {
        self.threads.store(threads.max(1), Ordering::Relaxed);
    }

    /// The maximum number of threads that compress the pages of a batch.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Passes all `items` to `work`, a few at a time and each once: in several threads if there are many.
    pub(in crate::store) fn each<T: Send>(&self, items: &mut [T], work: impl Fn(&mut [T]) + Sync) {
        let helpers = self.take_helpers((items.len() / PAGES_OF_PART).saturating_sub(1));
        let parts = Mutex::new(items.chunks_mut(PAGES_OF_PART));
        let next = || parts.lock().next();
        let work = || std::iter::from_fn(next).for_each(&work);
        std::thread::scope(|scope| {
            for _ in 0..helpers.count {
                // If the system cannot start a thread, the other threads do the work.
                if std::thread::Builder::new().name("duramen-compress".into()).spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
    }

    /// Takes up to `wanted` helpers, if other batches have left so many.
    fn take_helpers(&self, wanted: usize) -> Helpers<'_> {
        let most = self.threads().saturating_sub(1);
        let mut count = 0;
        let _ = self.helpers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            count = wanted.min(most.saturating_sub(taken));
            Some(taken + count)
        });
        Helpers { taken: &self.helpers, count }
    }

    /// The places of the store.
    pub fn places(&self) -> Places {
        self.places
    }

    /// Sets the policies of all tables. The policies that the store had may belong to tables that do not exist.
    pub fn replace_policies(&self, new: impl IntoIterator<Item = (TableId, PagePolicy)>) {
        let new = new.into_iter().filter(|(_, policy)| *policy != PagePolicy::default()).collect();
        self.policies.change(|policies| *policies = new);
    }

    /// Sets the policy of a table. It applies to each of its pages when the page is next written.
    pub fn set_policy(&self, table: TableId, policy: PagePolicy) {
        self.attempts.forget(table);
        self.policies.change(|policies| match policy == PagePolicy::default() {
            true => policies.remove(&table),
            false => policies.insert(table, policy),
        });
    }

    /// The policies of tables that do not have the default one, in the order of their ids.
    pub(in crate::store) fn policies(&self) -> Vec<(TableId, PagePolicy)> {
        let mut all: Vec<_> = self.policies.read().iter().map(|(table, policy)| (*table, *policy)).collect();
        all.sort_unstable_by_key(|(table, _)| table.0);
        all
    }

    /// How many tables do not have the default policy.
    pub(crate) fn policy_count(&self) -> usize {
        self.policies.len()
    }

    /// True if the policy of the table compresses pages.
    pub(in crate::store) fn compresses(&self, table: TableId) -> bool {
        self.policies.read().get(&table).is_some_and(|policy| policy.compression != Compression::None)
    }

    /// True if there are pages for [`PageCompression::take_to_be_split`].
    pub fn has_to_be_split(&self) -> bool {
        self.to_be_split.len() > 0
    }

    /// Up to `most` leaves that were written, have missed the targets of their tables, and are to be split. They may
    /// have been changed or freed since.
    pub fn take_to_be_split(&self, most: usize) -> Vec<PageId> {
        self.to_be_split.change(|all| std::iter::from_fn(|| all.pop_first()).take(most).collect())
    }

    /// Notes pages that were written and are to be split.
    pub(in crate::store) fn note_to_be_split(&self, pages: impl Iterator<Item = PageId>) {
        let mut pages = pages.peekable();
        if pages.peek().is_some() {
            self.to_be_split.change(|all| {
                let room = MAX_TO_BE_SPLIT.saturating_sub(all.len());
                all.extend(pages.take(room));
            });
        }
    }

    /// The pages that were compressed and decompressed, and the time of that.
    pub fn totals(&self) -> CompressionTotals {
        self.counters.totals()
    }

    /// Prepares pages of a batch, in several threads if there are many to compress. It takes time: call it when no page
    /// is latched.
    pub(in crate::store) fn prepare_all(&self, jobs: &mut [Job<'_>]) {
        let work = |jobs: &mut [Job<'_>]| {
            let mut coders = self.coders.lock().pop().unwrap_or_default();
            jobs.iter_mut().for_each(|job| job.prepared = self.prepare(&mut coders, job.packed, job.out));
            self.coders.lock().push(coders);
        };
        if jobs.iter().any(|job| self.compresses(Page::new(job.packed).table())) {
            self.each(jobs, work);
        } else {
            work(jobs);
        }
    }

    /// Compresses a packed page into `out` if the policy of its table says so and if it is worth it. It takes time:
    /// call it when no page is latched.
    pub(in crate::store) fn prepare(&self, coders: &mut Coders, packed: &[u8], out: &mut Vec<u8>) -> Prepared {
        let (table, places) = (Page::new(packed).table(), &self.places);
        let policy = self.policies.read().get(&table).copied().unwrap_or_default();
        // A page that is to be split if it misses its target is always tried.
        let is_tried = || policy.overflow == Overflow::Split || self.attempts.is_worthwhile(table);
        let most = places.most_compressed(policy, packed.len()).filter(|_| is_tried());
        let encoding = most.and_then(|most| {
            let started = Instant::now();
            let cdict = self.compression_dictionary(table, policy);
            let encoding = coders.compress(policy.compression, cdict.as_deref(), packed, most, out);
            self.attempts.note(table, encoding.is_some());
            self.counters.note_compressed(encoding.is_some(), started);
            encoding
        });
        let len = if encoding.is_some() { out.len() } else { packed.len() };
        Prepared {
            encoding: encoding.unwrap_or(Encoding::Plain),
            place: places.place_len(policy, len),
            was_tried: most.is_some(),
            is_to_be_split: encoding.is_none() && places.is_to_be_split(policy, packed),
        }
    }

    /// The dictionary with which pages of a table with this policy are compressed.
    pub(crate) fn compression_dictionary(
        &self,
        table: TableId,
        policy: PagePolicy,
    ) -> Option<Arc<CompressionDictionary>> {
        match policy {
            PagePolicy { compression: Compression::Zstd(level), dictionary: true, .. } => {
                self.dictionaries.for_table(table, level)
            }
            _ => None,
        }
    }

    /// The dictionary with which pages of a table are compressed if its policy allows one.
    pub(crate) fn active_dictionary(&self, table: TableId) -> Option<DictionaryId> {
        self.dictionaries.active_of(table).map(|dictionary| dictionary.id())
    }

    /// The dictionaries of the database.
    pub(in crate::store) fn dictionaries(&self) -> &Dictionaries {
        &self.dictionaries
    }

    /// A thread holds this from when it compresses the pages of a batch until they are written.
    pub(in crate::store) fn begin_batch(&self) -> RwLockReadGuard<'_, ()> {
        self.batches.read()
    }

    /// Finds the dictionary that a frame names.
    pub(in crate::store) fn find(&self) -> impl Fn(DictionaryId) -> Option<Arc<Dictionary>> + '_ {
        |id| self.dictionaries.get(id)
    }

    /// The places of the dictionaries that the store's own bytes name.
    pub(crate) fn dictionary_places(&self) -> Vec<DictionaryPlace> {
        self.dictionaries.places()
    }

    /// Adds a dictionary whose pages are durable. The next checkpoint notes it. No image names it before
    /// [`PageCompression::activate`].
    pub(crate) fn add_dictionary(&self, place: DictionaryPlace, dictionary: Dictionary) {
        self.dictionaries.add_new(place, Arc::new(dictionary));
    }

    /// From now on pages of its table are compressed with the dictionary. Both superblocks must name it.
    pub(crate) fn activate(&self, id: DictionaryId, table: TableId) {
        self.dictionaries.activate(id);
        self.attempts.forget(table);
    }

    /// From now on no page is compressed with these dictionaries. Returns when no page is being written that was.
    pub(crate) fn retire(&self, ids: &[DictionaryId]) {
        ids.iter().for_each(|id| self.dictionaries.retire(*id));
        drop(self.batches.write());
    }

    /// Call it when no image names the dictionary, and while no checkpoint runs: the next checkpoint leaves it out.
    pub(crate) fn leave_out(&self, id: DictionaryId) {
        self.dictionaries.leave_out(id);
    }

    /// Forgets a dictionary whose pages are free.
    pub(crate) fn forget_dictionary(&self, id: DictionaryId) {
        self.dictionaries.remove(id);
    }

    /// Counts pages that were given to a coder and have replaced an image.
    pub(in crate::store) fn note_recompressed(&self, pages: u64) {
        self.counters.note_recompressed(pages);
    }

    /// Counts a page that was decompressed.
    pub(in crate::store) fn note_decompressed(&self, started: Instant) {
        self.counters.note_decompressed(started);
    }
}
