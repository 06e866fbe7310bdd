//! Writing transactions: one at a time, atomic across tables. A transaction reads its own writes.

use super::read::check_types;
use super::table_state::{Name, TableState};
use super::unlogged_writer::UnloggedWriter;
use crate::base::limits::{MAX_TABLE_NAME, max_record};
use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::db::catalog::info::TableInfo;
use crate::db::catalog::spec::TableSpec;
use crate::db::catalog::{self, TableEntry, catalog_tree};
use crate::db::shared::Handle;
use crate::db::table::Table;
use crate::db::table::untyped::UntypedTable;
use crate::db::types::{Key, TableDef, TableOptions, Value};
use crate::page::Record;
use crate::store::PlaceBytes;
use crate::tree::Tree;
use crate::txn::{Durability, Engine, EntryDelta, LargeValues, LastWrite, OwnedRecord, WriteSet, WriterGuard};
use parking_lot::{ArcMutexGuard, Mutex, RawMutex, ReentrantMutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A page written outside the log, or a reserved root, that becomes part of the database at commit.
pub(crate) type Adopted = (PageId, Option<PlaceBytes>);

/// A writing transaction. There is only one at a time: [`crate::db::Database::begin_write`] waits until the previous
/// one ends. If it is dropped without [`WriteTransaction::commit`], the database is unchanged.
///
/// ```
/// # fn main() -> duramen::Result<()> {
/// use duramen::{Database, TableDef};
/// const FROM: TableDef<&str, i64> = TableDef::new("accounts");
/// const LOG: TableDef<u64, &str> = TableDef::new("log");
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// {
///     let mut accounts = tx.open_table(FROM)?;
///     accounts.insert("ann", 70)?;
///     accounts.insert("bob", 30)?;
///     tx.open_table(LOG)?.insert(1, "ann pays bob")?;
/// }
/// tx.commit()?; // both tables or neither
/// # Ok(())
/// # }
/// ```
pub struct WriteTransaction {
    pub(crate) shared: Arc<Handle>,
    pub(super) writer: Option<WriterGuard>,
    /// Threads that share the transaction create, drop and rename tables one at a time. Such a change looks up
    /// a name and then changes it. A change can call another change, so a thread can take this lock again.
    pub(crate) schema: ReentrantMutex<()>,
    pub(super) names: Mutex<BTreeMap<String, Name>>,
    pub(super) dropped: Mutex<Vec<(Tree, LargeValues)>>,
    /// New tables, also those that were dropped again. The page store has their policies.
    pub(super) added: Mutex<Vec<TableId>>,
    pub(crate) adopted: Mutex<Vec<Adopted>>,
    pub(super) unlogged_writer: UnloggedWriter,
    /// The table of a bulk load that was dropped before it was finished.
    pub(crate) abandoned: Mutex<Option<String>>,
    pub(super) durability: Durability,
    pub(super) next_table: Mutex<Option<u32>>,
    /// Entries of dictionaries in the catalog; `None` removes one.
    pub(super) dictionaries: Mutex<Vec<(Vec<u8>, Option<OwnedRecord>)>>,
}

impl WriteTransaction {
    pub(crate) fn begin(shared: Arc<Handle>) -> Result<WriteTransaction> {
        shared.check_writable()?;
        let writer = shared.engine.lock_writer()?;
        Ok(WriteTransaction::with_lock(shared, writer))
    }

    /// `None` after the timeout.
    pub(crate) fn begin_within(shared: Arc<Handle>, timeout: Duration) -> Result<Option<WriteTransaction>> {
        shared.check_writable()?;
        let writer = shared.engine.lock_writer_within(Some(timeout))?;
        Ok(writer.map(|writer| WriteTransaction::with_lock(shared, writer)))
    }

    fn with_lock(shared: Arc<Handle>, writer: WriterGuard) -> WriteTransaction {
        let durability = shared.durability;
        WriteTransaction {
            shared,
            writer: Some(writer),
            schema: ReentrantMutex::default(),
            names: Mutex::default(),
            dropped: Mutex::default(),
            added: Mutex::default(),
            adopted: Mutex::default(),
            unlogged_writer: UnloggedWriter::default(),
            abandoned: Mutex::default(),
            durability,
            next_table: Mutex::default(),
            dictionaries: Mutex::default(),
        }
    }

    /// Sets the durability of this commit instead of the default of the database.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// # use duramen::{Database, Durability, TableDef};
    /// # const TREES: TableDef<&str, u64> = TableDef::new("trees");
    /// let db = Database::create(&path)?;
    /// let mut tx = db.begin_write()?;
    /// tx.set_durability(Durability::None);
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?; // visible now, on the device later
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Opens a table, or creates it if it does not exist.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # use duramen::{Error, TableDef};
    /// let trees = tx.open_table(TREES)?;
    /// assert!(trees.is_empty()?);
    /// assert!(matches!(tx.open_table(TREES), Err(Error::TableState { .. })), "one handle at a time");
    /// drop(trees);
    /// let as_text: TableDef<&str, &str> = TableDef::new("trees");
    /// assert!(matches!(tx.open_table(as_text), Err(Error::TableType { .. })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TableType`] if the table has other types, [`Error::TableState`] if this transaction has it open
    /// already.
    pub fn open_table<K: Key, V: Value>(&self, table: TableDef<K, V>) -> Result<Table<'_, K, V>> {
        let types = [K::type_name(), V::type_name()];
        let [key_type, value_type] = &types;
        let spec = TableSpec {
            key_type,
            value_type,
            key_width: K::fixed_width(),
            value_width: V::fixed_width(),
            options: table.options(),
        };
        let mut state = self.open(table.name(), Some(&spec))?;
        check_types(table.name(), &state.entry, types)?;
        let rules = state.rules(true);
        Ok(Table::new(UntypedTable::new(self, state, rules)))
    }

    /// Opens an existing table of any types. Keys and values are encoded bytes.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # use duramen::Error;
    /// assert!(matches!(tx.open_untyped("trees"), Err(Error::NoTable { .. })));
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// let mut trees = tx.open_untyped("trees")?;
    /// trees.put(b"elm", &400u64.to_be_bytes())?;
    /// assert_eq!(trees.len()?, 2);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTable`]; [`Error::TableState`] if this transaction has it open already.
    pub fn open_untyped(&self, name: &str) -> Result<UntypedTable<'_>> {
        Ok(self.untyped(self.open(name, None)?))
    }

    /// Creates a table with types that are known only at run time, by the names that [`Value::type_name`] returns.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # use duramen::TableOptions;
    /// let mut trees = tx.create_untyped("trees", "str", "u64", TableOptions::default())?;
    /// trees.put(b"oak", &700u64.to_be_bytes())?;
    /// drop(trees);
    /// assert_eq!(tx.open_table(TREES)?.get("oak")?.map(|years| years.value()), Some(700));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TableExists`], and [`Error::Option`] for a layout that the types do not allow. A name that is not a
    /// type of the engine is a type that a program has defined, see [`crate::db::types::DynType::named`].
    pub fn create_untyped(
        &self,
        name: &str,
        key_type: &str,
        value_type: &str,
        options: TableOptions,
    ) -> Result<UntypedTable<'_>> {
        let _schema = self.schema.lock();
        self.check_new(name)?;
        let spec = TableSpec::of_names(key_type, value_type, options)?;
        Ok(self.untyped(self.open(name, Some(&spec))?))
    }

    fn untyped(&self, mut state: ArcMutexGuard<RawMutex, TableState>) -> UntypedTable<'_> {
        let rules = state.rules(false);
        UntypedTable::new(self, state, rules)
    }

    /// Fails if there is a table of that name.
    pub(crate) fn check_new(&self, name: &str) -> Result<()> {
        if self.exists(name)? { Err(Error::TableExists { table: name.to_owned() }) } else { Ok(()) }
    }

    /// Gives a name to a table whose tree is already written. `loaded` is the number of bytes of keys and values that
    /// are new in the tree.
    pub(crate) fn install(&self, name: &str, entry: TableEntry, loaded: u64) {
        let state = TableState { entry_changed: true, loaded, ..TableState::new(name.into(), entry) };
        self.names.lock().insert(name.to_owned(), Name::Open(Arc::new(Mutex::new(state))));
    }

    /// Detaches a tree at commit.
    pub(crate) fn drop_tree(&self, tree: Tree, large_values: LargeValues) {
        self.dropped.lock().push((tree, large_values));
    }

    /// True if there is a table of that name.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// tx.open_table(TREES)?;
    /// assert!(tx.exists("trees")? && !tx.exists("shrubs")?);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading the catalog.
    pub fn exists(&self, name: &str) -> Result<bool> {
        match self.names.lock().get(name) {
            Some(Name::Open(_)) => Ok(true),
            Some(Name::Gone) => Ok(false),
            None => Ok(self.catalog_entry(name)?.is_some()),
        }
    }

    /// Drops a table and all its entries. It takes the same short time for any number of entries; the pages are freed
    /// in the background. Returns false if there is no such table.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// assert!(tx.drop_table("trees")?);
    /// assert!(!tx.drop_table("trees")?, "it does not exist any more");
    /// tx.commit()?;
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TableState`] if this transaction has it open.
    pub fn drop_table(&self, name: &str) -> Result<bool> {
        let _schema = self.schema.lock();
        let Some(state) = self.take_name(name)? else { return Ok(false) };
        let mut adopted = self.adopted.lock();
        let run_records = state.writes.points().filter_map(|(_, record)| record).filter(|record| record.large);
        for record in run_records {
            crate::txn::large::discard_run(&self.shared.engine, &mut adopted, record.bytes);
        }
        if state.created {
            let root = state.entry.tree.root;
            adopted.retain(|(page, _)| *page != root);
            self.shared.engine.release_pages(&[root]);
        } else {
            self.drop_tree(state.entry.tree, LargeValues::Free);
        }
        Ok(true)
    }

    /// Renames a table. The new name may be the old one.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.rename_table("trees", "old trees")?;
    /// tx.commit()?;
    /// let renamed: duramen::TableDef<&str, u64> = duramen::TableDef::new("old trees");
    /// assert_eq!(db.begin_read()?.open_table(renamed)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::TableExists`], [`Error::Option`] for a name that is not allowed, or that leaves no
    /// space in the catalog entry for the names of the types, and [`Error::TableState`] if this transaction has the
    /// table open.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        let _schema = self.schema.lock();
        let missing = || Error::NoTable { table: from.to_owned() };
        if !self.exists(from)? {
            return Err(missing());
        }
        if from == to {
            return Ok(());
        }
        self.check_new(to)?;
        let mut state = self.take_name(from)?.ok_or_else(missing)?;
        if let Err(too_long) = check_entry(to, &state.entry, self.shared.engine.page_size()) {
            self.names.lock().insert(from.to_owned(), Name::Open(Arc::new(Mutex::new(state))));
            return Err(too_long);
        }
        state.rename(to);
        self.names.lock().insert(to.to_owned(), Name::Open(Arc::new(Mutex::new(state))));
        Ok(())
    }

    /// All tables, in the order of their names, with the changes of this transaction.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// let tables = tx.tables()?;
    /// assert_eq!((tables[0].name.as_str(), tables[0].entries), ("trees", 1));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading the catalog, and [`Error::TableState`] if this transaction has a table open.
    pub fn tables(&self) -> Result<Vec<TableInfo>> {
        let _schema = self.schema.lock();
        // The transaction sees all applied commits, also those that snapshots do not see yet.
        for info in super::read::tables(&self.shared.engine, Lsn::MAX)? {
            if !self.names.lock().contains_key(&info.name) {
                drop(self.open(&info.name, None)?);
            }
        }
        let names = self.names.lock();
        let mut tables = Vec::new();
        for (name, state) in names.iter() {
            if let Name::Open(state) = state {
                let state = state.try_lock().ok_or_else(|| open_twice(name))?;
                let mut entry = state.entry.clone();
                entry.entries = entries(&self.shared.engine, &state)?;
                tables.push(TableInfo::new(name.clone(), &entry));
            }
        }
        Ok(tables)
    }

    fn open(&self, name: &str, spec: Option<&TableSpec<'_>>) -> Result<ArcMutexGuard<RawMutex, TableState>> {
        let _schema = self.schema.lock();
        let mut names = self.names.lock();
        if let Some(Name::Open(state)) = names.get(name) {
            return state.try_lock_arc().ok_or_else(|| open_twice(name));
        }
        let gone = names.get(name).is_some();
        let (name, state) = match self.shared.kept_tables.take(name) {
            Some((name, state)) => {
                debug_assert!(self.has_row(&name, &state.lock().entry), "the row of {name} is stale");
                (name, state)
            }
            None => (name.to_owned(), Arc::new(Mutex::new(self.state_of(name, gone, spec)?))),
        };
        let guard = state.lock_arc();
        names.insert(name, Name::Open(state));
        Ok(guard)
    }

    /// The state of a table from its row in the catalog, or of a new table. `gone`: the transaction has dropped or
    /// renamed the table.
    fn state_of(&self, name: &str, gone: bool, spec: Option<&TableSpec<'_>>) -> Result<TableState> {
        let committed = if gone { None } else { self.catalog_entry(name)? };
        let (entry, created) = match (committed, spec) {
            (Some(entry), _) => (entry, false),
            (None, Some(spec)) => (self.create(name, spec)?, true),
            (None, None) => return Err(Error::NoTable { table: name.to_owned() }),
        };
        Ok(TableState { created, ..TableState::new(name.into(), entry) })
    }

    /// True if the table has this row in the catalog, or the catalog cannot be read. Only for assertions.
    fn has_row(&self, name: &str, entry: &TableEntry) -> bool {
        self.catalog_entry(name).map_or(true, |row| row.as_ref() == Some(entry))
    }

    pub(crate) fn create(&self, name: &str, spec: &TableSpec<'_>) -> Result<TableEntry> {
        check_name(name)?;
        let engine = &self.shared.engine;
        let layout = spec.layout(!engine.is_logged(), engine.page_size())?;
        let policy = spec.options.policy();
        engine.check_policy(policy)?;
        let entry = TableEntry {
            tree: Tree { root: PageId::NONE, table: TableId(0), layout },
            entries: 0,
            key_type: spec.key_type.into(),
            value_type: spec.value_type.into(),
            key_width: spec.key_width,
            value_width: spec.value_width,
            policy,
            next_key: spec.next_key()?,
        };
        self.add(name, entry)
    }

    /// Gives a new table its id and its root page.
    pub(crate) fn add(&self, name: &str, mut entry: TableEntry) -> Result<TableEntry> {
        let engine = &self.shared.engine;
        check_entry(name, &entry, engine.page_size())?;
        let id = self.take_number()?;
        entry.tree = Tree { root: self.allocate()?, table: TableId(id), ..entry.tree };
        self.added.lock().push(entry.tree.table);
        engine.set_policy(entry.tree.table, entry.policy);
        Ok(entry)
    }

    /// Takes a page that becomes part of the database when the transaction commits.
    pub(crate) fn allocate(&self) -> Result<PageId> {
        let page = self.shared.engine.take_page_id()?;
        self.adopted.lock().push((page, None));
        Ok(page)
    }

    /// Removes a table from the transaction's view of the catalog.
    pub(crate) fn take_name(&self, name: &str) -> Result<Option<TableState>> {
        if !self.exists(name)? {
            return Ok(None);
        }
        drop(self.open(name, None)?);
        let taken = self.names.lock().insert(name.to_owned(), Name::Gone);
        let Some(Name::Open(state)) = taken else { return Ok(None) };
        match Arc::try_unwrap(state) {
            Ok(state) => Ok(Some(state.into_inner())),
            Err(state) => {
                self.names.lock().insert(name.to_owned(), Name::Open(state));
                Err(open_twice(name))
            }
        }
    }

    fn catalog_entry(&self, name: &str) -> Result<Option<TableEntry>> {
        let read = |record: Option<crate::page::Record<'_>>| record.map(|r| TableEntry::decode(r.bytes));
        self.shared.engine.get_current(&catalog_tree(), &catalog::table_key(name), read)?.transpose()
    }
}

