//! Chooses the block of a key: the cost of an append, and when a block of its own costs less. The result depends only
//! on descriptors, so that it is the same at commit and at recovery.

use super::codec::IntKey;
use super::index::{entry_bytes, is_packed};
use super::rule::BlockRule;
use duramen_codec::{Block, Codec};
use std::ops::Range;

/// The most bytes that one more key may cost in its block, beside the cost of a block of its own. Without this limit
/// one distant key would make all fields of a packed block wider.
const WIDENING: usize = 64;

/// Returns the most bytes that one more key may cost a block.
pub(super) fn most_growth<T: IntKey>(codec: Codec) -> usize {
    WIDENING + entry_bytes::<T>(codec)
}

/// Returns the cost in bytes of appending `key` to the block; `None` if the key must begin a block of its own.
#[inline]
pub(super) fn append_cost<T: IntKey>(rule: BlockRule, block: &Block<T>, key: T) -> Option<usize> {
    let codec = rule.codec();
    if !(1..rule.most()).contains(&usize::from(block.count)) {
        return None;
    }
    let cost = codec.append_growth(block, key).ok()?;
    (!is_packed(codec) || cost <= most_growth::<T>(codec)).then_some(cost)
}

/// Divides keys among blocks of at most `most` keys. A key that would make all fields of a packed block wider may begin
/// a block of its own, as it may when keys are appended one by one.
pub(super) fn pieces<T: IntKey>(rule: BlockRule, keys: &[T], most: usize) -> impl Iterator<Item = Range<usize>> {
    let codec = rule.codec();
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = keys.get(from..)?;
        let &first = rest.first()?;
        let len = if is_packed(codec) {
            let mut block = Block { first, last: first, count: 1, extent: 0 };
            let more = rest.iter().skip(1).take(most.saturating_sub(1)).take_while(|key| {
                let with = codec.appended(&block, **key);
                let fits = with.extent == block.extent || append_cost(rule, &block, **key).is_some();
                block = with;
                fits
            });
            1 + more.count()
        } else {
            rest.len().min(most)
        };
        from += len;
        Some(from - len..from)
    })
}
