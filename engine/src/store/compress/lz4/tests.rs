//! The coder against `lz4_flex`, on bytes of many kinds.

use super::*;
use proptest::prelude::*;

/// Bytes with runs of one byte and of a few, with repeated parts, and with random bytes between them.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..90),
        (prop::collection::vec(any::<u8>(), 1..40), 1usize..400).prop_map(|(unit, len)| repeated(&unit, len)),
        (prop::collection::vec(0u8..3, 0..40)),
        (1usize..90).prop_map(|len| vec![0; len]),
    ];
    (prop::collection::vec(part, 1..30), prop::collection::vec(any::<prop::sample::Index>(), 0..60)).prop_map(
        |(parts, order)| {
            let again = order.iter().flat_map(|index| index.get(&parts).clone());
            parts.iter().flatten().copied().chain(again).collect()
        },
    )
}

fn repeated(unit: &[u8], len: usize) -> Vec<u8> {
    unit.iter().copied().cycle().take(len).collect()
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![0; bytes.len() + bytes.len() / 255 + 16];
    let len = Lz4Encoder::default().compress(bytes, &mut block).unwrap();
    block.truncate(len);
    block
}

/// The decompressed bytes of a block, with this room.
fn decompressed(block: &[u8], room: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; room];
    let len = decompress(block, &mut out)?;
    out.truncate(len);
    Some(out)
}

proptest! {
    #[test]
    fn both_coders_read_the_blocks_of_both(bytes in bytes()) {
        let (ours, theirs) = (compressed(&bytes), lz4_flex::block::compress(&bytes));
        for block in [&ours, &theirs] {
            for room in [bytes.len(), bytes.len() + 100] {
                prop_assert_eq!(decompressed(block, room), Some(bytes.clone()));
            }
        }
        prop_assert_eq!(lz4_flex::block::decompress(&ours, bytes.len()).ok(), Some(bytes));
    }

    #[test]
    fn too_little_room_gives_nothing(bytes in bytes(), part in 0.0f64..1.0) {
        let block = compressed(&bytes);
        let less = |len: usize| (len as f64 * part) as usize;
        let mut room = vec![0; less(block.len())];
        prop_assert_eq!(Lz4Encoder::default().compress(&bytes, &mut room), None);
        let exact = Lz4Encoder::default().compress(&bytes, &mut vec![0; block.len()]);
        prop_assert_eq!(exact, Some(block.len()));
        if !bytes.is_empty() {
            prop_assert_eq!(decompressed(&block, less(bytes.len())), None);
        }
    }

    #[test]
    fn damaged_blocks_give_what_lz4_flex_gives(
        bytes in bytes(), flips in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..4), cut in any::<prop::sample::Index>(),
        room in 0usize..20_000,
    ) {
        let mut block = compressed(&bytes);
        flips.iter().for_each(|(index, xor)| *index.get_mut(&mut block) ^= xor);
        block.truncate(cut.index(block.len() + 1));
        agree(&block, room)?;
    }

    #[test]
    fn any_bytes_give_what_lz4_flex_gives(block in prop::collection::vec(any::<u8>(), 0..200), room in 0usize..2_000) {
        agree(&block, room)?;
    }
}

/// Both coders give the same bytes, or none.
fn agree(block: &[u8], room: usize) -> Result<(), TestCaseError> {
    let mut theirs = vec![0; room];
    let len = lz4_flex::block::decompress_into(block, &mut theirs).ok();
    let ours = decompressed(block, room);
    prop_assert_eq!(ours.as_deref(), len.map(|len| &theirs[..len]));
    Ok(())
}

#[test]
fn the_encoder_keeps_nothing_of_the_block_before() {
    let mut encoder = Lz4Encoder::default();
    let mut rng = fastrand::Rng::with_seed(7);
    for len in [0, 1, 12, 13, 14, 100, 5_000, 70_000] {
        let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..4)).collect();
        let mut block = vec![0; len + 1_000];
        let len = encoder.compress(&bytes, &mut block).unwrap();
        assert_eq!(&block[..len], compressed(&bytes));
        assert_eq!(decompressed(&block[..len], bytes.len()), Some(bytes));
    }
}

#[test]
fn a_run_is_one_sequence() {
    let mut rng = fastrand::Rng::with_seed(9);
    let records: Vec<u8> =
        (0..60).flat_map(|_| (0..120).map(|at| if at < 60 { rng.u8(1..) } else { 0 }).collect::<Vec<_>>()).collect();
    // 60 literals with a token and a length, the first zero, and a match of 59 with its offset and a length.
    assert!(compressed(&records).len() <= 60 * (60 + 2 + 1 + 3) + 8);
    assert_eq!(compressed(&[7; 4_000]).len(), 1 + 1 + 2 + 16 + 1 + 5);
}

#[test]
fn matches_are_at_most_65_535_bytes_away() {
    let mut rng = fastrand::Rng::with_seed(8);
    let random: Vec<u8> = (0..70_000).map(|_| rng.u8(..)).collect();
    for distance in [65_534, 65_535, 65_536, 65_537, 69_000] {
        let bytes = [&random[..distance], &random[..2_000]].concat();
        let block = compressed(&bytes);
        assert_eq!(decompressed(&block, bytes.len()), Some(bytes.clone()), "{distance}");
        assert_eq!(lz4_flex::block::decompress(&block, bytes.len()).unwrap(), bytes, "{distance}");
    }
}
