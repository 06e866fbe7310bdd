//! Tests every codec against a sorted `Vec`, every level against the scalar reference, and both with hostile bytes.

mod edits;
mod hostile;

use proptest::prelude::*;

use self::edits::{assert_appends, assert_edits, assert_inserts_at, assert_refuses_without_room, steps};
use self::hostile::assert_survives;
use crate::frame::For;
use crate::lanes::LaneKernels;
use crate::plain::Plain;
use crate::scheme::Scheme;
use crate::simd_for::SimdFor;
use crate::table::find;
use crate::{Block, Codec, Error, Int, Level, MAX_BLOCK};

/// Enough bytes for any block and one more key.
const ROOM: usize = MAX_BLOCK * 10 + 64;

/// Keys with the first key `first` and these gaps. Ends early if the next key would be too large for the key type.
fn keys_from<T: Int>(first: u64, gaps: &[u64]) -> Vec<T> {
    let mut key = T::narrow(first);
    let mut keys = vec![key];
    for &gap in gaps {
        let Some(next) = key.widen().checked_add(gap).and_then(|key| key.checked_add(1)) else { break };
        if next > T::MAX.widen() {
            break;
        }
        key = T::narrow(next);
        keys.push(key);
    }
    keys
}

/// Keys with gaps of up to `width` bits. In some lists most gaps are small, as in real lists.
fn key_list<T: Int>(most: usize) -> impl Strategy<Value = Vec<T>> {
    let gaps = (0..=T::BITS, 0..=T::BITS, 0usize..=most).prop_flat_map(|(width, rare, len)| {
        let low = crate::bits::mask(width);
        let high = crate::bits::mask(rare);
        let gap =
            prop_oneof![9 => any::<u64>().prop_map(move |x| x & low), 1 => any::<u64>().prop_map(move |x| x & high)];
        prop::collection::vec(gap, len)
    });
    (prop_oneof![0u64..1000, any::<u64>()], gaps, any::<bool>()).prop_map(move |(first, gaps, none)| {
        if none && gaps.len() < 4 {
            return Vec::new();
        }
        let first = if gaps.len() > 64 { T::narrow(first).widen() / 1024 } else { first };
        let mut keys = keys_from(first, &gaps);
        keys.truncate(most);
        keys
    })
}

fn encoded<T: Int>(codec: Codec, keys: &[T]) -> (Block<T>, Vec<u8>) {
    let mut bytes = vec![0xA5; ROOM];
    let block = codec.encode(keys, &mut bytes).expect("encodes");
    assert_eq!(codec.used(&block), Ok(codec.encoded_len(keys)), "{codec}");
    (block, bytes)
}

fn assert_holds<T: Int>(codec: Codec, block: &Block<T>, bytes: &[u8], keys: &[T]) {
    let used = codec.used(block).expect("sound");
    let body = &bytes[..used];
    codec.check(block, body).unwrap_or_else(|error| panic!("{codec} {block:?}: {error}"));
    let mut out = [T::MAX; MAX_BLOCK];
    assert_eq!(codec.decode(block, body, &mut out).expect("decodes"), keys, "{codec}");
    assert_eq!((block.min(), block.max()), (keys.first().copied(), keys.last().copied()), "{codec}");
}

/// Checks that every reading operation gives the right result at every level.
fn assert_reads<T: Int>(codec: Codec, keys: &[T], probes: &[u64]) {
    assert_reads_at(codec, keys, 0..keys.len(), probes);
}

