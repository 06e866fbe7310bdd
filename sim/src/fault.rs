//! [`Fault`] and [`Trigger`]: the calls of a simulated disk that fail, or succeed without effect, and when they do. The
//! effect of a failure is in `state`.

/// A way in which a disk fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A sync of a file or of the folder returns an error. Of the file's unsynced changes some are on the device from
    /// then on and the others never will be, although reads still show them: so do systems that mark pages clean
    /// before they report the failure.
    FailSync,
    /// A read returns an error.
    FailRead,
    /// A read returns, but the first half of its bytes is wrong. The bytes on the device are right.
    SpoilFront,
    /// A read returns, but the second half of its bytes is wrong. The bytes on the device are right.
    SpoilBack,
    /// A write returns an error, and nothing is written.
    FailWrite,
    /// A write returns an error, although the first half of its bytes, or all of them, were written.
    FailLate,
    /// A call that neither reads, writes nor syncs returns an error, and nothing has changed: to open, create, rename,
    /// remove, list, trim, resize or reserve.
    Refuse,
    /// A call that creates, renames, removes or resizes a file returns an error, although it took effect: so does a
    /// network file system whose reply was lost.
    RefuseLate,
    /// A write returns, but is never applied.
    LoseWrite,
    /// A write is applied to other device blocks of the file.
    MisdirectWrite,
}

impl Fault {
    /// How many kinds there are.
    const COUNT: usize = 10;
}

/// Which of the calls of its kind a fault hits.
#[derive(Clone, Debug)]
pub struct Trigger {
    skip: u64,
    times: u64,
    prefix: String,
    /// Only the file with exactly this name, not those whose names begin with it.
    is_name: bool,
    /// How many calls it has hit.
    struck: u64,
}

impl Trigger {
    /// The next call only.
    pub fn once() -> Trigger {
        Trigger { skip: 0, times: 1, prefix: String::new(), is_name: false, struck: 0 }
    }

    /// Every call from now on.
    pub fn always() -> Trigger {
        Trigger { times: u64::MAX, ..Trigger::once() }
    }

    /// No call.
    pub fn never() -> Trigger {
        Trigger { times: 0, ..Trigger::once() }
    }

    /// Hits this number of calls, beginning with the next one.
    pub fn times(calls: u64) -> Trigger {
        Trigger { times: calls, ..Trigger::once() }
    }

    /// Lets `calls` calls pass first.
    #[must_use]
    pub fn after(self, calls: u64) -> Trigger {
        Trigger { skip: calls, ..self }
    }

    /// Hits only files that were opened by a name that begins with `prefix`; the folder itself has the name "".
    #[must_use]
    pub fn on(self, prefix: impl Into<String>) -> Trigger {
        Trigger { prefix: prefix.into(), ..self }
    }

    /// Hits only the file that was opened by the name `name`.
    #[must_use]
    pub fn on_file(self, name: impl Into<String>) -> Trigger {
        Trigger { prefix: name.into(), is_name: true, ..self }
    }

    /// Counts a call; true if it is to fail.
    fn strikes(&mut self, name: &str) -> bool {
        let is_other = if self.is_name { name != self.prefix } else { !name.starts_with(&self.prefix) };
        if self.times == 0 || is_other {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.times -= 1;
        self.struck += 1;
        true
    }
}

/// The trigger of each fault.
#[derive(Debug)]
pub(crate) struct Triggers([Trigger; Fault::COUNT]);

impl Default for Triggers {
    fn default() -> Triggers {
        Triggers(std::array::from_fn(|_| Trigger::never()))
    }
}

impl Triggers {
    pub(crate) fn set(&mut self, fault: Fault, trigger: Trigger) {
        self.0[fault as usize] = trigger;
    }

    /// How many calls `fault` has hit since its trigger was set.
    pub(crate) fn struck(&self, fault: Fault) -> u64 {
        self.0[fault as usize].struck
    }

    /// Counts a call on the file `name`; true if `fault` hits it.
    pub(crate) fn strikes(&mut self, fault: Fault, name: &str) -> bool {
        self.0[fault as usize].strikes(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_counts_only_the_files_it_looks_at() {
        let mut triggers = Triggers::default();
        assert!(!triggers.strikes(Fault::FailRead, "db"));
        triggers.set(Fault::FailRead, Trigger::once().after(1).on("db-log"));
        let struck =
            ["db", "db-log.1", "db", "db-log.1", "db-log.2"].map(|name| triggers.strikes(Fault::FailRead, name));
        assert_eq!(struck, [false, false, false, true, false]);
        assert!(!triggers.strikes(Fault::FailSync, "db-log.1"));
    }
}
