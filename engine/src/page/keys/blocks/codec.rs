//! The codecs' operations as functions that are not generic. Generic callers would compile the many kernels again each
//! time; here each kernel is compiled once for each width.

use duramen_codec::{Block, Buffer, Codec, Edit, Found, Int, Result};

/// An integer key of a list of blocks: `u32` or `u64`.
pub(crate) trait IntKey: Int {
    /// Room for the bytes of any block, zeroed: 255 gaps of the greatest length that VByte needs.
    type Scratch: AsRef<[u8]> + AsMut<[u8]>;
    /// Returns such room.
    fn scratch() -> Self::Scratch;
    /// See [`Codec::decode`].
    fn decode<'o>(codec: Codec, block: &Block<Self>, bytes: &[u8], out: &'o mut Buffer<Self>) -> Result<&'o [Self]>;
    /// See [`Codec::select`].
    fn select(codec: Codec, block: &Block<Self>, bytes: &[u8], index: usize) -> Result<Self>;
    /// See [`Codec::lower_bound`].
    fn lower_bound(codec: Codec, block: &Block<Self>, bytes: &[u8], key: Self) -> Result<Found>;
    /// See [`Codec::sum`].
    fn sum(codec: Codec, block: &Block<Self>, bytes: &[u8]) -> Result<u128>;
    /// See [`Codec::encode`].
    fn encode(codec: Codec, keys: &[Self], out: &mut [u8]) -> Result<Block<Self>>;
    /// See [`Codec::append`].
    fn append(codec: Codec, block: &mut Block<Self>, bytes: &mut [u8], key: Self) -> Result<()>;
    /// See [`Codec::insert`].
    fn insert(codec: Codec, block: &mut Block<Self>, bytes: &mut [u8], key: Self) -> Result<Edit>;
    /// See [`Codec::insert_at`].
    fn insert_at(codec: Codec, block: &mut Block<Self>, bytes: &mut [u8], index: usize, key: Self) -> Result<bool>;
    /// See [`Codec::remove_at`].
    fn remove_at(codec: Codec, block: &mut Block<Self>, bytes: &mut [u8], index: usize) -> Result<()>;
    /// See [`Codec::check`].
    fn check(codec: Codec, block: &Block<Self>, bytes: &[u8]) -> Result<()>;
    /// See [`Codec::used`].
    fn used(codec: Codec, block: &Block<Self>) -> Result<usize>;
}

macro_rules! keys {
    ($($ty:ty => $room:literal),*) => {$(
        impl IntKey for $ty {
            type Scratch = [u8; $room];

            #[inline(always)]
            fn scratch() -> [u8; $room] {
                [0; $room]
            }

            #[inline(never)]
            fn decode<'o>(codec: Codec, block: &Block<$ty>, bytes: &[u8], out: &'o mut Buffer<$ty>) -> Result<&'o [$ty]> {
                codec.decode(block, bytes, out).map(|keys| &*keys)
            }

            #[inline(never)]
            fn select(codec: Codec, block: &Block<$ty>, bytes: &[u8], index: usize) -> Result<$ty> {
                codec.select(block, bytes, index)
            }

            #[inline(never)]
            fn lower_bound(codec: Codec, block: &Block<$ty>, bytes: &[u8], key: $ty) -> Result<Found> {
                codec.lower_bound(block, bytes, key)
            }

            #[inline(never)]
            fn sum(codec: Codec, block: &Block<$ty>, bytes: &[u8]) -> Result<u128> {
                codec.sum(block, bytes)
            }

            #[inline(never)]
            fn encode(codec: Codec, keys: &[$ty], out: &mut [u8]) -> Result<Block<$ty>> {
                codec.encode(keys, out)
            }

            #[inline(never)]
            fn append(codec: Codec, block: &mut Block<$ty>, bytes: &mut [u8], key: $ty) -> Result<()> {
                codec.append(block, bytes, key)
            }

            #[inline(never)]
            fn insert(codec: Codec, block: &mut Block<$ty>, bytes: &mut [u8], key: $ty) -> Result<Edit> {
                codec.insert(block, bytes, key)
            }

            #[inline(never)]
            fn insert_at(codec: Codec, block: &mut Block<$ty>, bytes: &mut [u8], index: usize, key: $ty) -> Result<bool> {
                codec.insert_at(block, bytes, index, key)
            }

            #[inline(never)]
            fn remove_at(codec: Codec, block: &mut Block<$ty>, bytes: &mut [u8], index: usize) -> Result<()> {
                codec.remove_at(block, bytes, index)
            }

            #[inline(never)]
            fn check(codec: Codec, block: &Block<$ty>, bytes: &[u8]) -> Result<()> {
                codec.check(block, bytes)
            }

            #[inline(never)]
            fn used(codec: Codec, block: &Block<$ty>) -> Result<usize> {
                codec.used(block)
            }
        }
    )*};
}

keys!(u32 => 1280, u64 => 2560);
