//! The command line: commands, arguments and their help. No command is executed here.

mod writing;

pub(crate) use writing::{Threads, WriteOptions};

use crate::size;
use bytesize::ByteSize;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use duramen::db::types::{DynType, KeyLayout, Separators, TableOptions};
use duramen::db::{Compression, DeltaBlocks, Overflow, StoreKind, Strategy, Target};
use duramen::{Codec, Error};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

/// Read, fill, check and repair Duramen databases.
///
/// Exit status: 0 after success, 1 if a key was not found, 2 after an error, which is one line on standard error.
#[derive(Parser, Debug)]
#[command(name = "duramen", version, max_term_width = 100, arg_required_else_help = false)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Load a list of keys, or of keys and values, into a table
    ///
    /// The input has one entry a line: a key, or a key, a TAB and a value. It need not be sorted. If a key occurs
    /// several times, its last entry counts. Makes the database and the table if they do not exist. Nothing is written
    /// before the whole input has been read and checked.
    ///
    /// A new table is written in one commit. An existing table gets the entries in key order, --batch entries in each
    /// commit. If a commit fails, those before it stay, and the error says how many entries they contain. You can load
    /// the same input again.
    Load(Load),
    /// Print the value of a key
    Get(Get),
    /// Write one entry; make the database and the table if they do not exist
    Put(Put),
    /// Write values under the next keys of a table, and print these keys
    ///
    /// The table assigns the keys 1, 2, 3 and so on, each once. Makes the database and the table if they do not exist.
    /// An existing table must have been made with --auto-increment.
    Push(Push),
    /// Remove the entries of some keys, or of a range of keys
    ///
    /// Give keys, or a range with --from, --to or --prefix. Prints nothing. The exit status is 1 if one of the keys did
    /// not exist, or if there was no key in the range.
    Del(Del),
    /// Remove a table and all its entries
    Drop(DropTable),
    /// Rename a table
    Rename(Rename),
    /// Print the entries of a table, or of a key range, in key order
    ///
    /// Prints one entry a line: the key, then a TAB and the value, if the table has values.
    Scan(Scan),
    /// Compute counts, sums, averages and extremes of keys and values
    ///
    /// A query has aggregates, FROM, a table, and optionally WHERE and a predicate: 'SUM(key), COUNT(*) FROM t WHERE
    /// key >= 10 AND key < 99'. The aggregates are COUNT(*), SUM, AVERAGE, MIN, MAX, COUNT(DISTINCT ...), DISTINCT,
    /// TOP(..., k) and BOTTOM(..., k) of key or value. Predicates compare key or value, or its remainder (%), with
    /// numbers, or with a list of numbers (IN). AND, OR and NOT combine them.
    Query(Query),
    /// List the tables
    Tables(Tables),
    /// Show the sizes of the database and its tables, and how full their pages are
    Stat(Stat),
    /// Show what page compression would save and cost in each table
    ///
    /// It compresses pages from the whole file with each method, and shows the choice of a strategy. It does not change
    /// the file: `compact` compresses tables.
    Analyze(Analyze),
    /// Check every page, and print what is damaged
    Check(Check),
    /// Write all tables, or one, to a file that `restore` reads
    ///
    /// An existing file is replaced when the dump is complete. With --skip-damaged, the file must not exist: it could
    /// be an earlier dump, with entries that this one cannot read. Each range of keys that cannot be read is then
    /// printed on standard error.
    Dump(Dump),
    /// Make a new database from a file that `dump` wrote
    Restore(Restore),
    /// Rebuild full pages and shrink the file, or convert it
    ///
    /// Each table is rebuilt before its old pages are freed. Meanwhile the file grows by the size of its content. With
    /// --strategy or --compress, tables are compressed or decompressed; --compress alone is for all tables.
    ///
    /// With --store or --page-size, the database is rebuilt in a new file, even if nothing changes. The new file then
    /// takes the place of the old one. The device must have space for both. If the command is killed, the old database
    /// stays, and the next such command removes the unfinished file, NAME.ID.new.
    Compact(Compact),
}

