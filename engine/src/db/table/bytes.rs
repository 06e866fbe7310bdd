//! Owned bytes of a key or value that was copied out of its page. Short ones need no allocation.

use std::fmt;
use std::ops::Deref;

/// The maximum length of bytes that need no allocation.
const INLINE: usize = 38;

/// Owned bytes; short ones need no allocation.
#[derive(Clone)]
pub(crate) enum Bytes {
    Inline(u8, [u8; INLINE]),
    Heap(Box<[u8]>),
}

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(bytes: &[u8]) -> Bytes {
        let mut inline = [0; INLINE];
        match (inline.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(bytes);
                Bytes::Inline(len, inline)
            }
            _ => Bytes::Heap(bytes.into()),
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Bytes::Heap(bytes.into())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Inline(len, inline) => inline.get(..usize::from(*len)).unwrap_or_default(),
            Bytes::Heap(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_come_back() {
        for len in [0, 1, INLINE - 1, INLINE, INLINE + 1, 255, 256, 300] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            assert_eq!(&*Bytes::from(bytes.as_slice()), bytes.as_slice());
        }
    }
}
