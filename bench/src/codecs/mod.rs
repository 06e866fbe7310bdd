//! `duramen-bench codecs`: the codecs without the engine, by bit width (Upscaledb paper, figures 6 and 7).

mod figure;
mod loops;
mod measure;
mod report;
mod verify;
mod workload;

use std::path::PathBuf;
use std::str::FromStr;

use crate::options::{Format, KeyType, make_folder};
use duramen_codec::Codec;

/// The integer codecs alone: size, decode, select, search, insert, append, sum, beside memcpy and partition_point.
#[derive(clap::Args)]
pub struct Args {
    /// Keys in all, in blocks of 256 (BP128: 128).
    #[arg(long, default_value_t = 65_536)]
    n: usize,
    /// Bits of a gap: gaps are uniform in [0, 2^bits). A range with both ends (`1..24`) or a list (`4,8,16`).
    #[arg(long, default_value = "1..24")]
    bits: Bits,
    /// Codecs to measure.
    #[arg(long, value_delimiter = ',', default_values_t = Codec::ALL)]
    codecs: Vec<Codec>,
    /// The key type.
    #[arg(long, value_enum, default_value_t = KeyType::U32)]
    keys: KeyType,
    /// Rounds. Each measures everything once, and the medians are shown.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seed of the keys and probes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also writes the figures as SVG into this directory.
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// Bit widths in ascending order.
#[derive(Clone)]
struct Bits(Vec<u32>);

impl FromStr for Bits {
    type Err = String;

    fn from_str(text: &str) -> Result<Bits, String> {
        let number = |part: &str| match part.trim().parse::<u32>() {
            Ok(bits @ 1..=24) => Ok(bits),
            Ok(_) => Err("bits from 1 to 24".to_owned()),
            Err(_) => Err(format!("not a number: {part:?}")),
        };
        let mut bits = match text.split_once("..") {
            Some((from, to)) => (number(from)?..=number(to.trim_start_matches('='))?).collect(),
            None => text.split(',').map(number).collect::<Result<Vec<_>, _>>()?,
        };
        bits.sort_unstable();
        bits.dedup();
        if bits.is_empty() { Err("bits from 1 to 24, smaller first".to_owned()) } else { Ok(Bits(bits)) }
    }
}

/// Measures the codecs, prints the results and draws the figures.
pub fn run(args: &Args) -> crate::Result<()> {
    if args.n < 256 {
        return Err("--n must be at least 256".into());
    }
    if args.rounds == 0 {
        return Err("--rounds must be at least 1".into());
    }
    args.svg.as_deref().map_or(Ok(()), make_folder)?;
    let mut rows = Vec::new();
    for &bits in &args.bits.0 {
        rows.extend(match args.keys {
            KeyType::U32 => measure::all::<u32>(args, bits)?,
            KeyType::U64 => measure::all::<u64>(args, bits)?,
        });
    }
    match args.format {
        Format::Table => println!("{}", report::table(&rows)),
        Format::Json => println!("{}", serde_json::to_string_pretty(&rows)?),
        Format::Csv => report::csv(&rows, std::io::stdout().lock())?,
    }
    if let Some(dir) = &args.svg {
        figure::write_all(&rows, dir)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_ranges_or_lists() {
        assert_eq!("1..3".parse::<Bits>().expect("a range").0, [1, 2, 3]);
        assert_eq!("16,4,4".parse::<Bits>().expect("a list").0, [4, 16]);
        for bad in ["", "0..3", "20..25", "5..2", "x", "1..4000000000"] {
            assert!(bad.parse::<Bits>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_codec_gives_a_row_with_figures() {
        let args = Args {
            n: 512,
            bits: Bits(vec![8]),
            codecs: Codec::ALL.to_vec(),
            keys: KeyType::U32,
            rounds: 1,
            seed: 1,
            format: Format::Table,
            svg: None,
        };
        let rows = measure::all::<u32>(&args, 8).expect("codecs that agree with the keys");
        assert_eq!(rows.len(), Codec::ALL.len());
        for row in &rows {
            assert_eq!((row.sum, row.count), (rows[0].sum, 512), "{}", row.codec);
            assert!(row.bits_per_int > 0.0 && row.decode_gints > 0.0 && row.search_to_partition > 0.0, "{}", row.codec);
        }
        let plain = rows.iter().find(|row| row.codec == "plain").expect("measured");
        assert!((31.0..32.0).contains(&plain.bits_per_int), "{}", plain.bits_per_int);
        let mut csv = Vec::new();
        report::csv(&rows, &mut csv).expect("writes");
        assert_eq!(String::from_utf8(csv).expect("text").lines().count(), rows.len() + 1);
    }
}
