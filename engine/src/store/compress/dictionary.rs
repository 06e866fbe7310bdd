//! [`Dictionary`]: a dictionary of Zstandard, its bytes in the file, and what coders need to use it. `dictionaries` has
//! the dictionaries of a database.

use crate::base::bytes::{get_u32, put_u32};
use crate::base::checksum::checksum;
use crate::base::{PageId, TableId};
use std::sync::Arc;

/// The number of a dictionary. No number is used twice in a database. Each frame that was compressed with the
/// dictionary names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DictionaryId(pub u32);

impl std::fmt::Display for DictionaryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The copies of each dictionary in the file.
pub const DICTIONARY_COPIES: usize = 2;
/// The maximum number of dictionaries that a database has.
pub const MAX_DICTIONARIES: usize = 64;
/// The maximum number of bytes of a dictionary.
pub(crate) const MAX_BYTES: usize = 110 << 10;

/// The table of a dictionary, and the first pages of its copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DictionaryPlace {
    /// The dictionary.
    pub id: DictionaryId,
    /// The table on whose pages it was trained.
    pub table: TableId,
    /// The first page of each copy.
    pub firsts: [PageId; DICTIONARY_COPIES],
}

/// Bytes of a [`DictionaryPlace`].
pub(in crate::store) const DICTIONARY_BYTES: usize = 8 + 4 * DICTIONARY_COPIES;

/// The bytes of places.
pub(in crate::store) fn encode_dictionaries(places: &[DictionaryPlace]) -> Vec<u8> {
    let fields = |place: &DictionaryPlace| {
        let [first, second] = place.firsts;
        [place.id.0, place.table.0, first.0, second.0].map(u32::to_le_bytes)
    };
    places.iter().flat_map(fields).flatten().collect()
}

/// Decodes what [`encode_dictionaries`] wrote.
pub(in crate::store) fn decode_dictionaries(bytes: &[u8]) -> Vec<DictionaryPlace> {
    let place = |bytes: &[u8]| DictionaryPlace {
        id: DictionaryId(get_u32(bytes, 0)),
        table: TableId(get_u32(bytes, 4)),
        firsts: [8, 12].map(|at| PageId(get_u32(bytes, at))),
    };
    bytes.chunks_exact(DICTIONARY_BYTES).map(place).collect()
}

/// A dictionary of Zstandard begins with this number, then its id.
const MAGIC: u32 = 0xEC30_A437;
const ID: usize = 4;
/// Bytes of the checksum after it.
const CHECKSUM: usize = 4;

/// The bytes of a trained dictionary in the file: with its id, and with their CRC-32C at the end.
pub(crate) fn sealed_dictionary(id: DictionaryId, trained: &[u8]) -> Vec<u8> {
    let mut bytes = trained.to_vec();
    put_u32(&mut bytes, ID, id.0);
    let crc = checksum(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

/// The id in the first bytes of a dictionary; `None` if they are those of something else.
pub(super) fn id_in(bytes: &[u8]) -> Option<DictionaryId> {
    let is_one = bytes.len() > ID + CHECKSUM && get_u32(bytes, 0) == MAGIC && get_u32(bytes, ID) != 0;
    is_one.then(|| DictionaryId(get_u32(bytes, ID)))
}

/// A dictionary, with the state of its decoder.
pub(crate) struct Dictionary {
    id: DictionaryId,
    pub(super) bytes: Box<[u8]>,
    #[cfg(feature = "zstd")]
    decoder: std::sync::OnceLock<Option<zstd::zstd_safe::DDict<'static>>>,
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dictionary").field("id", &self.id).field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Dictionary {
    /// The dictionary in bytes that [`sealed_dictionary`] has made; `None` if they are damaged.
    pub(crate) fn open(sealed: &[u8]) -> Option<Dictionary> {
        let id = id_in(sealed).filter(|_| sealed.len() <= MAX_BYTES + CHECKSUM)?;
        let (bytes, crc) = sealed.split_at_checked(sealed.len() - CHECKSUM)?;
        (checksum(bytes) == get_u32(crc, 0)).then(|| Dictionary {
            id,
            bytes: bytes.into(),
            #[cfg(feature = "zstd")]
            decoder: std::sync::OnceLock::new(),
        })
    }

    /// Its id.
    pub(crate) fn id(&self) -> DictionaryId {
        self.id
    }

    /// It, prepared for decompression; `None` if it is none for Zstandard.
    #[cfg(feature = "zstd")]
    pub(super) fn decoder(&self) -> Option<&zstd::zstd_safe::DDict<'static>> {
        self.decoder.get_or_init(|| zstd::zstd_safe::DDict::try_create(&self.bytes)).as_ref()
    }
}

/// A dictionary, prepared for compression with a level: a CDict of Zstandard.
pub(crate) struct CompressionDictionary {
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) level: u8,
    #[cfg(feature = "zstd")]
    pub(super) encoder: zstd::zstd_safe::CDict<'static>,
}

impl std::fmt::Debug for CompressionDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompressionDictionary")
            .field("dictionary", &self.dictionary)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl CompressionDictionary {
    /// Prepares a dictionary; `None` if it is none for Zstandard.
    #[cfg(feature = "zstd")]
    pub(crate) fn new(dictionary: Arc<Dictionary>, level: u8) -> Option<CompressionDictionary> {
        let encoder = zstd::zstd_safe::CDict::try_create(&dictionary.bytes, level.into())?;
        Some(CompressionDictionary { dictionary, level, encoder })
    }

    #[cfg(not(feature = "zstd"))]
    pub(crate) fn new(_dictionary: Arc<Dictionary>, _level: u8) -> Option<CompressionDictionary> {
        None
    }
}

/// Trains a dictionary of at most `most` bytes on the packed pages, which are side by side in `pages` and have these
/// lengths. `None` if they are too few or too different.
#[cfg(feature = "zstd")]
pub(crate) fn train(pages: &[u8], lengths: &[usize], most: usize) -> Option<Vec<u8>> {
    let mut trained = Vec::with_capacity(most.min(MAX_BYTES));
    zstd::zstd_safe::train_from_buffer(&mut trained, pages, lengths).ok()?;
    Some(trained).filter(|trained| get_u32(trained, 0) == MAGIC)
}

#[cfg(not(feature = "zstd"))]
pub(crate) fn train(_pages: &[u8], _lengths: &[usize], _most: usize) -> Option<Vec<u8>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_dictionaries_are_none() {
        let trained = [&MAGIC.to_le_bytes()[..], &[9; 300]].concat();
        let sealed = sealed_dictionary(DictionaryId(77), &trained);
        assert_eq!(Dictionary::open(&sealed).map(|opened| opened.id()), Some(DictionaryId(77)));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(Dictionary::open(&damaged).is_none(), "{at}");
            assert!(Dictionary::open(&sealed[..at]).is_none(), "{at}");
        }
        assert!(Dictionary::open(&sealed_dictionary(DictionaryId(1), &[7; 300])).is_none());
        let large = [&MAGIC.to_le_bytes()[..], &vec![0; MAX_BYTES]].concat();
        assert!(Dictionary::open(&sealed_dictionary(DictionaryId(1), &large)).is_none());
    }

    #[test]
    fn places_are_decoded_as_they_were_encoded() {
        let place = |id: u32| DictionaryPlace {
            id: DictionaryId(id),
            table: TableId(id + 1),
            firsts: [PageId(id + 2), PageId(id + 3)],
        };
        let places = [place(1), place(u32::MAX - 3)];
        assert_eq!(decode_dictionaries(&encode_dictionaries(&places)), places);
    }
}
