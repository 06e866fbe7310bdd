//! The codecs by name, and every operation on a block. An operation first handles the cases that the descriptor alone
//! decides, and then calls the codec.

use core::ops::RangeInclusive;

use crate::bp128::Bp128;
use crate::error::{OUT_OF_ORDER, TOO_MANY};
use crate::frame::For;
use crate::gaps::Gapped;
use crate::plain::Plain;
use crate::scheme::{Scheme, append_growth, body, increasing, recode};
use crate::simd_for::SimdFor;
use crate::stream_vbyte::StreamVByte;
use crate::table::Operations;
use crate::varint_gb::VarIntGb;
use crate::vbyte::{MaskedVByte, VByte};
use crate::{Block, Buffer, Edit, Error, Found, Int, Level, MAX_BLOCK, Result};

/// The table of codecs: their names, and the types that implement them.
macro_rules! codecs {
    (($d:tt) $($(#[doc = $doc:literal])* $name:ident = $tag:literal, $text:literal => $scheme:ty;)*) => {
        /// A format of a block of keys. The discriminants are stable: they may be stored. The Upscaledb paper is
        /// "Upscaledb: Efficient Integer-Key Compression in a Key-Value Store using SIMD Instructions".
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Codec {
            $($(#[doc = $doc])* $name = $tag,)*
        }

        impl Codec {
            /// All codecs, in the order of the discriminants.
            pub const ALL: [Codec; [$($tag),*].len()] = [$(Codec::$name),*];

            /// The name of the codec in options, tables and figures.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Codec::$name => $text,)*
                }
            }
        }

        /// Evaluates `$call`. In it, `$S` is the type of the codec.
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
    /// Uncompressed keys.
    Plain = 0, "plain" => Plain;
    /// Gaps, seven bits in each byte (Upscaledb paper, 2.1).
    VByte = 1, "vbyte" => Gapped<VByte>;
    /// The bytes of `VByte`, read by vector kernels (Upscaledb paper, 2.3).
    MaskedVByte = 2, "masked-vbyte" => Gapped<MaskedVByte>;
    /// Gaps in groups, each with a control byte (Upscaledb paper, 2.2).
    VarIntGb = 3, "varint-gb" => Gapped<VarIntGb>;
    /// Like `VarIntGb`, but with all control bytes first.
    StreamVByte = 4, "stream-vbyte" => Gapped<StreamVByte>;
    /// Distances from the first key, all with the same number of bits, packed in order (Upscaledb paper, 2.5).
    For = 5, "for" => For;
    /// Distances from the first key, packed in vector lanes (Upscaledb paper, 2.5).
    SimdFor = 6, "simd-for" => SimdFor;
    /// Gaps with the same number of bits, packed in vector lanes, up to 128 keys (Upscaledb paper, 2.4).
    Bp128 = 7, "bp128" => Bp128;
}

impl Codec {
    /// The codec with the discriminant `tag`.
    #[inline(always)]
    pub fn from_tag(tag: u8) -> Option<Codec> {
        Codec::ALL.get(usize::from(tag)).copied()
    }

    /// The most keys of a block: 128 for BP128, 256 for all others.
    #[inline]
    pub const fn max_count(self) -> usize {
        each!(self, S => <S as Scheme<u32>>::MAX_COUNT)
    }

    /// True if a removal never makes the block longer (Upscaledb paper, section 2, "delete stability"). BP128 is the
    /// exception: a removal joins two gaps into one that may need more bits, and all gaps have the same width.
    pub const fn delete_stable(self) -> bool {
        each!(self, S => <S as Scheme<u32>>::DELETE_STABLE)
    }

    /// True if the descriptor of a block has the number of its bytes, and not the width of its fields. Then `insert`
    /// and `remove` change only the bytes around the key, and do not decode and encode the block. The layout of block
    /// indexes in pages depends on it.
    pub const fn edits_in_place(self) -> bool {
        each!(self, S => <S as Scheme<u32>>::EDITS_IN_PLACE)
    }

    /// True if [`Codec::insert_at`] can insert a key. The descriptor of a block then has the width of its fields.
    pub const fn inserts_at(self) -> bool {
        each!(self, S => <S as Scheme<u32>>::INSERTS_AT)
    }

    /// True if the key at an index is read without the keys before it, and a search reads only the bytes around a few
    /// keys. Then the keys of a block lie evenly in its bytes.
    #[inline]
    pub const fn reads_keys_alone(self) -> bool {
        each!(self, S => <S as Scheme<u32>>::READS_KEYS_ALONE)
    }

    /// The number of bytes that [`Codec::encode`] writes for `values`, which must be strictly increasing.
    pub fn encoded_len<T: Int>(self, values: &[T]) -> usize {
        if values.is_empty() { 0 } else { each!(self, S => <S as Scheme<T>>::encoded_len(values)) }
    }

    /// The number of bytes of its slice that the block uses. Errors: `Corrupt` for a descriptor that no encoder writes.
    pub fn used<T: Int>(self, block: &Block<T>) -> Result<usize> {
        match usize::from(block.count) {
            0 => Ok(0),
            count if count > self.max_count() => Err(TOO_MANY),
            _ => each!(self, S => <S as Scheme<T>>::size(block)),
        }
    }

    /// Encodes `values` at the start of `out`. Errors: `NotIncreasing`, `Full`, `NoRoom`.
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

    /// Decodes all keys to `out`. It does not compare the last key with the descriptor; [`Codec::check`] does. Errors:
    /// `Corrupt`.
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
        // SAFETY: a `Level` is always one that this machine has.
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
        // SAFETY: a `Level` is always one that this machine has.
        unsafe { (Operations::of(level, self).select)(block, bytes, index) }
    }

    /// Searches for `key`. Errors: `Corrupt`.
    #[inline]
    pub fn lower_bound<T: Int>(self, block: &Block<T>, bytes: &[u8], key: T) -> Result<Found> {
        self.lower_bound_at(Level::best(), block, bytes, key)
    }

    #[inline(always)]
    pub(crate) fn lower_bound_at<T: Int>(self, level: Level, block: &Block<T>, bytes: &[u8], key: T) -> Result<Found> {
        // SAFETY: a `Level` is always one that this machine has.
        unsafe { (Operations::of(level, self).lower_bound)(block, bytes, key) }
    }

    /// The number of keys in `range`. Errors: `Corrupt`.
    pub fn count_in_range<T: Int>(self, block: &Block<T>, bytes: &[u8], range: RangeInclusive<T>) -> Result<usize> {
        let (&low, &high) = (range.start(), range.end());
        if low > high {
            return Ok(0);
        }
        let end = self.lower_bound(block, bytes, high)?;
        let start = self.lower_bound(block, bytes, low)?;
        Ok((end.index + usize::from(end.exact)).saturating_sub(start.index))
    }

    /// The sum of all keys. 256 keys of 64 bits cannot overflow it. Errors: `Corrupt`.
    #[inline]
    pub fn sum<T: Int>(self, block: &Block<T>, bytes: &[u8]) -> Result<u128> {
        self.sum_at(Level::best(), block, bytes)
    }

    #[inline(always)]
    pub(crate) fn sum_at<T: Int>(self, level: Level, block: &Block<T>, bytes: &[u8]) -> Result<u128> {
        // SAFETY: a `Level` is always one that this machine has.
        unsafe { (Operations::of(level, self).sum)(block, bytes) }
    }

    /// The descriptor of the block after an append of `key`, which must be greater than all others. The block must not
    /// be full. It does not need the bytes of the block.
    #[inline]
    pub fn appended<T: Int>(self, block: &Block<T>, key: T) -> Block<T> {
        match block.count {
            0 => Block { first: key, last: key, count: 1, extent: 0 },
            _ => each!(self, S => <S as Scheme<T>>::appended(block, key)),
        }
    }

    /// The number of bytes by which an append of `key`, which must be greater than all others, makes the block longer.
    /// It does not need the bytes of the block. Errors: `Full`, `Corrupt` for a descriptor that no encoder writes.
    #[inline]
    pub fn append_growth<T: Int>(self, block: &Block<T>, key: T) -> Result<usize> {
        match usize::from(block.count) {
            0 => Ok(0),
            count if count >= self.max_count() => Err(Error::Full),
            _ => each!(self, S => append_growth::<T, S>(block, key)),
        }
    }

    /// Appends a key, which must be greater than all others. `bytes` is all the space that the block may use. Plain,
    /// VByte and VarInt-GB always append in O(1). FOR and SIMD FOR do if the distance fits the width, BP128 if the gap
    /// fits the width and the rows are not full. StreamVByte copies its control bytes, and moves the bytes of all gaps
    /// up whenever it adds a control byte. Errors: `NotIncreasing`, `Full`, `NoRoom`, `Corrupt`.
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

    /// Inserts a key. `bytes` is all the space that the block may use. The bytes after the block have no meaning
    /// afterwards. Errors: `Full`, `NoRoom`, `Corrupt`.
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

    /// Inserts a key at `index`, where it must belong, if this changes neither the first key nor the last key nor the
    /// length of the block, and if the codec can do it without decoding the block. Otherwise returns false and changes
    /// nothing. [`Codec::inserts_at`] says which codecs can. Errors: `NotIncreasing` if the key does not belong at
    /// `index`, `Corrupt`.
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
        each!(self, S => <S as Scheme<T>>::insert_at(level, block, bytes, index, key))
    }

    /// Removes a key. Errors: the same as for [`Codec::remove_at`].
    pub fn remove<T: Int>(self, block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit> {
        let found = self.lower_bound(block, bytes, key)?;
        if !found.exact {
            return Ok(Edit::Unchanged(found.index));
        }
        self.remove_at(block, bytes, found.index)?;
        Ok(Edit::Done(found.index))
    }

    /// Removes the key at `index`. Errors: `OutOfRange`, `Corrupt`, and `NoRoom` if the codec is not delete-stable.
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

    /// Checks that the block is exactly what [`Codec::encode`] writes for its keys: the keys strictly increase from
    /// `first` to `last`, no key has more bits or bytes than it needs, every byte is used, and unused places and bits
    /// are zero. A caller checks untrusted bytes once, because an edit copies the bytes around the key unchecked.
    /// Errors: `Corrupt`.
    pub fn check<T: Int>(self, block: &Block<T>, bytes: &[u8]) -> Result<()> {
        let mut out = [T::default(); MAX_BLOCK];
        let keys = self.decode(block, bytes, &mut out)?;
        if !increasing(keys) {
            return Err(OUT_OF_ORDER);
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

/// A name of no codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCodec;

impl core::fmt::Display for UnknownCodec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("unknown codec; one of")?;
        Codec::ALL.iter().try_for_each(|codec| write!(f, " {codec}"))
    }
}

impl core::error::Error for UnknownCodec {}
