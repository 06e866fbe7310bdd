//! `duramen-bench figures writes`: the figures and tables of the B-minus-tree paper at a small scale, as CSV, as SVG,
//! and as one page that compares the paper's claims with the results.

mod claims;
mod draw;
mod measure;
mod paper;
mod peers;
mod runs;

pub use peers::{Peer, PeerRun, peer_runs};

use crate::Result;
use crate::claims::ask;
use crate::options::{choose, make_folder};
use crate::page::{self, Section};
use measure::Results;
use paper::Figure;
use runs::Run;
use std::path::PathBuf;

/// Figures 1, 4 and 9 to 17 and tables 1 and 2 of the B-minus-tree paper: CSV, SVG, and a page that compares the
/// paper's claims with the results
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The folder for all output; it is created if it does not exist
    #[arg(long, default_value = "figures-writes")]
    pub out: PathBuf,
    /// Only these figures and tables, such as 9,14,table2 [default: all]
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Use databases of 3,000 records, to try the command: the cache holds most of the records
    #[arg(long)]
    pub quick: bool,
    /// Results of other stores: the file that `duramen-peers figures writes` has written
    #[arg(long, value_name = "FILE")]
    pub peers: Option<PathBuf>,
    /// Continue an interrupted call with the same --out: do not measure the runs in its runs.jsonl again
    #[arg(long)]
    pub resume: bool,
    /// The number of databases that are measured at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// The seed of random keys, values and orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Measures the runs, writes each figure as soon as its runs are measured, and prints the path of the page.
///
/// # Errors
/// Errors for an unknown figure, and errors of measuring and writing.
pub fn run(args: &Args) -> Result<()> {
    let figures = choose(paper::figures(), |figure| figure.id, &args.only)?;
    make_folder(&args.out)?;
    let runs: Vec<Run> = figures.iter().flat_map(|figure| figure.runs.iter().copied()).collect();
    let mut written = 0;
    measure::measure(&runs, args, |results| {
        let complete: Vec<&Figure> = figures.iter().filter(|figure| is_complete(figure, results)).collect();
        if complete.len() > written {
            written = complete.len();
            write(&complete, results, args)?;
        }
        Ok(())
    })?;
    println!("{}", page_of(args).display());
    Ok(())
}

/// Returns true if all runs of Duramen are measured. Runs of other stores may be missing.
fn is_complete(figure: &Figure, results: &Results) -> bool {
    let peer = |run: &Run| matches!(run.population.store, runs::Store::Peer(_));
    figure.runs.iter().all(|run| peer(run) || results.contains_key(run))
}

fn page_of(args: &Args) -> PathBuf {
    args.out.join("index.html")
}

/// Writes the figures and the page that contains them.
fn write(figures: &[&Figure], results: &Results, args: &Args) -> Result<()> {
    let mut sections = Vec::new();
    for figure in figures {
        let charts = draw::charts(figure, results);
        for (name, svg) in &charts {
            std::fs::write(args.out.join(format!("{name}.svg")), svg)?;
        }
        let file = std::fs::File::create(args.out.join(format!("{}.csv", page::name(figure.id))))?;
        draw::csv(&figure.runs, results, file)?;
        sections.push(section(figure, results, charts));
    }
    Ok(std::fs::write(
        page_of(args),
        page::html("Write amplification: the paper and Duramen", &about(args), &sections),
    )?)
}

fn section(figure: &Figure, results: &Results, charts: Vec<(String, String)>) -> Section {
    let findings = figure.claims.iter().map(|claim| (claim.says, ask(&claim.asked, results))).collect();
    let Figure { id, title, note, .. } = *figure;
    Section { id, title, note, findings, table: draw::table(figure, results), charts }
}