/// Like `assert_reads`, but selects and searches at the indexes in `some` only.
fn assert_reads_at<T: Int>(codec: Codec, keys: &[T], some: impl Iterator<Item = usize> + Clone, probes: &[u64]) {
    let (block, bytes) = encoded(codec, keys);
    assert_holds(codec, &block, &bytes, keys);
    let body = &bytes[..codec.used(&block).expect("sound")];
    for level in Level::all() {
        let mut out = [T::MAX; MAX_BLOCK];
        assert_eq!(codec.decode_at(level, &block, body, &mut out).expect("decodes"), keys, "{codec} {level:?}");
        let sum = keys.iter().map(|key| u128::from(key.widen())).sum();
        assert_eq!(codec.sum_at(level, &block, body), Ok(sum), "{codec} {level:?}");
        let some = some.clone().filter_map(|i| Some((i, *keys.get(i)?)));
        for (i, key) in some.clone() {
            assert_eq!(codec.select_at(level, &block, body, i), Ok(key), "{codec} {level:?} select {i}");
        }
        assert_eq!(codec.select_at(level, &block, body, keys.len()), Err(Error::OutOfRange));
        let near = some.flat_map(|(_, key)| [key.widen().wrapping_sub(1), key.widen(), key.widen().wrapping_add(1)]);
        for probe in near.chain(probes.iter().copied()) {
            let probe = T::narrow(probe);
            let found = codec.lower_bound_at(level, &block, body, probe).expect("searches");
            let index = keys.partition_point(|&key| key < probe);
            assert_eq!(found.index, index, "{codec} {level:?} lower_bound {probe:?}");
            assert_eq!(found.exact, keys.get(index) == Some(&probe), "{codec} {level:?} lower_bound {probe:?}");
            // Some fast paths are only taken if more bytes follow the block.
            let with_more_bytes = codec.lower_bound_at(level, &block, &bytes, probe);
            assert_eq!(with_more_bytes, Ok(found), "{codec} {level:?} lower_bound {probe:?}");
        }
    }
    for (&a, &b) in probes.iter().zip(probes.iter().skip(1)) {
        let (a, b) = (T::narrow(a), T::narrow(b));
        let count = keys.iter().filter(|&&key| (a..=b).contains(&key)).count();
        assert_eq!(codec.count_in_range(&block, body, a..=b), Ok(count), "{codec}");
    }
}

/// Tests a block of `len` keys. All gaps are `fill`, but the one with the number `wide` is `gap`.
fn long_block_comes_back<T: Int>(len: usize, wide: usize, gap: u64, fill: u64) {
    let mut gaps = vec![fill; len - 1];
    gaps[wide] = gap;
    let keys = keys_from::<T>(0, &gaps);
    for codec in Codec::ALL {
        if codec.max_count() >= len || len == 129 {
            let keys = &keys[..keys.len().min(codec.max_count())];
            let some = (0..len).filter(|&i| i.abs_diff(wide) < 2 || i % 61 == 0 || i + 1 == keys.len());
            assert_reads_at(codec, keys, some, &[]);
        }
    }
}

/// `len` keys in a range of `width` bits. They are spread in one of four ways: evenly, evenly with random deviations,
/// or most of them at one end or at the other end of the range.
fn spread<T: Int>(len: u64, width: u32, way: u64) -> Vec<T> {
    let range = crate::bits::mask(width) - (crate::bits::mask(width) - len) / 3;
    let room = range - (len - 1);
    let place = |i: u64| {
        let share = i as f64 / (len - 1) as f64;
        let share = match way {
            0 => share,
            1 => share + (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1u64 << 24) as f64 / len as f64,
            2 => share * share * share,
            _ => 1.0 - (1.0 - share) * (1.0 - share) * (1.0 - share),
        };
        if i + 1 == len { range } else { i + ((room as f64 * share.min(1.0)) as u64).min(room) }
    };
    let first = (T::MAX.widen() - range).min(77);
    (0..len).map(|i| T::narrow(first + place(i))).collect()
}

/// Any key, and often one near the largest.
fn bound<T: Int>() -> impl Strategy<Value = T> {
    prop_oneof![any::<u64>(), (0u64..400).prop_map(|below| u64::MAX - below)].prop_map(T::narrow)
}

