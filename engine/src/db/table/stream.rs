//! Reads values as streams.

use crate::base::Result;
use crate::txn::{Engine, large};
use std::io::{Cursor, Read};

/// A value as a stream, from [`crate::db::ReadOnlyUntypedTable::get_stream`]. If a page is damaged, reading returns an
/// error of kind `Other` that contains the error of the engine.
///
/// ```
/// # use duramen::{Database, TableDef};
/// # const SCANS: TableDef<&str, &[u8]> = TableDef::new("scans");
/// # let db = Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # tx.open_table(SCANS)?.put("oak", [7; 100_000].as_slice())?;
/// # tx.commit()?;
/// let scans = db.begin_read()?.open_untyped("scans")?;
/// let mut scan = scans.get_stream(b"oak")?.ok_or("no such scan")?;
/// assert_eq!((scan.len(), scan.is_empty()), (100_000, false));
/// let copied = std::io::copy(&mut scan, &mut std::io::sink())?; // a page at a time
/// assert_eq!(copied, 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ValueStream<'t> {
    source: ValueSource<'t>,
    len: u64,
}

enum ValueSource<'t> {
    Small(Cursor<Vec<u8>>),
    Large(large::RunReader<'t>),
}

impl<'t> ValueStream<'t> {
    pub(crate) fn open(engine: &'t Engine, bytes: Vec<u8>, large: bool) -> Result<ValueStream<'t>> {
        if large {
            let reader = large::RunReader::open(engine, &bytes)?;
            return Ok(ValueStream { len: reader.len(), source: ValueSource::Large(reader) });
        }
        Ok(ValueStream { len: bytes.len() as u64, source: ValueSource::Small(Cursor::new(bytes)) })
    }

    /// The length of the value in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Read for ValueStream<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.source {
            ValueSource::Small(bytes) => bytes.read(buf),
            ValueSource::Large(run) => run.read(buf),
        }
    }
}
