//! Tests with bytes and descriptors that no encoder writes.

use super::{assert_holds, encoded, keys_from};
use crate::{Block, Codec, Error, Found, Int, Level, MAX_BLOCK};

/// Tests that nothing panics, whatever the bytes and the descriptor are. Every level accepts the same blocks and
/// decodes them to the same keys. All other operations agree with these keys if the block could be from an encoder.
/// Otherwise only those operations agree whose result does not depend on bits that belong to no key. An edit that
/// returns an error changes neither the descriptor nor the bytes of the block.
pub(super) fn assert_survives<T: Int>(codec: Codec, block: Block<T>, bytes: &[u8], probe: u64) {
    let probe = T::narrow(probe);
    let mut reference = [T::MAX; MAX_BLOCK];
    let expected = codec.decode_at(Level::Scalar, &block, bytes, &mut reference).map(|keys| keys.to_vec());
    let exact = codec.check(&block, bytes).is_ok();
    for level in Level::all() {
        let mut out = [T::MAX; MAX_BLOCK];
        let decoded = codec.decode_at(level, &block, bytes, &mut out).map(|keys| keys.to_vec());
        assert_eq!(decoded.is_ok(), expected.is_ok(), "{codec} {level:?} {decoded:?} {expected:?}");
        let sum = codec.sum_at(level, &block, bytes);
        assert_eq!(sum.is_ok(), expected.is_ok(), "{codec} {level:?} {sum:?} {expected:?}");
        let probes = [probe, block.last, T::narrow(block.first.widen().wrapping_add(1))];
        let found = probes.map(|key| codec.lower_bound_at(level, &block, bytes, key));
        for found in found.iter().flatten() {
            assert!(found.index <= usize::from(block.count), "{codec} {level:?}");
        }
        let indexes =
            [1, 15, 16, 100, usize::from(block.count).saturating_sub(1), usize::from(block.count), usize::MAX];
        let selected = indexes.map(|index| codec.select_at(level, &block, bytes, index));
        let (Ok(decoded), Ok(expected)) = (decoded, &expected) else { continue };
        assert_eq!(&decoded, expected, "{codec} {level:?}");
        for (index, selected) in indexes.into_iter().zip(selected).filter(|&(index, _)| index > 0) {
            let key = expected.get(index).copied().ok_or(Error::OutOfRange);
            assert_eq!(selected, key, "{codec} {level:?} select {index}");
        }
        // In packed codecs the sum adds distances or gaps, also those of unused places, and also beyond the largest
        // key.
        if exact || codec.edits_in_place() {
            let total = expected.iter().map(|key| u128::from(key.widen())).sum();
            assert_eq!(sum, Ok(total), "{codec} {level:?}");
        }
        for (key, found) in probes.into_iter().zip(found).filter(|_| exact) {
            let index = expected.partition_point(|&other| other < key);
            let here = Found { index, exact: expected.get(index) == Some(&key) };
            assert_eq!(found, Ok(here), "{codec} {level:?} lower_bound {key:?}");
        }
    }
    for level in Level::all() {
        let (mut block, mut bytes) = (block, bytes.to_vec());
        let index = usize::from(block.count) / 2;
        if codec.insert_at_level(level, &mut block, &mut bytes, index, probe) == Ok(true) && exact {
            assert_eq!(codec.check(&block, &bytes), Ok(()), "{codec} {level:?}: an insert damaged a sound block");
        }
    }
    for edit in 0..4 {
        let before = (block, bytes.get(..codec.used(&block).unwrap_or(0)));
        let (mut block, mut bytes, middle) = (block, bytes.to_vec(), usize::from(block.count) / 2);
        let done = match edit {
            0 => codec.insert(&mut block, &mut bytes, probe).map(|_| ()),
            1 => codec.append(&mut block, &mut bytes, probe),
            2 => codec.remove(&mut block, &mut bytes, probe).map(|_| ()),
            _ => codec.remove_at(&mut block, &mut bytes, middle),
        };
        if exact && done.is_ok() {
            assert_eq!(codec.check(&block, &bytes), Ok(()), "{codec}: edit {edit} damaged a sound block");
        }
        if done.is_err() {
            let after = (block, bytes.get(..codec.used(&block).unwrap_or(0)));
            assert_eq!(after, before, "{codec}: edit {edit} failed and changed the block");
        }
    }
}

