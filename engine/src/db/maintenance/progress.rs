//! How far a recovery, a compaction, a conversion or an analysis is.

use std::fmt;
use std::sync::Arc;

/// A part of the work of a recovery, [`Database::compact`](crate::Database::compact),
/// [`Builder::convert`](crate::Builder::convert) or [`Database::analyze`](crate::Database::analyze), in the order in
/// which they come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Phase {
    /// The log of a database that was not closed is applied, at opening. Counts bytes of the log. All of them are done
    /// when the pages that have changed are durable, or cannot be written because the device is full.
    Recovering,
    /// Sampled pages are compressed, to choose tables. Counts sampled pages.
    Analyzing,
    /// Pages are sampled once more, to train dictionaries on them. Counts sampled pages.
    Sampling,
    /// Dictionaries are trained, and pages are compressed with them. Counts these steps: seven for each table.
    Training,
    /// Tables are rebuilt, or copied to a new file. Counts entries.
    Rebuilding,
    /// The old pages of the rebuilt tables are freed. Counts one step. With [`StoreKind::Shadow`](crate::db::StoreKind)
    /// this punches holes in the file, which takes long in some file systems.
    Freeing,
    /// The dictionaries that no page needs are searched for. Counts pages.
    Searching,
    /// Pages move to the front of the file, and it is cut off. Counts free bytes that have left the file.
    Shrinking,
}

/// How far the work is. A phase that has nothing to do is left out.
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// use duramen::db::Phase;
///
/// let mut shown = String::new();
/// db.compact(|progress| {
///     if progress.phase == Phase::Rebuilding {
///         shown = format!("{} of {} entries", progress.done, progress.of);
///     }
/// })?;
/// assert_eq!(shown, "3 of 3 entries");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The current phase of the work.
    pub phase: Phase,
    /// How much of it is done.
    pub done: u64,
    /// How much of it there is. [`Phase::Shrinking`] may end earlier.
    pub of: u64,
}

/// A function that receives the progress of a recovery.
#[derive(Clone)]
pub(in crate::db) struct Listener(pub(in crate::db) Arc<dyn Fn(Progress) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