macro_rules! properties {
    ($module:ident, $key:ty) => {
        mod $module {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(96))]

                #[test]
                fn reads_agree_with_the_keys_at_every_level(
                    keys in key_list::<$key>(MAX_BLOCK),
                    probes in prop::collection::vec(any::<u64>(), 8),
                ) {
                    for codec in Codec::ALL {
                        assert_reads(codec, &keys[..keys.len().min(codec.max_count())], &probes);
                    }
                }

                #[test]
                fn an_append_has_the_predicted_descriptor(keys in key_list::<$key>(MAX_BLOCK)) {
                    for codec in Codec::ALL {
                        assert_appends(codec, &keys[..keys.len().min(codec.max_count())]);
                    }
                }

                #[test]
                fn edits_agree_with_a_sorted_vec(keys in key_list::<$key>(MAX_BLOCK), steps in steps()) {
                    for codec in Codec::ALL {
                        assert_edits(codec, &keys, &steps);
                    }
                }

                #[test]
                fn every_level_inserts_in_place_as_an_encoder_would(
                    keys in key_list::<$key>(MAX_BLOCK), key: prop::sample::Index, by in 0u64..40, wrong in 0usize..260,
                ) {
                    let near = if keys.is_empty() { 7 } else { u64::from(keys[key.index(keys.len())]).wrapping_add(by) };
                    for codec in Codec::ALL {
                        let keys = &keys[..keys.len().min(codec.max_count())];
                        let at = keys.partition_point(|key| u64::from(*key) < near);
                        for wrong in [wrong, at.saturating_sub(1), at, at + 1] {
                            assert_inserts_at(codec, keys, near as $key, wrong);
                        }
                    }
                }

                #[test]
                fn an_insert_without_room_changes_nothing(keys in key_list::<$key>(MAX_BLOCK), key: $key) {
                    for codec in Codec::ALL {
                        assert_refuses_without_room(codec, &keys, key);
                    }
                }

                #[test]
                fn random_bytes_are_survived(
                    bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(0x80), 0u8..4], 0..2600),
                    first in bound::<$key>(), last in bound::<$key>(), count in 0u16..300, extent in 0u16..2600, probe: u64,
                    packed: bool,
                ) {
                    for codec in Codec::ALL {
                        let packed = packed && !codec.edits_in_place();
                        let extent = if packed { extent % 70 } else { extent };
                        assert_survives(codec, Block { first, last, count, extent }, &bytes, probe);
                    }
                }

                #[test]
                fn damaged_blocks_are_survived(
                    keys in key_list::<$key>(MAX_BLOCK), at: prop::sample::Index, byte: u8, probe: u64,
                    count in 0u16..3, extent in 0u16..3, cut: bool,
                ) {
                    for codec in Codec::ALL {
                        let keys = &keys[..keys.len().min(codec.max_count())];
                        let (mut block, mut bytes) = encoded(codec, keys);
                        bytes.truncate(codec.used(&block).expect("sound"));
                        if !bytes.is_empty() {
                            let at = at.index(bytes.len());
                            bytes[at] = byte;
                            if cut {
                                bytes.truncate(at);
                            }
                        }
                        block.count = (block.count + count).saturating_sub(1);
                        block.extent = (block.extent + extent).saturating_sub(1);
                        assert_survives(codec, block, &bytes, probe);
                    }
                }
            }

            #[test]
            fn every_width_and_length_comes_back() {
                for width in 0..=<$key>::BITS {
                    for len in [1usize, 2, 4, 9, 16, 17, 33, 100] {
                        let room = <$key>::MAX / len as $key;
                        let gap = (crate::bits::mask(width) as $key).min(room.saturating_sub(1));
                        let gaps: Vec<u64> =
                            (0..len as u64 - 1).map(|i| if i % 3 == 0 { u64::from(gap) } else { i % 2 }).collect();
                        let keys = keys_from::<$key>(width.into(), &gaps);
                        for codec in Codec::ALL {
                            assert_reads(codec, &keys[..keys.len().min(codec.max_count())], &[]);
                        }
                    }
                }
            }

            #[test]
            fn keys_go_in_at_every_place_of_blocks_of_every_width() {
                for width in 2..<$key>::BITS {
                    for len in [3usize, 15, 17, 31, 47, 100, 255] {
                        let gap = (crate::bits::mask(width) / len as u64).max(1);
                        let keys: Vec<$key> = keys_from(9, &vec![gap; len - 1]);
                        let some = (0..keys.len()).filter(|at| len < 40 || at % 7 == 0 || at % 16 < 2);
                        for (at, key) in some.filter_map(|at| Some((at + 1, keys.get(at)?.checked_add(1)?))) {
                            assert_inserts_at(Codec::SimdFor, &keys, key, at);
                            assert_inserts_at(Codec::SimdFor, &keys, key, at + 1);
                        }
                    }
                }
            }

            /// Searches begin at a likely place. Here keys are near it, and far from it.
            #[test]
            fn keys_are_found_however_they_are_spread() {
                for width in 9..=<$key>::BITS {
                    for way in 0..4 {
                        for (codec, len) in [(Codec::Plain, 40), (Codec::Plain, 256), (Codec::For, 241), (Codec::For, 256),
                            (Codec::SimdFor, 256), (Codec::Bp128, 128)] {
                            let keys = spread::<$key>(len, width, way);
                            assert_reads_at(codec, &keys, 0..keys.len(), &[0, u64::MAX]);
                            let up = <$key>::MAX - keys[keys.len() - 1];
                            let high: Vec<$key> = keys.iter().map(|key| key + up).collect();
                            assert_reads_at(codec, &high, (0..high.len()).step_by(5), &[0, u64::MAX]);
                        }
                    }
                }
            }

            /// One gap of each width, the smallest and the largest that fits the key type, among zeros or ones.
            #[test]
            fn every_width_comes_back_in_long_blocks() {
                for width in 1..=<$key>::BITS {
                    for (len, fill) in [128, 129, 241, 242, 256].into_iter().flat_map(|len| [(len, 0), (len, 1)]) {
                        let others = (len as u64 - 2) * (1 + fill);
                        let most = crate::bits::mask(width).min(u64::from(<$key>::MAX) - others - 1);
                        for gap in [1 << (width - 1), most] {
                            for wide in [0, len / 2, len - 2, 126] {
                                long_block_comes_back::<$key>(len, wide, gap, fill);
                            }
                        }
                    }
                }
            }
        }
    };
}

