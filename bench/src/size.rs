//! Sizes in bytes, as in options. They mean the same as those of the program `duramen`: `8K` is 8 KiB.

use bytesize::ByteSize;

/// Reads a size. A unit of one letter is a power of 1024.
pub fn parse(text: &str) -> Result<ByteSize, String> {
    let letter = text.ends_with(|c: char| "KMGT".contains(c.to_ascii_uppercase()));
    let size = if letter { format!("{text}iB").parse() } else { text.parse::<ByteSize>() };
    size.map_err(|_| format!("\"{text}\" is not a size: write bytes as 65536, 64K, 512M or 2G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_a_power_of_1024() {
        for (text, bytes) in [
            ("512", 512),
            ("4K", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("4KB", 4000),
            ("32M", 32 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(parse(text), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["", "K", "4X", "-1"] {
            assert!(parse(text).is_err_and(|message| message.contains(&format!("\"{text}\""))), "{text}");
        }
    }
}
