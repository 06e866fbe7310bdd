//! Replays the corpus of every fuzz target. After a change of a format, write the corpus anew:
//! `cargo test -p duramen-fuzz -- --ignored`.

mod codec;
mod dictionary;
mod log;
mod page;
mod shadow;
mod store;

use std::path::PathBuf;

/// The folder of a target's seeds.
fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The seeds of a target.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Writes a seed.
fn put(target: &str, name: &str, data: &[u8]) {
    std::fs::create_dir_all(folder(target)).unwrap();
    std::fs::write(folder(target).join(name), data).unwrap();
}

/// Runs a target on every seed as it is, cut anywhere, and with a bit flipped anywhere. After the first 128 bytes it
/// cuts and flips at every `step`-th byte.
fn replay<T>(target: &str, step: usize, run: impl Fn(&[u8]) -> T) {
    for mut seed in seeds(target) {
        run(&seed);
        for at in (0..seed.len()).filter(|at| *at < 128 || at % step == 0) {
            run(&seed[..at]);
            seed[at] ^= 1 << (at % 8);
            run(&seed);
            seed[at] ^= 1 << (at % 8);
        }
    }
}