/// The number of entries of a table with the writes of the transaction.
pub(crate) fn entries(engine: &Engine, state: &TableState) -> Result<u64> {
    Ok(state.entry.entries.saturating_add_signed(entry_delta(engine, state)?.entries))
}

pub(super) fn entry_delta(engine: &Engine, state: &TableState) -> Result<EntryDelta> {
    if state.writes.is_empty() {
        return Ok(EntryDelta::added(0));
    }
    if state.created {
        // A bulk load has counted its entries already.
        let puts = state.writes.points().filter(|(_, record)| record.is_some()).count();
        return Ok(EntryDelta::added(puts));
    }
    engine.entry_delta(&state.entry.tree, &state.writes)
}

fn check_name(name: &str) -> Result<()> {
    if (1..=MAX_TABLE_NAME).contains(&name.len()) {
        return Ok(());
    }
    let value = if name.is_empty() { "empty".to_owned() } else { format!("{} bytes long", name.len()) };
    Err(Error::Option { option: "table name", value, expected: format!("1 to {MAX_TABLE_NAME} bytes long") })
}

/// Fails if the catalog entry of a table, with its name and the names of its types, is too long for a page.
fn check_entry(name: &str, entry: &TableEntry, page_size: usize) -> Result<()> {
    let (len, max) = (entry.encode().len(), max_record(page_size, catalog::table_key(name).len()));
    if len <= max {
        return Ok(());
    }
    let names = entry.key_type.len() + entry.value_type.len();
    let expected = format!("at most {} bytes, in the catalog of pages of {page_size}", max.saturating_sub(len - names));
    Err(Error::Option { option: "names of types", value: format!("{names} bytes long together"), expected })
}

pub(super) fn open_twice(name: &str) -> Error {
    let why = "it is open already in this transaction: drop the other handle first".to_owned();
    Error::TableState { table: name.to_owned(), why }
}

/// The write of a transaction to a key: `None` if there is no write, `Some(None)` for a removal.
pub(crate) fn own_write<'a>(writes: &'a WriteSet, key: &[u8]) -> Option<Option<Record<'a>>> {
    match writes.get(key) {
        LastWrite::Record(record) => Some(Some(record)),
        LastWrite::Removed => Some(None),
        LastWrite::Unwritten => None,
    }
}
