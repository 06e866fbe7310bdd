//! Made keys of common kinds: words, URLs, e-mail addresses, UUIDs, tuples and integers.

use crate::numbers::{index, short, whole};
use clap::ValueEnum;
use fastrand::Rng;
use std::fmt::Write;

/// A kind of made keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Made {
    /// Words of one to five syllables.
    Words,
    /// URLs of some thousand hosts, of which few are frequent.
    Urls,
    /// E-mail addresses, half of them of six providers.
    Emails,
    /// UUIDs of version 4, 16 bytes.
    Uuids,
    /// Tuples of a tenant (4 bytes), an hour (8 bytes) and a number (4 bytes); tenants differ in size.
    Tuples,
    /// Increasing integers with gaps, as 8 bytes with the most significant first.
    Integers,
}

const ONSETS: [&str; 20] =
    ["", "b", "br", "c", "ch", "d", "f", "g", "h", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "tr", "v"];
const VOWELS: [&str; 10] = ["a", "e", "i", "o", "u", "ai", "ea", "ou", "io", "ee"];
const CODAS: [&str; 12] = ["", "", "", "n", "r", "s", "t", "l", "m", "ng", "ck", "nt"];
const PROVIDERS: [&str; 6] =
    ["example.com", "mail.example", "post.example", "inbox.example", "web.example", "box.example"];
const FOLDERS: [&str; 8] = ["blog", "wiki", "products", "news", "users", "images", "docs", "questions"];

/// One of `count` numbers. Small ones are frequent.
fn skewed(rng: &mut Rng, count: usize) -> usize {
    let part = rng.f64();
    index(whole(part * part * part * count as f64)).min(count - 1)
}

fn push_word(text: &mut String, rng: &mut Rng, syllables: usize) {
    for _ in 0..syllables {
        text.push_str(ONSETS[skewed(rng, ONSETS.len())]);
        text.push_str(VOWELS[skewed(rng, VOWELS.len())]);
        text.push_str(CODAS[skewed(rng, CODAS.len())]);
    }
}

/// A word that a number always names.
fn push_named(text: &mut String, number: usize, syllables: usize) {
    push_word(text, &mut Rng::with_seed(number as u64), syllables);
}

impl Made {
    /// Passes so many keys to `push`. There may be duplicates.
    pub(super) fn make(self, n: usize, rng: &mut Rng, push: &mut dyn FnMut(&[u8])) {
        let (mut text, mut last) = (String::new(), 0u64);
        for _ in 0..n {
            text.clear();
            match self {
                Made::Words => {
                    let syllables = 1 + skewed(rng, 2) + rng.usize(..4);
                    push_word(&mut text, rng, syllables);
                }
                Made::Urls => url(&mut text, rng),
                Made::Emails => email(&mut text, rng),
                Made::Uuids => {
                    let version = 0x40 << 72 | 0x80 << 56;
                    push(&(rng.u128(..) & !(0xf0 << 72 | 0xc0 << 56) | version).to_be_bytes());
                    continue;
                }
                Made::Tuples => {
                    let (tenant, hour) = (short(skewed(rng, 5_000)), 480_000 + rng.u64(..2_000));
                    push(
                        &[&tenant.to_be_bytes()[..], &hour.to_be_bytes(), &rng.u32(..1_000_000).to_be_bytes()].concat(),
                    );
                    continue;
                }
                Made::Integers => {
                    last += 1 + skewed(rng, 2_000) as u64;
                    push(&last.to_be_bytes());
                    continue;
                }
            }
            push(text.as_bytes());
        }
    }
}

fn url(text: &mut String, rng: &mut Rng) {
    text.push_str("https://www.");
    push_named(text, skewed(rng, 4_000), 3);
    text.push_str([".example/", ".test/", ".invalid/"][skewed(rng, 3)]);
    text.push_str(FOLDERS[skewed(rng, FOLDERS.len())]);
    for _ in 0..rng.usize(1..4) {
        text.push('/');
        push_named(text, 10_000 + skewed(rng, 20_000), 2);
    }
    match rng.u8(..3) {
        0 => _ = write!(text, "/{}", rng.u32(..1_000_000)),
        1 => _ = write!(text, "?id={}", rng.u32(..1_000_000)),
        _ => {
            text.push('-');
            push_word(text, rng, 2);
            text.push_str(".html");
        }
    }
}

fn email(text: &mut String, rng: &mut Rng) {
    push_named(text, skewed(rng, 3_000), 2);
    text.push('.');
    push_named(text, 50_000 + skewed(rng, 30_000), 3);
    if rng.bool() {
        _ = write!(text, "{}", rng.u8(..100));
    }
    text.push('@');
    match rng.bool() {
        true => text.push_str(PROVIDERS[skewed(rng, PROVIDERS.len())]),
        false => {
            push_named(text, 100_000 + skewed(rng, 10_000), 2);
            text.push_str(".example");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_are_mostly_different_and_have_their_form() {
        for kind in Made::value_variants() {
            let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
            kind.make(2_000, &mut Rng::with_seed(1), &mut |key| _ = keys.insert(key.to_vec()));
            assert!(keys.len() > 1_200, "{kind:?}: {}", keys.len());
            let all = |is: fn(&[u8]) -> bool| assert!(keys.iter().all(|key| is(key)), "{kind:?}");
            match kind {
                Made::Words => all(|key| key.iter().all(u8::is_ascii_lowercase)),
                Made::Urls => all(|key| key.starts_with(b"https://www.")),
                Made::Emails => all(|key| key.iter().filter(|byte| **byte == b'@').count() == 1),
                Made::Uuids => all(|key| key.len() == 16 && key[6] >> 4 == 4 && key[8] >> 6 == 2),
                Made::Tuples => all(|key| key.len() == 16),
                Made::Integers => all(|key| key.len() == 8),
            }
        }
    }
}
