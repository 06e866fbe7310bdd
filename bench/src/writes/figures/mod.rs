//! `duramen-bench figures writes`: the figures and tables of the B-minus-tree paper at a small scale, as CSV, as SVG,
//! and as one page that sets what the paper says beside what was found.

mod claims;
mod draw;
mod paper;
mod runs;

use crate::Result;
use crate::options::make_folder;
use crate::page::{self, Section};
use paper::Figure;
use runs::Run;
use std::path::PathBuf;

/// The figures 1, 4 and 9 to 17 and tables 1 and 2 of the paper on the B-minus-tree: CSV, SVG, and a page with the
/// paper's claims beside what was found
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The folder that everything is written into; it is made if need be
    #[arg(long, default_value = "figures-writes")]
    pub out: PathBuf,
    /// Only these, such as 9,14,table2 [default: all]
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Databases of 3,000 records, to try the command: the cache holds most of them
    #[arg(long)]
    pub quick: bool,
    /// Databases that are measured at a time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Where random keys, values and orders begin
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Measures, writes and says where the page is.
///
/// # Errors
/// A figure that there is none of, what measuring and writing say.
pub fn run(args: &Args) -> Result<()> {
    let mut figures = paper::figures();
    if let Some(unknown) = args.only.iter().find(|id| !figures.iter().any(|figure| figure.id == id.as_str())) {
        let all: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
        return Err(format!("--only: {unknown:?} is none of {}", all.join(", ")).into());
    }
    figures.retain(|figure| args.only.is_empty() || args.only.iter().any(|id| id == figure.id));
    make_folder(&args.out)?;
    let runs: Vec<Run> = figures.iter().flat_map(|figure| figure.runs.iter().copied()).collect();
    let results = runs::measure(&runs, args)?;
    let mut sections = Vec::new();
    for figure in &figures {
        let charts = draw::charts(figure, &results);
        for (name, svg) in &charts {
            std::fs::write(args.out.join(format!("{name}.svg")), svg)?;
        }
        let file = std::fs::File::create(args.out.join(format!("{}.csv", page::name(figure.id))))?;
        draw::csv(&figure.runs, &results, file)?;
        sections.push(section(figure, &results, charts));
    }
    let path = args.out.join("index.html");
    std::fs::write(&path, page::html("Write amplification: the paper and Duramen", &about(args), &sections))?;
    println!("{}", path.display());
    Ok(())
}

fn section(figure: &Figure, results: &runs::Results, charts: Vec<(String, String)>) -> Section {
    let findings = figure.claims.iter().map(|claim| (claim.says, claims::ask(claim.asked, results))).collect();
    let Figure { id, title, note, .. } = *figure;
    Section { id, title, note, findings, table: draw::table(figure, results), charts }
}

/// The words above the figures.
fn about(args: &Args) -> String {
    let scale = match args.quick {
        true => "with 3,000 records, which says nothing of the paper's scale",
        false => "at a small scale, with as many leaves to a page of the cache",
    };
    format!(
        "Figures 1, 4 and 9 to 17 and tables 1 and 2 of <i>B-minus-tree: closing the B+-tree vs LSM-tree write \
         amplification gap</i>, made again {scale}; seed {}. <code>baseline</code> is the store <code>table</code> \
         that writes its page table after each flush of pages; <code>shadow</code> has no delta blocks; names such as \
         <code>2048,128,1</code> are <code>shadow</code> with delta blocks: threshold, bytes of a segment, blocks. \
         What the paper says of RocksDB is held against its numbers: <code>duramen-peers</code> measures RocksDB.",
        args.seed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_each_figure_that_was_asked_for_with_charts_and_verdicts() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let only = ["1", "table1", "11", "13", "15"].map(str::to_owned).to_vec();
        let args = Args { out: folder.path().join("out"), only, quick: true, jobs: 2, seed: 1 };
        run(&args).unwrap_or_else(|error| panic!("{error}"));
        let read = |name: &str| std::fs::read_to_string(args.out.join(name)).unwrap_or_else(|_| panic!("no {name}"));
        let page = read("index.html");
        for expected in ["Figure 1.", "Table 1.", "Figure 11.", "Figure 13.", "Figure 15."] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(!page.contains("NaN") && !page.contains("not measured") && !page.contains("Figure 9."));
        assert_eq!(page.matches("<svg").count(), 2 + 3 + 2 + 1);
        assert!(read("figure11-128-8k.svg").contains("2048,128,1 sparse"));
        assert!(read("figure13-128-8k-b.svg").contains("physical space"));
        assert_eq!(read("table1.csv").lines().count(), 1 + 2);
        let runs =
            |name: &str| paper::figures().iter().find(|figure| figure.id == name).map(|figure| figure.runs.len());
        assert_eq!(Some(read("figure15.csv").lines().count() - 1), runs("15"));
        assert!(run(&Args { only: vec!["2".to_owned()], ..args }).is_err(), "figure 2 is a drawing");
    }
}
