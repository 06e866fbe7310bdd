//! Makes dictionaries and frames of any bytes, for the fuzz targets. Nothing else may use this.

use super::{
    Coders, Compression, CompressionDictionary, Dictionary, DictionaryId, DictionaryPlace, Encoding, PageCompression,
    sealed_dictionary, train,
};
use crate::base::{PageId, Result};
use std::sync::Arc;

/// A dictionary of at most `most` bytes, trained on samples of these lengths. `None` if they are too few.
pub fn trained(samples: &[u8], lengths: &[usize], most: usize) -> Option<Vec<u8>> {
    train(samples, lengths, most)
}

/// The bytes of a dictionary in the file, with the right checksum. They may be none of Zstandard.
pub fn sealed(id: DictionaryId, trained: &[u8]) -> Vec<u8> {
    sealed_dictionary(id, trained)
}

/// Notes a dictionary: the next checkpoint has its place. False if the bytes are none.
pub fn add_dictionary(compression: &PageCompression, place: DictionaryPlace, sealed: &[u8]) -> bool {
    Dictionary::open(sealed).map(|dictionary| compression.add_dictionary(place, dictionary)).is_some()
}

/// From now on pages of its table are compressed with the dictionary.
pub fn activate(compression: &PageCompression, place: DictionaryPlace) {
    compression.activate(place.id, place.table);
}

/// A frame of Zstandard that was compressed with the dictionary; `None` if the bytes are no dictionary.
pub fn frame(sealed: &[u8], packed: &[u8]) -> Option<Vec<u8>> {
    let (level, mut out) = (3, Vec::new());
    let cdict = CompressionDictionary::new(Arc::new(Dictionary::open(sealed)?), level)?;
    Coders::default().compress(Compression::Zstd(level), Some(&cdict), packed, packed.len(), &mut out)?;
    Some(out)
}

/// Decompresses a frame of Zstandard to at most `room` bytes, if there is only this dictionary.
///
/// # Errors
/// [`crate::Error::Corrupt`] with this page.
pub fn open_frame(sealed: &[u8], frame: &[u8], page: PageId, room: usize) -> Result<Vec<u8>> {
    let dictionary = Dictionary::open(sealed).map(Arc::new);
    let mut out = vec![0; room];
    let len = Coders::default().decompress(Encoding::Zstd, frame, &|_| dictionary.clone(), &mut out);
    out.truncate(len.map_err(|undone| undone.of_page(page))?);
    Ok(out)
}
