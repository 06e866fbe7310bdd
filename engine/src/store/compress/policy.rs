//! [`PagePolicy`]: how the pages of a table are compressed, which places in the file they get, and what happens to
//! pages that miss the target.

use super::Compression;
use crate::base::bytes::get_u32;
use crate::base::limits::MAX_PAGE_SIZE;
use crate::base::{Error, Result, TableId};
use std::fmt;
use std::str::FromStr;

/// The length of the places that the pages of a table get in the file. It is an option of a table
/// ([`TableDef::target`](crate::TableDef::target)).
///
/// The text form is `fit`, or a number of bytes such as `4K` or `4096`:
///
/// ```
/// use duramen::db::Target;
///
/// assert_eq!("4K".parse::<Target>()?, Target::Bytes(4096));
/// assert_eq!(Target::Fit.to_string(), "fit");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Target {
    /// A place is as long as the page needs, in units of 512 bytes; in the page store `shadow`, in blocks of 4096
    /// bytes. The default.
    #[default]
    Fit,
    /// A page that compresses to this number of bytes or fewer, with 16 bytes of the store, gets a place of this
    /// length. Any other page is written as it is, to a place of the length of a page. So all places have one of two
    /// lengths, as in InnoDB. In the page store `shadow` no place is shorter than 4096 bytes. The number is a power of
    /// two, at least 1024, and below the page size. [`Overflow`] says what else happens to a page that misses it.
    Bytes(u32),
}

/// The storage of a page that does not compress to its [`Target`]. It is an option of a table
/// ([`TableDef::overflow`](crate::TableDef::overflow)).
///
/// The text form is `spill` or `split`:
///
/// ```
/// use duramen::db::Overflow;
///
/// assert_eq!("split".parse::<Overflow>()?, Overflow::Split);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Overflow {
    /// It stays in a place of the length of a page. The default.
    #[default]
    Spill,
    /// If it is a leaf, the background thread, or [`Database::maintain`](crate::Database::maintain), splits it in two
    /// soon after it was written, as InnoDB does. The file is then smaller for some data, and writes are slower.
    Split,
}

impl FromStr for Overflow {
    type Err = Error;

    fn from_str(text: &str) -> Result<Overflow> {
        match text {
            "spill" => Ok(Overflow::Spill),
            "split" => Ok(Overflow::Split),
            _ => Err(Error::Option {
                option: "overflow",
                value: format!("\"{text}\""),
                expected: "spill or split".into(),
            }),
        }
    }
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Overflow::Spill => "spill",
            Overflow::Split => "split",
        })
    }
}

/// The minimum number of bytes of a target.
const MIN_TARGET: u32 = 1024;

impl Target {
    /// An error if the target is none for pages of this size.
    fn check(self, page_size: usize) -> Result<()> {
        match self {
            Target::Bytes(bytes) if !is_target(bytes) || bytes as usize >= page_size => {
                Err(refused(&self.to_string(), page_size))
            }
            _ => Ok(()),
        }
    }

    /// All targets of pages of this size.
    pub(crate) fn all(page_size: usize) -> impl Iterator<Item = Target> {
        let sizes =
            (MIN_TARGET.ilog2()..u32::BITS).map(|log| 1u32 << log).take_while(move |size| (*size as usize) < page_size);
        std::iter::once(Target::Fit).chain(sizes.map(Target::Bytes))
    }

    /// Its byte in the catalog: the power of two, or 0.
    fn to_byte(self) -> u8 {
        match self {
            Target::Fit => 0,
            Target::Bytes(bytes) => u8::try_from(bytes.checked_ilog2().unwrap_or(0)).unwrap_or(0),
        }
    }

    fn of_byte(byte: u8) -> Option<Target> {
        match byte {
            0 => Some(Target::Fit),
            log => 1u32.checked_shl(log.into()).filter(|bytes| is_target(*bytes)).map(Target::Bytes),
        }
    }
}

fn is_target(bytes: u32) -> bool {
    bytes.is_power_of_two() && bytes >= MIN_TARGET && (bytes as usize) < MAX_PAGE_SIZE
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Target> {
        let bytes = match text.strip_suffix(['K', 'k']) {
            _ if text == "fit" => return Ok(Target::Fit),
            Some(number) => number.parse::<u32>().ok().and_then(|number| number.checked_mul(1024)),
            None => text.parse().ok(),
        };
        bytes.filter(|bytes| is_target(*bytes)).map(Target::Bytes).ok_or_else(|| refused(text, MAX_PAGE_SIZE))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Fit => f.pad("fit"),
            Target::Bytes(bytes) if bytes.is_multiple_of(1024) => f.pad(&format!("{}K", bytes / 1024)),
            Target::Bytes(bytes) => f.pad(&bytes.to_string()),
        }
    }
}

fn refused(value: &str, page_size: usize) -> Error {
    let expected = format!("fit, or a power of two from 1K to {}K", page_size / 2048);
    Error::Option { option: "target", value: format!("\"{value}\""), expected }
}

