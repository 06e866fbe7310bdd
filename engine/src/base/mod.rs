//! The lowest layer: ids, errors, limits, checksums, varints and bounds-checked byte fields. Every other layer uses it; it uses
//! none.
//!
//! Pages, I/O and policies must not be in this layer.

pub mod bytes;
pub mod checksum;
pub mod damage;
pub mod error;
pub mod ids;
pub mod limits;
pub mod varint;
pub mod watermark;

pub use damage::Damage;
pub use error::{Error, Result};
pub use ids::{Lsn, PageId, TableId};
