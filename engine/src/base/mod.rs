//! The lowest layer: ids, errors, limits, checksums, varints and bounds-checked byte fields. Every other layer uses it,
//! and it uses no other layer.

#[doc(hidden)]
pub mod bytes;
#[doc(hidden)]
pub mod checksum;
pub(crate) mod counted;
pub mod damage;
pub mod error;
pub mod ids;
pub mod limits;
mod processors;
#[doc(hidden)]
pub mod varint;
#[doc(hidden)]
pub mod watermark;

pub use damage::Damage;
pub use error::{Error, Result};
pub use ids::{Lsn, PageId, TableId};
pub(crate) use processors::processors;
