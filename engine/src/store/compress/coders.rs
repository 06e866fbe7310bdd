//! Compresses and decompresses the bytes of a page. A coder keeps its memory from one page to the next.

use super::dictionary::{CompressionDictionary, Dictionary, DictionaryId};
use super::{Compression, Encoding, lz4, zlib};
use crate::base::{Error, PageId};
use std::sync::Arc;

/// Finds the dictionary that a frame names.
pub(in crate::store) type Find<'a> = &'a dyn Fn(DictionaryId) -> Option<Arc<Dictionary>>;

/// Why bytes cannot be decompressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) enum DecompressError {
    /// They are damaged, or there are more than there is room for.
    Damaged,
    /// They name a dictionary that is missing or damaged.
    #[cfg_attr(not(feature = "zstd"), expect(dead_code))]
    NoDictionary(DictionaryId),
    /// This build does not have the encoding.
    #[cfg_attr(feature = "zstd", expect(dead_code))]
    NotBuilt,
}

impl DecompressError {
    /// The error for a page with these bytes.
    pub(in crate::store) fn of_page(self, page: PageId) -> Error {
        match self {
            DecompressError::Damaged => Error::corrupt(page, "its image cannot be decompressed"),
            DecompressError::NoDictionary(id) => {
                Error::corrupt(page, format!("its image needs dictionary {id}, which is missing or damaged"))
            }
            DecompressError::NotBuilt => super::no_zstd(),
        }
    }
}

/// The coders of one thread, made when they are first needed.
#[derive(Default)]
pub(in crate::store) struct Coders {
    lz4: Option<lz4::Lz4Encoder>,
    #[cfg(feature = "zstd")]
    zstd: Option<(u8, zstd::bulk::Compressor<'static>)>,
    #[cfg(feature = "zstd")]
    unzstd: Option<zstd::bulk::Decompressor<'static>>,
    /// For pages with dictionaries.
    #[cfg(feature = "zstd")]
    with_dictionary: Option<zstd::zstd_safe::CCtx<'static>>,
    #[cfg(feature = "zstd")]
    from_dictionary: Option<zstd::zstd_safe::DCtx<'static>>,
    zlib: zlib::ZlibEncoder,
    unzlib: zlib::ZlibDecoder,
    /// The decompressed bytes, to compare them with the original.
    again: Vec<u8>,
    /// Decompressing a page has given bytes that differ from the page.
    was_wrong: bool,
}

impl std::fmt::Debug for Coders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coders").finish_non_exhaustive()
    }
}

