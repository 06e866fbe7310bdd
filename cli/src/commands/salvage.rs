//! Reads all of a damaged database, and counts the entries that `--skip-damaged` can save.

use super::losses::lost_commits;
use super::lost_range::LostRange;
use super::open;
use crate::args;
use crate::failure::Result;
use crate::progress::{Meter, Unit};
use duramen::TableInfo;
use duramen::db::{Damage, Salvaged};

/// The readable rest of a damaged database.
pub(super) struct Rest {
    pub(super) damage: Vec<Damage>,
    pub(super) tables: Vec<RestOfTable>,
}

/// The readable rest of a table.
pub(super) struct RestOfTable {
    pub(super) info: TableInfo,
    pub(super) entries: u64,
    pub(super) lost: Vec<LostRange>,
}

impl Rest {
    /// Reads all readable entries.
    pub(super) fn read(database: &args::Database, quiet: bool) -> Result<Rest> {
        let (db, damage) = open::damaged(database)?;
        let tx = db.begin_read()?;
        let infos = tx.tables()?;
        let total = infos.iter().map(|info| info.entries).sum();
        let mut meter = Meter::begin("reading what is left", Unit::Count("entries"), Some(total), quiet);
        let (mut tables, mut count) = (Vec::with_capacity(infos.len()), 0u64);
        for info in infos {
            let table = tx.open_untyped(&info.name)?;
            let mut rest = RestOfTable { info, entries: 0, lost: Vec::new() };
            let mut salvage = table.salvage(..);
            while let Some(found) = salvage.next_with(|_, _| ())? {
                match found {
                    Salvaged::Entry(()) => {
                        (rest.entries, count) = (rest.entries + 1, count + 1);
                        if Meter::is_due(count) {
                            meter.show(count, String::new);
                        }
                    }
                    Salvaged::Lost(lost) => {
                        if !rest.lost.last_mut().is_some_and(|range| range.join(&lost)) {
                            rest.lost.push(LostRange::new(&lost));
                        }
                    }
                }
            }
            tables.push(rest);
        }
        Ok(Rest { damage, tables })
    }

    /// How many entries can be read.
    pub(super) fn entries(&self) -> u64 {
        self.tables.iter().map(|table| table.entries).sum()
    }

    /// The losses of commits.
    pub(super) fn lost_commits(&self) -> impl Iterator<Item = &'static str> {
        self.damage.iter().filter_map(lost_commits)
    }

    /// The number of entries that there should be. `None` if it is unknown. This has three possible causes: commits or
    /// parts of them are lost, a table was found by its pages, or more entries were found than the catalog counts.
    /// (Older states of leaves can have entries that were removed later.)
    pub(super) fn total(&self) -> Option<u64> {
        let was_found = |damage: &Damage| matches!(damage, Damage::TableFound { .. });
        let known = self.lost_commits().next().is_none() && !self.damage.iter().any(was_found);
        let total = known.then(|| self.tables.iter().map(|table| table.info.entries).sum());
        total.filter(|total| self.entries() <= *total)
    }

    /// True if some entries may be old.
    pub(super) fn is_guessed(&self) -> bool {
        self.damage.iter().any(|damage| matches!(damage, Damage::OlderPages))
    }

    /// True if tables may have lost their names.
    pub(super) fn has_lost_names(&self) -> bool {
        let costs_names = |damage: &Damage| {
            matches!(damage, Damage::Catalog { .. } | Damage::CatalogOlder | Damage::TableFound { .. })
        };
        self.damage.iter().any(costs_names)
    }
}
