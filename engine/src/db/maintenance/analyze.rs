//! Analysis of compression: samples pages of the file, compresses them with each method, and reports what a strategy would
//! do to each table. The formulas are in `strategy`.

use super::strategy::{CompressionPlan, MethodSample, Reason, Sample, Strategy, TableAnalysis, decide, scaled};
use crate::base::{Error, PageId, Result, TableId};
use crate::db::Database;
use crate::db::catalog::info::TableInfo;
use crate::page::Page;
use crate::store::{Compression, PageStore, Trial};
use std::collections::HashMap;

/// About the most pages that are sampled.
const SAMPLED_PAGES: usize = 20_000;
/// Pages between two calls of `progress`.
const STEP: u64 = 256;

/// The progress of an analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnalyzeProgress {
    /// The number of pages sampled so far.
    pub pages: u64,
    /// The number of pages that will be sampled.
    pub of: u64,
}

impl Database {
    /// Samples pages of the file, and reports for each table what page compression saves and costs, and what the
    /// strategy of the plan would do. Nothing is compressed in the file; [`Database::compact_with`] does that.
    ///
    /// It first takes a checkpoint, unless the database is open for reading only. It reads at most about 20,000 pages,
    /// evenly from the whole file. A damaged page is left out; [`Database::verify`] finds damage.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, TableDef, db::{Compression, CompressionPlan}};
    /// const TREES: TableDef<u32, &str> = TableDef::new("trees");
    ///
    /// let db = Database::create(&path)?;
    /// let tx = db.begin_write()?;
    /// {
    ///     let mut trees = tx.open_table(TREES)?;
    ///     for number in 0..2_000u32 {
    ///         trees.put(number, "beech, ash, oak, elm, yew, beech, ash, oak, elm, yew")?;
    ///     }
    /// }
    /// tx.commit()?;
    ///
    /// let plan = CompressionPlan::new("selective".parse()?, Compression::Lz4);
    /// let trees = &db.analyze(&plan, |_| ())?[0];
    /// assert_eq!((trees.current, trees.choice), (Compression::None, Compression::Lz4));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Option`] if a value of the plan is not valid, or if the page store of the database does not compress pages;
    /// [`Error::NoTable`] if a group names a table that does not exist; errors of reading and writing.
    pub fn analyze(
        &self,
        plan: &CompressionPlan,
        mut progress: impl FnMut(AnalyzeProgress),
    ) -> Result<Vec<TableAnalysis>> {
        let tx = self.begin_read()?;
        let tables = tx.tables()?;
        self.check_plan(plan, &tables)?;
        let id = |table: &TableInfo| Ok(tx.open_untyped(&table.name)?.entry.tree.table);
        let ids: Vec<TableId> = tables.iter().map(id).collect::<Result<_>>()?;
        drop(tx);
        if !self.shared().read_only {
            self.checkpoint()?;
        }
        let methods = methods(plan.compression);
        let Sampled { samples, scale } = self.sample(&ids, &methods, &mut progress)?;
        let chosen = methods.iter().position(|method| *method == plan.compression).unwrap_or(0);
        let reasons = reasons(plan, &tables, &samples, chosen);
        let analysis = |((table, sample), reason): ((TableInfo, Sample), Reason)| TableAnalysis {
            table: table.name,
            pages: scaled(sample.plain.len() as u64, scale),
            sampled: sample.plain.len() as u64,
            bytes: scaled(sample.plain.iter().sum(), scale),
            current: table.compression,
            methods: (0..).zip(&methods).map(|(index, method)| sample.analysis(index, *method, scale)).collect(),
            choice: if reason.compresses() { plan.compression } else { Compression::None },
            reason,
        };
        Ok(tables.into_iter().zip(samples).zip(reasons).map(analysis).collect())
    }

    /// The compression of each table after the plan, by name. Pages are sampled only for a strategy that needs them.
    pub(super) fn choices(&self, plan: &CompressionPlan) -> Result<HashMap<String, Compression>> {
        let everywhere = match plan.strategy {
            Strategy::None => Compression::None,
            Strategy::All => plan.compression,
            Strategy::Selective { .. } => {
                let tables = self.analyze(plan, |_| ())?;
                return Ok(tables.into_iter().map(|table| (table.table, table.choice)).collect());
            }
        };
        let tables = self.begin_read()?.tables()?;
        self.check_plan(plan, &tables)?;
        Ok(tables.into_iter().map(|table| (table.name, everywhere)).collect())
    }

