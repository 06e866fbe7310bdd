//! Replays the codecs' fuzz targets: the checked-in corpus, random bytes, and sound blocks with damage.

use std::path::Path;

use duramen_codec::{Codec, Int};
use duramen_fuzz::codec;

/// A codec and its target.
type Target = (Codec, fn(&[u8]));

const TARGETS: [Target; 8] = [
    (Codec::Plain, codec::decode_plain),
    (Codec::VByte, codec::decode_vbyte),
    (Codec::MaskedVByte, codec::decode_masked_vbyte),
    (Codec::VarIntGb, codec::decode_varint_gb),
    (Codec::StreamVByte, codec::decode_stream_vbyte),
    (Codec::For, codec::decode_for),
    (Codec::SimdFor, codec::decode_simd_for),
    (Codec::Bp128, codec::decode_bp128),
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[test]
fn the_corpus_is_survived_by_every_target() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/codec");
    let mut files = 0;
    for entry in std::fs::read_dir(dir).expect("the corpus is there") {
        let data = std::fs::read(entry.expect("readable").path()).expect("readable");
        TARGETS.iter().for_each(|(_, target)| target(&data));
        files += 1;
    }
    assert!(files >= 16, "{files} files");
}

#[test]
fn random_bytes_are_survived() {
    let mut random = Random(7);
    for _ in 0..3000 {
        let mut data: Vec<u8> = (0..29 + random.below(700)).map(|_| random.next() as u8).collect();
        // Most counts and extents would be refused at once.
        data[2] = u8::from(data[2].is_multiple_of(16));
        data[4] = data[4] % 16 / 13;
        if random.below(2) == 0 {
            data[3] %= 66;
        }
        // The first and the last key near the largest, where hostile gaps lead beyond it.
        if random.below(4) == 0 {
            data[6..13].fill(u8::MAX);
            data[14..21].fill(u8::MAX);
        }
        TARGETS.iter().for_each(|(_, target)| target(&data));
    }
}

fn damaged<T: Int>(random: &mut Random) {
    for (codec, target) in TARGETS {
        let shift = 64 - T::BITS + random.below(T::BITS as usize - 10) as u32 + 10;
        let mut key = 0u64;
        let keys: Vec<T> = (0..1 + random.below(codec.max_count()))
            .map_while(|_| {
                key = key.checked_add((random.next() >> shift) + 1).filter(|&key| key <= T::MAX.widen())?;
                Some(T::narrow(key))
            })
            .collect();
        let mut bytes = vec![0; codec.encoded_len(&keys)];
        let block = codec.encode(&keys, &mut bytes).expect("room for exactly this");
        let probe = T::narrow(random.next() % key.max(1));
        let sound = codec::input(&block, &bytes, probe);
        target(&sound);
        for _ in 0..8 {
            let mut data = sound.clone();
            let at = random.below(data.len());
            data[at] ^= 1 << random.below(8);
            data.truncate(data.len() - random.below(2) * random.below(data.len() / 2));
            target(&data);
        }
    }
}

#[test]
fn damaged_blocks_are_survived() {
    let mut random = Random(11);
    for _ in 0..100 {
        damaged::<u32>(&mut random);
        damaged::<u64>(&mut random);
    }
}
