//! Chooses the layout of a table from its types and options.

use crate::base::limits::{max_inline_key, max_record};
use crate::base::{Error, Result};
use crate::db::types::{DynType, KeyLayout, Separators, TableOptions};
use crate::page::{KeyListKind, KeyProperties, RecordListKind, SeparatorRule};
use crate::tree::TreeLayout;

/// The types and the options of a new table.
pub(crate) struct TableSpec<'a> {
    pub(crate) key_type: &'a str,
    pub(crate) value_type: &'a str,
    pub(crate) key_width: Option<usize>,
    pub(crate) value_width: Option<usize>,
    pub(crate) options: TableOptions,
}

/// The maximum length of values in a record list of fixed length. Longer values would leave no space for keys.
const MAX_FIXED_RECORD: usize = 64;

impl<'a> TableSpec<'a> {
    /// A copy of a table whose types are known only by name. A program may use names of the engine's types for types of
    /// its own. So the keys may have any type, and all keys or values one length although the type has several.
    pub(crate) fn of_copy(key_type: &'a str, value_type: &'a str, options: TableOptions) -> TableSpec<'a> {
        let width = |name: &str, given: Option<usize>| given.or_else(|| DynType::named(name, None).fixed_width());
        let (key_width, value_width) = (width(key_type, options.key_width), width(value_type, options.value_width));
        TableSpec { key_type, value_type, key_width, value_width, options }
    }

    /// A new table whose types are known only by name.
    pub(crate) fn of_names(key_type: &'a str, value_type: &'a str, options: TableOptions) -> Result<TableSpec<'a>> {
        let keys = DynType::named(key_type, options.key_width);
        let values = DynType::named(value_type, options.value_width);
        if !keys.is_key() {
            let expected =
                "a type whose bytes order as its values do: an integer, str, bytes, bool, or a tuple of them";
            return Err(Error::Option { option: "key type", value: key_type.into(), expected: expected.into() });
        }
        let (key_width, value_width) = (keys.fixed_width(), values.fixed_width());
        let given = [("key_width", options.key_width, key_width), ("value_width", options.value_width, value_width)];
        for (option, given, width) in given {
            if let Some(given) = given.filter(|given| Some(*given) != width) {
                let expected = "unset for a built-in type, whose length is known".to_owned();
                return Err(Error::Option { option, value: given.to_string(), expected });
            }
        }
        Ok(TableSpec { key_type, value_type, key_width, value_width, options })
    }

    /// The layout for pages of this size: that of the options, or the default for the types. PkB has another default in
    /// memory.
    pub(crate) fn layout(&self, in_memory: bool, page_size: usize) -> Result<TreeLayout> {
        let leaf = self.leaf(in_memory)?;
        let records = record_list(self.key_width, self.value_width, page_size);
        let separators = match self.options.separators {
            Some(given @ (Separators::Tail | Separators::TailWithin(_))) if leaf.key_len().is_some() => {
                return Err(Error::Option {
                    option: "separators",
                    value: given.to_string(),
                    expected: "full for keys in blocks, whose inner pages keep whole keys".into(),
                });
            }
            Some(Separators::TailWithin(radius)) if radius > SeparatorRule::WIDEST => {
                return Err(Separators::refused(&Separators::TailWithin(radius).to_string()));
            }
            Some(Separators::TailWithin(radius)) => SeparatorRule::Tail { radius },
            Some(Separators::Full) => SeparatorRule::Full,
            None if leaf.key_len().is_some() => SeparatorRule::Full,
            Some(Separators::Tail) | None => SeparatorRule::TAIL,
        };
        Ok(TreeLayout { leaf, inner: leaf.inner(), records, separators })
    }

    /// The first key that the table assigns, if it assigns keys.
    pub(crate) fn next_key(&self) -> Result<Option<u64>> {
        if self.options.auto_increment && !matches!(self.key_type, "u32" | "u64") {
            return Err(Error::Option {
                option: "auto_increment",
                value: "set".into(),
                expected: format!("unset for keys of type {}: it is for u32 and u64", self.key_type),
            });
        }
        Ok(self.options.auto_increment.then_some(1))
    }

    /// The key list of leaves.
    fn leaf(&self, in_memory: bool) -> Result<KeyListKind> {
        let TableOptions { keys: given, codec, separators, .. } = self.options;
        if let (Some(codec), Some(other)) = (codec, given.filter(|layout| !layout.has_codec())) {
            let expected = format!("unset with keys {other}: it is for blocks");
            return Err(Error::Option { option: "codec", value: codec.to_string(), expected });
        }
        let integers = matches!(self.key_type, "u8" | "u16" | "u32" | "u64" | "i8" | "i16" | "i32" | "i64");
        let keys = KeyProperties { type_name: self.key_type, integers, width: self.key_width, codec, in_memory };
        // Blocks cannot be cut, so their separators are always whole keys.
        let whole = matches!(separators, None | Some(Separators::Full));
        given.unwrap_or_else(|| KeyLayout::default_for(&keys, whole)).kind(&keys)
    }
}

