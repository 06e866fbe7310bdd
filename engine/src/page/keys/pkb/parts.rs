//! The parts that distinguish each key of a page from the key before, and the search that needs only these parts and
//! one whole key.
//!
//! A part is `offset u16 | l bytes`: how many bytes the key shares with the one before, and the bytes that follow,
//! padded with zeros. The first part of a page may have a smaller offset than the number of bytes that its key shares
//! with the page's lower fence. Of a long fence only the first bytes are known.
//!
//! A search reads the parts in order. As long as they are sufficient, it knows how many bytes of the sought key agree
//! with the key before. If all bytes of a part agree, a blind search follows: it looks at the keys that may share these
//! bytes and more, and compares only the first byte after each offset. It leads to one key. That key is read, the only
//! one of the page, and determines the result.

use crate::base::bytes;
use crate::page::keys::KeyListKind;
use std::convert::Infallible;

/// The bytes of an offset.
pub(super) const FIELD: usize = 2;

/// A part of the greatest length; a list has the first bytes of it.
pub(super) type PartialKey = [u8; FIELD + KeyListKind::LONGEST_PART as usize];

/// Returns the part of `key` after `before`.
#[inline]
pub(super) fn part_of(before: Option<&[u8]>, key: &[u8]) -> PartialKey {
    // Only two equal keys of the greatest length, which a damaged page can have, share more bytes than the field holds.
    let offset = bytes::u16_clamped(before.map_or(0, |before| bytes::common_prefix(before, key)));
    let mut part = PartialKey::default();
    bytes::put_u16(&mut part, 0, offset);
    let offset = usize::from(offset);
    let rest = key.get(offset..).unwrap_or_default();
    bytes::put(&mut part, FIELD, rest.get(..PartialKey::default().len() - FIELD).unwrap_or(rest));
    part
}

/// The parts of a page, one every `stride` bytes.
#[derive(Clone, Copy)]
pub(super) struct PartialKeys<'a> {
    bytes: &'a [u8],
    count: usize,
    len: usize,
    stride: usize,
}

impl<'a> PartialKeys<'a> {
    /// Makes a view of the parts of `count` keys, each with `len` bytes of its key.
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], count: usize, len: usize, stride: usize) -> PartialKeys<'a> {
        PartialKeys { bytes, count, len, stride }
    }

    /// Returns how many bytes the key of `slot` shares with the one before.
    #[inline(always)]
    pub(super) fn offset(&self, slot: usize) -> usize {
        usize::from(bytes::get_u16(self.bytes, slot * self.stride))
    }

    /// Returns the bytes of the key of `slot` after its offset.
    #[inline(always)]
    pub(super) fn part(&self, slot: usize) -> &'a [u8] {
        let at = slot * self.stride + FIELD;
        bytes::slice(self.bytes, at, at + self.len)
    }

    /// Searches a page that holds its whole keys.
    #[inline]
    pub(super) fn search<'k>(&self, key: &[u8], mut read: impl FnMut(usize) -> &'k [u8]) -> Result<usize, usize> {
        let Ok(found) = self.search_with(&[], key, |slot| Ok::<_, Infallible>(read(slot)));
        found
    }

    /// Searches for a key. `read` reads a whole key. `lower` is the first bytes of the page's lower fence; `key` is not
    /// below the fence.
    #[inline(always)]
    pub(super) fn search_with<K: AsRef<[u8]>, E>(
        &self,
        lower: &[u8],
        key: &[u8],
        mut read: impl FnMut(usize) -> Result<K, E>,
    ) -> Result<Result<usize, usize>, E> {
        let mut agreed = bytes::common_prefix(lower, key);
        if agreed == lower.len() && self.offset(0) > agreed && self.count > 0 {
            // The first key may share more or fewer bytes with the sought key than with the fence.
            return self.resolve(0, agreed, key, &mut read);
        }
        agreed = agreed.min(self.offset(0));
        for slot in 0..self.count {
            let offset = self.offset(slot);
            if offset > agreed {
                continue;
            }
            if offset < agreed {
                return Ok(Err(slot));
            }
            match compare_part(self.part(slot), key.get(agreed..).unwrap_or_default()) {
                PartComparison::Above => return Ok(Err(slot)),
                PartComparison::Below(common) => agreed += common,
                PartComparison::Unknown(common) => {
                    return self.resolve(slot, agreed + common, key, &mut read);
                }
            }
        }
        Ok(Err(self.count))
    }

    /// Finishes a search: `key` is above the key before slot `first` and agrees with the key of `first` in at least
    /// `agreed` bytes.
    fn resolve<K: AsRef<[u8]>, E>(
        &self,
        first: usize,
        agreed: usize,
        key: &[u8],
        read: &mut impl FnMut(usize) -> Result<K, E>,
    ) -> Result<Result<usize, usize>, E> {
        // From `end` on, keys are above all keys that agree so far.
        let end = (first + 1..self.count).find(|slot| self.offset(*slot) < agreed).unwrap_or(self.count);
        let (mut candidate, mut slot) = (first, first + 1);
        while slot < end {
            let offset = self.offset(slot);
            if key.get(offset).is_some_and(|byte| self.part(slot).first().is_some_and(|there| byte >= there)) {
                candidate = slot;
                slot += 1;
            } else {
                // Skips the keys that share more with this one, and those that are above it at the same byte.
                slot = (slot + 1..end).find(|slot| self.offset(*slot) < offset).unwrap_or(end);
            }
        }
        let there = read(candidate)?;
        let there = there.as_ref();
        let common = bytes::common_prefix(there, key);
        Ok(match (there.get(common), key.get(common)) {
            (None, None) => Ok(candidate),
            (Some(there), wanted) if wanted.is_none_or(|wanted| wanted < there) => {
                let lowest = (first + 1..=candidate).rev().find(|slot| self.offset(*slot) <= common);
                Err(lowest.unwrap_or(first))
            }
            _ => Err((candidate + 1..end).find(|slot| self.offset(*slot) <= common).unwrap_or(end)),
        })
    }
}

/// The result of a comparison of a part with a sought key that agrees with the part's key up to the offset.
enum PartComparison {
    /// The part's key is above the sought key.
    Above,
    /// The part's key is below the sought key, and this number of further bytes agree.
    Below(usize),
    /// All known bytes agree: at least this number.
    Unknown(usize),
}

/// Compares a part, padded with zeros, with the rest of the sought key.
#[inline(always)]
fn compare_part(part: &[u8], wanted: &[u8]) -> PartComparison {
    for (at, there) in part.iter().enumerate() {
        let byte = wanted.get(at).copied().unwrap_or(0);
        if *there > byte {
            return PartComparison::Above;
        }
        if *there < byte {
            return PartComparison::Below(at);
        }
        // A zero may be a byte of either key or the end of it.
        if byte == 0 {
            return PartComparison::Unknown(at);
        }
    }
    PartComparison::Unknown(part.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::limits::MAX_KEY;

    #[test]
    fn equal_keys_of_the_greatest_length_have_a_part() {
        let key = vec![7; MAX_KEY];
        assert_eq!(part_of(Some(&key), &key)[..FIELD + 1], [255, 255, 7]);
    }
}