/// One gap of each length in bytes among gaps of each length, at the places where the steps of 8, 16 and 64 gaps of the
/// kernels begin and end.
#[test]
fn gaps_of_every_length_come_back_among_others() {
    let of_length = [0, 0x7F, 0x80, 0xFF, 0x100, 0x3FFF, 0x4000, 0xFFFF, 0x1_0000, 0x1F_FFFF, 0x20_0000];
    for gap in of_length.into_iter().chain([0xFF_FFFF, 0x100_0000, 0xFFF_FFFF, 0x1000_0000]) {
        for fill in [0, 0x7F, 0x80, 0x100, 0x4000, 0x20_0000] {
            for len in [2usize, 9, 16, 17, 18, 33, 65, 193, 241, 255, 256] {
                for wide in [0, 7, 8, 14, 15, 16, 17, 63, 64, len - 2].into_iter().filter(|&wide| wide + 1 < len) {
                    let mut gaps = vec![fill; len - 1];
                    gaps[wide] = gap;
                    let keys = keys_from::<u32>(11, &gaps);
                    let some = (0..len).filter(|&i| i.abs_diff(wide) < 2 || i % 53 == 0 || i + 1 == len);
                    for codec in [Codec::MaskedVByte, Codec::VarIntGb, Codec::StreamVByte] {
                        assert_reads_at(codec, &keys, some.clone(), &[]);
                    }
                }
            }
        }
    }
}

/// Blocks of every length with gaps of one byte, some of them the largest of one byte.
#[test]
fn gaps_of_a_byte_each_come_back() {
    for (codec, most) in [(Codec::MaskedVByte, 0x7F), (Codec::VarIntGb, 0xFF), (Codec::StreamVByte, 0xFF)] {
        for len in 1..=MAX_BLOCK as u64 {
            let gaps: Vec<u64> = (1..len).map(|i| if i * i % 7 < 4 { most } else { i * 37 % (most + 1) }).collect();
            let some = (0..len as usize).filter(|i| !(20..=250).contains(&len) || i % 13 == 0 || *i as u64 + 9 > len);
            assert_reads_at(codec, &keys_from::<u32>(5, &gaps), some, &[0, 1 << 20, u64::MAX]);
            assert_reads_at(codec, &keys_from::<u32>(5, &vec![most; len as usize - 1]), 0..len as usize, &[1 << 16]);
        }
    }
}

properties!(u32_keys, u32);
properties!(u64_keys, u64);

/// Frames of every length and width, with keys that are evenly spread with random deviations, and with keys that are
/// not.
#[test]
fn frames_of_every_length_are_searched() {
    for len in 2..=MAX_BLOCK as u64 {
        for width in crate::bits::width(len)..=32 {
            let way = (len + u64::from(width)) % 7 % 4;
            let keys = spread::<u32>(len, width, if way == 0 { 1 } else { way });
            let some = (0..len as usize).filter(|i| i % 11 == (len % 11) as usize || (len as usize) < i + 3);
            for codec in [Codec::For, Codec::SimdFor] {
                assert_reads_at(codec, &keys, some.clone(), &[]);
            }
        }
    }
}

