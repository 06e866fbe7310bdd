use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

const ALL: [Compression; 6] = [
    Compression::Lz4,
    Compression::Zstd(1),
    Compression::Zstd(3),
    Compression::Zstd(22),
    Compression::Zlib(1),
    Compression::Zlib(9),
];

#[test]
fn texts_and_bytes_come_back() {
    for one in ALL.into_iter().chain([Compression::None]) {
        assert_eq!(one.to_string().parse::<Compression>().unwrap(), one);
        assert_eq!(Compression::of_bytes(one.to_bytes()), Some(one));
    }
    for text in ["", "lz4:1", "none:0", "zstd:0", "zstd:23", "zstd:", "zlib:10", "zlib:-1", "snappy", "LZ4", "zstd:3:3"]
    {
        assert!(matches!(text.parse::<Compression>(), Err(Error::Option { option: "compression", .. })), "{text}");
    }
    for bytes in [[0, 1], [1, 1], [2, 0], [2, 23], [3, 0], [3, 10], [4, 0]] {
        assert_eq!(Compression::of_bytes(bytes), None);
    }
}

proptest! {
    #[test]
    fn bytes_come_back_or_are_left_as_they_are(
        bytes in proptest::collection::vec(prop_oneof![3 => Just(7u8), 1 => any::<u8>()], 0..9000), most in 0usize..9000,
    ) {
        let mut coders = Coders::default();
        let mut out = Vec::new();
        for compression in ALL {
            let Some(encoding) = coders.compress(compression, &bytes, most, &mut out) else { continue };
            prop_assert!(out.len() <= most && encoding == compression.encoding());
            let mut again = vec![1; bytes.len()];
            prop_assert_eq!(coders.decompress(encoding, &out, &mut again).unwrap(), Some(bytes.len()));
            prop_assert_eq!(&again, &bytes);
            // Too little room.
            if !bytes.is_empty() {
                let len = coders.decompress(encoding, &out, &mut again[1..]).unwrap();
                prop_assert!(len.is_none());
            }
        }
    }

    /// What is cut short, and what decompresses to more than a page.
    #[test]
    fn parts_of_a_page_and_bombs_give_no_page(seed in any::<u64>(), cut in 0usize..2000) {
        let mut coders = Coders::default();
        let (mut out, mut compressed) = (vec![0; 8192], Vec::new());
        let mut page = vec![7; 5000];
        fastrand::Rng::with_seed(seed).fill(&mut page[..2000]);
        for compression in ALL {
            let encoding = coders.compress(compression, &page, 5000, &mut compressed).unwrap();
            let cut = cut % compressed.len();
            let len = coders.decompress(encoding, &compressed[..cut], &mut out).unwrap();
            prop_assert!(len.is_none_or(|len| len < page.len()), "{} {}", compression, cut);
            let encoding = coders.compress(compression, &vec![0; 1 << 20], 1 << 20, &mut compressed).unwrap();
            prop_assert!(compressed.len() < 8192);
            prop_assert!(coders.decompress(encoding, &compressed, &mut out).unwrap().is_none());
        }
    }

    #[test]
    fn hostile_bytes_give_nothing_or_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300), flip in any::<u16>()) {
        let mut coders = Coders::default();
        let (mut out, mut compressed) = (vec![0; 8192], Vec::new());
        for compression in ALL {
            let encoding = compression.encoding();
            prop_assert!(coders.decompress(encoding, &bytes, &mut out).unwrap().is_none_or(|len| len <= out.len()));
            // Bytes of this coder with a flipped bit.
            let repeated = bytes.repeat(9);
            if coders.compress(compression, &repeated, 8192, &mut compressed).is_some() && !compressed.is_empty() {
                let at = usize::from(flip) % compressed.len();
                compressed[at] ^= 1 << (flip % 8);
                let _ = coders.decompress(encoding, &compressed, &mut out).unwrap();
            }
        }
    }
}

#[test]
fn every_page_is_prepared_once_whatever_the_number_of_threads() {
    let places = Places { unit: 128, header: 16, whole: 8192, fixed: false };
    let compression = PageCompression::new(places, Policies::new());
    for threads in [0, 1, 2, 3, 7] {
        compression.set_threads(threads);
        for count in (0..40).chain([100, 1000]) {
            let mut items: Vec<u32> = (0..count).collect();
            let workers = parking_lot::Mutex::new(HashSet::new());
            compression.each(&mut items, |part| {
                workers.lock().insert(std::thread::current().id());
                part.iter_mut().for_each(|item| *item += 1);
            });
            assert!(items.into_iter().eq(1..=count), "{count} with {threads} threads");
            let most = threads.min(count as usize / 8).max(1);
            assert!(workers.into_inner().len() <= most, "{count} with {threads} threads");
        }
    }
}
