//! A tree's layout in eight bytes, for the catalog and for logical records:
//! `leaf key list | inner key list | record list | separators (0 full, 1 tail) | 0 u16 | tail radius u16`.

use crate::base::bytes;
use crate::page::{KeyListKind, RecordListKind, SeparatorRule};
use crate::tree::TreeLayout;

/// Bytes of an encoded layout.
pub(crate) const LAYOUT_BYTES: usize = 8;

/// Encodes a layout.
pub(crate) fn layout_to_bytes(layout: &TreeLayout) -> [u8; LAYOUT_BYTES] {
    let mut out = [0; LAYOUT_BYTES];
    bytes::put_u8(&mut out, 0, layout.leaf.tag());
    bytes::put_u8(&mut out, 1, layout.inner.tag());
    bytes::put_u8(&mut out, 2, layout.records as u8);
    if let SeparatorRule::Tail { radius } = layout.separators {
        bytes::put_u8(&mut out, 3, 1);
        bytes::put_u16(&mut out, 6, radius);
    }
    out
}

/// Decodes a layout; `None` where the bytes are none.
pub(crate) fn layout_from_bytes(input: &[u8]) -> Option<TreeLayout> {
    let records = RecordListKind::from_tag(bytes::get_u8(input, 2))?;
    let separators = match bytes::get_u8(input, 3) {
        0 => SeparatorRule::Full,
        1 => SeparatorRule::Tail { radius: bytes::get_u16(input, 6) },
        _ => return None,
    };
    let leaf = KeyListKind::from_tag(bytes::get_u8(input, 0))?;
    let inner = KeyListKind::from_tag(bytes::get_u8(input, 1)).filter(|kind| kind.suits_inner_pages())?;
    Some(TreeLayout { leaf, inner, records, separators })
}
