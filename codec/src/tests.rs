//! Every codec against a sorted `Vec`, every level against the scalar reference, and hostile bytes.

use proptest::prelude::*;

use crate::{Block, Codec, Edit, Error, Int, Level, MAX_BLOCK};

/// Room for any block and one key more.
const ROOM: usize = MAX_BLOCK * 10 + 64;

/// Keys from a first one and gaps; ends early where the key type does.
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

/// Gaps of up to `width` bits; some runs are all small, as in real lists.
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

/// Every reading operation of every level gives what the keys say.
fn assert_reads<T: Int>(codec: Codec, keys: &[T], probes: &[u64]) {
    let (block, bytes) = encoded(codec, keys);
    assert_holds(codec, &block, &bytes, keys);
    let body = &bytes[..codec.used(&block).expect("sound")];
    for level in Level::all() {
        let mut out = [T::MAX; MAX_BLOCK];
        assert_eq!(codec.decode_at(level, &block, body, &mut out).expect("decodes"), keys, "{codec} {level:?}");
        let sum = keys.iter().map(|key| u128::from(key.widen())).sum();
        assert_eq!(codec.sum_at(level, &block, body), Ok(sum), "{codec} {level:?}");
        for (i, &key) in keys.iter().enumerate() {
            assert_eq!(codec.select_at(level, &block, body, i), Ok(key), "{codec} {level:?} select {i}");
        }
        assert_eq!(codec.select_at(level, &block, body, keys.len()), Err(Error::OutOfRange));
        let near = keys.iter().flat_map(|key| [key.widen().wrapping_sub(1), key.widen(), key.widen().wrapping_add(1)]);
        for probe in near.chain(probes.iter().copied()) {
            let probe = T::narrow(probe);
            let found = codec.lower_bound_at(level, &block, body, probe).expect("searches");
            let index = keys.partition_point(|&key| key < probe);
            assert_eq!(found.index, index, "{codec} {level:?} lower_bound {probe:?}");
            assert_eq!(found.exact, keys.get(index) == Some(&probe), "{codec} {level:?} lower_bound {probe:?}");
        }
    }
    for (&a, &b) in probes.iter().zip(probes.iter().skip(1)) {
        let (a, b) = (T::narrow(a), T::narrow(b));
        let count = keys.iter().filter(|&&key| (a..=b).contains(&key)).count();
        assert_eq!(codec.count_in_range(&block, body, a..=b), Ok(count), "{codec}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertNear(usize, u64),
    Append(u64),
    Remove(usize),
    RemoveKey(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        any::<u64>().prop_map(Step::Insert),
        (any::<usize>(), 0u64..3000).prop_map(|(at, by)| Step::InsertNear(at, by)),
        (0u32..40, any::<u64>()).prop_map(|(shift, by)| Step::Append(by >> (24 + shift).min(63))),
        any::<usize>().prop_map(Step::Remove),
        any::<u64>().prop_map(Step::RemoveKey),
    ];
    prop::collection::vec(step, 1..60)
}

/// Applies `step` to the block and to the keys, and says that they still agree.
fn apply<T: Int>(codec: Codec, block: &mut Block<T>, bytes: &mut [u8], keys: &mut Vec<T>, step: &Step) {
    let before = codec.used(block).expect("sound");
    let full = keys.len() == codec.max_count();
    match *step {
        Step::Insert(_) | Step::InsertNear(..) => {
            let key = match *step {
                Step::InsertNear(at, by) if !keys.is_empty() => {
                    T::narrow(keys[at % keys.len()].widen().wrapping_add(by).wrapping_sub(1500))
                }
                Step::Insert(key) | Step::InsertNear(_, key) => T::narrow(key),
                _ => unreachable!("only inserts"),
            };
            let expected = match keys.binary_search(&key) {
                Ok(at) => Ok(Edit::Unchanged(at)),
                Err(_) if full => Err(Error::Full),
                Err(at) => {
                    keys.insert(at, key);
                    Ok(Edit::Done(at))
                }
            };
            assert_eq!(codec.insert(block, bytes, key), expected, "{codec} insert {key:?}");
        }
        Step::Append(by) => {
            let key = T::narrow(keys.last().map_or(by, |last| last.widen().wrapping_add(by)));
            let expected = match keys.last() {
                _ if full => Err(Error::Full),
                Some(&last) if key <= last => Err(Error::NotIncreasing),
                _ => {
                    keys.push(key);
                    Ok(())
                }
            };
            assert_eq!(codec.append(block, bytes, key), expected, "{codec} append {key:?}");
        }
        Step::Remove(at) => {
            let at = at % (keys.len() + 1);
            if at == keys.len() {
                assert_eq!(codec.remove_at(block, bytes, at), Err(Error::OutOfRange), "{codec}");
            } else {
                keys.remove(at);
                assert_eq!(codec.remove_at(block, bytes, at), Ok(()), "{codec} remove {at}");
                assert!(!codec.delete_stable() || codec.used(block).expect("sound") <= before, "{codec} grew");
            }
        }
        Step::RemoveKey(key) => {
            let key = T::narrow(key);
            let expected = match keys.binary_search(&key) {
                Ok(at) => {
                    keys.remove(at);
                    Edit::Done(at)
                }
                Err(at) => Edit::Unchanged(at),
            };
            assert_eq!(codec.remove(block, bytes, key), Ok(expected), "{codec} remove {key:?}");
        }
    }
    assert_holds(codec, block, bytes, keys);
}

fn assert_edits<T: Int>(codec: Codec, keys: &[T], steps: &[Step]) {
    let mut keys = keys[..keys.len().min(codec.max_count())].to_vec();
    let (mut block, mut bytes) = encoded(codec, &keys);
    for step in steps {
        apply(codec, &mut block, &mut bytes, &mut keys, step);
    }
}

/// One byte less than needed is refused, and refusing changes nothing.
fn assert_refuses_without_room<T: Int>(codec: Codec, keys: &[T], key: T) {
    let keys = &keys[..keys.len().min(codec.max_count() - 1)];
    let (block, bytes) = encoded(codec, keys);
    let mut grown = keys.to_vec();
    let Err(at) = grown.binary_search(&key) else { return };
    grown.insert(at, key);
    let (mut whole, mut all) = (block, bytes.clone());
    codec.insert(&mut whole, &mut all, key).expect("there is room");
    let needed = codec.used(&whole).expect("sound");
    if needed <= codec.used(&block).expect("sound") {
        return;
    }
    let (mut same, mut short) = (block, bytes[..needed - 1].to_vec());
    assert_eq!(codec.insert(&mut same, &mut short, key), Err(Error::NoRoom { needed }), "{codec}");
    assert_eq!((same, &short[..]), (block, &bytes[..needed - 1]), "{codec} changed what it refused");
}

/// Whatever the bytes and the descriptor, nothing panics and sound levels agree on what they accept.
fn assert_survives<T: Int>(codec: Codec, block: Block<T>, bytes: &[u8], probe: u64) {
    let probe = T::narrow(probe);
    let mut reference = [T::MAX; MAX_BLOCK];
    let expected = codec.decode_at(Level::Scalar, &block, bytes, &mut reference).map(|keys| keys.to_vec());
    for level in Level::all() {
        let mut out = [T::MAX; MAX_BLOCK];
        let decoded = codec.decode_at(level, &block, bytes, &mut out).map(|keys| keys.to_vec());
        assert_eq!(decoded.is_ok(), expected.is_ok(), "{codec} {level:?} {decoded:?} {expected:?}");
        if let (Ok(decoded), Ok(expected)) = (&decoded, &expected) {
            assert_eq!(decoded, expected, "{codec} {level:?}");
        }
        for index in [0, 1, 100, usize::from(block.count).saturating_sub(1), usize::MAX] {
            let _ = codec.select_at(level, &block, bytes, index);
        }
        for key in [probe, block.last, T::narrow(block.first.widen().wrapping_add(1))] {
            if let Ok(found) = codec.lower_bound_at(level, &block, bytes, key) {
                assert!(found.index <= usize::from(block.count), "{codec} {level:?}");
            }
        }
        let _ = codec.sum_at(level, &block, bytes);
    }
    let _ = codec.check(&block, bytes);
    for edit in 0..4 {
        let (mut block, mut bytes, middle) = (block, bytes.to_vec(), usize::from(block.count) / 2);
        let _ = match edit {
            0 => codec.insert(&mut block, &mut bytes, probe).map(|_| ()),
            1 => codec.append(&mut block, &mut bytes, probe),
            2 => codec.remove(&mut block, &mut bytes, probe).map(|_| ()),
            _ => codec.remove_at(&mut block, &mut bytes, middle),
        };
    }
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
                fn edits_agree_with_a_sorted_vec(keys in key_list::<$key>(MAX_BLOCK), steps in steps()) {
                    for codec in Codec::ALL {
                        assert_edits(codec, &keys, &steps);
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
                    first: $key, last: $key, count in 0u16..300, extent in 0u16..2600, probe: u64, packed: bool,
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
                    for len in [1usize, 2, 4, 9, 16, 17, 33, 100, 128, 129, 256] {
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
        }
    };
}

properties!(u32_keys, u32);
properties!(u64_keys, u64);

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

#[test]
fn bp128_may_grow_by_a_removal() {
    let keys: Vec<u32> = (0..128).collect();
    let (mut block, mut bytes) = encoded(Codec::Bp128, &keys);
    assert_eq!(Codec::Bp128.used(&block), Ok(0));
    assert_eq!(Codec::Bp128.remove(&mut block, &mut bytes[..15], 64), Err(Error::NoRoom { needed: 16 }));
    assert_eq!(Codec::Bp128.remove(&mut block, &mut bytes, 64), Ok(Edit::Done(64)));
    assert_eq!(Codec::Bp128.used(&block), Ok(16));
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
