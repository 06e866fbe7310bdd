//! The command line: what can be asked, and the help for it. No command is carried out here.

use crate::size::Size;
use clap::{Args, Parser, Subcommand, ValueEnum};
use duramen::Codec;
use duramen::db::types::{DynType, KeyLayout, Separators};
use std::ffi::OsString;
use std::path::PathBuf;

/// Look into, fill and mend Duramen databases.
///
/// Exit status: 0, or 1 if what was asked for is not there, or 2 after an error, which is told in one line.
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
    /// Takes one entry a line: a key, or a key, a TAB and a value. The list need not be sorted; of several entries with
    /// one key the last wins. The database and the table are made if they are not there. Nothing is written before the
    /// whole input has been read and found good.
    ///
    /// A new table is written in one commit: all of it, or nothing. A table that is there gets the entries in the order of
    /// their keys, --batch of them a commit: if a commit fails, those before it stay, and the error tells how many entries
    /// they have. Loading the same input again does no harm.
    Load(Load),
    /// Print the value of a key
    Get(Get),
    /// Write one entry, making the database and the table if they are not there
    Put(Put),
    /// Write values that get the next keys of a table, and print those
    ///
    /// Keys are 1, 2, 3 and so on, each given out once. The database and the table are made if they are not there; of those
    /// that are, a table must have been made with --auto-increment.
    Push(Push),
    /// Remove entries: those of some keys, or of a range of keys
    ///
    /// Takes keys, or a range: --from, --to or --prefix. Prints nothing. Exit status 1 if one of the keys, or any key of the
    /// range, was not there.
    Del(Del),
    /// Remove a table with all that is in it
    Drop(DropTable),
    /// Give a table another name
    Rename(Rename),
    /// Print the entries of a table, or of a range of it, in the order of keys
    ///
    /// One entry a line: the key, then a TAB and the value, if there is one.
    Scan(Scan),
    /// Find out counts, sums, averages and extremes of a table's keys and numbers
    ///
    /// A query is aggregates, FROM, a table, and if need be WHERE and a predicate:
    /// 'SUM(key), COUNT(*) FROM t WHERE key >= 10 AND key < 99'. There are COUNT(*), SUM, AVERAGE, MIN, MAX,
    /// COUNT(DISTINCT ...), DISTINCT, TOP(..., k) and BOTTOM(..., k) of key or value; predicates compare key or value, or
    /// what % leaves of it, with numbers, or look for it IN a list, joined by AND, OR and NOT.
    Query(Query),
    /// List the tables
    Tables(Tables),
    /// Show how large the database and its tables are, and how their pages are filled
    Stat(Stat),
    /// Check every page, and tell what is wrong
    Check(Check),
    /// Write all tables, or one, to a file that `restore` reads
    ///
    /// A file that is there is replaced when the dump is whole, not before. With --skip-damaged, each range of keys that
    /// cannot be read is told on standard error, and the exit status is 2 if there is any.
    Dump(Dump),
    /// Make a new database from a file that `dump` wrote
    Restore(Restore),
    /// Move pages together and shrink the file
    ///
    /// Every table is written anew before its old pages are freed: meanwhile the file grows by as much as is in it.
    Compact(Compact),
}

/// The database file.
#[derive(Args, Debug)]
pub(crate) struct Database {
    /// The database file
    pub(crate) db: PathBuf,
    /// Memory for pages, as 64M or 2G
    #[arg(long, value_name = "SIZE")]
    pub(crate) cache: Option<Size>,
}

/// How keys and values look outside the database.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Entries end with a NUL byte, not with a newline
    #[arg(short = '0', long = "null")]
    pub(crate) null: bool,
    /// Keys and values are their stored bytes, in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
}

/// What a new table holds and how.
#[derive(Args, Debug, Default)]
pub(crate) struct NewTable {
    /// The type of keys, as bytes, str, u64, (str,u32) [default: the table's, or bytes]
    #[arg(long, value_name = "TYPE")]
    pub(crate) key_type: Option<DynType>,
    /// The type of values [default: the table's, or bytes, or () if there are none]
    #[arg(long, value_name = "TYPE")]
    pub(crate) value_type: Option<DynType>,
    /// How pages keep keys: plain, fixed, head, db2, wiredtiger, wiredtiger-best, wiredtiger-both, myisam, pkb, pkb:1 to
    /// pkb:8, pkb-heap, pkb-heap:1 to pkb-heap:8, blocks or blocks:128 (keys a block)
    /// [default: blocks for u32, u64, i32 and i64, else head]
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) keys: Option<KeyLayout>,
    /// How blocks of u32, u64, i32 or i64 keys are compressed: plain, vbyte, masked-vbyte, varint-gb, stream-vbyte, for,
    /// simd-for or bp128 [default: simd-for]
    #[arg(long, value_name = "CODEC")]
    pub(crate) codec: Option<Codec>,
    /// A new table gives out keys to whoever pushes values; for u32 and u64 keys
    #[arg(long)]
    pub(crate) auto_increment: bool,
    /// How long separators are: full, tail, or tail:0 to tail:500 with another radius, in thousandths of a page
    /// [default: tail; blocks have full ones alone]
    #[arg(long, value_name = "LENGTH")]
    pub(crate) separators: Option<Separators>,
    /// The page size of a new database, a power of two from 4K to 64K
    #[arg(long, value_name = "SIZE")]
    pub(crate) page_size: Option<Size>,
}