/// The database file.
#[derive(Args, Debug)]
pub(crate) struct Database {
    /// The database file
    pub(crate) db: PathBuf,
    /// Memory for pages, such as 64M or 2G. Less than 64 pages is taken for 64 pages [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) cache: Option<ByteSize>,
    /// Read and write pages without the file cache of the system
    #[arg(long)]
    pub(crate) direct_io: bool,
    /// Show no progress on standard error; reports, notes and errors still appear
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The form of keys and values in input and output.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TextOptions {
    /// End entries with a NUL byte instead of a newline
    #[arg(short = '0', long = "null")]
    pub(crate) null: bool,
    /// Read and print keys and values as their stored bytes, in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
}

/// The help of `--keys`, with all names.
fn layouts() -> String {
    let names: Vec<String> = KeyLayout::ALL.into_iter().map(KeyLayout::names).collect();
    format!("How pages keep keys: {} [default: blocks for u32, u64, i32 and i64, else head]", or_list(&names))
}

/// The long help of `--keys`, with the documents that describe the layouts.
fn layouts_and_documents() -> String {
    let mut help = layouts() + "\n\nThese documents of the project describe them, with examples:\n";
    let mut last = "";
    for layout in KeyLayout::ALL {
        let document = layout.documentation();
        help += &if document == last { format!(", {layout}") } else { format!("\n{document}: {layout}") };
        last = document;
    }
    help
}

/// The help of `--codec`, with all names.
fn codecs() -> String {
    let names: Vec<String> = Codec::ALL.iter().map(Codec::to_string).collect();
    let usual = TableOptions::DEFAULT_CODEC;
    format!("How blocks of u32, u64, i32 or i64 keys are compressed: {} [default: {usual}]", or_list(&names))
}

/// The names as a list with "or" before the last one.
fn or_list(names: &[String]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        names => names.join(""),
    }
}

/// The types and the layout of a new table.
#[derive(Args, Debug, Default)]
pub(crate) struct NewTable {
    /// The type of keys, such as bytes, str, u64 or (str,u32) [default: that of the table, or bytes]
    #[arg(long, value_name = "TYPE", value_parser = value::<DynType>)]
    pub(crate) key_type: Option<DynType>,
    /// The type of values [default: that of the table, or bytes, or () without values]
    #[arg(long, value_name = "TYPE", value_parser = value::<DynType>)]
    pub(crate) value_type: Option<DynType>,
    #[arg(long, value_name = "LAYOUT", value_parser = value::<KeyLayout>)]
    #[arg(help = layouts(), long_help = layouts_and_documents())]
    pub(crate) keys: Option<KeyLayout>,
    #[arg(long, value_name = "CODEC", help = codecs())]
    pub(crate) codec: Option<Codec>,
    /// How the pages of a new table are compressed in the file: none, lz4, zstd or zlib, the latter two also with a
    /// level, such as zstd:9 [default: none]
    #[arg(long, value_name = "METHOD", value_parser = value::<Compression>)]
    pub(crate) compress: Option<Compression>,
    /// The length of the places in the file for pages of a new table: fit, or a size such as 4K. A page that compresses
    /// to that size gets a place of that size, any other page a place for a whole page [default: fit]
    #[arg(long, value_name = "SIZE", value_parser = value::<Target>)]
    pub(crate) target: Option<Target>,
    /// What to do with a leaf of a new table that misses the target: spill keeps it in a place for a whole page, split
    /// splits it in two [default: spill]
    #[arg(long, value_name = "WAY", value_parser = value::<Overflow>)]
    pub(crate) overflow: Option<Overflow>,
    /// Compactions may train a dictionary for the pages of a new table, if the dictionary saves more than it takes;
    /// needs zstd, and selects it if --compress is not given
    #[arg(long)]
    pub(crate) dictionary: bool,
    /// A new table assigns the keys of pushed values; for u32 and u64 keys
    #[arg(long)]
    pub(crate) auto_increment: bool,
    /// How long separators are: full, tail, or tail:0 to tail:500 with another radius, in thousandths of a page
    /// [default: tail; tables with blocks have full ones only]
    #[arg(long, value_name = "LENGTH", value_parser = value::<Separators>)]
    pub(crate) separators: Option<Separators>,
    #[command(flatten)]
    pub(crate) new_file: NewFile,
}

/// The file of a new database.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct NewFile {
    /// The page size of a new database, a power of two from 4K to 64K
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) page_size: Option<ByteSize>,
    /// How the file of a new database keeps its pages [default: table]
    #[arg(long, value_parser = store_parser())]
    pub(crate) store: Option<StoreKind>,
    /// How --store shadow writes small changes of a page: threshold and segment in bytes, and delta blocks
    #[arg(long, value_name = "THRESHOLD,SEGMENT,BLOCKS|off", requires = "store", value_parser = value::<DeltaBlocks>)]
    pub(crate) delta: Option<DeltaBlocks>,
}

