//! The codecs by name, and every operation on a block: settles what the descriptor answers, then hands on to the
//! codec. No byte layout belongs here.

use core::ops::RangeInclusive;

use crate::bp128::Bp128;
use crate::frame::For;
use crate::gaps::Gapped;
use crate::plain::Plain;
use crate::scheme::{Scheme, body, increasing, recode};
use crate::simd_for::SimdFor;
use crate::stream_vbyte::StreamVByte;
use crate::table::Operations;
use crate::varint_gb::VarIntGb;
use crate::vbyte::{MaskedVByte, VByte};
use crate::{Block, Buffer, Edit, Error, Found, Int, Level, MAX_BLOCK, Result};

/// The one table of codecs: the names of all, and which type implements each.
macro_rules! codecs {
    (($d:tt) $($(#[doc = $doc:literal])* $name:ident = $tag:literal, $text:literal => $scheme:ty;)*) => {
        /// A way of writing a block of keys. The discriminants are stable: they may be stored. The Upscaledb paper is "Upscaledb: Efficient
        /// Integer-Key Compression in a Key-Value Store using SIMD Instructions".
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Codec {
            $($(#[doc = $doc])* $name = $tag,)*
        }

        impl Codec {
            /// Every codec, in the order of the discriminants.
            pub const ALL: [Codec; [$($tag),*].len()] = [$(Codec::$name),*];

            /// The codec's name in options, tables and figures.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Codec::$name => $text,)*
                }
            }
        }

        /// Runs `$call` with `$S` naming the codec's type.
        macro_rules! each {
            ($d codec:expr, $d S:ident => $d call:expr) => {
                match $d codec {
                    $(Codec::$name => {
                        type $d S = $scheme;
                        $d call
                    })*
                }
            };
        }

        /// The operations of all codecs at one level, in the order of the discriminants.
        macro_rules! operations_at {
            ($d level:ident) => {
                [$($d level::operations::<T, $scheme>()),*]
            };
        }
    };
}

codecs! { ($)
    /// Keys as they are.
    Plain = 0, "plain" => Plain;
    /// Gaps, seven bits a byte (Upscaledb paper, 2.1).
    VByte = 1, "vbyte" => Gapped<VByte>;
    /// The bytes of `VByte`, read by vector kernels (Upscaledb paper, 2.3).
    MaskedVByte = 2, "masked-vbyte" => Gapped<MaskedVByte>;
    /// Gaps in groups under a control byte (Upscaledb paper, 2.2).
    VarIntGb = 3, "varint-gb" => Gapped<VarIntGb>;
    /// As `VarIntGb`, control bytes first.
    StreamVByte = 4, "stream-vbyte" => Gapped<StreamVByte>;
    /// Distances from the first key, all of one width, packed in order (Upscaledb paper, 2.5).
    For = 5, "for" => For;
    /// Distances from the first key, packed in vector lanes (Upscaledb paper, 2.5).
    SimdFor = 6, "simd-for" => SimdFor;
    /// Gaps of one width, packed in vector lanes, up to 128 keys (Upscaledb paper, 2.4).
    Bp128 = 7, "bp128" => Bp128;
}

impl Codec {
    /// The codec whose discriminant is `tag`.
    #[inline(always)]
    pub fn from_tag(tag: u8) -> Option<Codec> {
        Codec::ALL.get(usize::from(tag)).copied()
    }

    /// The most keys of a block: 256, for BP128 128.
    #[inline]
    pub const fn max_count(self) -> usize {
        each!(self, S => <S as Scheme<u32>>::MAX_COUNT)
    }

    /// Whether removing a key never makes the block longer (Upscaledb paper, section 2, "delete stability"). BP128 is the
    /// exception: a removal joins two gaps into one that may need more bits, and every gap has as many.
    pub const fn delete_stable(self) -> bool {
        each!(self, S => <S as Scheme<u32>>::DELETE_STABLE)
    }

    /// Whether a block says the length of its bytes, and not the width of its fields: `insert` and `remove` then change the bytes
    /// around the key instead of decoding and encoding the block. Indexes of blocks in pages are laid out by it.
    pub const fn edits_in_place(self) -> bool {
        each!(self, S => <S as Scheme<u32>>::EDITS_IN_PLACE)
    }

    /// Bytes that [`Codec::encode`] writes for `values`, which must be strictly increasing.
    pub fn encoded_len<T: Int>(self, values: &[T]) -> usize {
        if values.is_empty() { 0 } else { each!(self, S => <S as Scheme<T>>::encoded_len(values)) }
    }

    /// Bytes that the block uses of its slice. Errors: `Corrupt` for a descriptor that no encoder makes.
    pub fn used<T: Int>(self, block: &Block<T>) -> Result<usize> {
        match usize::from(block.count) {
            0 => Ok(0),
            count if count > self.max_count() => Err(Error::Corrupt("too many keys")),
            _ => each!(self, S => <S as Scheme<T>>::size(block)),
        }
    }

    /// Writes `values` to the front of `out`. Errors: `NotIncreasing`, `Full`, `NoRoom`.
    pub fn encode<T: Int>(self, values: &[T], out: &mut [u8]) -> Result<Block<T>> {
        let mut block = Block::default();
        if values.len() > self.max_count() {
            return Err(Error::Full);
        }
        if !increasing(values) {
            return Err(Error::NotIncreasing);
        }
        if !values.is_empty() {
            each!(self, S => recode::<T, S>(&mut block, out, values))?;
        }
        Ok(block)
    }

    /// All keys, in `out`. That the last one is the descriptor's is for [`Codec::check`] to ask. Errors: `Corrupt`.
    #[inline]
    pub fn decode<'a, T: Int>(self, block: &Block<T>, bytes: &[u8], out: &'a mut Buffer<T>) -> Result<&'a mut [T]> {
        self.decode_at(Level::best(), block, bytes, out)
    }

    #[inline(always)]
    pub(crate) fn decode_at<'a, T: Int>(
        self,
        level: Level,
        block: &Block<T>,
        bytes: &[u8],
        out: &'a mut Buffer<T>,
    ) -> Result<&'a mut [T]> {
        // SAFETY: a level is only ever one that this machine has.
        unsafe { (Operations::of(level, self).decode)(block, bytes, out) }?;
        out.get_mut(..usize::from(block.count)).ok_or(Error::Full)
    }

    /// The key at `index`. Errors: `OutOfRange`, `Corrupt`.
    #[inline]
    pub fn select<T: Int>(self, block: &Block<T>, bytes: &[u8], index: usize) -> Result<T> {
        self.select_at(Level::best(), block, bytes, index)
    }

    #[inline(always)]
    pub(crate) fn select_at<T: Int>(self, level: Level, block: &Block<T>, bytes: &[u8], index: usize) -> Result<T> {
        // SAFETY: a level is only ever one that this machine has.
        unsafe { (Operations::of(level, self).select)(block, bytes, index) }
    }

    /// Where `key` is or belongs. Errors: `Corrupt`.
    #[inline]
    pub fn lower_bound<T: Int>(self, block: &Block<T>, bytes: &[u8], key: T) -> Result<Found> {
        self.lower_bound_at(Level::best(), block, bytes, key)
    }

    #[inline(always)]
    pub(crate) fn lower_bound_at<T: Int>(self, level: Level, block: &Block<T>, bytes: &[u8], key: T) -> Result<Found> {
        // SAFETY: a level is only ever one that this machine has.
        unsafe { (Operations::of(level, self).lower_bound)(block, bytes, key) }
    }

    /// How many keys lie in `range`. Errors: `Corrupt`.
    pub fn count_in_range<T: Int>(self, block: &Block<T>, bytes: &[u8], range: RangeInclusive<T>) -> Result<usize> {
        let (&low, &high) = (range.start(), range.end());
        if low > high {
            return Ok(0);
        }
        let end = self.lower_bound(block, bytes, high)?;
        let start = self.lower_bound(block, bytes, low)?;
        Ok((end.index + usize::from(end.exact)).saturating_sub(start.index))
    }

    /// The sum of all keys; 256 keys of 64 bits cannot overflow it. Errors: `Corrupt`.
    #[inline]
    pub fn sum<T: Int>(self, block: &Block<T>, bytes: &[u8]) -> Result<u128> {
        self.sum_at(Level::best(), block, bytes)
    }

    #[inline(always)]
    pub(crate) fn sum_at<T: Int>(self, level: Level, block: &Block<T>, bytes: &[u8]) -> Result<u128> {
        // SAFETY: a level is only ever one that this machine has.
        unsafe { (Operations::of(level, self).sum)(block, bytes) }
    }

    /// Adds a key above all others. `bytes` is all the room the block may use. O(1) where the width allows: plain, VByte
    /// and VarInt-GB always, FOR and SIMD FOR while the distance fits the width, BP128 while the gap does and the rows are
    /// not full. StreamVByte copies its control bytes, and whenever one is added moves all gaps' bytes up. Errors: `NotIncreasing`, `Full`, `NoRoom`, `Corrupt`.
    pub fn append<T: Int>(self, block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
        self.body(block, bytes)?;
        match usize::from(block.count) {
            0 => {
                *block = Block { first: key, last: key, count: 1, extent: 0 };
                Ok(())
            }
            count if count == self.max_count() => Err(Error::Full),
            _ if key <= block.last => Err(Error::NotIncreasing),
            _ => each!(self, S => <S as Scheme<T>>::append(block, bytes, key)),
        }
    }

    /// Inserts a key. `bytes` is all the room the block may use; bytes after the block's keep no meaning. Errors:
    /// `Full`, `NoRoom`, `Corrupt`.
    pub fn insert<T: Int>(self, block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit> {
        self.body(block, bytes)?;
        let count = usize::from(block.count);
        if count > 0 && key == block.last {
            return Ok(Edit::Unchanged(count - 1));
        }
        if count == 0 || key > block.last {
            return self.append(block, bytes, key).map(|()| Edit::Done(count));
        }
        if count == self.max_count() {
            let found = self.lower_bound(block, bytes, key)?;
            return if found.exact { Ok(Edit::Unchanged(found.index)) } else { Err(Error::Full) };
        }
        each!(self, S => <S as Scheme<T>>::insert(block, bytes, key))
    }

    /// Inserts a key, of which is known that it belongs at `index`, if that changes nothing of the block's first and last key
    /// and of its length, and the codec can do it without decoding the block: false, and nothing changed, if not. Errors:
    /// `NotIncreasing` where it does not belong there, `Corrupt`.
    #[inline]
    pub fn insert_at<T: Int>(self, block: &mut Block<T>, bytes: &mut [u8], index: usize, key: T) -> Result<bool> {
        self.insert_at_level(Level::best(), block, bytes, index, key)
    }

    #[inline]
    pub(crate) fn insert_at_level<T: Int>(
        self,
        level: Level,
        block: &mut Block<T>,
        bytes: &mut [u8],
        index: usize,
        key: T,
    ) -> Result<bool> {
        match self {
            Codec::SimdFor => {
                let used = body::<T, SimdFor>(block, bytes)?.len();
                SimdFor::insert_at(level, block, bytes.get_mut(..used).unwrap_or_default(), index, key)
            }
            _ => Ok(false),
        }
    }

    /// Removes a key. Errors: as [`Codec::remove_at`].
    pub fn remove<T: Int>(self, block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit> {
        let found = self.lower_bound(block, bytes, key)?;
        if !found.exact {
            return Ok(Edit::Unchanged(found.index));
        }
        self.remove_at(block, bytes, found.index)?;
        Ok(Edit::Done(found.index))
    }

    /// Removes the key at `index`. Errors: `OutOfRange`, `Corrupt`, and `NoRoom` where the codec is not delete-stable.
    pub fn remove_at<T: Int>(self, block: &mut Block<T>, bytes: &mut [u8], index: usize) -> Result<()> {
        self.body(block, bytes)?;
        match usize::from(block.count) {
            count if index >= count => Err(Error::OutOfRange),
            1 => {
                *block = Block::default();
                Ok(())
            }
            _ => each!(self, S => <S as Scheme<T>>::remove_at(block, bytes, index)),
        }
    }

    /// Whether the block is what [`Codec::encode`] writes for its keys, bit by bit: keys strictly increasing from `first`
    /// to `last`, none in more bits or bytes than it needs, every byte used, unused places and bits zero. To be asked
    /// once, when bytes come in: edits copy what they do not look at. Errors: `Corrupt`.
    pub fn check<T: Int>(self, block: &Block<T>, bytes: &[u8]) -> Result<()> {
        let mut out = [T::default(); MAX_BLOCK];
        let keys = self.decode(block, bytes, &mut out)?;
        if !increasing(keys) {
            return Err(Error::Corrupt("keys out of order"));
        }
        if keys.is_empty() && *block != Block::default() {
            return Err(Error::Corrupt("an empty block with bounds"));
        }
        if keys.first().is_some_and(|&first| first != block.first) {
            return Err(Error::Corrupt("first key is not the descriptor's"));
        }
        if keys.last().is_some_and(|&last| last != block.last) {
            return Err(Error::Corrupt("last key is not the descriptor's"));
        }
        let body = self.body(block, bytes)?;
        if block.count > 0 && !each!(self, S => <S as Scheme<T>>::is_exact(block, body, keys))? {
            return Err(Error::Corrupt("bits that no encoder writes"));
        }
        Ok(())
    }

    fn body<'a, T: Int>(self, block: &Block<T>, bytes: &'a [u8]) -> Result<&'a [u8]> {
        each!(self, S => body::<T, S>(block, bytes))
    }
}

impl core::fmt::Display for Codec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

impl core::str::FromStr for Codec {
    type Err = UnknownCodec;

    fn from_str(name: &str) -> core::result::Result<Codec, UnknownCodec> {
        Codec::ALL.into_iter().find(|codec| codec.name() == name).ok_or(UnknownCodec)
    }
}

/// A name that no codec has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCodec;

impl core::fmt::Display for UnknownCodec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("unknown codec; one of")?;
        Codec::ALL.iter().try_for_each(|codec| write!(f, " {codec}"))
    }
}

impl core::error::Error for UnknownCodec {}
