//! Sizes in bytes, as in the options of the program `duramen` and of the benchmarks: `8192`, `64K`, `2 GiB`.
//!
//! ```
//! assert_eq!(duramen_size::parse("64K")?.0, 65536);
//! assert_eq!(duramen_size::shown(65536), "64.00 KiB");
//! # Ok::<(), String>(())
//! ```
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]

use bytesize::ByteSize;

/// Reads a size. A unit of one letter is a power of 1024, as in other programs with such options.
///
/// # Errors
/// A message for the user, with the text.
pub fn parse(text: &str) -> Result<ByteSize, String> {
    let letter = text.ends_with(|c: char| "KMGT".contains(c.to_ascii_uppercase()));
    let size = if letter { format!("{text}iB").parse() } else { text.parse::<ByteSize>() };
    let fits = size.ok().filter(|size| size.0 < u64::MAX);
    fits.ok_or_else(|| format!("\"{text}\" is not a size: write bytes as 65536, 64K, 512M or 2G"))
}

/// A size as a length in memory. If it is beyond the address space, it is the greatest length.
pub fn length(size: ByteSize) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

/// A size for people.
pub fn shown(bytes: u64) -> String {
    format!("{:.2}", ByteSize(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("0", 0),
            ("8192", 8192),
            ("64K", 65536),
            ("64 KiB", 65536),
            ("64 KB", 64_000),
            ("2g", 2 << 30),
            ("1.5G", 3 << 29),
            ("7B", 7),
        ] {
            assert_eq!(parse(text), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn an_error_for_a_wrong_size_shows_the_text() {
        for text in ["", "K", "-1", "1.5.2G", "12X", "99999999999G", "é"] {
            assert!(parse(text).is_err_and(|message| message.contains(&format!("\"{text}\""))), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_powers_of_1024() {
        assert_eq!([0, 512, 2048, 5 << 30].map(shown), ["0 B", "512 B", "2.00 KiB", "5.00 GiB"]);
    }
}
