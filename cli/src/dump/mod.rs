//! The file that `dump` writes and `restore` reads. `docs/dump.md` describes it. This module knows streams and files,
//! but no database.

mod checksum;
mod existing;
mod reader;
mod target;
mod writer;

pub(crate) use reader::Reader;
pub(crate) use target::Target;
pub(crate) use writer::Writer;

use serde::{Deserialize, Serialize};

/// The first line of every dump. The number is the version of the format.
const FIRST_LINE: &[u8] = b"duramen dump 1\n";

/// The line before the entries of a table.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// The name of the table.
    pub(crate) table: String,
    /// The name of the key type in the catalog.
    pub(crate) key_type: String,
    /// The name of the value type in the catalog.
    pub(crate) value_type: String,
    /// The length of every key, if all have one length and it does not follow from the name of their type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_width: Option<usize>,
    /// The same for values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value_width: Option<usize>,
    /// The key layout of its pages.
    pub(crate) keys: String,
    /// The codec of its blocks, if it has blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) codec: Option<String>,
    /// The compression of its pages, if they are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compression: Option<String>,
    /// The length of the places of its pages, if it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// The treatment of pages that miss the target, if a target is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) overflow: Option<String>,
    /// True if its pages may be compressed with a dictionary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dictionary: bool,
    /// True if the table assigns keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) auto_increment: bool,
    /// The next key that the table assigns, if it assigns keys. 0 if it has assigned the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_key: Option<u64>,
    /// The rule for separators.
    pub(crate) separators: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::Pair;
    use proptest::prelude::*;

    fn head(table: &str) -> Head {
        let [key_type, value_type, keys, separators] = ["bytes", "str", "head", "tail"].map(str::to_owned);
        Head {
            table: table.to_owned(),
            key_type,
            value_type,
            key_width: None,
            value_width: Some(7),
            keys,
            codec: None,
            compression: None,
            target: None,
            overflow: None,
            dictionary: false,
            auto_increment: false,
            next_key: None,
            separators,
        }
    }

    fn written(tables: &[(Head, Vec<Pair>)]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (head, entries) in tables {
            writer.begin(head).unwrap();
            entries.iter().for_each(|(key, value)| writer.entry(key, value).unwrap());
            writer.end().unwrap();
        }
        writer.finish().unwrap()
    }

    fn read(dump: &[u8]) -> crate::failure::Result<Vec<(Head, Vec<Pair>)>> {
        let mut reader = Reader::new(dump)?;
        let mut tables = Vec::new();
        while let Some(head) = reader.table()? {
            let mut entries = Vec::new();
            while let Some(pair) = reader.entry()? {
                entries.push(pair);
            }
            tables.push((head, entries));
        }
        Ok(tables)
    }

    fn tables() -> impl Strategy<Value = Vec<(Head, Vec<Pair>)>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..200);
        let entries =
            proptest::collection::btree_map(bytes(), bytes(), 0..20).prop_map(|map| map.into_iter().collect());
        proptest::collection::vec((any::<String>().prop_map(|name| head(&name)), entries), 0..4)
    }

    proptest! {
        #[test]
        fn tables_are_read_as_they_were_written(tables in tables()) {
            prop_assert_eq!(read(&written(&tables)).unwrap(), tables);
        }

        #[test]
        fn a_truncated_dump_is_refused(tables in tables(), at: prop::sample::Index) {
            let dump = written(&tables);
            prop_assert!(read(&dump[..at.index(dump.len())]).is_err());
        }

        #[test]
        fn a_flipped_bit_anywhere_is_refused(tables in tables(), at: prop::sample::Index, bit in 0u8..8) {
            let mut dump = written(&tables);
            let at = at.index(dump.len());
            dump[at] ^= 1 << bit;
            prop_assert!(read(&dump).is_err());
        }

        #[test]
        fn any_bytes_are_safe_to_read(rest: Vec<u8>) {
            let _ = read(&rest);
            let _ = read(&[FIRST_LINE, &rest].concat());
            let line = serde_json::to_vec(&head("t")).unwrap();
            let _ = read(&[FIRST_LINE, &line, b"\n", &rest].concat());
        }
    }

    #[test]
    fn keys_out_of_order_are_refused() {
        let pair = |key: &[u8]| (key.to_vec(), Vec::new());
        for keys in [[pair(b"b"), pair(b"a")], [pair(b"a"), pair(b"a")]] {
            let message = read(&written(&[(head("t"), keys.to_vec())])).unwrap_err().to_string();
            assert!(message.contains("order"), "{message}");
        }
    }

    #[test]
    fn other_files_and_other_versions_have_different_errors() {
        let message = |dump: &[u8]| read(dump).unwrap_err().to_string();
        assert!(message(b"PK\x03\x04").contains("not a dump"));
        assert!(message(b"duramen dump 2\n").contains("version"));
        assert!(message(b"").contains("not a dump"));
    }
}
