//! Compresses and decompresses the bytes of a page. A coder keeps its memory from one page to the next.

use super::{Compression, Encoding};
use crate::base::Result;
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use lz4_flex::block::CompressTable;

/// The coders of one thread, made when they are first needed.
#[derive(Default)]
pub(in crate::store) struct Coders {
    lz4: Option<CompressTable>,
    #[cfg(feature = "zstd")]
    zstd: Option<(u8, zstd::bulk::Compressor<'static>)>,
    #[cfg(feature = "zstd")]
    unzstd: Option<zstd::bulk::Decompressor<'static>>,
    zlib: Option<(u8, Compress)>,
    unzlib: Option<Decompress>,
    /// For comparing what was compressed with what it decompresses to.
    again: Vec<u8>,
}

impl std::fmt::Debug for Coders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coders").finish_non_exhaustive()
    }
}

impl Coders {
    /// Compresses `packed` into `out`, and decompresses it again for comparison. Returns the encoding of the bytes in
    /// `out`; `None` if they would be more than `most`.
    pub(in crate::store) fn compress(
        &mut self,
        compression: Compression,
        packed: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Option<Encoding> {
        let bound = lz4_flex::block::get_maximum_output_size(packed.len()).max(packed.len());
        out.clear();
        out.resize(bound, 0);
        let len = match compression {
            Compression::None => None,
            Compression::Lz4 => {
                let table = self.lz4.get_or_insert_default();
                lz4_flex::block::compress_into_with_table(packed, out, table).ok()
            }
            Compression::Zstd(level) => self.zstd(level, packed, out),
            Compression::Zlib(level) => self.zlib(level, packed, out),
        };
        let len = len.filter(|len| *len <= most)?;
        out.truncate(len);
        let encoding = compression.encoding();
        let mut again = std::mem::take(&mut self.again);
        again.clear();
        again.resize(packed.len(), 0);
        let is_same = self.decompress(encoding, out, &mut again).is_ok_and(|len| len == Some(packed.len()));
        let is_right = is_same && again == packed;
        self.again = again;
        is_right.then_some(encoding)
    }

    /// Decompresses `bytes` into the front of `out`. Returns how many bytes there are; `None` if the bytes are damaged or if
    /// they are more than `out` has room for.
    ///
    /// # Errors
    /// [`crate::Error::NotBuilt`] if this build does not have the encoding.
    pub(in crate::store) fn decompress(
        &mut self,
        encoding: Encoding,
        bytes: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>> {
        match encoding {
            Encoding::Plain => Ok(out.get_mut(..bytes.len()).map(|front| {
                front.copy_from_slice(bytes);
                bytes.len()
            })),
            Encoding::Lz4 => Ok(lz4_flex::block::decompress_into(bytes, out).ok()),
            Encoding::Zstd => self.unzstd(bytes, out),
            Encoding::Zlib => Ok(self.unzlib(bytes, out)),
        }
    }

    #[cfg(feature = "zstd")]
    fn zstd(&mut self, level: u8, packed: &[u8], out: &mut [u8]) -> Option<usize> {
        if self.zstd.as_ref().is_none_or(|(of, _)| *of != level) {
            self.zstd = Some((level, zstd::bulk::Compressor::new(level.into()).ok()?));
        }
        self.zstd.as_mut()?.1.compress_to_buffer(packed, out).ok()
    }

    #[cfg(feature = "zstd")]
    fn unzstd(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
        if self.unzstd.is_none() {
            self.unzstd = zstd::bulk::Decompressor::new().ok();
        }
        Ok(self.unzstd.as_mut().and_then(|unzstd| unzstd.decompress_to_buffer(bytes, out).ok()))
    }

    #[cfg(not(feature = "zstd"))]
    fn zstd(&mut self, _level: u8, _packed: &[u8], _out: &mut [u8]) -> Option<usize> {
        None
    }

    #[cfg(not(feature = "zstd"))]
    fn unzstd(&mut self, _bytes: &[u8], _out: &mut [u8]) -> Result<Option<usize>> {
        Err(super::no_zstd())
    }

    fn zlib(&mut self, level: u8, packed: &[u8], out: &mut [u8]) -> Option<usize> {
        if self.zlib.as_ref().is_none_or(|(of, _)| *of != level) {
            self.zlib = Some((level, Compress::new(flate2::Compression::new(level.into()), true)));
        }
        let zlib = &mut self.zlib.as_mut()?.1;
        zlib.reset();
        let status = zlib.compress(packed, out, FlushCompress::Finish).ok()?;
        (status == Status::StreamEnd).then(|| usize::try_from(zlib.total_out()).ok()).flatten()
    }

    fn unzlib(&mut self, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
        let unzlib = self.unzlib.get_or_insert_with(|| Decompress::new(true));
        unzlib.reset(true);
        let status = unzlib.decompress(bytes, out, FlushDecompress::Finish).ok()?;
        (status == Status::StreamEnd).then(|| usize::try_from(unzlib.total_out()).ok()).flatten()
    }
}
