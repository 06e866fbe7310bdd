//! `duramen-bench figures keys`: the figures and tables of the paper (seed 000) at a chosen scale, as CSV, as SVG, and as
//! one page that sets what the paper says beside what was found.

mod claims;
mod draw;
mod experiments;
mod page;
mod paper;
mod sources;

use crate::Result;
use experiments::{Experiment, Point};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;

/// The figures 8 to 26 and tables 3 to 6 of the study of B-tree compression: CSV, SVG, and a page with the paper's claims
/// beside what was found
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Keys of a set; the paper has 100 million
    #[arg(long, default_value_t = 200_000)]
    pub n: usize,
    /// The folder that everything is written into; it is made if need be
    #[arg(long, default_value = "figures-keys")]
    pub out: PathBuf,
    /// Only these, such as 9,12,table3 [default: all]
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Rounds; medians are shown
    #[arg(long, default_value_t = 1)]
    pub repeat: usize,
    /// Where random keys and orders begin
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Lines that stand for the paper's URLs [default: the paths of the files under /usr]
    #[arg(long, value_name = "FILE")]
    pub paths: Option<PathBuf>,
    /// Lines that stand for the paper's titles [default: the names of the files under /usr]
    #[arg(long, value_name = "FILE")]
    pub titles: Option<PathBuf>,
    /// The folder under which databases are made [default: the current one]
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// Measures, writes and says where the page is.
///
/// # Errors
/// A figure that there is none of, what measuring and writing say.
pub fn run(args: &Args) -> Result<()> {
    if args.n < 1_000 || args.repeat == 0 {
        return Err("--n must be at least 1000, --repeat at least 1".into());
    }
    let figures = paper::figures();
    if let Some(unknown) = args.only.iter().find(|id| !figures.iter().any(|figure| figure.id == id.as_str())) {
        let all: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
        return Err(format!("--only: {unknown:?} is none of {}", all.join(", ")).into());
    }
    std::fs::create_dir_all(&args.out)?;
    let mut measured: BTreeMap<Experiment, Vec<Point>> = BTreeMap::new();
    let mut sections = Vec::new();
    for figure in figures.iter().filter(|figure| args.only.is_empty() || args.only.iter().any(|id| id == figure.id)) {
        let points: &[Point] = match figure.experiment.map(|experiment| measured.entry(experiment)) {
            None => &[],
            Some(Entry::Occupied(points)) => points.into_mut(),
            Some(Entry::Vacant(place)) => {
                eprintln!("measuring {:?}", place.key());
                let points = experiments::measure(*place.key(), args)?;
                place.insert(points)
            }
        };
        let charts = draw::charts(figure, points);
        for (name, svg) in &charts {
            std::fs::write(args.out.join(format!("{name}.svg")), svg)?;
        }
        if !points.is_empty() {
            draw::csv(points, std::fs::File::create(args.out.join(format!("{}.csv", figure.name())))?)?;
        }
        sections.push(page::Section::new(figure, points, charts));
    }
    let path = args.out.join("index.html");
    std::fs::write(&path, page::html(args, &sections))?;
    println!("{}", path.display());
    Ok(())
}
