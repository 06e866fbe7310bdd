//! Sizes in bytes in the form that people write: `8192`, `64K`, `2 GiB`.

use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size(pub(crate) u64);

impl Size {
    /// As a length in memory; sizes beyond the address space become the longest there is.
    pub(crate) fn as_len(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let wrong = || format!("\"{text}\" is not a size: write bytes as 65536, 64K, 512M or 2G");
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = text[digits.len()..].trim().to_ascii_lowercase();
        let shift = match unit.trim_end_matches("ib").trim_end_matches('b') {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            "t" => 40,
            _ => return Err(wrong()),
        };
        let count: u64 = digits.parse().map_err(|_| wrong())?;
        count.checked_mul(1 << shift).map(Size).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, bytes) in [("0", 0), ("8192", 8192), ("64K", 65536), ("64 KiB", 65536), ("2g", 2 << 30), ("7B", 7)] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_by_its_text() {
        for text in ["", "K", "-1", "1.5G", "12X", "99999999999G", "é"] {
            assert!(text.parse::<Size>().is_err_and(|told| told.contains(&format!("\"{text}\""))), "{text}");
        }
    }
}
