//! zlib streams (RFC 1950) of whole pages: libdeflate, or flate2 in a build without the C libraries. Both write and
//! read the same format.

#[cfg(feature = "libdeflate")]
mod coder {
    use libdeflater::{CompressionLvl, Compressor, Decompressor};

    /// Compresses with one level at a time.
    #[derive(Default)]
    pub(in super::super) struct ZlibEncoder(Option<(u8, Compressor)>);

    impl ZlibEncoder {
        /// Compresses `bytes` into the front of `out`. Returns the length; `None` if there is no room.
        pub(in super::super) fn compress(&mut self, level: u8, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
            if self.0.as_ref().is_none_or(|(of, _)| *of != level) {
                self.0 = Some((level, Compressor::new(libdeflate_level(level)?)));
            }
            self.0.as_mut()?.1.zlib_compress(bytes, out).ok()
        }
    }

    /// libdeflate's level whose results are about as short as those of zlib's `level`. For levels 6 to 8 this is the
    /// next one. Its levels after 9 take ten times as long.
    fn libdeflate_level(level: u8) -> Option<CompressionLvl> {
        CompressionLvl::new((level + level / 6).min(9).into()).ok()
    }

    /// Decompresses one stream after another.
    #[derive(Default)]
    pub(in super::super) struct ZlibDecoder(Option<Decompressor>);

    impl ZlibDecoder {
        /// Decompresses into the front of `out`. Returns the length; `None` for damage, or if there is no room.
        pub(in super::super) fn decompress(&mut self, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
            self.0.get_or_insert_with(Decompressor::new).zlib_decompress(bytes, out).ok()
        }
    }
}

#[cfg(not(feature = "libdeflate"))]
mod coder {
    use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

    /// Compresses with one level at a time.
    #[derive(Default)]
    pub(in super::super) struct ZlibEncoder(Option<(u8, Compress)>);

    impl ZlibEncoder {
        /// Compresses `bytes` into the front of `out`. Returns the length; `None` if there is no room.
        pub(in super::super) fn compress(&mut self, level: u8, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
            if self.0.as_ref().is_none_or(|(of, _)| *of != level) {
                self.0 = Some((level, Compress::new(Compression::new(level.into()), true)));
            }
            let zlib = &mut self.0.as_mut()?.1;
            zlib.reset();
            let status = zlib.compress(bytes, out, FlushCompress::Finish).ok()?;
            (status == Status::StreamEnd).then(|| usize::try_from(zlib.total_out()).ok()).flatten()
        }
    }

    /// Decompresses one stream after another.
    #[derive(Default)]
    pub(in super::super) struct ZlibDecoder(Option<Decompress>);

    impl ZlibDecoder {
        /// Decompresses into the front of `out`. Returns the length; `None` for damage, or if there is no room.
        pub(in super::super) fn decompress(&mut self, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
            let zlib = self.0.get_or_insert_with(|| Decompress::new(true));
            zlib.reset(true);
            let status = zlib.decompress(bytes, out, FlushDecompress::Finish).ok()?;
            (status == Status::StreamEnd).then(|| usize::try_from(zlib.total_out()).ok()).flatten()
        }
    }
}

pub(super) use coder::{ZlibDecoder, ZlibEncoder};

#[cfg(all(test, feature = "libdeflate"))]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
    use proptest::prelude::*;

    proptest! {
        /// A build without the C libraries reads what this one has written, and the other way round.
        #[test]
        fn libdeflate_and_flate2_read_the_streams_of_each_other(
            bytes in proptest::collection::vec(any::<u8>().prop_map(|byte| byte % 7), 0..20_000),
            level in 1u8..=9,
        ) {
            let (mut stream, mut back) = (vec![0; 30_000], vec![0; bytes.len()]);
            let len = ZlibEncoder::default().compress(level, &bytes, &mut stream).unwrap();
            let mut inflate = Decompress::new(true);
            let status = inflate.decompress(&stream[..len], &mut back, FlushDecompress::Finish).unwrap();
            prop_assert!(status == Status::StreamEnd && back == bytes);

            let mut deflate = Compress::new(Compression::new(level.into()), true);
            let status = deflate.compress(&bytes, &mut stream, FlushCompress::Finish).unwrap();
            prop_assert_eq!(status, Status::StreamEnd);
            back.fill(255);
            let len = usize::try_from(deflate.total_out()).unwrap();
            prop_assert_eq!(ZlibDecoder::default().decompress(&stream[..len], &mut back), Some(bytes.len()));
            prop_assert_eq!(back, bytes);
        }
    }
}
