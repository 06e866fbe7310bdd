//! The ground floor: ids, errors, limits, checksums and little-endian fields. Everything stands on it; it stands
//! on nothing. No page, no I/O and no policy may ever live here.

pub mod bytes;
pub mod checksum;
pub mod damage;
pub mod error;
pub mod ids;
pub mod limits;
pub mod watermark;

pub use damage::Damage;
pub use error::{Error, Result};
pub use ids::{Lsn, PageId, TableId};