    fn check_plan(&self, plan: &CompressionPlan, tables: &[TableInfo]) -> Result<()> {
        plan.strategy.check()?;
        self.shared().engine.check_compression(plan.compression)?;
        let mut grouped: Vec<&String> = plan.groups.iter().flatten().collect();
        grouped.sort_unstable();
        for name in &grouped {
            if !tables.iter().any(|table| table.name == **name) {
                return Err(Error::NoTable { table: (*name).clone() });
            }
        }
        match grouped.iter().zip(grouped.iter().skip(1)).find(|(name, next)| name == next) {
            Some((twice, _)) => Err(Error::Option {
                option: "group",
                value: format!("\"{}\"", twice.escape_debug()),
                expected: "each table in one group, once".into(),
            }),
            None => Ok(()),
        }
    }

    /// Compresses pages from the whole file, and sorts the results by table.
    fn sample(
        &self,
        tables: &[TableId],
        methods: &[Compression],
        progress: &mut dyn FnMut(AnalyzeProgress),
    ) -> Result<Sampled> {
        let engine = &self.shared().engine;
        let empty = Sample { plain: Vec::new(), methods: vec![MethodSample::default(); methods.len()] };
        let mut samples = vec![empty; tables.len()];
        let Some(store) = engine.page_store() else { return Ok(Sampled { samples, scale: 1.0 }) };
        let all = store.pages_between(PageId::NONE, PageId(u32::MAX));
        let step = all.len().div_ceil(SAMPLED_PAGES).max(1);
        let of = all.len().div_ceil(step) as u64;
        let (mut trial, mut page, mut packed) = (Trial::default(), vec![0; engine.page_size()], Vec::new());
        for (pages, id) in (1..).zip(all.iter().copied().step_by(step)) {
            let table = read(&*store, id, &mut page);
            let at = table.and_then(|table| tables.iter().position(|id| *id == table));
            if let Some(sample) = at.and_then(|at| samples.get_mut(at)) {
                packed.clear();
                Page::new(&page).packed_into(&mut packed);
                sample.plain.push(trial.run(Compression::None, &packed).stored_bytes);
                for (method, of) in methods.iter().zip(&mut sample.methods) {
                    let result = trial.run(*method, &packed);
                    of.stored.push(result.stored_bytes);
                    of.write_time += result.write_time;
                    of.read_time += result.read_time;
                }
            }
            if pages % STEP == 0 || pages == of {
                progress(AnalyzeProgress { pages, of });
            }
        }
        Ok(Sampled { samples, scale: all.len() as f64 / (of as f64).max(1.0) })
    }
}

/// The sampled pages of each table.
struct Sampled {
    samples: Vec<Sample>,
    /// Pages of the file for each sampled page.
    scale: f64,
}

/// Reads a page, and returns its table; `None` if the page is damaged, or has been freed meanwhile.
fn read(store: &dyn PageStore, id: PageId, page: &mut [u8]) -> Option<TableId> {
    match store.read(id, page) {
        Ok(Some(_)) => Some(Page::new(page).table()),
        Ok(None) => None,
        Err(error) => {
            tracing::warn!(%error, "the analysis leaves this page out");
            None
        }
    }
}

/// What is measured: a compression of each kind that this build has, and that of the plan.
fn methods(planned: Compression) -> Vec<Compression> {
    let mut methods = vec![Compression::Lz4, Compression::Zstd(3), Compression::Zlib(6)];
    methods.retain(|method| method.check().is_ok());
    if planned != Compression::None && !methods.contains(&planned) {
        methods.push(planned);
    }
    methods
}

/// The decision for each table.
fn reasons(plan: &CompressionPlan, tables: &[TableInfo], samples: &[Sample], chosen: usize) -> Vec<Reason> {
    let of_group = |table: &TableInfo| plan.groups.iter().find(|group| group.contains(&table.name));
    let reason = |(table, sample): (&TableInfo, &Sample)| {
        let Some(group) = of_group(table) else { return decide(plan.strategy, &[sample], chosen) };
        let members = tables.iter().zip(samples).filter(|(table, _)| group.contains(&table.name));
        let members: Vec<&Sample> = members.map(|(_, sample)| sample).collect();
        decide(plan.strategy, &members, chosen)
    };
    tables.iter().zip(samples).map(reason).collect()
}