/// Returns the text above the figures.
fn about(args: &Args) -> String {
    let scale = match args.quick {
        true => "with 3,000 records, which is far from the paper's conditions",
        false => "with small databases, which have as many leaves for each page of the cache as the paper's",
    };
    let peers = match &args.peers {
        Some(_) => "<code>duramen-peers</code> measured RocksDB and WiredTiger.",
        None => {
            "RocksDB and WiredTiger were not measured: <code>duramen-peers figures writes</code> measures them, and \
             <code>--peers</code> takes the results."
        }
    };
    format!(
        "Figures 1, 4 and 9 to 17 and tables 1 and 2 of <i>B-minus-tree: closing the B+-tree vs LSM-tree write \
         amplification gap on storage with transparent compression</i>, measured {scale}. Seed: {}. The drive is a \
         model: it compresses each block of 4 KiB with zlib, and counts the bytes.</p>\n<ul>\
         <li><code>table</code>: a B-tree that writes pages to new places, and its page table at checkpoints.</li>\
         <li><code>baseline</code>: the same, but it writes the page table after each flush of pages. This is the \
         paper's baseline.</li>\
         <li><code>shadow</code>: the page store <code>shadow</code> without delta blocks. Each page has two fixed places, \
         which are written in turn.</li>\
         <li><code>delta 2048,128,1</code>: the B-minus-tree, which is the page store <code>shadow</code> with delta \
         blocks. The numbers are the threshold in bytes, the bytes of a segment, and the delta blocks of a page. The \
         paper has 2048,128,1 and 2048,256,1; 700,32,1 is Duramen's default. Where a claim says \
         &ldquo;the B-minus-tree&rdquo;, it refers to 2048,128,1.</li></ul>\n<p>{peers}",
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
        let args =
            Args { out: folder.path().join("out"), only, quick: true, peers: None, resume: false, jobs: 2, seed: 1 };
        run(&args).unwrap_or_else(|error| panic!("{error}"));
        let read = |name: &str| std::fs::read_to_string(args.out.join(name)).unwrap_or_else(|_| panic!("no {name}"));
        let page = read("index.html");
        for expected in ["Figure 1.", "Table 1.", "Figure 11.", "Figure 13.", "Figure 15."] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(!page.contains("NaN") && !page.contains("Figure 9."));
        let not_measured = |line: &&str| line.contains("not measured</td>");
        assert!(page.lines().filter(not_measured).all(|line| line.contains("RocksDB") || line.contains("WiredTiger")));
        assert!(page.contains("figures writes</code> measures them"), "there are results of other stores");
        assert_eq!(page.matches("<svg").count(), 2 + 3 + 2 + 1);
        assert!(read("figure11-128-8k.svg").contains("delta 2048,128,1"));
        assert!(read("figure13-128-8k-b.svg").contains("physical bytes for each byte of records"));
        assert_eq!(read("table1.csv").lines().count(), 1 + 2);
        assert_eq!(read("figure15.csv").lines().count(), 1 + 5 * 3, "five stores with three numbers of threads");
        assert!(run(&Args { only: vec!["2".to_owned()], ..args }).is_err(), "figure 2 is a drawing");
    }

    #[test]
    fn an_interrupted_call_goes_on_and_other_stores_are_drawn_and_asked() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let (out, file) = (folder.path().join("out"), folder.path().join("peers.jsonl"));
        let results: Vec<String> = peer_runs().iter().map(|run| peers::tests::result(run, 8192).to_string()).collect();
        std::fs::write(&file, results.join("\n") + "\n").unwrap_or_else(|error| panic!("{error}"));
        let only = vec!["table1".to_owned(), "4".to_owned()];
        let args = Args { out, only, quick: true, peers: Some(file.clone()), resume: false, jobs: 1, seed: 1 };
        run(&args).unwrap_or_else(|error| panic!("{error}"));
        let read = |name: &str| std::fs::read_to_string(args.out.join(name)).unwrap_or_else(|_| panic!("no {name}"));
        let (page, chart) = (read("index.html"), read("figure4-128-8k.svg"));
        assert!(!page.contains("not measured") && page.contains("duramen-peers</code> measured"), "{page}");
        assert!(chart.contains("WiredTiger") && read("figure4.csv").contains("RocksDB,128,8192"), "{chart}");
        // Keeps the first of two results and the beginning of the other one.
        let before = read("runs.jsonl");
        let half = before.find('\n').unwrap_or_default() + 100;
        std::fs::write(args.out.join("runs.jsonl"), &before[..half]).unwrap_or_else(|error| panic!("{error}"));
        run(&Args { resume: true, ..args.clone() }).unwrap_or_else(|error| panic!("{error}"));
        let after = read("runs.jsonl");
        assert_eq!(after.lines().next(), before.lines().next(), "the first run was measured again");
        assert_eq!(after.lines().count(), before.lines().count());
        std::fs::write(&file, "{}\n").unwrap_or_else(|error| panic!("{error}"));
        assert!(run(&args).is_err(), "the file has no result of these figures");
    }
}
