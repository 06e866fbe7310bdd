//! `writes`: the workload of `duramen-bench writes` on RocksDB and WiredTiger, behind a meter of their calls. Builds
//! the programs of the folder `writes` and runs them.

use bytesize::ByteSize;
use clap::ValueEnum;
use duramen_bench::Result;
use duramen_bench::size;
use duramen_bench::writes::figures::{self, PeerRun};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Measures what random overwrites write to a drive that compresses
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// The store
    #[arg(long, value_enum)]
    peer: Peer,
    /// How many records
    #[arg(long, default_value_t = 460_800, value_parser = clap::value_parser!(u64).range(1000..))]
    records: u64,
    /// Bytes of a record, of which 8 are its key
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(12..=1024))]
    record_size: u32,
    /// Bytes of a page of WiredTiger, such as 8KiB
    #[arg(long, default_value = "8KiB", value_name = "BYTES", value_parser = size::parse)]
    page_size: ByteSize,
    /// Bytes of cache; WiredTiger takes at least 1MiB
    #[arg(long, default_value = "1MiB", value_name = "BYTES", value_parser = size::parse)]
    cache: ByteSize,
    /// Threads that overwrite, read and scan
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    threads: u32,
    /// Seconds between flushes of the log; 0: it is flushed with each commit
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    flush_seconds: u32,
    /// Bytes of the data set that this one is a small one of: RocksDB's memtables, files and levels become as much
    /// smaller
    #[arg(long, default_value = "150GB", value_name = "BYTES", value_parser = size::parse)]
    stands_for: ByteSize,
    /// Where the store's files are while it is measured
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    dir: PathBuf,
}

/// The stores that can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Peer {
    /// RocksDB, with leveled compaction.
    Rocksdb,
    /// WiredTiger, a B-tree.
    Wiredtiger,
}

/// Runs the workload, and prints its result as JSON.
///
/// # Errors
/// Errors of the compiler or the store.
pub(crate) fn run(args: &Args) -> Result<()> {
    let run = PeerRun {
        peer: match args.peer {
            Peer::Rocksdb => figures::Peer::RocksDb,
            Peer::Wiredtiger => figures::Peer::WiredTiger,
        },
        stands_for: args.stands_for.0,
        page_size: args.page_size.0,
        record_size: args.record_size,
        records: args.records,
        cache: args.cache.0,
        flush_seconds: args.flush_seconds,
        threads: args.threads,
    };
    let programs = Programs::build([run.peer])?;
    let folder = tempfile::tempdir_in(&args.dir)?;
    programs.populate(folder.path(), &run)?;
    print!("{}", programs.measure(folder.path(), &run)?);
    Ok(())
}

/// The programs of the stores and the meter, built.
pub(crate) struct Programs {
    folder: TempDir,
    meter: PathBuf,
}

impl Programs {
    pub(crate) fn build(peers: impl IntoIterator<Item = figures::Peer>) -> Result<Programs> {
        let folder = tempfile::tempdir()?;
        let meter = build_meter(folder.path())?;
        for peer in peers {
            let name = peer.name();
            let program = folder.path().join(name);
            compile(&program, &["workload.c", &format!("{name}.c")], &meter, &[&format!("-l{name}"), "-lpthread"])?;
        }
        Ok(Programs { folder, meter })
    }

    /// Makes the database that a run measures.
    pub(crate) fn populate(&self, folder: &Path, run: &PeerRun) -> Result<()> {
        self.work("populate", folder, run).map(drop)
    }

    /// Measures a database that has been populated. Returns the result as JSON.
    pub(crate) fn measure(&self, folder: &Path, run: &PeerRun) -> Result<String> {
        self.work("measure", folder, run)
    }

    fn work(&self, what: &str, folder: &Path, run: &PeerRun) -> Result<String> {
        let name = run.peer.name();
        let numbers = [
            run.records,
            u64::from(run.record_size),
            run.page_size,
            run.cache,
            u64::from(run.threads),
            u64::from(run.flush_seconds),
            run.stands_for,
        ];
        let mut program = metered(&self.folder.path().join(name), &self.meter);
        program.arg(what).arg(folder).args(numbers.map(|number| number.to_string()));
        finished(program.output()?, name)
    }
}

/// The C sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("writes")
}

/// Builds the meter, a library that is loaded before the C library.
fn build_meter(into: &Path) -> Result<PathBuf> {
    let meter = into.join("libmeter.so");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&meter).arg(sources().join("meter.c"));
    finished(cc.args(["-ldl", "-lz", "-lpthread"]).output()?, "cc")?;
    Ok(meter)
}

fn compile(program: &Path, files: &[&str], meter: &Path, libraries: &[&str]) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-o"]).arg(program).args(files.iter().map(|file| sources().join(file))).arg(meter).args(libraries);
    finished(cc.output()?, "cc (it needs librocksdb-dev, libwiredtiger-dev and zlib1g-dev)").map(drop)
}

fn metered(program: &Path, meter: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", meter);
    command
}

/// The output of a program, if it has succeeded.
pub(crate) fn finished(output: Output, name: &str) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&said).trim()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meter_counts_what_is_known_to_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let meter = build_meter(folder.path()).unwrap();
        let program = folder.path().join("check");
        compile(&program, &["check.c"], &meter, &[]).unwrap();
        let output = metered(&program, &meter).arg(folder.path()).output().unwrap();
        assert_eq!(finished(output, "check").map_err(|error| error.to_string()), Ok(String::new()));
    }
}