/// How the pages of a table are compressed, and which places they get.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PagePolicy {
    /// How pages are compressed.
    pub compression: Compression,
    /// The length of their places.
    pub target: Target,
    /// The storage of pages that miss the target.
    pub overflow: Overflow,
    /// Whether they may be compressed with a dictionary.
    pub dictionary: bool,
}

/// Bits of the last byte of a policy.
const SPLIT: u8 = 1;
const DICTIONARY: u8 = 2;

impl PagePolicy {
    /// Bytes of a policy in the catalog.
    pub(crate) const BYTES: usize = 4;

    /// An error if it is none for pages of this size, or if this build has no such compression.
    pub(crate) fn check(self, page_size: usize) -> Result<()> {
        self.compression.check()?;
        self.target.check(page_size)?;
        match (self.dictionary, self.compression) {
            (false, _) | (true, Compression::Zstd(_)) => Ok(()),
            (true, compression) => Err(Error::Option {
                option: "dictionary",
                value: "true".into(),
                expected: format!("false unless the compression is zstd (it is {compression})"),
            }),
        }
    }

    /// Its bytes in the catalog: method, level, target, and bits for overflow and dictionary.
    pub(crate) fn to_bytes(self) -> [u8; PagePolicy::BYTES] {
        let [method, level] = self.compression.to_bytes();
        let split = if self.overflow == Overflow::Split { SPLIT } else { 0 };
        let dictionary = if self.dictionary { DICTIONARY } else { 0 };
        [method, level, self.target.to_byte(), split | dictionary]
    }

    /// Decodes a policy from its bytes in the catalog. Returns `None` if they are not valid.
    pub(crate) fn of_bytes(bytes: [u8; PagePolicy::BYTES]) -> Option<PagePolicy> {
        let [method, level, target, bits] = bytes;
        if bits & !(SPLIT | DICTIONARY) != 0 {
            return None;
        }
        let overflow = if bits & SPLIT == 0 { Overflow::Spill } else { Overflow::Split };
        let (compression, target) = (Compression::of_bytes([method, level])?, Target::of_byte(target)?);
        Some(PagePolicy { compression, target, overflow, dictionary: bits & DICTIONARY != 0 })
    }
}

/// Bytes of a policy with the table id, a u32, in front.
pub(in crate::store) const POLICY_BYTES: usize = 4 + PagePolicy::BYTES;

/// The bytes of policies.
pub(in crate::store) fn encode_policies(policies: &[(TableId, PagePolicy)]) -> Vec<u8> {
    policies.iter().flat_map(|(table, policy)| [table.0.to_le_bytes(), policy.to_bytes()]).flatten().collect()
}

/// Decodes what [`encode_policies`] wrote. An error names the table whose policy is damaged.
pub(in crate::store) fn decode_policies(bytes: &[u8]) -> Result<Vec<(TableId, PagePolicy)>, String> {
    let policy = |bytes: &[u8]| {
        let (table, policy) = (get_u32(bytes, 0), get_u32(bytes, 4).to_le_bytes());
        let policy = PagePolicy::of_bytes(policy).map(|policy| (TableId(table), policy));
        policy.ok_or_else(|| format!("the policy of table {table} is damaged"))
    };
    bytes.chunks(POLICY_BYTES).map(policy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_decoded_as_they_were_encoded() {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd(22), Compression::Zlib(1)] {
            for target in [Target::Fit, Target::Bytes(1024), Target::Bytes(32768)] {
                for overflow in [Overflow::Spill, Overflow::Split] {
                    for dictionary in [false, true] {
                        let policy = PagePolicy { compression, target, overflow, dictionary };
                        assert_eq!(PagePolicy::of_bytes(policy.to_bytes()), Some(policy));
                    }
                    assert_eq!(overflow.to_string().parse::<Overflow>().unwrap(), overflow);
                }
                assert_eq!(target.to_string().parse::<Target>().unwrap(), target);
            }
        }
        for wrong in [[0, 0, 9, 0], [0, 0, 16, 0], [0, 0, 255, 0], [0, 1, 0, 0], [4, 0, 0, 0], [0, 0, 0, 4]] {
            assert_eq!(PagePolicy::of_bytes(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_target_is_a_power_of_two_below_the_page_size() {
        for text in ["", "0", "K", "512", "3K", "64K", "4M", "99999999K", "-1"] {
            assert!(matches!(text.parse::<Target>(), Err(Error::Option { option: "target", .. })), "{text}");
        }
        let check =
            |bytes, page_size| PagePolicy { target: Target::Bytes(bytes), ..PagePolicy::default() }.check(page_size);
        assert!(check(4096, 8192).is_ok() && check(8192, 8192).is_err() && check(0, 8192).is_err());
        assert_eq!(Target::all(8192).map(|target| target.to_string()).collect::<Vec<_>>(), ["fit", "1K", "2K", "4K"]);
        let message = check(8192, 8192).unwrap_err().to_string();
        assert_eq!(message, "option target cannot be \"8K\": it must be fit, or a power of two from 1K to 4K");
    }
}
