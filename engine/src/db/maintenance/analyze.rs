//! Analysis of compression: samples pages of the file, compresses them with each method, and reports what a strategy
//! would do to each table. The bounds are in `strategy`.

use super::dictionaries::gains;
use super::dictionary_gain::Gain;
use super::progress::{Phase, Progress};
use super::strategy::{
    CompressionPlan, DictionaryAnalysis, MethodSample, Reason, Strategy, TableAnalysis, TableSample, decide, scaled,
};
use crate::base::{Error, PageId, Result, TableId};
use crate::db::Database;
use crate::db::catalog::info::TableInfo;
use crate::page::Page;
use crate::store::{Compression, PageCompression, PagePolicy, PageStore, Places, Target, Trial};
use std::collections::HashMap;

/// The approximate maximum number of sampled pages.
const SAMPLED_PAGES: usize = 20_000;
/// Pages between two calls of `progress`.
pub(super) const STEP: u64 = 256;

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
    /// [`Error::Option`] if a value of the plan is not valid, or if the page store of the database does not compress
    /// pages; [`Error::NoTable`] if the plan names a table that does not exist; errors of reading and writing.
    pub fn analyze(&self, plan: &CompressionPlan, mut progress: impl FnMut(Progress)) -> Result<Vec<TableAnalysis>> {
        let policies = policies(plan.policy, self.shared().engine.page_size());
        let Decided { tables, ids, sampled, decisions } = self.decide(plan, &policies, &mut progress)?;
        let Sampled { samples, scale } = sampled;
        let dictionaries = self.dictionary_analyses(plan, &tables, &ids, &mut progress)?;
        let chosen = policies.iter().position(|policy| *policy == plan.policy);
        let analysis = |(((table, sample), reasons), id): (((TableInfo, TableSample), Vec<Reason>), &TableId)| {
            let reason = match chosen.and_then(|chosen| reasons.get(chosen)) {
                _ if plan.leaves_out(&table.name) => Reason::LeftOut,
                reason => reason.copied().unwrap_or(Reason::StrategyNone),
            };
            let choice = policy_after(reason, plan, &table);
            let choice_bytes = match chosen.filter(|_| reason.compresses()) {
                _ if choice == table.policy() => sample.current,
                Some(chosen) => sample.stored(chosen),
                None => sample.plain.iter().sum(),
            };
            let methods = (0..).zip(&policies).zip(&reasons);
            let method = |((index, policy), reason): ((usize, &PagePolicy), &Reason)| {
                sample.analysis(index, *policy, *reason, scale)
            };
            TableAnalysis {
                table: table.name,
                pages: scaled(sample.plain.len() as u64, scale),
                sampled: sample.plain.len() as u64,
                bytes: scaled(sample.plain.iter().sum(), scale),
                current: table.compression,
                current_target: table.target,
                current_bytes: scaled(sample.current, scale),
                methods: methods.map(method).collect(),
                choice: choice.compression,
                choice_target: choice.target,
                choice_bytes: scaled(choice_bytes, scale),
                reason,
                dictionary: dictionaries.get(id).copied(),
            }
        };
        Ok(tables.into_iter().zip(samples).zip(decisions).zip(&ids).map(analysis).collect())
    }

    /// Samples pages with these policies, and decides about each table and each policy.
    fn decide(
        &self,
        plan: &CompressionPlan,
        policies: &[PagePolicy],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Decided> {
        let tx = self.begin_read()?;
        let tables = tx.tables()?;
        self.check_plan(plan, &tables)?;
        let id = |table: &TableInfo| Ok(tx.open_untyped(&table.name)?.entry.tree.table);
        let ids: Vec<TableId> = tables.iter().map(id).collect::<Result<_>>()?;
        drop(tx);
        if !self.shared().read_only {
            self.checkpoint()?;
        }
        let uncompressed: Vec<PagePolicy> = tables.iter().map(uncompressed_policy).collect();
        let sampled = self.sample(&ids, &uncompressed, policies, progress)?;
        let decisions = decisions(plan, &tables, &sampled.samples, policies.len());
        Ok(Decided { tables, ids, sampled, decisions })
    }

    /// Computes what dictionaries would save in these tables, if the plan allows them.
    fn dictionary_analyses(
        &self,
        plan: &CompressionPlan,
        infos: &[TableInfo],
        tables: &[TableId],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<HashMap<TableId, DictionaryAnalysis>> {
        let engine = &self.shared().engine;
        let (Some(compression), Some(store), true) =
            (engine.compression(), engine.page_store(), plan.policy.dictionary)
        else {
            return Ok(HashMap::new());
        };
        let of_plan = infos.iter().zip(tables).filter(|(info, _)| !plan.leaves_out(&info.name));
        let wanted: Vec<_> = of_plan.map(|(_, table)| (*table, plan.policy)).collect();
        let gains = gains(compression, &*store, engine.page_size(), &wanted, |_, _| None, progress)?;
        let analysis = |(table, Gain { bytes, saving, saved_bytes, pays, .. })| {
            (table, DictionaryAnalysis { bytes, saving, saved_bytes, pays })
        };
        Ok(gains.into_iter().map(analysis).collect())
    }

    /// The new policies of the tables of the plan, by name. Pages are sampled only for a strategy that needs them, and
    /// only with the compression of the plan.
    pub(super) fn choices(
        &self,
        plan: &CompressionPlan,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<HashMap<String, PagePolicy>> {
        if let Strategy::Selective { .. } = plan.strategy {
            let compresses = plan.policy.compression != Compression::None;
            let policies = if compresses { &[plan.policy][..] } else { &[] };
            let Decided { tables, decisions, .. } = self.decide(plan, policies, progress)?;
            let policy = |(table, reasons): (TableInfo, Vec<Reason>)| {
                let reason = reasons.first().copied().unwrap_or(Reason::StrategyNone);
                let policy = policy_after(reason, plan, &table);
                (table.name, policy)
            };
            let of_plan = tables.into_iter().zip(decisions).filter(|(table, _)| !plan.leaves_out(&table.name));
            return Ok(of_plan.map(policy).collect());
        }
        let tables = self.begin_read()?.tables()?;
        self.check_plan(plan, &tables)?;
        let policy = |table: &TableInfo| match plan.strategy {
            Strategy::None => uncompressed_policy(table),
            _ => plan.policy,
        };
        let of_plan = tables.iter().filter(|table| !plan.leaves_out(&table.name));
        Ok(of_plan.map(|table| (table.name.clone(), policy(table))).collect())
    }

    fn check_plan(&self, plan: &CompressionPlan, tables: &[TableInfo]) -> Result<()> {
        plan.strategy.check()?;
        self.shared().engine.check_policy(plan.policy)?;
        let mut grouped: Vec<&String> = plan.groups.iter().flatten().collect();
        grouped.sort_unstable();
        for name in grouped.iter().copied().chain(&plan.tables) {
            if !tables.iter().any(|table| table.name == *name) {
                return Err(Error::NoTable { table: name.clone() });
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

    /// Compresses pages from the whole file, and sorts the results by table. `uncompressed`: the policy of each table
    /// without compression.
    fn sample(
        &self,
        tables: &[TableId],
        uncompressed: &[PagePolicy],
        policies: &[PagePolicy],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Sampled> {
        let engine = &self.shared().engine;
        let empty = TableSample { methods: vec![MethodSample::default(); policies.len()], ..TableSample::default() };
        let mut samples = vec![empty; tables.len()];
        let Some(store) = engine.page_store() else { return Ok(Sampled { samples, scale: 1.0 }) };
        let Some(places) = store.compression().map(PageCompression::places) else {
            return Ok(Sampled { samples, scale: 1.0 });
        };
        let all = store.pages()?;
        let step = all.len().div_ceil(SAMPLED_PAGES).max(1);
        let of = all.len().div_ceil(step) as u64;
        let mut page = vec![0; engine.page_size()];
        let mut trials = Trials { places, trial: Trial::default(), packed: Vec::new() };
        for (done, id) in (1..).zip(all.iter().copied().step_by(step)) {
            let table = read(&*store, id, &mut page);
            let at = table.and_then(|table| tables.iter().position(|id| *id == table));
            let place = at.and_then(|at| samples.get_mut(at).zip(uncompressed.get(at)));
            if let Some((sample, uncompressed)) = place {
                trials.add(&page, *uncompressed, policies, sample);
                sample.current += store.place_bytes(id).unwrap_or(0);
            }
            if done % STEP == 0 || done == of {
                progress(Progress { phase: Phase::Analyzing, done, of });
            }
        }
        Ok(Sampled { samples, scale: all.len() as f64 / (of as f64).max(1.0) })
    }
}

/// The tables of a database with their ids, the sampled pages of each, and the decision about each with each policy.
struct Decided {
    tables: Vec<TableInfo>,
    ids: Vec<TableId>,
    sampled: Sampled,
    decisions: Vec<Vec<Reason>>,
}

/// The sampled pages of each table.
struct Sampled {
    samples: Vec<TableSample>,
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

/// Compresses pages with each method.
struct Trials {
    places: Places,
    trial: Trial,
    packed: Vec<u8>,
}

impl Trials {
    /// Adds what each policy does to a page. Policies with the same compression are next to each other.
    fn add(&mut self, page: &[u8], uncompressed: PagePolicy, policies: &[PagePolicy], sample: &mut TableSample) {
        self.packed.clear();
        Page::new(page).packed_into(&mut self.packed);
        let mut last = (Compression::None, self.trial.run(Compression::None, &self.packed));
        sample.plain.push(last.1.place_bytes(uncompressed, &self.places));
        for (policy, of) in policies.iter().zip(&mut sample.methods) {
            if last.0 != policy.compression {
                last = (policy.compression, self.trial.run(policy.compression, &self.packed));
            }
            let result = last.1;
            of.stored.push(result.place_bytes(*policy, &self.places));
            of.write_time += result.write_time;
            if result.is_compressed(*policy, &self.places) {
                of.read_time += result.read_time;
            }
        }
    }
}

/// The policy of a table after the decision of a strategy.
fn policy_after(reason: Reason, plan: &CompressionPlan, table: &TableInfo) -> PagePolicy {
    match reason {
        Reason::TooSmall | Reason::LeftOut => table.policy(),
        reason if reason.compresses() => plan.policy,
        _ => uncompressed_policy(table),
    }
}

/// The policy of a table if the strategy does not choose it. Places of an uncompressed table keep their length.
fn uncompressed_policy(table: &TableInfo) -> PagePolicy {
    match table.policy() {
        PagePolicy { compression: Compression::None, target, .. } => PagePolicy { target, ..PagePolicy::default() },
        _ => PagePolicy::default(),
    }
}

/// The policies that are measured: a compression of each kind that this build has and that of the plan, each with every
/// target.
fn policies(planned: PagePolicy, page_size: usize) -> Vec<PagePolicy> {
    let mut methods = vec![Compression::Lz4, Compression::Zstd(3), Compression::Zlib(6)];
    methods.retain(|method| method.check().is_ok());
    if planned.compression != Compression::None && !methods.contains(&planned.compression) {
        methods.push(planned.compression);
    }
    let of = |compression| Target::all(page_size).map(move |target| PagePolicy { compression, target, ..planned });
    methods.into_iter().flat_map(of).collect()
}

/// The decision for each table with each of the policies.
fn decisions(
    plan: &CompressionPlan,
    tables: &[TableInfo],
    samples: &[TableSample],
    policies: usize,
) -> Vec<Vec<Reason>> {
    let of_group = |table: &TableInfo| plan.groups.iter().find(|group| group.contains(&table.name));
    let decision = |(table, sample): (&TableInfo, &TableSample)| {
        if plan.leaves_out(&table.name) {
            return vec![Reason::LeftOut; policies];
        }
        let members = match of_group(table) {
            None => vec![sample],
            Some(group) => {
                let members = tables.iter().zip(samples).filter(|(table, _)| group.contains(&table.name));
                members.map(|(_, sample)| sample).collect()
            }
        };
        (0..policies).map(|index| decide(plan.strategy, &members, index)).collect()
    };
    tables.iter().zip(samples).map(decision).collect()
}
