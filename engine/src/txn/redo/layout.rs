//! Encodes a tree's layout in ten bytes, for the catalog and for logical records: `leaf tag, 3 bytes | inner tag,
//! 3 bytes | record list u8 | separators u8 (0 full, 1 tail) | tail radius u16`. The two tags are those of the key
//! lists of leaves and of inner pages.

use crate::base::bytes;
use crate::page::{KeyListKind, RecordListKind, SeparatorRule};
use crate::tree::TreeLayout;

/// The length of an encoded layout.
pub(crate) const LAYOUT_BYTES: usize = 10;

/// Encodes a layout.
pub(crate) fn layout_to_bytes(layout: &TreeLayout) -> [u8; LAYOUT_BYTES] {
    let mut out = [0; LAYOUT_BYTES];
    bytes::put(&mut out, 0, &layout.leaf.tag());
    bytes::put(&mut out, 3, &layout.inner.tag());
    bytes::put_u8(&mut out, 6, layout.records as u8);
    if let SeparatorRule::Tail { radius } = layout.separators {
        bytes::put_u8(&mut out, 7, 1);
        bytes::put_u16(&mut out, 8, radius);
    }
    out
}

/// Decodes a layout; `None` if the bytes are not a layout.
pub(crate) fn layout_from_bytes(input: &[u8]) -> Option<TreeLayout> {
    let records = RecordListKind::from_tag(bytes::get_u8(input, 6))?;
    let separators = match bytes::get_u8(input, 7) {
        0 => SeparatorRule::Full,
        1 => SeparatorRule::Tail { radius: bytes::get_u16(input, 8) },
        _ => return None,
    };
    let kind = |at: usize| KeyListKind::from_tag(*input.get(at..)?.first_chunk()?);
    let (leaf, inner) = (kind(0)?, kind(3).filter(|kind| kind.suits_inner_pages())?);
    Some(TreeLayout { leaf, inner, records, separators })
}