/// The record list for keys and values of these lengths, `None` if they vary. In a list of fixed length no value must
/// need a run beside any key.
pub(crate) fn record_list(key_width: Option<usize>, value_width: Option<usize>, page_size: usize) -> RecordListKind {
    let longest_key = key_width.unwrap_or(max_inline_key(page_size) + 1);
    match value_width {
        Some(0) => RecordListKind::None,
        Some(width) if width <= max_record(page_size, longest_key).min(MAX_FIXED_RECORD) => RecordListKind::Fixed,
        _ => RecordListKind::Variable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::BlockRule;
    use crate::page::Codec;

    fn leaf(key_type: &str, options: TableOptions) -> KeyListKind {
        TableSpec::of_names(key_type, "u64", options).unwrap().layout(false, 8192).unwrap().leaf
    }

    #[test]
    fn integer_keys_are_in_blocks_unless_the_options_say_otherwise() {
        let open = TableOptions::default();
        for wide in ["u64", "i64"] {
            assert_eq!(leaf(wide, open), KeyListKind::Blocks64(BlockRule::long(TableOptions::DEFAULT_CODEC)));
        }
        for narrow in ["u32", "i32"] {
            assert_eq!(leaf(narrow, open), KeyListKind::Blocks32(BlockRule::long(TableOptions::DEFAULT_CODEC)));
        }
        for other in ["u8", "u128", "bytes", "(u64,u64)"] {
            assert_eq!(leaf(other, open), KeyListKind::Head);
        }
        let fixed = TableOptions { keys: Some(KeyLayout::Fixed), ..open };
        assert_eq!(leaf("u64", fixed), KeyListKind::Fixed);
        let codec = TableOptions { codec: Some(Codec::Bp128), ..open };
        assert_eq!(leaf("u64", codec), KeyListKind::Blocks64(BlockRule::long(Codec::Bp128)));
        let tail = TableOptions { separators: Some(Separators::Tail), ..open };
        assert_eq!(leaf("u64", tail), KeyListKind::Head);
        let full = TableOptions { separators: Some(Separators::Full), ..open };
        assert_eq!(leaf("u64", full), KeyListKind::Blocks64(BlockRule::long(TableOptions::DEFAULT_CODEC)));
    }

    #[test]
    fn blocks_are_short_if_the_options_say_so_and_the_codec_has_longer_ones() {
        let short = |codec| TableOptions { keys: Some(KeyLayout::ShortBlocks), codec, ..TableOptions::default() };
        let rule = BlockRule::short(TableOptions::DEFAULT_CODEC).unwrap();
        assert_eq!(leaf("u64", short(None)), KeyListKind::Blocks64(rule));
        let rule = BlockRule::short(Codec::VByte).unwrap();
        assert_eq!(leaf("i32", short(Some(Codec::VByte))), KeyListKind::Blocks32(rule));
        let refused = |keys, options| {
            TableSpec::of_names(keys, "()", options).unwrap().layout(false, 8192).unwrap_err().to_string()
        };
        let message = refused("u32", short(Some(Codec::Bp128)));
        let right = "blocks: blocks of bp128 never have more than 128 keys";
        assert_eq!(message, format!("option keys cannot be blocks:128: it must be {right}"));
        let message = refused("str", short(None));
        assert!(
            message.starts_with("option keys cannot be blocks:128")
                && message.contains("are for integers of 4 or 8 bytes"),
            "{message}"
        );
    }
}
