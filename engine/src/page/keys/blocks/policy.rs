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

fn bits(value: u64) -> u16 {
    u16::try_from(u64::BITS - value.leading_zeros()).unwrap_or(64)
}

/// Returns the bytes of a gap in VarInt-GB and StreamVByte.
fn whole_bytes(gap: u64) -> usize {
    usize::from(bits(gap).div_ceil(8).max(1))
}

/// Returns the bytes by which a block of at least one key grows if `key`, above all of its keys, is appended.
pub(super) fn growth<T: IntKey>(codec: Codec, block: &Block<T>, key: T) -> usize {
    let gap = key.widen().wrapping_sub(block.last.widen()).wrapping_sub(1);
    let gaps = usize::from(block.count.saturating_sub(1));
    // One control byte describes this number of gaps.
    let group = if T::BITS == 32 { 4 } else { 2 };
    match codec {
        Codec::Plain => T::BYTES,
        Codec::VByte | Codec::MaskedVByte => usize::from(bits(gap).div_ceil(7).max(1)),
        Codec::VarIntGb | Codec::StreamVByte => whole_bytes(gap) + usize::from(gaps.is_multiple_of(group)),
        Codec::For | Codec::SimdFor | Codec::Bp128 => {
            match (T::used(codec, &grown(codec, block, key)), T::used(codec, block)) {
                (Ok(grown), Ok(now)) => grown.saturating_sub(now),
                (Err(_), _) | (_, Err(_)) => usize::MAX,
            }
        }
    }
}

/// Returns the descriptor of a packed block of at least one key after `key`, above all of its keys, is appended.
fn grown<T: IntKey>(codec: Codec, block: &Block<T>, key: T) -> Block<T> {
    let field = match codec {
        Codec::Bp128 => key.widen().wrapping_sub(block.last.widen()).wrapping_sub(1),
        Codec::For | Codec::SimdFor => key.widen().wrapping_sub(block.first.widen()),
        // Blocks of these codecs have no width.
        Codec::Plain | Codec::VByte | Codec::MaskedVByte | Codec::VarIntGb | Codec::StreamVByte => 0,
    };
    let extent = bits(field).max(block.extent);
    Block { first: block.first, last: key, count: block.count.saturating_add(1), extent }
}

/// Returns the cost in bytes of appending `key` to the block; `None` if the key must begin a block of its own.
#[inline]
pub(super) fn append_cost<T: IntKey>(rule: BlockRule, block: &Block<T>, key: T) -> Option<usize> {
    let codec = rule.codec();
    let count = usize::from(block.count);
    let cost = growth(codec, block, key);
    (count > 0 && count < rule.most() && (!is_packed(codec) || cost <= most_growth::<T>(codec))).then_some(cost)
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
                let with = grown(codec, &block, **key);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds<T: IntKey>(codec: Codec, gaps: &[(u32, u64)]) {
        let (mut bytes, mut block) = ([0u8; 4096], Block::<T>::default());
        let mut key = 0u64;
        for (shift, gap) in gaps.iter().take(codec.max_count()) {
            let Some(next) = key.checked_add(1 + (gap >> (shift % 64))).filter(|next| *next <= T::MAX.widen()) else {
                return;
            };
            key = next;
            let now = T::used(codec, &block).unwrap();
            let predicted = if block.count == 0 { 0 } else { growth(codec, &block, T::narrow(key)) };
            T::append(codec, &mut block, &mut bytes, T::narrow(key)).unwrap();
            assert_eq!(T::used(codec, &block).unwrap() - now, predicted, "{codec} at {} keys", block.count);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn an_append_costs_the_predicted_bytes(gaps in prop::collection::vec((40u32..64, any::<u64>()), 1..256)) {
            for codec in Codec::ALL {
                holds::<u32>(codec, &gaps);
                holds::<u64>(codec, &gaps);
            }
        }
    }
}
