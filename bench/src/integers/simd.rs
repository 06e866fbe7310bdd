//! The sum of a plain array with the widest vectors of the processor: the reference for SUM. The compiler vectorises
//! the loop.

/// The sum in 64 bits, which is enough for fewer than 2^32 keys of 32 bits.
#[inline(always)]
fn add_up(keys: &[u32]) -> u64 {
    keys.iter().map(|key| u64::from(*key)).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn add_up_512(keys: &[u32]) -> u64 {
    add_up(keys)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_up_256(keys: &[u32]) -> u64 {
    add_up(keys)
}

/// The sum of some keys.
#[cfg(target_arch = "x86_64")]
pub(super) fn sum(keys: &[u32]) -> u64 {
    let has_512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq");
    if has_512 {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { add_up_512(keys) };
    }
    if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { add_up_256(keys) };
    }
    add_up(keys)
}

/// The sum of some keys.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn sum(keys: &[u32]) -> u64 {
    add_up(keys)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sums_are_those_of_a_plain_loop() {
        for len in [0, 1, 7, 64, 1000] {
            let keys: Vec<u32> = (0..len).map(|n| u32::MAX - n * 3).collect();
            let expected: u64 = keys.iter().map(|key| u64::from(*key)).sum();
            assert_eq!(super::sum(&keys), expected);
        }
    }
}