/// A block of some keys has only one encoding: `check` does not accept the same keys with any bit of the bytes changed.
#[test]
fn a_block_has_one_encoding() {
    for codec in Codec::ALL {
        for width in [1, 3, 7, 8, 9, 14, 17, 25, 31] {
            for len in [2usize, 3, 5, 16, 17, 40, 100, 128, 200, 256] {
                let keys: Vec<u32> = keys_from(width, &vec![(1u64 << width) / len as u64; len - 1]);
                one_encoding(codec, &keys[..keys.len().min(codec.max_count())]);
                let keys: Vec<u64> = keys_from(width, &vec![(1u64 << (2 * width)) / len as u64; len - 1]);
                one_encoding(codec, &keys[..keys.len().min(codec.max_count())]);
            }
        }
    }
}

/// Flips every bit of the block's last 80 bytes. If `check` accepts the result, it has other keys.
fn one_encoding<T: Int>(codec: Codec, keys: &[T]) {
    let (block, mut bytes) = encoded(codec, keys);
    bytes.truncate(codec.used(&block).expect("sound"));
    let bits = 8 * bytes.len();
    for bit in bits.saturating_sub(640)..bits {
        bytes[bit / 8] ^= 1 << (bit % 8);
        if codec.check(&block, &bytes).is_ok() {
            let mut out = [T::default(); MAX_BLOCK];
            assert_ne!(
                codec.decode(&block, &bytes, &mut out),
                Ok(&mut keys.to_vec()[..]),
                "{codec} {block:?} bit {bit}"
            );
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

/// If the bits of a lane after its last row were not zero, they would become fields of the row that an append adds.
#[test]
fn nonzero_bits_after_the_last_row_of_a_lane_are_refused() {
    let mut keys: Vec<u32> = (0..16).map(|i| i * 20).collect();
    keys[15] = 400;
    let (mut block, mut bytes) = encoded(Codec::SimdFor, &keys);
    assert_eq!((block.extent, Codec::SimdFor.used(&block)), (9, Ok(32)));
    assert_eq!(Codec::SimdFor.check(&block, &bytes), Ok(()));
    bytes[16 + 3] |= 0xFE;
    assert!(Codec::SimdFor.check(&block, &bytes).is_err());
    bytes[16 + 3] &= 1;
    Codec::SimdFor.append(&mut block, &mut bytes, 401).expect("there is room");
    keys.push(401);
    assert_holds(Codec::SimdFor, &block, &bytes, &keys);
}

#[test]
fn a_gap_in_more_bytes_than_it_needs_is_refused() {
    let refused = |codec: Codec, last: u32, bytes: &[u8]| {
        let block = Block { first: 7u32, last, count: 3, extent: bytes.len() as u16 };
        let mut out = [0; MAX_BLOCK];
        assert_eq!(codec.decode(&block, bytes, &mut out), Ok(&mut [7, 8, last][..]), "{codec} reads it");
        assert!(codec.check(&block, bytes).is_err(), "{codec} {bytes:?}");
    };
    refused(Codec::VByte, 9, &[0x80, 0, 0]);
    refused(Codec::MaskedVByte, 9, &[0, 0x80, 0x80, 0]);
    refused(Codec::VarIntGb, 9, &[0, 0, 0, 0b01_00]);
    refused(Codec::StreamVByte, 9, &[0b01_00, 0, 0, 0]);
    // The codes of the third and fourth gap, which do not exist.
    refused(Codec::VarIntGb, 9, &[0, 0, 0b01_00_00]);
    refused(Codec::StreamVByte, 9, &[0b1100_0000, 0, 0]);
}

/// A width that is greater than necessary, and bits after the last key.
#[test]
fn a_width_beyond_the_keys_is_refused() {
    for codec in [Codec::For, Codec::SimdFor, Codec::Bp128] {
        let (mut block, _) = encoded(codec, &[3u32]);
        block.extent = 4;
        assert!(codec.check(&block, &[0; 64]).is_err(), "{codec}");
    }
    let (block, mut bytes) = encoded(Codec::For, &[500u32, 501, 574, 1000, 1001]);
    bytes[4] |= 0x80;
    assert!(Codec::For.check(&block, &bytes).is_err());
}

/// Gaps that lead beyond the largest key, in the kernel for gaps of several bytes.
#[test]
fn gaps_beyond_the_largest_key_wrap_round() {
    let bytes = [0xFF, 0xFF, 0x7F].repeat(19);
    let block = Block { first: 0xFFFF_FFF0, last: u32::MAX, count: 20, extent: 57 };
    assert_survives(Codec::MaskedVByte, block, &bytes, 0);
    assert!(Codec::MaskedVByte.check(&block, &bytes).is_err());
}

/// The second gap claims the byte of the control byte. An edit would write one byte more than the block gets.
#[test]
fn a_gap_that_overlaps_the_control_byte_is_refused() {
    for spare in 0..8 {
        let mut bytes = vec![10, 20, 0b01_00];
        bytes.resize(3 + spare, 0);
        let sound = Block { first: 5u32, last: 2000, count: 3, extent: 3 };
        for key in [3, 7, 100, 3000] {
            let (mut block, mut edited) = (sound, bytes.clone());
            assert!(Codec::VarIntGb.insert(&mut block, &mut edited, key).is_err(), "{key} {spare}");
            assert_eq!((block, &edited[..3]), (sound, &bytes[..3]), "{key} {spare}");
        }
    }
}

#[test]
fn many_bytes_after_the_last_gap_are_refused() {
    for codec in [Codec::MaskedVByte, Codec::VarIntGb, Codec::StreamVByte] {
        for extra in 1..80 {
            let (mut block, mut bytes) = encoded::<u32>(codec, &[1, 2, 3, 4, 5]);
            let used = codec.used(&block).expect("sound");
            bytes[used..used + extra].fill(0);
            block.extent += extra as u16;
            for level in Level::all() {
                let mut out = [0; MAX_BLOCK];
                assert!(codec.decode_at(level, &block, &bytes, &mut out).is_err(), "{codec} {level:?} {extra}");
            }
        }
    }
}

/// Blocks with gaps of one byte, and of one to five bytes, with every bit flipped, and cut at every length.
#[test]
fn every_changed_bit_and_every_cut_of_gaps_in_bytes_is_survived() {
    for codec in [Codec::MaskedVByte, Codec::VarIntGb, Codec::StreamVByte] {
        for (len, mixed) in [(5u64, true), (40, true), (70, true), (34, false), (100, false), (255, false)] {
            let of = |i: u64| {
                if mixed { [1, 300, 70_000, 1 << 22, 1 << 28][(i * i % 5) as usize] >> (i % 3) } else { i % 100 }
            };
            let keys: Vec<u32> =
                keys_from(9, &(1..len).map(|i| if i % 9 == 1 { of(i) } else { of(i) % 5000 }).collect::<Vec<_>>());
            let (block, mut bytes) = encoded(codec, &keys);
            bytes.truncate(codec.used(&block).expect("sound"));
            let probe = u64::from(keys[keys.len() / 2]);
            for bit in 0..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_survives(codec, block, &bytes, probe);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            for cut in 0..bytes.len() {
                let short = Block { extent: cut as u16, ..block };
                assert_survives(codec, short, &bytes[..cut], probe);
                assert_survives(codec, Block { count: (cut + 1).min(300) as u16, ..short }, &bytes[..cut], probe);
            }
        }
    }
}
