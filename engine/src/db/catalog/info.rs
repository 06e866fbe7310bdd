//! [`TableInfo`]: the description of a table, for people and programs.

use super::TableEntry;
use crate::db::types::Separators;
use crate::page::SeparatorRule;
use duramen_codec::Codec;

/// A table's name, types, size and layout.
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// let info = &db.begin_read()?.tables()?[0];
/// assert_eq!((info.name.as_str(), info.entries), ("trees", 3));
/// assert_eq!((info.key_type.as_str(), info.value_type.as_str()), ("str", "u64"));
/// assert_eq!((info.keys, info.separators.as_str()), ("head", "tail"));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The name.
    pub name: String,
    /// The type of its keys, by [`crate::db::types::Value::type_name`].
    pub key_type: String,
    /// The type of its values.
    pub value_type: String,
    /// The length of every key in bytes, as the type had it when the table was made; `None` where it varies.
    pub key_width: Option<usize>,
    /// The same of every value.
    pub value_width: Option<usize>,
    /// How many entries it has.
    pub entries: u64,
    /// How its leaves keep keys: `plain`, `fixed`, `head`, `db2`, `wiredtiger`, `wiredtiger-best`,
    /// `wiredtiger-both`, `myisam`, `pkb`, `pkb-heap` or `blocks`; `pkb:2` and so on where partial keys have another length
    /// than five bytes, as they have in memory, and `blocks:128` where blocks are shorter than the codec takes them.
    pub keys: &'static str,
    /// How blocks of integer keys are compressed; `None` without blocks.
    pub codec: Option<Codec>,
    /// The key that the table gives out next, if it gives out any ([`crate::TableDef::auto_increment`]); 0 once it has given
    /// out the last.
    pub next_key: Option<u64>,
    /// How its separators are chosen: `full`, `tail`, or `tail:100` and so on with another radius than the usual one.
    pub separators: String,
}

impl TableInfo {
    pub(crate) fn new(name: String, entry: &TableEntry) -> TableInfo {
        TableInfo {
            name,
            key_type: entry.key_type.clone(),
            value_type: entry.value_type.clone(),
            key_width: entry.key_width,
            value_width: entry.value_width,
            entries: entry.entries,
            keys: entry.tree.layout.leaf.layout().name(),
            codec: entry.tree.layout.leaf.codec(),
            next_key: entry.next_key,
            separators: match entry.tree.layout.separators {
                SeparatorRule::Full => Separators::Full,
                SeparatorRule::TAIL => Separators::Tail,
                SeparatorRule::Tail { radius } => Separators::TailWithin(radius),
            }
            .to_string(),
        }
    }
}