/// Parses the value of an option of the engine. The program's message names the option and the value, so the text of
/// the error has only the values that are allowed.
fn value<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| match error {
        Error::Option { expected, .. } => format!("it must be {expected}"),
        other => other.to_string(),
    })
}

/// Parses the name of a page store. The help lists the stores.
fn store_parser() -> impl TypedValueParser<Value = StoreKind> {
    let values = StoreKind::ALL.iter().map(|store| PossibleValue::new(store.name()).help(store.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<StoreKind>())
}

/// The form of a report.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// A table for people
    Table,
    /// JSON for programs
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The table
    pub(crate) table: String,
    #[command(flatten)]
    pub(crate) source: SourceFile,
    #[command(flatten)]
    pub(crate) text: TextOptions,
    #[command(flatten)]
    pub(crate) csv: Csv,
    #[command(flatten)]
    pub(crate) new_table: NewTable,
    /// Memory for sorting; less than 16M counts as 16M. Larger input is sorted in parts, in a temporary file beside the
    /// database
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "512M")]
    pub(crate) memory: ByteSize,
    /// How full the pages of a new table are, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u8).range(50..=100))]
    pub(crate) fill: u8,
    /// Entries in each commit when loading into an existing table
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) batch: u32,
    #[command(flatten)]
    pub(crate) writing: WriteOptions,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Args, Debug)]
pub(crate) struct Csv {
    /// The input is CSV: comma-separated values with optional quotes
    #[arg(long, conflicts_with = "null")]
    pub(crate) csv: bool,
    /// The column of keys: its number, from 1, or its name in the first line; repeat it for a tuple of
    /// columns [default: 1]
    #[arg(long, value_name = "COLUMN", requires = "csv")]
    pub(crate) key_column: Vec<String>,
    /// The column of values, in the same way [default: none, the table has only keys]
    #[arg(long, value_name = "COLUMN", requires = "csv")]
    pub(crate) value_column: Vec<String>,
    /// The first line has the names of columns; implied if a column is given by name
    #[arg(long, requires = "csv")]
    pub(crate) header: bool,
    /// The separator of columns, one byte
    #[arg(long, value_name = "CHAR", requires = "csv", default_value = ",", value_parser = one_byte)]
    pub(crate) delimiter: u8,
}

#[derive(Args, Debug)]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The table
    pub(crate) table: String,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub(crate) key: OsString,
    /// Print the value as it is, without a newline after it
    #[arg(long, conflicts_with = "null")]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) text: TextOptions,
}

#[derive(Args, Debug)]
pub(crate) struct Put {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The table
    pub(crate) table: String,
    /// The key
    #[arg(allow_negative_numbers = true)]
    pub(crate) key: OsString,
    /// The value, or - for standard input, all of it, newlines included
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: Option<OsString>,
    /// Read the key and the value as their stored bytes, in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
    #[command(flatten)]
    pub(crate) new_table: NewTable,
}

#[derive(Args, Debug)]
pub(crate) struct Push {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The table
    pub(crate) table: String,
    /// The values; - reads one of them from standard input, to its end, newlines included
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) values: Vec<OsString>,
    /// Read values and print keys as their stored bytes, in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
    /// The type of the keys of a new table, u32 or u64 [default: u64]
    #[arg(long, value_name = "TYPE", value_parser = value::<DynType>)]
    pub(crate) key_type: Option<DynType>,
    /// The type of the values of a new table [default: bytes]
    #[arg(long, value_name = "TYPE", value_parser = value::<DynType>)]
    pub(crate) value_type: Option<DynType>,
}

#[derive(Args, Debug)]
pub(crate) struct Del {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The table
    pub(crate) table: String,
    /// The keys
    #[arg(conflicts_with_all = ["from", "to", "prefix"], allow_negative_numbers = true)]
    pub(crate) keys: Vec<OsString>,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Read the keys as their stored bytes, in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DropTable {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The table
    pub(crate) table: String,
}

#[derive(Args, Debug)]
pub(crate) struct Rename {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The table
    pub(crate) from: String,
    /// The new name
    pub(crate) to: String,
}

/// The file that a command reads.
#[derive(Args, Debug)]
pub(crate) struct SourceFile {
    /// The file to read, or - for standard input
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
}

/// A range of keys. If several options are given, a key must match all of them.
#[derive(Args, Debug)]
pub(crate) struct RangeArgs {
    /// The first key of the range, or the next one that exists
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) from: Option<OsString>,
    /// The end of the range; the key itself is excluded
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) to: Option<OsString>,
    /// Only keys that begin with this; for a tuple, its first parts. The last part can be the beginning of a text:
    /// `oak` also matches `oaks`. A comma after it makes it a whole part: `oak,` matches only `oak`
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) prefix: Option<OsString>,
}

