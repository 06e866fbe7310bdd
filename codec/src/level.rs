//! The vector instructions that this machine has.

use core::sync::atomic::{AtomicU8, Ordering};

/// A set of vector instructions, smallest first. Each level includes the levels before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// None: the scalar reference code.
    Scalar,
    /// SSSE3, SSE4.1, SSE4.2 and POPCNT.
    Sse4,
    /// AVX2, BMI1, BMI2 and LZCNT.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX-512 VBMI and VBMI2.
    Vbmi,
}

/// Compiles functions for a level, with its instructions enabled. The features of a level are those that `detect`
/// tests.
macro_rules! compiled_for {
    (Scalar, $($function:item)*) => { $($function)* };
    (Sse4, $($function:item)*) => {
        $(#[target_feature(enable = "ssse3,sse4.1,sse4.2,popcnt")] $function)*
    };
    (Avx2, $($function:item)*) => {
        $(#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")] $function)*
    };
    (Avx512, $($function:item)*) => {
        $(#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt,lzcnt")] $function)*
    };
    (Vbmi, $($function:item)*) => {
        $(
            #[target_feature(
                enable = "avx512vbmi,avx512vbmi2,avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt,lzcnt"
            )]
            $function
        )*
    };
}

const UNKNOWN: u8 = u8::MAX;
static BEST: AtomicU8 = AtomicU8::new(UNKNOWN);

impl Level {
    /// The best level of this machine. The first call asks the processor, and later calls read the cached result.
    #[inline]
    pub fn best() -> Level {
        match BEST.load(Ordering::Relaxed) {
            0 => Level::Scalar,
            1 => Level::Sse4,
            2 => Level::Avx2,
            3 => Level::Avx512,
            4 => Level::Vbmi,
            _ => Level::ask(),
        }
    }

    /// All levels of this machine, beginning with scalar.
    pub fn all() -> impl Iterator<Item = Level> {
        let levels = [Level::Scalar, Level::Sse4, Level::Avx2, Level::Avx512, Level::Vbmi];
        levels.into_iter().filter(|&level| level <= Level::best())
    }

    #[cold]
    fn ask() -> Level {
        let level = detect();
        BEST.store(level as u8, Ordering::Relaxed);
        level
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let sse = is_x86_feature_detected!("ssse3")
        && is_x86_feature_detected!("sse4.1")
        && is_x86_feature_detected!("sse4.2")
        && is_x86_feature_detected!("popcnt");
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let vbmi = is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("avx512vbmi2");
    match (sse, avx2, avx512, vbmi) {
        (true, true, true, true) => Level::Vbmi,
        (true, true, true, false) => Level::Avx512,
        (true, true, false, _) => Level::Avx2,
        (true, ..) => Level::Sse4,
        _ => Level::Scalar,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Scalar
}
