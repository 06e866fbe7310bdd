//! Tests of compressed page images: round trips, damaged images and targets.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;
#[cfg(feature = "zstd")]
use std::sync::Arc;
use std::sync::Barrier;
use std::time::Duration;

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
            let Some(encoding) = coders.compress(compression, None, &bytes, most, &mut out) else { continue };
            prop_assert!(out.len() <= most && encoding == compression.encoding());
            let mut again = vec![1; bytes.len()];
            prop_assert_eq!(coders.decompress(encoding, &out, &|_| None, &mut again), Ok(bytes.len()));
            prop_assert_eq!(&again, &bytes);
            // Too little room.
            if !bytes.is_empty() {
                let len = coders.decompress(encoding, &out, &|_| None, &mut again[1..]);
                prop_assert_eq!(len, Err(DecompressError::Damaged));
            }
        }
    }

    /// Truncated images, and images that decompress to more than a page.
    #[test]
    fn parts_of_a_page_and_bombs_give_no_page(seed in any::<u64>(), cut in 0usize..2000) {
        let mut coders = Coders::default();
        let (mut out, mut compressed) = (vec![0; 8192], Vec::new());
        let mut page = vec![7; 5000];
        fastrand::Rng::with_seed(seed).fill(&mut page[..2000]);
        for compression in ALL {
            let encoding = coders.compress(compression, None, &page, 5000, &mut compressed).unwrap();
            let cut = cut % compressed.len();
            let len = coders.decompress(encoding, &compressed[..cut], &|_| None, &mut out);
            prop_assert!(len.is_ok_and(|len| len < page.len()) || len == Err(DecompressError::Damaged), "{} {}", compression, cut);
            let encoding = coders.compress(compression, None, &vec![0; 1 << 20], 1 << 20, &mut compressed).unwrap();
            prop_assert!(compressed.len() < 8192);
            prop_assert_eq!(coders.decompress(encoding, &compressed, &|_| None, &mut out), Err(DecompressError::Damaged));
        }
    }

    #[test]
    fn hostile_bytes_give_nothing_or_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300), flip in any::<u16>()) {
        let mut coders = Coders::default();
        let (mut out, mut compressed) = (vec![0; 8192], Vec::new());
        for compression in ALL {
            let encoding = compression.encoding();
            let len = coders.decompress(encoding, &bytes, &|_| None, &mut out);
            prop_assert!(len.is_err() || len.is_ok_and(|len| len <= out.len()));
            // Bytes of this coder with a flipped bit.
            let repeated = bytes.repeat(9);
            if coders.compress(compression, None, &repeated, 8192, &mut compressed).is_some() && !compressed.is_empty() {
                let at = usize::from(flip) % compressed.len();
                compressed[at] ^= 1 << (flip % 8);
                let _ = coders.decompress(encoding, &compressed, &|_| None, &mut out);
            }
        }
    }
}

#[test]
fn every_page_is_prepared_once_with_any_number_of_threads() {
    let places = Places { unit: 128, header: 16, whole: 8192, fixed: false };
    let compression = PageCompression::new(places, Policies::new(), Dictionaries::default());
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

#[test]
fn batches_at_the_same_time_share_the_threads() {
    let places = Places { unit: 128, header: 16, whole: 8192, fixed: false };
    let compression = PageCompression::new(places, Policies::new(), Dictionaries::default());
    compression.set_threads(3);
    let threads_of = |wait: &(dyn Fn() + Sync)| {
        let workers = parking_lot::Mutex::new(HashSet::new());
        compression.each(&mut [0; 24], |_| {
            workers.lock().insert(std::thread::current().id());
            wait();
        });
        workers.into_inner().len()
    };
    let pause = || std::thread::sleep(Duration::from_millis(10));
    // The first batch has three parts. Its three threads work until the second batch is complete.
    let (begun, second_done) = (Barrier::new(4), Barrier::new(4));
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            threads_of(&|| {
                begun.wait();
                second_done.wait();
            })
        });
        begun.wait();
        let second = threads_of(&pause);
        second_done.wait();
        (first.join().unwrap(), second)
    });
    assert_eq!((first, second), (3, 1));
    // The system may start a thread too late for one batch, but not for many.
    assert!((0..100).any(|_| threads_of(&pause) == 3), "the first batch has given nothing back");
}

/// Pages that have much in common, and a dictionary that was trained on some of them.
#[cfg(feature = "zstd")]
fn cdict(id: u32) -> (Vec<Vec<u8>>, Arc<CompressionDictionary>) {
    let words = ["oak", "elm", "yew", "ash", "beech", "{\"height\":", "\"leaves\": \"lobed\"", "}, "];
    let mut rng = fastrand::Rng::with_seed(3);
    let mut page = || -> Vec<u8> { (0..300).flat_map(|_| words[rng.usize(..words.len())].bytes()).collect() };
    let pages: Vec<Vec<u8>> = (0..200).map(|_| page()).collect();
    let lengths: Vec<usize> = pages.iter().map(Vec::len).collect();
    let trained = train(&pages.concat(), &lengths, 4096).unwrap();
    let dictionary = Dictionary::open(&sealed_dictionary(DictionaryId(id), &trained)).unwrap();
    (pages, Arc::new(CompressionDictionary::new(Arc::new(dictionary), 3).unwrap()))
}

