//! `del`: removes entries.

use super::open;
use crate::args::Del;
use crate::failure::{Found, Result};

/// Removes the keys, all in one commit; [`Found::NotThere`] if one of them was not there.
pub(super) fn run(args: &Del) -> Result<Found> {
    let db = open::writing(&args.database)?;
    let tx = db.begin_write()?;
    let mut found = Found::There;
    {
        let mut table = tx.open_untyped(&args.table)?;
        let (keys, _) = open::halves(&table.info(), args.hex)?;
        for key in &args.keys {
            if table.remove(&keys.encode(key.as_encoded_bytes())?)?.is_none() {
                found = Found::NotThere;
            }
        }
    }
    tx.commit()?;
    open::close(db)?;
    Ok(found)
}
