//! Tests edits against a sorted `Vec`, and which edits are refused.

use proptest::prelude::*;

use super::{assert_holds, encoded};
use crate::{Block, Codec, Edit, Error, Int, Level};

#[derive(Clone, Debug)]
pub(super) enum Step {
    Insert(u64),
    InsertNear(usize, u64),
    Append(u64),
    Remove(usize),
    RemoveKey(u64),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        any::<u64>().prop_map(Step::Insert),
        (any::<usize>(), 0u64..3000).prop_map(|(at, by)| Step::InsertNear(at, by)),
        (0u32..40, any::<u64>()).prop_map(|(shift, by)| Step::Append(by >> (24 + shift).min(63))),
        any::<usize>().prop_map(Step::Remove),
        any::<u64>().prop_map(Step::RemoveKey),
    ];
    prop::collection::vec(step, 1..60)
}

/// Applies `step` to the block and to the keys, and checks that they still agree.
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

pub(super) fn assert_edits<T: Int>(codec: Codec, keys: &[T], steps: &[Step]) {
    let mut keys = keys[..keys.len().min(codec.max_count())].to_vec();
    let (mut block, mut bytes) = encoded(codec, &keys);
    for step in steps {
        apply(codec, &mut block, &mut bytes, &mut keys, step);
    }
}

/// Tests that an insert is refused if one byte is missing, and that it then changes nothing.
pub(super) fn assert_refuses_without_room<T: Int>(codec: Codec, keys: &[T], key: T) {
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

/// Tests that the descriptor after each append, and the growth of the block, are known before it.
pub(super) fn assert_appends<T: Int>(codec: Codec, keys: &[T]) {
    let (mut bytes, mut block) = ([0u8; super::ROOM], Block::default());
    for &key in keys {
        let (appended, growth) = (codec.appended(&block, key), codec.append_growth(&block, key));
        let before = codec.used(&block).expect("sound");
        codec.append(&mut block, &mut bytes, key).expect("there is room");
        assert_eq!(appended, block, "{codec}");
        assert_eq!(growth, Ok(codec.used(&block).expect("sound") - before), "{codec} at {} keys", block.count);
    }
    if keys.len() == codec.max_count() {
        assert_eq!(codec.append_growth(&block, T::MAX), Err(Error::Full), "{codec}");
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

/// Tests at every level that a key is inserted at its own index with the bytes that an encoder writes, and at no other
/// index.
pub(super) fn assert_inserts_at<T: Int>(codec: Codec, keys: &[T], key: T, wrong: usize) {
    let (block, mut bytes) = encoded(codec, keys);
    let used = codec.used(&block).expect("sound");
    bytes.truncate(used);
    let Err(at) = keys.binary_search(&key) else { return };
    let mut grown = keys.to_vec();
    grown.insert(at, key);
    assert_eq!(codec.inserts_at(), codec == Codec::SimdFor);
    let inside = codec.inserts_at() && at > 0 && at < keys.len() && grown.len() <= codec.max_count();
    let fits = inside && codec.encoded_len(&grown) == used;
    for level in Level::all() {
        let (mut same, mut there) = (block, bytes.clone());
        let done = codec.insert_at_level(level, &mut same, &mut there, wrong, key);
        assert!(wrong == at && fits || matches!(done, Ok(false) | Err(Error::NotIncreasing)), "{codec} {level:?}");
        if wrong != at {
            assert_eq!((same, &there), (block, &bytes), "{codec} {level:?} changed what it refused");
            assert_eq!(codec.insert_at_level(level, &mut same, &mut there, at, key), Ok(fits), "{codec} {level:?}");
        }
        if fits {
            assert_holds(codec, &same, &there, &grown);
        } else {
            assert_eq!((same, &there), (block, &bytes), "{codec} {level:?} changed what it refused");
        }
    }
}
