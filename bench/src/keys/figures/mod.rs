//! `duramen-bench figures keys`: the figures and tables of the paper ("Revisiting B-tree Compression", SIGMOD 2024) at
//! a chosen scale, as CSV, as SVG, and as one page that compares the claims of the paper with the results.

mod claims;
mod draw;
mod experiments;
mod page;
mod paper;
mod sources;

use crate::Result;
use crate::options::{choose, make_folder};
use experiments::{Experiment, Point};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;

/// The figures 8 to 26 and tables 3 to 6 of the study of B-tree compression: CSV, SVG, and a page that compares the
/// claims of the paper with the results
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Keys of a set. The paper has 100 million
    #[arg(long, default_value_t = 200_000)]
    pub n: usize,
    /// The folder for all output. It is created if it does not exist
    #[arg(long, default_value = "figures-keys")]
    pub out: PathBuf,
    /// Only these, such as 9,12,table3 [default: all]
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Rounds. The medians are shown
    #[arg(long, default_value_t = 1)]
    pub repeat: usize,
    /// The seed of random keys and orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Lines that replace the URLs of the paper [default: the paths of the files under /usr]
    #[arg(long, value_name = "FILE")]
    pub paths: Option<PathBuf>,
    /// Lines that replace the titles of the paper [default: the names of the files under /usr]
    #[arg(long, value_name = "FILE")]
    pub titles: Option<PathBuf>,
    /// The folder in which databases are created [default: the current one]
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// Measures, writes the output and prints the path of the page.
///
/// # Errors
/// An unknown figure, and errors of measuring and writing.
pub fn run(args: &Args) -> Result<()> {
    if args.n < 1_000 || args.repeat == 0 {
        return Err("--n must be at least 1000, --repeat at least 1".into());
    }
    let figures = choose(paper::figures(), |figure| figure.id, &args.only)?;
    make_folder(&args.out)?;
    let mut measured: BTreeMap<Experiment, Vec<Point>> = BTreeMap::new();
    let mut sections = Vec::new();
    for figure in &figures {
        let points: &[Point] = match measured.entry(figure.experiment) {
            Entry::Occupied(points) => points.into_mut(),
            Entry::Vacant(place) => {
                eprintln!("measuring {:?}", place.key());
                let points = experiments::measure(*place.key(), args)?;
                place.insert(points)
            }
        };
        let charts = draw::charts(figure, points);
        for (name, svg) in &charts {
            std::fs::write(args.out.join(format!("{name}.svg")), svg)?;
        }
        draw::csv(points, std::fs::File::create(args.out.join(format!("{}.csv", figure.name())))?)?;
        sections.push(page::section(figure, points, charts));
    }
    let path = args.out.join("index.html");
    std::fs::write(&path, page::html(args, &sections))?;
    println!("{}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_each_selected_figure_with_charts_and_results() {
        let folder = tempfile::tempdir().expect("a folder");
        let lines = folder.path().join("lines");
        let text: String = (0..1500).map(|i| format!("http://host{}/page/{i}\n", i % 7)).collect();
        std::fs::write(&lines, text).expect("a file");
        let only = ["9", "table3", "12", "17", "25", "26", "8", "10"].map(str::to_owned).to_vec();
        let args = Args {
            n: 1_000,
            out: folder.path().join("out"),
            only,
            repeat: 1,
            seed: 1,
            paths: Some(lines.clone()),
            titles: Some(lines),
            dir: Some(folder.path().to_owned()),
        };
        run(&args).expect("figures");
        let read = |name: &str| std::fs::read_to_string(args.out.join(name)).expect(name);
        let page = read("index.html");
        for expected in
            ["Figure 8.", "Figure 9.", "Figure 10.", "Table 3.", "Figure 12.", "Figure 17.", "Figure 25.", "Figure 26."]
        {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(!page.contains("NaN") && !page.contains("Figure 11."));
        assert_eq!(page.matches("<svg").count(), 4 + 4 + 4 + 4 + 3 + 1 + 3 + 1);
        assert_eq!(read("figure9.csv").lines().count(), 1 + 8);
        assert!(read("figure8.csv").contains("tail:450") && read("figure10b.svg").contains("pkb:8/full"));
        assert!(read("figure12b.svg").contains("head/tail") && read("figure26.svg").contains("TPC-H"));
        assert!(run(&Args { only: vec!["7".to_owned()], ..args }).is_err(), "there is no figure 7");
    }
}
