//! `duramen-bench figures selective`: the figures and tables of the paper on selective compression, as CSV, as SVG, and
//! as one page that compares the paper's claims and guidelines with the results.

mod claims;
mod draw;
mod measure;
mod paper;
mod runs;

use crate::Result;
use crate::claims::{Results, ask};
use crate::options::{choose, make_folder};
use crate::page::{self, Section};
use paper::Figure;
use runs::Run;
use std::path::PathBuf;

/// Figures 1 to 5, tables 2 to 6 and the guidelines of the paper on selective compression: CSV, SVG, and a page that
/// compares the paper's claims with the results
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The folder for all output; it is created if it does not exist
    #[arg(long, default_value = "figures-selective")]
    pub out: PathBuf,
    /// Only these, such as 1,5,table4,guidelines [default: all]
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Use two tiny warehouses, to try the command
    #[arg(long)]
    pub quick: bool,
    /// Continue an interrupted call with the same --out: do not measure the runs in its runs.jsonl again
    #[arg(long)]
    pub resume: bool,
    /// The number of warehouses. The paper has 1,000
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub warehouses: u32,
    /// Seconds of the virtual clock that are measured in each run
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: u32,
    /// Seconds before that
    #[arg(long, default_value_t = 20)]
    pub warmup: u32,
    /// Rounds. The medians are shown
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// The seed of random data and transactions
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
    let runs = figures.iter().flat_map(Figure::runs).collect();
    let mut written = 0;
    measure::measure(&runs, args, |results| {
        let is_complete = |figure: &&Figure| figure.runs().iter().all(|run| results.contains_key(run));
        let complete: Vec<&Figure> = figures.iter().filter(is_complete).collect();
        if complete.len() > written || results.len() == runs.len() {
            written = complete.len();
            write(&complete, results, args)?;
        }
        Ok(())
    })?;
    println!("{}", page_of(args).display());
    Ok(())
}

fn page_of(args: &Args) -> PathBuf {
    args.out.join("index.html")
}

/// Writes the figures and the page that contains them.
fn write(figures: &[&Figure], results: &Results<Run>, args: &Args) -> Result<()> {
    let mut sections = Vec::new();
    for figure in figures {
        let charts = draw::charts(figure, results);
        for (name, svg) in &charts {
            std::fs::write(args.out.join(format!("{name}.svg")), svg)?;
        }
        let file = std::fs::File::create(args.out.join(format!("{}.csv", page::name(figure.id))))?;
        draw::csv(figure, results, file)?;
        let findings = figure.claims.iter().map(|claim| (claim.says, ask(&claim.asked, results))).collect();
        let Figure { id, title, note, .. } = **figure;
        sections.push(Section { id, title, note, findings, table: draw::table(figure, results), charts });
    }
    Ok(std::fs::write(
        page_of(args),
        page::html("Selective compression: the paper and Duramen", &about(args), &sections),
    )?)
}

/// Returns the text above the figures.
fn about(args: &Args) -> String {
    let scale = match args.quick {
        true => "with two tiny warehouses, which is far from the paper's conditions".to_owned(),
        false => format!("with {} warehouses (the paper has 1,000)", args.warehouses),
    };
    format!(
        "Figures 1 to 5 and tables 2 to 6 of <i>A Selective Compression Strategy for Performance Improvement of Database \
         Compression</i>, measured {scale} and a cache of 1/45 of the data, as in the paper. Medians of {} rounds from seed \
         {}.</p>\n<p>The clock is virtual: the time of a phase is that of the busiest resource, which is the device (a model that is \
         fitted to the paper's tables 2 and 3, with 32 calls in the queue), the four processors, or the one transaction that writes \
         at a time. The counts of one run give the times of both devices. A is the strategy <i>all</i>, S is <i>selective</i> with \
         a delta of 0.1, N is no compression. SSD and HDD are the paper's devices.",
        args.repeat, args.seed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_and_an_interrupted_call_goes_on() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let only = ["table2", "table4", "2", "guidelines"].map(str::to_owned).to_vec();
        let out = folder.path().join("out");
        let args =
            Args { out, only, quick: true, resume: false, warehouses: 1, seconds: 1, warmup: 0, repeat: 1, seed: 1 };
        run(&args).unwrap_or_else(|error| panic!("{error}"));
        let read = |name: &str| std::fs::read_to_string(args.out.join(name)).unwrap_or_else(|_| panic!("no {name}"));
        let page = read("index.html");
        for expected in ["Table 2.", "Table 4.", "Figure 2.", "Guidelines.", "5: it does not save more"] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(!page.contains("NaN") && !page.contains("Figure 1.") && !page.contains("not measured</td>"), "{page}");
        assert_eq!(page.matches("<svg").count(), 2 + 3 + 3);
        assert!(read("table2.csv").contains("\"read, MB/s\",SSD,") && read("figure2-c.svg").contains("HDD S"));
        assert_eq!(read("table4.csv").lines().count(), 1 + 2 * 9 + 7);
        // Keeps the first of eight results, and the beginning of another one.
        let before = read("runs.jsonl");
        assert_eq!(before.lines().count(), 8);
        let half = before.find('\n').unwrap_or_default() + 100;
        std::fs::write(args.out.join("runs.jsonl"), &before[..half]).unwrap_or_else(|error| panic!("{error}"));
        let resumed = Args { resume: true, only: vec!["table4".to_owned()], ..args.clone() };
        run(&resumed).unwrap_or_else(|error| panic!("{error}"));
        let after = read("runs.jsonl");
        assert_eq!(after.lines().next(), before.lines().next());
        assert_eq!(after.lines().count(), 1 + 3);
        run(&resumed).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read("runs.jsonl"), after, "a run was measured again");
        assert!(run(&Args { only: vec!["6".to_owned()], ..args }).is_err(), "there is no figure 6");
    }
}