impl Coders {
    /// Compresses `packed` into `out`, Zstandard with the dictionary if there is one, and decompresses it again for
    /// comparison. Returns the encoding of the bytes in `out`; `None` if they would be more than `most`.
    pub(in crate::store) fn compress(
        &mut self,
        compression: Compression,
        cdict: Option<&CompressionDictionary>,
        packed: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Option<Encoding> {
        // Zstandard takes less time where there is room for any result. The bytes that were there before do not matter.
        out.resize(packed.len() + packed.len() / 8 + 64, 0);
        let len = match compression {
            Compression::None => None,
            Compression::Lz4 => {
                let room = most.min(out.len());
                out.get_mut(..room).and_then(|room| self.lz4.get_or_insert_default().compress(packed, room))
            }
            Compression::Zstd(level) => match cdict {
                Some(cdict) => self.zstd_with(cdict, packed, out),
                None => self.zstd(level, packed, out),
            },
            Compression::Zlib(level) => self.zlib.compress(level, packed, out),
        };
        let len = len.filter(|len| *len <= most)?;
        out.truncate(len);
        let encoding = compression.encoding();
        let mut again = std::mem::take(&mut self.again);
        if again.len() < packed.len() {
            again.resize(packed.len(), 0);
        }
        let find = |_: DictionaryId| cdict.map(|cdict| cdict.dictionary.clone());
        let room = again.get_mut(..packed.len())?;
        let is_right = self.decompress(encoding, out, &find, room) == Ok(packed.len()) && *room == *packed;
        self.again = again;
        if !is_right {
            self.note_wrong(compression);
        }
        is_right.then_some(encoding)
    }

    /// Logs an error for the first page whose decompression gives other bytes. With a faulty coder this may be every
    /// page.
    #[cold]
    fn note_wrong(&mut self, compression: Compression) {
        if !std::mem::replace(&mut self.was_wrong, true) {
            tracing::error!(%compression, "decompressing a page gave other bytes: such pages are written uncompressed");
        }
    }

    /// Decompresses `bytes` into the front of `out`. Returns how many bytes there are.
    pub(in crate::store) fn decompress(
        &mut self,
        encoding: Encoding,
        bytes: &[u8],
        find: Find<'_>,
        out: &mut [u8],
    ) -> Result<usize, DecompressError> {
        let len = match encoding {
            Encoding::Plain => out.get_mut(..bytes.len()).map(|front| {
                front.copy_from_slice(bytes);
                bytes.len()
            }),
            Encoding::Lz4 => lz4::decompress(bytes, out),
            Encoding::Zstd => return self.unzstd(bytes, find, out),
            Encoding::Zlib => self.unzlib.decompress(bytes, out),
        };
        len.ok_or(DecompressError::Damaged)
    }

    #[cfg(feature = "zstd")]
    fn zstd(&mut self, level: u8, packed: &[u8], out: &mut [u8]) -> Option<usize> {
        if self.zstd.as_ref().is_none_or(|(of, _)| *of != level) {
            self.zstd = Some((level, zstd::bulk::Compressor::new(level.into()).ok()?));
        }
        self.zstd.as_mut()?.1.compress_to_buffer(packed, out).ok()
    }

    #[cfg(feature = "zstd")]
    fn zstd_with(&mut self, cdict: &CompressionDictionary, packed: &[u8], out: &mut [u8]) -> Option<usize> {
        if self.with_dictionary.is_none() {
            self.with_dictionary = zstd::zstd_safe::CCtx::try_create();
        }
        self.with_dictionary.as_mut()?.compress_using_cdict(out, packed, &cdict.encoder).ok()
    }

    #[cfg(feature = "zstd")]
    fn unzstd(&mut self, bytes: &[u8], find: Find<'_>, out: &mut [u8]) -> Result<usize, DecompressError> {
        if let Some(id) = dictionary_of(Encoding::Zstd, bytes) {
            let dictionary = find(id).filter(|found| found.id() == id).ok_or(DecompressError::NoDictionary(id))?;
            let decoder = dictionary.decoder().ok_or(DecompressError::NoDictionary(id))?;
            if self.from_dictionary.is_none() {
                self.from_dictionary = zstd::zstd_safe::DCtx::try_create();
            }
            let context = self.from_dictionary.as_mut().ok_or(DecompressError::Damaged)?;
            return context.decompress_using_ddict(out, bytes, decoder).map_err(|_| DecompressError::Damaged);
        }
        if self.unzstd.is_none() {
            self.unzstd = zstd::bulk::Decompressor::new().ok();
        }
        let len = self.unzstd.as_mut().and_then(|unzstd| unzstd.decompress_to_buffer(bytes, out).ok());
        len.ok_or(DecompressError::Damaged)
    }

    #[cfg(not(feature = "zstd"))]
    fn zstd(&mut self, _level: u8, _packed: &[u8], _out: &mut [u8]) -> Option<usize> {
        None
    }

    #[cfg(not(feature = "zstd"))]
    fn zstd_with(&mut self, _cdict: &CompressionDictionary, _packed: &[u8], _out: &mut [u8]) -> Option<usize> {
        None
    }

    #[cfg(not(feature = "zstd"))]
    fn unzstd(&mut self, _bytes: &[u8], _find: Find<'_>, _out: &mut [u8]) -> Result<usize, DecompressError> {
        Err(DecompressError::NotBuilt)
    }
}

/// A frame of Zstandard begins with this number.
const FRAME_MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// The dictionary that a content with this encoding names. A frame of Zstandard has the number in its header: see
/// RFC 8878, section 3.1.1.1. It is read without the library, because a build without Zstandard must keep the
/// dictionaries that pages name, too.
pub(in crate::store) fn dictionary_of(encoding: Encoding, bytes: &[u8]) -> Option<DictionaryId> {
    let frame = Some(bytes).filter(|_| encoding == Encoding::Zstd)?;
    let (descriptor, fields) = frame.strip_prefix(&FRAME_MAGIC)?.split_first()?;
    // A frame of a single segment has no byte for the size of its window.
    let at = usize::from(descriptor & 0x20 == 0);
    let len = [0, 1, 2, 4].get(usize::from(descriptor & 3)).copied()?;
    let mut number = [0; 4];
    number.get_mut(..len)?.copy_from_slice(fields.get(at..at + len)?);
    Some(u32::from_le_bytes(number)).filter(|number| *number != 0).map(DictionaryId)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(descriptor: u8, fields: &[u8]) -> Vec<u8> {
        [&FRAME_MAGIC[..], &[descriptor], fields].concat()
    }

    #[test]
    fn the_dictionary_is_read_from_the_header_of_a_frame() {
        for (descriptor, fields, expected) in [
            (0x20, &[9, 7, 1, 0, 0][..], None),
            (0x21, &[7, 1], Some(7)),
            (0x22, &[7, 1, 3], Some(0x107)),
            (0x23, &[7, 1, 3, 2, 9], Some(0x0203_0107)),
            (0x03, &[9, 7, 1, 3, 2], Some(0x0203_0107)),
            (0x01, &[9, 7], Some(7)),
            (0x23, &[0, 0, 0, 0, 9], None),
            (0x23, &[7, 1, 3], None),
            (0x01, &[9], None),
        ] {
            let found = dictionary_of(Encoding::Zstd, &frame(descriptor, fields));
            assert_eq!(found.map(|id| id.0), expected, "{descriptor:x} {fields:?}");
        }
        let sound = frame(0x23, &[7, 1, 3, 2, 9]);
        assert_eq!(dictionary_of(Encoding::Lz4, &sound), None);
        assert_eq!(dictionary_of(Encoding::Zstd, &sound[1..]), None);
        assert_eq!(dictionary_of(Encoding::Zstd, &[]), None);
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn the_library_finds_the_same_dictionary() {
        for descriptor in 0..=u8::MAX {
            // The library refuses a frame whose reserved bit is set. Nothing writes one.
            if descriptor & 8 != 0 {
                continue;
            }
            let whole = frame(descriptor, &[0x10, 3, 9, 1, 4, 7, 0, 0, 0, 5, 5, 5, 5, 5]);
            let found = zstd::zstd_safe::get_dict_id_from_frame(&whole).map(|id| id.get());
            assert_eq!(dictionary_of(Encoding::Zstd, &whole).map(|id| id.0), found, "{descriptor:x}");
        }
    }
}
