//! `writes`: the workload of `duramen-bench writes` on RocksDB and WiredTiger, behind a meter of their write calls. Builds
//! the programs of the folder `writes` and runs one of them. What is measured must not be decided here.

use bytesize::ByteSize;
use clap::ValueEnum;
use duramen_bench::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Measures what random overwrites write to a drive that compresses
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// The store
    #[arg(long, value_enum)]
    peer: Peer,
    /// How many records
    #[arg(long, default_value_t = 350_000, value_parser = clap::value_parser!(u64).range(1000..))]
    records: u64,
    /// Bytes of a record, of which 8 are its key
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(12..=1024))]
    record_size: u32,
    /// Bytes of a page of WiredTiger, such as 8KiB
    #[arg(long, default_value = "8KiB", value_name = "BYTES")]
    page_size: ByteSize,
    /// Bytes of cache; WiredTiger takes at least 1MiB
    #[arg(long, default_value = "1MiB", value_name = "BYTES")]
    cache: ByteSize,
    /// Threads that overwrite, read and scan
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    threads: u32,
    /// Seconds between flushes of the log; 0: it is flushed with each commit
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    flush_seconds: u32,
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

/// Runs the workload, which prints its result as JSON.
///
/// # Errors
/// What the compiler or the store says.
pub(crate) fn run(args: &Args) -> Result<()> {
    let peer = match args.peer {
        Peer::Rocksdb => "rocksdb",
        Peer::Wiredtiger => "wiredtiger",
    };
    let built = tempfile::tempdir()?;
    let meter = build_meter(built.path())?;
    let program = built.path().join(peer);
    compile(&program, &["workload.c", &format!("{peer}.c")], &meter, &[&format!("-l{peer}"), "-lpthread"])?;
    let folder = tempfile::tempdir_in(&args.dir)?;
    let numbers = [
        args.records,
        u64::from(args.record_size),
        args.page_size.0,
        args.cache.0,
        u64::from(args.threads),
        u64::from(args.flush_seconds),
    ];
    let mut arguments: Vec<OsString> = vec![folder.path().into()];
    arguments.extend(numbers.map(|number| number.to_string().into()));
    print!("{}", finished(metered(&program, &meter).args(arguments).output()?, peer)?);
    Ok(())
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

/// What a program that has succeeded has printed.
fn finished(output: Output, name: &str) -> Result<String> {
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