impl RangeArgs {
    /// True if the range contains all keys.
    pub(crate) fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.prefix.is_none()
    }
}

#[derive(Args, Debug)]
pub(crate) struct Scan {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The table
    pub(crate) table: String,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Print the greatest key first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Print at most this many entries
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) limit: Option<u64>,
    /// Print only the number of entries
    #[arg(long)]
    pub(crate) count: bool,
    /// Skip damaged parts that cannot be read, and report them on standard error; the exit status is then 2
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) skip_damaged: bool,
    #[command(flatten)]
    pub(crate) text: TextOptions,
}

#[derive(Args, Debug)]
pub(crate) struct Query {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The query, such as 'SUM(key) FROM t WHERE key > 10'
    pub(crate) statement: String,
    /// The number of threads [default: the number of processors]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) threads: Option<u8>,
    /// How many numbers DISTINCT, TOP and BOTTOM may keep in memory, about 50 bytes each [default: 1048576]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_numbers: Option<u64>,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Args, Debug)]
pub(crate) struct Tables {
    #[command(flatten)]
    pub(crate) database: Database,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Args, Debug)]
pub(crate) struct Stat {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Only this table
    pub(crate) table: Option<String>,
    #[command(flatten)]
    pub(crate) report: Report,
}

/// The choice of the tables to compress, and of their compression.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlanArgs {
    /// The tables to compress: none, all, or selective[:DELTA][:strict] for tables where nearly all pages compress well
    #[arg(long, value_name = "STRATEGY", value_parser = value::<Strategy>)]
    pub(crate) strategy: Option<Strategy>,
    /// The compression of these tables: lz4, zstd[:LEVEL] or zlib[:LEVEL] [default: lz4, or zstd with --dictionary]
    #[arg(long, value_name = "METHOD", value_parser = value::<Compression>)]
    pub(crate) compress: Option<Compression>,
    /// The length of the places of their pages in the file: fit, or a size such as 4K [default: fit]
    #[arg(long, value_name = "SIZE", value_parser = value::<Target>)]
    pub(crate) target: Option<Target>,
    /// What to do with a leaf that misses the target: spill or split [default: spill]
    #[arg(long, value_name = "WAY", value_parser = value::<Overflow>)]
    pub(crate) overflow: Option<Overflow>,
    /// Train a dictionary for the pages of each of these tables, if the dictionary saves more than it takes; needs
    /// zstd, and selects it if --compress is not given
    #[arg(long)]
    pub(crate) dictionary: bool,
    /// Apply the options to this table only; compact does not change other tables; can be repeated
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Vec<String>,
    /// The strategy decides once for all of these tables, such as a table and its indexes; can be repeated
    #[arg(long, value_name = "TABLE,TABLE...")]
    pub(crate) group: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Analyze {
    #[command(flatten)]
    pub(crate) database: Database,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) database: Database,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Args, Debug)]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The file to write, or - for standard output
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Only this table
    #[arg(long)]
    pub(crate) table: Option<String>,
    /// Skip damaged parts that cannot be read, and report them on standard error; the exit status is then 2. An
    /// existing file is not replaced
    #[arg(long)]
    pub(crate) skip_damaged: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) database: Database,
    #[command(flatten)]
    pub(crate) source: SourceFile,
    #[command(flatten)]
    pub(crate) new_file: NewFile,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Args, Debug)]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Convert the file to this page store [default: as it is]
    #[arg(long, value_parser = store_parser())]
    pub(crate) store: Option<StoreKind>,
    /// Convert the file to this page size, a power of two from 4K to 64K [default: as it is]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) page_size: Option<ByteSize>,
    /// How --store shadow writes small changes of a page: threshold and segment in bytes, and delta blocks
    /// [default: as it is]
    #[arg(long, value_name = "THRESHOLD,SEGMENT,BLOCKS|off", requires = "store", value_parser = value::<DeltaBlocks>)]
    pub(crate) delta: Option<DeltaBlocks>,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) writing: WriteOptions,
    #[command(flatten)]
    pub(crate) report: Report,
}

fn one_byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        br"\t" => Ok(b'\t'),
        _ => Err("it must be one byte, or \\t for a TAB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_valid() {
        CommandLine::command().debug_assert();
    }
}
