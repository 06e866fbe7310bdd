//! `duramen-bench figures layouts`: key layouts x page compression on several sets of keys, as a CSV, as a chart of
//! size against speed for each set, and as tables of how much each layout loses where it loses most.

mod draw;
mod regret;
mod settings;

use super::args::Layouts;
use super::data::Data;
use super::{comparing, measure, report};
use crate::Result;
use crate::kept::Kept;
use crate::options::make_folder;
use crate::progress::Progress;
use crate::size;
use bytesize::ByteSize;
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use settings::Setting;
use std::path::PathBuf;

/// Key layouts with and without page compression: size, speed, and how much each loses where it loses most
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Sets of keys, separated by spaces or given several times: as --data of `keys`
    #[arg(long, value_delimiter = ' ', default_values = ["paths:/usr", "words", "urls", "emails", "uuids", "tuples", "integers", "uniform:len=32"])]
    pub data: Vec<String>,
    /// At most this number of keys of each set
    #[arg(long, default_value_t = 200_000)]
    pub n: usize,
    /// The layouts
    #[arg(long, default_value = "head/tail,head/full,plain/tail,db2/tail,wiredtiger/tail,myisam/tail")]
    pub layouts: Layouts,
    /// The settings, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Setting::ALL)]
    settings: Vec<Setting>,
    /// Bytes of a page
    #[arg(long, default_value = "8KiB", value_name = "BYTES", value_parser = size::parse)]
    pub page_size: ByteSize,
    /// The folder for all output. It is created if it does not exist
    #[arg(long, default_value = "figures-layouts")]
    pub out: PathBuf,
    /// Rounds. The medians are shown
    #[arg(long, default_value_t = 1)]
    pub repeat: usize,
    /// Continue an interrupted call with the same --out: do not measure again what is in its runs.jsonl
    #[arg(long)]
    pub resume: bool,
    /// The seed of random keys and orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// One layout in one setting on one set of keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Point {
    data: String,
    setting: Setting,
    layout: String,
    /// Thousand operations a second.
    search_kops: f64,
    insert_kops: f64,
    scan_kops: f64,
    /// Bytes an entry: of pages in memory, or of the file.
    bytes: f64,
}

/// Measures, writes the output as results arrive, and prints the table.
///
/// # Errors
/// Unknown data, and errors of measuring and writing.
pub fn run(args: &Args) -> Result<()> {
    if args.n < 1_000 || args.repeat == 0 {
        return Err("--n must be at least 1000, --repeat at least 1".into());
    }
    let data: Vec<Data> = args.data.iter().map(|text| text.parse()).collect::<std::result::Result<_, String>>()?;
    make_folder(&args.out)?;
    let (mut kept, found) = Kept::begin(&args.out.join("runs.jsonl"), args.resume)?;
    let mut points: Vec<Point> =
        found.into_iter().map(serde_json::from_value).collect::<std::result::Result<_, serde_json::Error>>()?;
    let is_found = |points: &[Point], name: &str, setting: Setting| {
        points.iter().any(|point| point.data == name && point.setting == setting)
    };
    let settings = |(data, name)| args.settings.iter().map(move |setting| (data, name, *setting));
    let left = data.iter().zip(&args.data).flat_map(settings);
    let left: Vec<_> = left.filter(|(_, name, setting)| !is_found(&points, name, *setting)).collect();
    let mut progress = Progress::new(left.iter().map(|_| 1.0));
    for (data, name, setting) in left {
        let measured = measure_one(args, data, name, setting)?;
        measured.iter().try_for_each(|point| kept.add(&serde_json::to_value(point)?))?;
        points.extend(measured);
        write(args, &points)?;
        progress.done(1.0, &format!("{name}, {}", setting.name()));
    }
    write(args, &points)?;
    println!("{}", regret::tables(&points));
    Ok(())
}

fn measure_one(args: &Args, data: &Data, name: &str, setting: Setting) -> Result<Vec<Point>> {
    let mut rng = Rng::with_seed(args.seed);
    let keys = data.keys(args.n, &mut rng)?;
    let options = setting.options(args, data, keys.bytes(), keys.len());
    let comparing = comparing::measure(&keys, &mut rng);
    let rows = report::rows(&measure::all(&options, &keys, &mut rng)?, &comparing);
    let point = |row: &report::Row| Point {
        data: name.to_owned(),
        setting,
        layout: row.name(),
        search_kops: row.steps.search.kops,
        insert_kops: row.steps.insert.kops,
        scan_kops: row.steps.range.first().map_or(0.0, |speed| speed.kops),
        bytes: match setting.is_on_disk() {
            true => row.sizes.device_bytes as f64 / keys.len() as f64,
            false => row.sizes.page_bytes_per_key,
        },
    };
    Ok(rows.iter().map(point).collect())
}

fn write(args: &Args, points: &[Point]) -> Result<()> {
    for (name, svg) in draw::charts(&args.data, points) {
        std::fs::write(args.out.join(format!("{name}.svg")), svg)?;
    }
    let mut writer = csv::Writer::from_path(args.out.join("layouts.csv"))?;
    points.iter().try_for_each(|point| writer.serialize(point))?;
    writer.flush()?;
    Ok(std::fs::write(args.out.join("regret.txt"), regret::tables(points))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_measured_in_every_setting_and_drawn() {
        let folder = tempfile::tempdir().expect("a folder");
        let args = Args {
            data: vec!["urls".to_owned(), "integers".to_owned()],
            n: 2_000,
            layouts: "head/tail,plain/full".parse().expect("layouts"),
            settings: Setting::ALL.to_vec(),
            page_size: ByteSize::kib(8),
            out: folder.path().join("out"),
            repeat: 1,
            resume: false,
            seed: 1,
        };
        run(&args).expect("figures");
        let read = |name: &str| std::fs::read_to_string(args.out.join(name)).expect(name);
        assert_eq!(read("layouts.csv").lines().count(), 1 + 2 * 2 * Setting::ALL.len());
        assert!(read("urls.svg").contains("head/tail") && read("integers.svg").contains("<circle"));
        let regret = read("regret.txt");
        assert!(Setting::ALL.iter().all(|setting| regret.contains(&format!("\n{}\n", setting.name()))), "{regret}");
        assert_eq!(regret.matches("plain/full").count(), 1 + Setting::ALL.len());
        let lines = read("runs.jsonl").lines().count();
        run(&Args { resume: true, ..args.clone() }).expect("figures");
        assert_eq!(read("runs.jsonl").lines().count(), lines, "something was measured again");
        assert!(run(&Args { data: vec!["uris".to_owned()], ..args }).is_err());
    }
}
