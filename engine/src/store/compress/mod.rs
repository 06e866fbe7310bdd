//! Compression of pages on their way to the file. [`Compression`] and [`PagePolicy`] are options of a table. An
//! [`Encoding`] names the method with which a page was written. `pages` compresses according to the policies of tables,
//! `places` has the lengths of places, `coders` compresses and decompresses, `lz4` and `zlib` have single coders,
//! `attempts` decides which pages are worth it, `totals` counts, and `trial` compresses only to measure. A
//! [`Dictionary`] has bytes that are frequent in the pages of a table, for Zstandard: `dictionaries` has those of a
//! database, and `dictionary_pages` reads them.
//!
//! A store compresses a page when it writes the image, while no latch of the page is held, and decompresses the result
//! again to check it. Several threads compress the pages of one batch. A **target** gives all images of a table places
//! of one of two lengths.

mod attempts;
mod coders;
mod dictionaries;
mod dictionary;
mod dictionary_pages;
pub(super) mod fuzzing;
mod lz4;
mod pages;
mod places;
mod policy;
#[cfg(test)]
mod tests;
mod totals;
mod trial;
mod zlib;

pub(in crate::store) use coders::{Coders, DecompressError, Find, dictionary_of};
pub(in crate::store) use dictionaries::Dictionaries;
pub(crate) use dictionary::{CompressionDictionary, Dictionary, sealed_dictionary, train};
pub(in crate::store) use dictionary::{DICTIONARY_BYTES, decode_dictionaries, encode_dictionaries};
pub use dictionary::{DICTIONARY_COPIES, DictionaryId, DictionaryPlace, MAX_DICTIONARIES};
pub(in crate::store) use dictionary_pages::{FoundParts, load as load_dictionaries};
pub use pages::PageCompression;
pub(in crate::store) use pages::{Job, Policies, Prepared};
pub use places::Places;
pub use policy::{Overflow, PagePolicy, Target};
pub(in crate::store) use policy::{POLICY_BYTES, decode_policies, encode_policies};
pub use totals::CompressionTotals;
pub use trial::Trial;

use crate::base::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// How the pages of a table are compressed in the file. It is an option of a table
/// ([`TableDef::compression`](crate::TableDef::compression)). In memory no page is compressed.
///
/// A page is compressed when it is written and decompressed when it is read. If a page does not become smaller, the
/// store writes it as it is.
///
/// The text form is `none`, `lz4`, `zstd` or `zlib`; the latter two may have a level, such as `zstd:9`:
///
/// ```
/// use duramen::db::Compression;
///
/// assert_eq!("zstd".parse::<Compression>()?, Compression::Zstd(3));
/// assert_eq!(Compression::Zlib(9).to_string(), "zlib:9");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Compression {
    /// Pages are written as they are. The default.
    #[default]
    None,
    /// LZ4: less compression, and the least time.
    Lz4,
    /// Zstandard, with a level from 1 (fastest) to 22 (smallest). It needs the feature `zstd` of this crate, which is
    /// on by default.
    Zstd(u8),
    /// zlib, with a level from 1 (fastest) to 9 (smallest).
    Zlib(u8),
}

const ZSTD_LEVEL: u8 = 3;
const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;
const ZLIB_LEVEL: u8 = 6;
const ZLIB_LEVELS: std::ops::RangeInclusive<u8> = 1..=9;

impl Compression {
    /// An error if the level is none, or if this build has no such compression.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Compression::Zstd(level) if !ZSTD_LEVELS.contains(&level) => Err(refused(&self.to_string())),
            Compression::Zlib(level) if !ZLIB_LEVELS.contains(&level) => Err(refused(&self.to_string())),
            Compression::Zstd(_) if !cfg!(feature = "zstd") => Err(no_zstd()),
            _ => Ok(()),
        }
    }

    /// Its two bytes in the catalog: method and level.
    pub(crate) fn to_bytes(self) -> [u8; 2] {
        match self {
            Compression::None => [0, 0],
            Compression::Lz4 => [1, 0],
            Compression::Zstd(level) => [2, level],
            Compression::Zlib(level) => [3, level],
        }
    }

    /// The compression that has these bytes in the catalog; `None` if there is none.
    pub(crate) fn of_bytes(bytes: [u8; 2]) -> Option<Compression> {
        let compression = match bytes {
            [0, 0] => Compression::None,
            [1, 0] => Compression::Lz4,
            [2, level] if ZSTD_LEVELS.contains(&level) => Compression::Zstd(level),
            [3, level] if ZLIB_LEVELS.contains(&level) => Compression::Zlib(level),
            _ => return None,
        };
        Some(compression)
    }

    fn encoding(self) -> Encoding {
        match self {
            Compression::None => Encoding::Plain,
            Compression::Lz4 => Encoding::Lz4,
            Compression::Zstd(_) => Encoding::Zstd,
            Compression::Zlib(_) => Encoding::Zlib,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.pad("none"),
            Compression::Lz4 => f.pad("lz4"),
            Compression::Zstd(level) => f.pad(&format!("zstd:{level}")),
            Compression::Zlib(level) => f.pad(&format!("zlib:{level}")),
        }
    }
}

impl FromStr for Compression {
    type Err = Error;

    fn from_str(text: &str) -> Result<Compression> {
        let (method, level) = text.split_once(':').map_or((text, None), |(method, level)| (method, Some(level)));
        let level = level.map(|level| level.parse::<u8>().map_err(|_| refused(text))).transpose()?;
        let compression = match (method, level) {
            ("none", None) => Compression::None,
            ("lz4", None) => Compression::Lz4,
            ("zstd", level) => Compression::Zstd(level.unwrap_or(ZSTD_LEVEL)),
            ("zlib", level) => Compression::Zlib(level.unwrap_or(ZLIB_LEVEL)),
            _ => return Err(refused(text)),
        };
        compression.check().map(|()| compression)
    }
}

fn refused(value: &str) -> Error {
    let expected = "none, lz4, zstd, zstd:1 to zstd:22, zlib, or zlib:1 to zlib:9".into();
    Error::Option { option: "compression", value: format!("\"{value}\""), expected }
}

fn no_zstd() -> Error {
    Error::NotBuilt { feature: "zstd" }
}

/// How the bytes of a page in the file were made from the packed page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) enum Encoding {
    Plain = 0,
    Lz4 = 1,
    Zstd = 2,
    Zlib = 3,
}

impl Encoding {
    /// The encoding with this number in the file.
    pub(in crate::store) fn of_byte(byte: u8) -> Option<Encoding> {
        [Encoding::Plain, Encoding::Lz4, Encoding::Zstd, Encoding::Zlib].into_iter().find(|one| *one as u8 == byte)
    }
}
