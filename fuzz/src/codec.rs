//! Fuzz targets of the integer codecs, one for each. They assert only properties that hold for any bytes: no panic, no
//! access outside the slice, no endless loop, and if `check` accepts a block, all operations agree about it.
//!
//! An input is a descriptor and a block's bytes, integers little-endian: key type u8 (odd: `u64`, even: `u32`), count
//! u16, extent u16, first u64, last u64, a key to probe with u64, and the rest. [`input`] writes one.

use duramen_codec::{Block, Codec, Int, MAX_BLOCK};

/// Room beyond the bytes for edits: a gap's length and a little.
const ROOM: usize = 32;

/// `Plain`.
pub fn decode_plain(data: &[u8]) {
    any_key_type(Codec::Plain, data);
}

/// `VByte`.
pub fn decode_vbyte(data: &[u8]) {
    any_key_type(Codec::VByte, data);
}

/// `MaskedVByte`.
pub fn decode_masked_vbyte(data: &[u8]) {
    any_key_type(Codec::MaskedVByte, data);
}

/// `VarIntGb`.
pub fn decode_varint_gb(data: &[u8]) {
    any_key_type(Codec::VarIntGb, data);
}

/// `StreamVByte`.
pub fn decode_stream_vbyte(data: &[u8]) {
    any_key_type(Codec::StreamVByte, data);
}

/// `For`.
pub fn decode_for(data: &[u8]) {
    any_key_type(Codec::For, data);
}

/// `SimdFor`.
pub fn decode_simd_for(data: &[u8]) {
    any_key_type(Codec::SimdFor, data);
}

/// `Bp128`.
pub fn decode_bp128(data: &[u8]) {
    any_key_type(Codec::Bp128, data);
}

/// An input of these targets: a block as its codec wrote it, and a key to probe with.
pub fn input<T: Int>(block: &Block<T>, bytes: &[u8], probe: T) -> Vec<u8> {
    let mut data = vec![u8::from(T::BITS == 64)];
    data.extend_from_slice(&block.count.to_le_bytes());
    data.extend_from_slice(&block.extent.to_le_bytes());
    for key in [block.first, block.last, probe] {
        data.extend_from_slice(&key.widen().to_le_bytes());
    }
    data.extend_from_slice(bytes);
    data
}

fn any_key_type(codec: Codec, data: &[u8]) {
    match data.first() {
        Some(wide) if wide % 2 == 1 => exercise::<u64>(codec, data),
        _ => exercise::<u32>(codec, data),
    }
}

/// The little-endian integer of `len` bytes at `at`; what is missing is zero.
fn field(data: &[u8], at: usize, len: usize) -> u64 {
    data.iter().skip(at).take(len).enumerate().fold(0, |value, (i, &byte)| value | u64::from(byte) << (8 * i))
}

fn exercise<T: Int>(codec: Codec, data: &[u8]) {
    let key = |at| T::narrow(field(data, at, 8));
    let short = |at| (field(data, at, 2) & 0xFFFF) as u16;
    let block = Block { count: short(1), extent: short(3), first: key(5), last: key(13) };
    let probe = key(21);
    let bytes = data.get(29..).unwrap_or_default();
    let mut out = [T::default(); MAX_BLOCK];
    let sound = codec.check(&block, bytes).is_ok();
    let keys = codec.decode(&block, bytes, &mut out).map(|keys| keys.to_vec());
    let sum = codec.sum(&block, bytes);
    let found = codec.lower_bound(&block, bytes, probe);
    for index in [0, 1, 15, 16, 127, 255, usize::from(block.count), usize::MAX] {
        let selected = codec.select(&block, bytes, index);
        if let (true, Ok(keys)) = (sound, &keys) {
            assert_eq!(selected.ok(), keys.get(index).copied(), "{codec} select {index}");
        }
    }
    if let (true, Ok(keys)) = (sound, &keys) {
        assert_eq!(sum, Ok(keys.iter().map(|key| u128::from(key.widen())).sum()), "{codec}");
        let index = keys.partition_point(|&key| key < probe);
        assert_eq!(
            found.map(|found| (found.index, found.exact)),
            Ok((index, keys.get(index) == Some(&probe))),
            "{codec}"
        );
    }
    edit(codec, block, bytes, probe);
}

/// Each edit on its own copy, with room to grow.
fn edit<T: Int>(codec: Codec, block: Block<T>, bytes: &[u8], probe: T) {
    let mut roomy = bytes.to_vec();
    roomy.resize(bytes.len() + ROOM, 0);
    for edit in 0..4 {
        let (mut block, mut bytes, middle) = (block, roomy.clone(), usize::from(block.count) / 2);
        let sound = codec.check(&block, &bytes).is_ok();
        let done = match edit {
            0 => codec.insert(&mut block, &mut bytes, probe).is_ok(),
            1 => codec.append(&mut block, &mut bytes, probe).is_ok(),
            2 => codec.remove(&mut block, &mut bytes, probe).is_ok(),
            _ => codec.remove_at(&mut block, &mut bytes, middle).is_ok(),
        };
        if sound && done {
            assert_eq!(codec.check(&block, &bytes), Ok(()), "{codec}: edit {edit} damaged a sound block");
        }
    }
}
