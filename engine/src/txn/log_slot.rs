//! The place of the log in an engine. It is empty until recovery has read the old log to its end.

use crate::base::watermark::Watermark;
use crate::base::{Lsn, Result};
use crate::log::Log;
use std::sync::{Arc, OnceLock};

/// The log. The pool asks it up to which LSN it is durable. There is none before recovery has read the old log to its
/// end.
#[derive(Default)]
pub(crate) struct LogSlot(OnceLock<Arc<Log>>);

impl LogSlot {
    /// Sets the log. The caller sets it only once.
    pub(crate) fn set(&self, log: Arc<Log>) {
        // If there is a log already, which would be a bug of recovery, that log stays.
        let _ = self.0.set(log);
    }

    pub(crate) fn get(&self) -> Option<&Arc<Log>> {
        self.0.get()
    }
}

impl Watermark for LogSlot {
    fn durable(&self) -> Lsn {
        self.0.get().map_or(Lsn::MAX, |log| log.durable())
    }

    fn appended(&self) -> Lsn {
        self.0.get().map_or(Lsn::MAX, |log| log.appended())
    }

    fn make_durable(&self, lsn: Lsn) -> Result<bool> {
        self.0.get().map_or(Ok(false), |log| log.make_durable(lsn))
    }
}