#[test]
fn a_page_that_misses_the_target_does_not_count_as_compressed() {
    let places = Places { unit: 128, header: 16, whole: 8192, fixed: false };
    // A third of the page does not compress.
    let mut page = vec![7; 6000];
    fastrand::Rng::with_seed(1).fill(&mut page[..2000]);
    let result = Trial::default().run(Compression::Lz4, &page);
    for (target, is_compressed) in [(Target::Fit, true), (Target::Bytes(4096), true), (Target::Bytes(1024), false)] {
        let policy = PagePolicy { compression: Compression::Lz4, target, ..PagePolicy::default() };
        assert_eq!(result.is_compressed(policy, &places), is_compressed, "{target}");
        assert_eq!(result.place_bytes(policy, &places) < 6000, is_compressed, "{target}");
    }
}

/// The dictionaries of the encoder and of the decoder have the same id and different contents.
#[cfg(feature = "zstd")]
#[test]
fn a_page_stays_uncompressed_if_decompressing_gives_other_bytes() {
    let (pages, cdict) = cdict(5);
    let mut altered = cdict.dictionary.bytes.to_vec();
    let content = altered.len() / 2;
    altered[content..].iter_mut().for_each(|byte| *byte ^= 1);
    let dictionary = Arc::new(Dictionary::open(&sealed_dictionary(DictionaryId(5), &altered)).unwrap());
    let right = CompressionDictionary::new(cdict.dictionary.clone(), 3).unwrap();
    let wrong =
        CompressionDictionary { dictionary, ..CompressionDictionary::new(cdict.dictionary.clone(), 3).unwrap() };
    let (mut coders, mut out) = (Coders::default(), Vec::new());
    for page in &pages[..20] {
        let mut compress = |cdict| coders.compress(Compression::Zstd(3), Some(cdict), page, page.len(), &mut out);
        assert_eq!(compress(&right), Some(Encoding::Zstd));
        assert_eq!(compress(&wrong), None);
    }
}

#[cfg(feature = "zstd")]
#[test]
fn a_frame_names_its_dictionary_and_needs_it() {
    let mut coders = Coders::default();
    for id in [1, 300, 70_000, u32::MAX] {
        let (pages, cdict) = cdict(id);
        let (mut with, mut without, mut again) = (Vec::new(), Vec::new(), vec![0; 8192]);
        let page = &pages[0];
        let encoding = coders.compress(Compression::Zstd(3), Some(&cdict), page, 8192, &mut with).unwrap();
        coders.compress(Compression::Zstd(3), None, page, 8192, &mut without).unwrap();
        assert!(with.len() < without.len(), "{} and {}", with.len(), without.len());
        assert_eq!((dictionary_of(encoding, &with), dictionary_of(encoding, &without)), (Some(DictionaryId(id)), None));
        let own = |_| Some(cdict.dictionary.clone());
        assert_eq!(coders.decompress(encoding, &with, &own, &mut again), Ok(page.len()));
        assert_eq!(again[..page.len()], page[..]);
        assert_eq!(coders.decompress(encoding, &without, &own, &mut again), Ok(page.len()));
        let missing = coders.decompress(encoding, &with, &|_| None, &mut again);
        assert_eq!(missing, Err(DecompressError::NoDictionary(DictionaryId(id))));
        let message = missing.unwrap_err().of_page(crate::base::PageId(9)).to_string();
        assert!(
            message.contains(&format!("page 9 is corrupt: its image needs dictionary {id}, which is")),
            "{message}"
        );
        let (_, other) = self::cdict(5);
        let wrong = coders.decompress(encoding, &with, &|_| Some(other.dictionary.clone()), &mut again);
        assert_eq!(wrong, Err(DecompressError::NoDictionary(DictionaryId(id))), "another dictionary");
        for at in 0..with.len() {
            let mut damaged = with.clone();
            damaged[at] ^= 1 << (at % 8);
            let _ = coders.decompress(encoding, &damaged, &own, &mut again);
            let len = coders.decompress(encoding, &with[..at], &own, &mut again);
            assert!(len.is_err() || at == 0 && len == Ok(0), "cut to {at} bytes");
        }
    }
}

#[cfg(feature = "zstd")]
#[test]
fn a_dictionary_is_used_from_when_it_is_active_until_it_is_retired() {
    let places = Places { unit: 128, header: 16, whole: 8192, fixed: false };
    let compression = PageCompression::new(places, Policies::new(), Dictionaries::default());
    let policy = PagePolicy { compression: Compression::Zstd(3), dictionary: true, ..PagePolicy::default() };
    let table = crate::base::TableId(7);
    let place = |id| DictionaryPlace { id: DictionaryId(id), table, firsts: [crate::base::PageId(id); 2] };
    let used = || compression.compression_dictionary(table, policy).map(|cdict| cdict.dictionary.id().0);
    for id in [10, 11] {
        let (_, cdict) = cdict(id);
        let before = used();
        compression.dictionaries().add_new(place(id), cdict.dictionary.clone());
        assert_eq!(used(), before);
        assert!(compression.dictionary_places().contains(&place(id)));
        compression.activate(DictionaryId(id), table);
        assert_eq!(used(), Some(id));
        assert_eq!(
            compression.compression_dictionary(table, PagePolicy { dictionary: false, ..policy }).map(|_| ()),
            None
        );
        assert_eq!(compression.compression_dictionary(crate::base::TableId(8), policy).map(|_| ()), None);
    }
    compression.retire(&[DictionaryId(11)]);
    compression.activate(DictionaryId(11), table);
    assert_eq!(used(), Some(10), "retired for good");
    assert_eq!(compression.dictionary_places(), [place(10), place(11)], "images may still name it");
    compression.leave_out(DictionaryId(11));
    assert_eq!(compression.dictionary_places(), [place(10)]);
    assert!(compression.find()(DictionaryId(11)).is_some());
    compression.forget_dictionary(DictionaryId(11));
    assert!(compression.find()(DictionaryId(11)).is_none());
}