/// How a report is printed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// How the report is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct Progress {
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The table
    pub(crate) table: String,
    /// The file to read, or - for standard input
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) look: Look,
    #[command(flatten)]
    pub(crate) csv: Csv,
    #[command(flatten)]
    pub(crate) new_table: NewTable,
    /// Memory for sorting; more is sorted in parts, in a nameless file beside the database
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    pub(crate) memory: Size,
    /// How full the pages of a new table are made, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u8).range(50..=100))]
    pub(crate) fill: u8,
    /// How many entries are written at once into a table that is there already
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) batch: u32,
    #[command(flatten)]
    pub(crate) progress: Progress,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Args, Debug)]
pub(crate) struct Csv {
    /// The input is comma separated values, quoted where necessary
    #[arg(long, conflicts_with = "null")]
    pub(crate) csv: bool,
    /// The column of keys: its number, from 1, or its name in the first line; given several times, the
    /// columns make a tuple [default: 1]
    #[arg(long, value_name = "COLUMN", requires = "csv")]
    pub(crate) key_column: Vec<String>,
    /// The column of values, likewise [default: none, the table has keys alone]
    #[arg(long, value_name = "COLUMN", requires = "csv")]
    pub(crate) value_column: Vec<String>,
    /// The first line has names, not an entry; implied by naming a column
    #[arg(long, requires = "csv")]
    pub(crate) header: bool,
    /// What separates columns, one byte
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
    #[command(flatten)]
    pub(crate) look: Look,
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
    /// The value
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: Option<OsString>,
    /// The key and the value are their stored bytes, in hexadecimal
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
    /// The values
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) values: Vec<OsString>,
    /// Keys and values are their stored bytes, in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
    /// The type of the keys of a new table, u32 or u64 [default: u64]
    #[arg(long, value_name = "TYPE")]
    pub(crate) key_type: Option<DynType>,
    /// The type of the values of a new table [default: bytes]
    #[arg(long, value_name = "TYPE")]
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
    pub(crate) range: KeyRange,
    /// The keys are their stored bytes, in hexadecimal
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
    /// Its new name, which no other table has
    pub(crate) to: String,
}

/// Some of a table's keys. Where several are given, the keys are those that all of them leave.
#[derive(Args, Debug)]
pub(crate) struct KeyRange {
    /// Begin at this key, or at the first one after it
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) from: Option<OsString>,
    /// End before this key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) to: Option<OsString>,
    /// Only keys that begin with this; of a tuple, its first parts
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) prefix: Option<OsString>,
}

impl KeyRange {
    /// True if all keys are meant.
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
    pub(crate) range: KeyRange,
    /// The greatest key first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most this many entries
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<u64>,
    /// Print only how many there are
    #[arg(long)]
    pub(crate) count: bool,
    /// Leave out what cannot be read of a damaged database, and tell it on standard error; the exit status is 2 then
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) skip_damaged: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Args, Debug)]
pub(crate) struct Query {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The query, as 'SUM(key) FROM t WHERE key > 10'
    pub(crate) statement: String,
    /// How many threads share the work [default: as many as the machine runs at once]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) threads: Option<u8>,
    /// How many numbers DISTINCT, TOP and BOTTOM may keep in memory, some 50 bytes each [default: 1048576]
    #[arg(long, value_name = "COUNT")]
    pub(crate) most_numbers: Option<u64>,
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

#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) database: Database,
    #[command(flatten)]
    pub(crate) progress: Progress,
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
    /// Leave out what cannot be read of a damaged database; the file must not be there yet
    #[arg(long)]
    pub(crate) skip_damaged: bool,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

#[derive(Args, Debug)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The file to read, or - for standard input
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// The page size, a power of two from 4K to 64K
    #[arg(long, value_name = "SIZE")]
    pub(crate) page_size: Option<Size>,
    #[command(flatten)]
    pub(crate) progress: Progress,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Args, Debug)]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(crate) database: Database,
    #[command(flatten)]
    pub(crate) progress: Progress,
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
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }
}