/// The fast paths find nearly all keys that are evenly spread with random deviations.
#[test]
fn most_keys_are_near_their_predicted_positions() {
    fn quick<S: Scheme<u32>>(codec: Codec, level: Level) {
        for width in 9..=25 {
            let keys = spread::<u32>(S::MAX_COUNT as u64, width, 1);
            let (block, bytes) = encoded(codec, &keys);
            let found = keys.iter().filter(|&&key| find::<u32, S>(level, &block, &bytes, key).is_some()).count();
            assert!(found > keys.len() * 9 / 10, "{codec} {level:?} {width}: {found}");
        }
    }
    fn quick_among(level: Level) {
        for (len, width) in (33..=255).flat_map(|len| [10, 16, 21].map(|width| (len, width))) {
            let keys = spread::<u32>(len, width, 1);
            let (block, bytes) = encoded(Codec::SimdFor, &keys);
            let inside = keys.iter().filter(|&&key| key > block.first);
            let found = inside.filter(|&&key| u32::frame_find_among(level, &block, &bytes, key).is_some()).count();
            assert!(found > keys.len() * 9 / 10, "{len} keys of {width} bits: {found}");
        }
    }
    Level::all().for_each(|level| quick::<Plain>(Codec::Plain, level));
    for level in Level::all().filter(|&level| level >= Level::Vbmi) {
        quick::<For>(Codec::For, level);
        quick::<SimdFor>(Codec::SimdFor, level);
        quick_among(level);
    }
}

#[test]
fn refusals_name_their_reason() {
    let mut bytes = [0u8; 64];
    for codec in Codec::ALL {
        assert_eq!(codec.encode(&[3u32, 3], &mut bytes), Err(Error::NotIncreasing), "{codec}");
        assert_eq!(codec.encode::<u32>(&(0..257).collect::<Vec<_>>(), &mut bytes), Err(Error::Full), "{codec}");
        let many: Vec<u32> = (0..100).map(|i| i * 1_000_000).collect();
        let needed = codec.encoded_len(&many);
        assert_eq!(codec.encode(&many, &mut bytes), Err(Error::NoRoom { needed }), "{codec}");
        assert_eq!("nonsense".parse::<Codec>(), Err(crate::UnknownCodec));
        assert_eq!(codec.name().parse(), Ok(codec));
        assert_eq!(Codec::from_tag(codec as u8), Some(codec));
    }
}

/// The worked example of `docs/layouts/integers.md`, byte for byte.
#[test]
fn the_documented_bytes_are_the_ones_written() {
    let keys = [500u32, 501, 574, 1000, 1001];
    let rows = |low: [u8; 5], high: [u8; 5]| {
        let mut bytes = [0; 32];
        bytes[..5].copy_from_slice(&low);
        bytes[16..21].copy_from_slice(&high);
        bytes.to_vec()
    };
    let plain = vec![0xF5, 1, 0, 0, 0x3E, 2, 0, 0, 0xE8, 3, 0, 0, 0xE9, 3, 0, 0];
    let vbyte = vec![0x00, 0x48, 0xA9, 0x03, 0x00];
    let group = vec![0x10, 0x00, 0x48, 0xA9, 0x01, 0x00];
    let documented = [
        (Codec::Plain, plain, 16),
        (Codec::VByte, vbyte.clone(), 5),
        (Codec::MaskedVByte, vbyte, 5),
        (Codec::VarIntGb, group.clone(), 6),
        (Codec::StreamVByte, group, 6),
        (Codec::For, vec![0x01, 0x94, 0xD0, 0xAF, 0x0F], 9),
        (Codec::SimdFor, rows([0, 1, 0x4A, 0xF4, 0xF5], [0, 0, 0, 1, 1]), 9),
        (Codec::Bp128, rows([0, 0, 0x48, 0xA9, 0], [0, 0, 0, 1, 0]), 9),
    ];
    for (codec, expected, extent) in documented {
        let (block, bytes) = encoded(codec, &keys);
        assert_eq!(&bytes[..expected.len()], expected, "{codec}");
        assert_eq!((codec.used(&block), block.extent), (Ok(expected.len()), extent), "{codec}");
    }
    let (mut block, mut bytes) = encoded(Codec::VarIntGb, &keys);
    Codec::VarIntGb.append(&mut block, &mut bytes, 1100).expect("there is room");
    assert_eq!(bytes[..8], [0x10, 0x00, 0x48, 0xA9, 0x01, 0x00, 0x62, 0x00]);
}
