//! [`TableInfo`]: the description of a table.

use super::TableEntry;
use crate::db::types::Separators;
use crate::page::Codec;
use crate::page::SeparatorRule;
use crate::store::{Compression, Overflow, PagePolicy, Target};

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
    /// The length of every key in bytes, from its type when the table was created; `None` if it varies.
    pub key_width: Option<usize>,
    /// The length of every value in bytes, from its type when the table was created; `None` if it varies.
    pub value_width: Option<usize>,
    /// The number of entries.
    pub entries: u64,
    /// The name of the key layout in the leaves. [`crate::db::types::KeyLayout::names`] lists all names.
    pub keys: &'static str,
    /// The codec of blocks of integer keys; `None` without blocks.
    pub codec: Option<Codec>,
    /// How its pages are compressed in the file.
    pub compression: Compression,
    /// The length of the places that its pages get in the file.
    pub target: Target,
    /// The treatment of pages that miss the target.
    pub overflow: Overflow,
    /// Whether its pages may be compressed with a dictionary. [`crate::Database::dictionaries`] lists those that there
    /// are.
    pub dictionary: bool,
    /// The next key that the table assigns, if it assigns keys ([`crate::TableDef::auto_increment`]). 0 if it has
    /// assigned the last one.
    pub next_key: Option<u64>,
    /// The rule for separators, in the text form of [`crate::db::types::Separators`]: `full`, `tail` or, for example,
    /// `tail:100`.
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
            compression: entry.policy.compression,
            target: entry.policy.target,
            overflow: entry.policy.overflow,
            dictionary: entry.policy.dictionary,
            next_key: entry.next_key,
            separators: match entry.tree.layout.separators {
                SeparatorRule::Full => Separators::Full,
                SeparatorRule::TAIL => Separators::Tail,
                SeparatorRule::Tail { radius } => Separators::TailWithin(radius),
            }
            .to_string(),
        }
    }

    /// How its pages are compressed, and which places they get.
    pub(crate) fn policy(&self) -> PagePolicy {
        PagePolicy {
            compression: self.compression,
            target: self.target,
            overflow: self.overflow,
            dictionary: self.dictionary,
        }
    }
}
