//! The figures and tables of the paper ("Revisiting B-tree Compression", SIGMOD 2024) and its claims about them, in our
//! words. The numbers are from its text, which does not contain the curves. Nothing is measured here.

use super::claims::{Claim, Measure, Test};
use super::experiments::Experiment;

/// The form of a figure.
#[derive(Clone, Copy)]
pub(super) enum Sort {
    /// A line for each layout over runs that differ in one parameter.
    Series { scale: &'static str, measures: &'static [Measure] },
    /// A bar for each layout.
    Overall { measures: &'static [Measure] },
    /// A bar for each layout of each set of keys.
    Sets { measures: &'static [Measure] },
    /// Numbers only.
    Table { measures: &'static [Measure] },
    /// The distribution of the lengths of keys.
    Lengths,
    /// The distribution of keys over all possible keys.
    Spread,
}

impl Sort {
    /// The measures that the figure shows.
    pub(super) fn measures(self) -> &'static [Measure] {
        match self {
            Sort::Series { measures, .. }
            | Sort::Overall { measures }
            | Sort::Sets { measures }
            | Sort::Table { measures } => measures,
            Sort::Lengths | Sort::Spread => &[],
        }
    }
}

/// A figure or table of the paper.
pub(super) struct Figure {
    /// The number of the figure. For a table `table` and its number.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The differences from the paper.
    pub(super) note: &'static str,
    pub(super) experiment: Experiment,
    pub(super) sort: Sort,
    pub(super) claims: Vec<Claim>,
}

impl Figure {
    /// The name of its files and of its anchor on the page.
    pub(super) fn name(&self) -> String {
        crate::page::name(self.id)
    }
}

const PLAIN: &str = "plain/full";
const HEAD: &str = "head/full";
const TAIL: &str = "plain/tail";
const BOTH: &str = "head/tail";
const DB2: &str = "db2/full";
const WIREDTIGER: &str = "wiredtiger/tail";
const MYISAM: &str = "myisam/full";
const PKB: &str = "pkb/full";

const SPEEDS_AND_SIZE: &[Measure] = &[Measure::Insert, Measure::Search, Measure::Compression];
const OVERALL: &[Measure] = &[Measure::Insert, Measure::Search, Measure::KeptBytes, Measure::Compression];
const SHAPE: &[Measure] = &[Measure::Height, Measure::Fanout, Measure::Pages, Measure::InnerPages];
const RANGES: &[Measure] = &[Measure::Insert, Measure::Search, Measure::Fanout, Measure::Pages];
const SCANS: &[Measure] = &[Measure::Range10, Measure::Range100];
const REAL: &[Measure] = &[Measure::Insert, Measure::Search, Measure::Compression];

fn times(says: &'static str, measure: Measure, layout: &'static str, to: &'static str, paper: f64) -> Claim {
    Claim { says, test: Test::Times { measure, layout, to, paper } }
}

fn more(says: &'static str, measure: Measure, layout: &'static str, than: &'static str) -> Claim {
    Claim { says, test: Test::More { measure, layout, than } }
}

fn most(says: &'static str, measure: Measure, layouts: &'static [&'static str]) -> Claim {
    Claim { says, test: Test::Most { measure, layouts } }
}

fn trend(says: &'static str, measure: Measure, layout: &'static str, to: Option<&'static str>, grows: bool) -> Claim {
    Claim { says, test: Test::Trend { measure, layout, to, grows } }
}

fn flat(says: &'static str, measure: Measure, layout: &'static str) -> Claim {
    Claim { says, test: Test::Flat { measure, layout } }
}

fn about(says: &'static str, measure: Measure, layout: &'static str, run: usize, paper: f64) -> Claim {
    Claim { says, test: Test::About { measure, layout, run, paper } }
}

/// All figures and tables, in the order of the paper.
pub(super) fn figures() -> Vec<Figure> {
    let parts = [
        in_memory(),
        shapes(),
        on_disk(),
        by_keys(),
        by_pages(),
        by_contents(),
        scans(),
        scans_on_disk(),
        real(),
        features(),
    ];
    parts.into_iter().flatten().collect()
}

/// Radii of a sixth, and much smaller and larger ones.
const SIXTH: &str = "plain/tail";
const NARROW: &str = "plain/tail:25";
const WIDE: &str = "plain/tail:450";

fn in_memory() -> Vec<Figure> {
    use Measure::{Compression, Fanout, Insert, Pages, Search};
    vec![
        Figure {
            id: "8",
            title: "Tail compression over split ranges",
            note: "Plain pages of 512 bytes; the radius is in thousandths of a page; `tail` is the default, a sixth.",
            experiment: Experiment::Radii,
            sort: Sort::Overall { measures: RANGES },
            claims: vec![
                more("A narrow range leaves separators long", Fanout, SIXTH, NARROW),
                more("A range too wide splits unevenly: more pages", Pages, WIDE, SIXTH),
                more("which slows searches", Search, SIXTH, WIDE),
                more("and inserts", Insert, SIXTH, WIDE),
            ],
        },
        Figure {
            id: "9",
            title: "Overall, in memory",
            note: "Pages of 512 bytes, keys of 32 digits.",
            experiment: Experiment::Memory,
            sort: Sort::Overall { measures: OVERALL },
            claims: vec![
                most("Only tail and head+tail insert faster than all others", Insert, &[TAIL, BOTH]),
                times("WiredTiger inserts 49.4 % slower than plain", Insert, WIREDTIGER, PLAIN, 0.506),
                times("MyISAM inserts 12.1 % slower", Insert, MYISAM, PLAIN, 0.879),
                times("PkB inserts 16.4 % slower", Insert, PKB, PLAIN, 0.836),
                times("Head+tail searches 40.7 % faster than plain", Search, BOTH, PLAIN, 1.407),
                times("Head searches 5.7 % faster", Search, HEAD, PLAIN, 1.057),
                times("Tail searches 27.2 % faster", Search, TAIL, PLAIN, 1.272),
                more("WiredTiger searches slower than plain", Search, PLAIN, WIREDTIGER),
                more("MyISAM searches a little faster than plain", Search, MYISAM, PLAIN),
                more("DB2 searches slower than head", Search, HEAD, DB2),
                most("Head+tail and WiredTiger save the most space", Compression, &[BOTH, WIREDTIGER]),
                about("Head+tail's ratio is 1.27", Compression, BOTH, 0, 1.27),
                more("PkB takes more room than plain", Compression, PLAIN, PKB),
                more("DB2 takes more room than head here", Compression, HEAD, DB2),
            ],
        },
    ]
}

fn shapes() -> Vec<Figure> {
    use Measure::{Fanout, Height, InnerPages, Pages};
    vec![Figure {
        id: "table3",
        title: "The trees of the default setting",
        note: "The paper's trees have 100 million keys: they are higher, but the proportions can be compared.",
        experiment: Experiment::Memory,
        sort: Sort::Overall { measures: SHAPE },
        claims: vec![
            about("Plain has 9.27 children a page", Fanout, PLAIN, 0, 9.27),
            about("Head 10.64", Fanout, HEAD, 0, 10.64),
            about("Tail 28.51", Fanout, TAIL, 0, 28.51),
            about("Head+tail 42.87", Fanout, BOTH, 0, 42.87),
            about("WiredTiger 41.45", Fanout, WIREDTIGER, 0, 41.45),
            about("MyISAM 9.92", Fanout, MYISAM, 0, 9.92),
            about("PkB 8.56", Fanout, PKB, 0, 8.56),
            about("DB2 9.61", Fanout, DB2, 0, 9.61),
            more("Tail separators make the tree lower", Height, PLAIN, BOTH),
            times("Head+tail has 0.74 times plain's pages", Pages, BOTH, PLAIN, 0.737),
            times("and 0.16 times its inner pages", InnerPages, BOTH, PLAIN, 0.159),
            times("WiredTiger 0.83 times its pages", Pages, WIREDTIGER, PLAIN, 0.832),
            times("PkB 1.09 times", Pages, PKB, PLAIN, 1.094),
        ],
    }]
}

fn on_disk() -> Vec<Figure> {
    use Measure::{Compression, Height, Pages, Search};
    vec![
        Figure {
            id: "10",
            title: "Lengths of PkB's partial keys",
            note: "Pages of 4 KiB with whole keys, as in figure 11; `pkb:5` has partial keys of 5 bytes.",
            experiment: Experiment::Parts,
            sort: Sort::Overall { measures: RANGES },
            claims: vec![
                more("Searches are faster with 4 bytes than with 1", Search, "pkb:4/full", "pkb:1/full"),
                more("and slower again with 8 than with 5", Search, "pkb:5/full", "pkb:8/full"),
                more("Each byte more takes pages", Pages, "pkb:8/full", "pkb:1/full"),
            ],
        },
        Figure {
            id: "11",
            title: "Overall, on disk",
            note: "Pages of 4 KiB in a file that the operating system may cache; an eighth of the bytes of the keys fits in the engine's own \
                   cache, which gives up leaves before inner pages. PkB keeps whole keys in its pages, so that it has one trip to the disk like all others.",
            experiment: Experiment::Disk,
            sort: Sort::Overall { measures: OVERALL },
            claims: vec![
                more("Head+tail searches faster than plain", Search, BOTH, PLAIN),
                more("MyISAM searches faster than PkB", Search, MYISAM, PKB),
                times("Tail lowers the tree from 5 levels to 4", Height, TAIL, PLAIN, 0.8),
                times("MyISAM saves as much as head", Compression, MYISAM, HEAD, 1.0),
                times("DB2 saves as much as head", Compression, DB2, HEAD, 1.0),
            ],
        },
    ]
}

/// A figure of speeds and sizes over runs that differ in one parameter.
fn series(
    id: &'static str,
    title: &'static str,
    note: &'static str,
    experiment: Experiment,
    scale: &'static str,
    claims: Vec<Claim>,
) -> Figure {
    let sort = Sort::Series { scale, measures: SPEEDS_AND_SIZE };
    Figure { id, title, note, experiment, sort, claims }
}

fn by_keys() -> Vec<Figure> {
    use Measure::{Compression, InnerShare, Search};
    vec![
        series(
            "12",
            "Number of keys",
            "",
            Experiment::Counts,
            "keys",
            vec![
                trend("The more keys, the more head saves", Compression, HEAD, None, true),
                trend("so head+tail", Compression, BOTH, None, true),
                trend("so MyISAM", Compression, MYISAM, None, true),
                trend("so WiredTiger", Compression, WIREDTIGER, None, true),
                trend("so DB2", Compression, DB2, None, true),
                flat("Tail's ratio hardly changes", Compression, TAIL),
                trend("Tail's inner pages become more (3.06 to 3.51 %)", InnerShare, TAIL, None, true),
                trend("Head+tail's lead over MyISAM grows in searches", Search, BOTH, Some(MYISAM), true),
            ],
        ),
        series(
            "13",
            "Length of keys",
            "",
            Experiment::Lengths,
            "bytes of a key",
            vec![
                trend("The longer keys are, the less head saves", Compression, HEAD, None, false),
                trend("and the more tail does", Compression, TAIL, None, true),
                trend("MyISAM comes nearer to head in searches", Search, MYISAM, Some(HEAD), true),
                trend("PkB's overhead becomes less", Compression, PKB, Some(PLAIN), true),
            ],
        ),
    ]
}

fn by_pages() -> Vec<Figure> {
    use Measure::{Compression, Fanout, Height, InnerShare, Search};
    vec![
        series(
            "14",
            "Page size in memory",
            "",
            Experiment::MemoryPages,
            "bytes of a page",
            vec![
                trend("The larger pages are, the less head saves", Compression, HEAD, None, false),
                trend("MyISAM saves more", Compression, MYISAM, None, true),
                trend("DB2 overtakes head in space", Compression, DB2, Some(HEAD), true),
                trend("Tail's lead over plain shrinks in searches", Search, TAIL, Some(PLAIN), false),
                trend("MyISAM falls back behind plain in searches", Search, MYISAM, Some(PLAIN), false),
            ],
        ),
        Figure {
            id: "table4",
            title: "Tail separators under page sizes",
            note: "",
            experiment: Experiment::MemoryPages,
            sort: Sort::Table { measures: &[Height, Fanout, InnerShare] },
            claims: vec![
                about("At 256 bytes tail has 14.1 children a page", Fanout, TAIL, 0, 14.0807),
                about("at 512 bytes 28.5", Fanout, TAIL, 1, 28.5119),
                about("at 1 KiB 60.8", Fanout, TAIL, 2, 60.8383),
                about("at 2 KiB 134.8", Fanout, TAIL, 3, 134.845),
                about("and 7.1 % inner pages at 256 bytes", InnerShare, TAIL, 0, 7.102),
                about("3.5 % at 512", InnerShare, TAIL, 1, 3.507),
                about("1.6 % at 1 KiB", InnerShare, TAIL, 2, 1.644),
                about("0.74 % at 2 KiB", InnerShare, TAIL, 3, 0.740),
            ],
        },
        series(
            "15",
            "Page size on disk",
            "The paper begins at 2 KiB; a file of the engine has pages of 4 KiB at least.",
            Experiment::DiskPages,
            "bytes of a page",
            vec![
                trend("Larger pages search slower: plain", Search, PLAIN, None, false),
                trend("head+tail", Search, BOTH, None, false),
                trend("MyISAM", Search, MYISAM, None, false),
                about("Prefixes save a factor of about 1.2", Compression, HEAD, 0, 1.2),
                flat("whatever the page size", Compression, HEAD),
            ],
        ),
    ]
}

fn by_contents() -> Vec<Figure> {
    use Measure::{Compression, Insert, Search};
    vec![
        series(
            "16",
            "Domain of a byte",
            "Pages of 1 KiB.",
            Experiment::Domains,
            "different bytes",
            vec![
                trend("The more bytes there are, the less head saves", Compression, HEAD, None, false),
                trend("and the less MyISAM", Compression, MYISAM, None, false),
                flat("Tail saves the same", Compression, TAIL),
                trend("Plain searches a little faster", Search, PLAIN, None, true),
            ],
        ),
        Figure {
            id: "17",
            title: "Keys under scales",
            note: "Normally distributed numbers of 32 digits; those of the paper are smaller.",
            experiment: Experiment::Scales,
            sort: Sort::Spread,
            claims: Vec::new(),
        },
        series(
            "18",
            "Scale of a normal distribution",
            "",
            Experiment::Scales,
            "standard deviation",
            vec![
                trend("The wider keys are spread, the less MyISAM saves", Compression, MYISAM, None, false),
                trend("and the less its lead over head is", Compression, MYISAM, Some(HEAD), false),
                trend("MyISAM comes down to plain in searches", Search, MYISAM, Some(PLAIN), false),
                trend("Tail's lead over plain grows", Search, TAIL, Some(PLAIN), true),
                trend("DB2 inserts faster than plain only where keys are near", Insert, DB2, Some(PLAIN), false),
            ],
        ),
    ]
}

fn scans() -> Vec<Figure> {
    use Measure::{Range10, Range100};
    vec![Figure {
        id: "table5",
        title: "Scans, in memory",
        note: "The next table is the other half of this one.",
        experiment: Experiment::Memory,
        sort: Sort::Overall { measures: SCANS },
        claims: vec![
            times("Tail scans 10 entries 1.18 times as often as plain", Range10, TAIL, PLAIN, 1.178),
            times("head 0.88", Range10, HEAD, PLAIN, 0.882),
            times("head+tail 1.01", Range10, BOTH, PLAIN, 1.013),
            times("WiredTiger 0.56", Range10, WIREDTIGER, PLAIN, 0.558),
            times("MyISAM 0.86", Range10, MYISAM, PLAIN, 0.859),
            times("DB2 0.81", Range10, DB2, PLAIN, 0.808),
            times("Tail scans 100 entries 1.15 times as often", Range100, TAIL, PLAIN, 1.153),
            times("head 0.97", Range100, HEAD, PLAIN, 0.970),
            times("head+tail 1.00", Range100, BOTH, PLAIN, 0.995),
            times("WiredTiger 0.66", Range100, WIREDTIGER, PLAIN, 0.660),
            times("MyISAM 0.83", Range100, MYISAM, PLAIN, 0.829),
            times("DB2 1.10", Range100, DB2, PLAIN, 1.104),
        ],
    }]
}

fn scans_on_disk() -> Vec<Figure> {
    use Measure::{Range10, Range100};
    vec![Figure {
        id: "table5-disk",
        title: "Scans, on disk",
        note: "Like figure 11. PkB keeps whole keys in its pages here; in the paper it reads each key from another place.",
        experiment: Experiment::Disk,
        sort: Sort::Overall { measures: SCANS },
        claims: vec![
            times("Tail scans 10 entries 1.01 times as often as plain", Range10, TAIL, PLAIN, 1.012),
            times("head 0.78", Range10, HEAD, PLAIN, 0.782),
            times("head+tail 0.82", Range10, BOTH, PLAIN, 0.822),
            times("WiredTiger 0.75", Range10, WIREDTIGER, PLAIN, 0.753),
            times("MyISAM 0.85", Range10, MYISAM, PLAIN, 0.853),
            times("PkB 0.11", Range10, PKB, PLAIN, 0.111),
            times("DB2 0.74", Range10, DB2, PLAIN, 0.736),
            times("Tail scans 100 entries 1.02 times as often", Range100, TAIL, PLAIN, 1.021),
            times("head 0.60", Range100, HEAD, PLAIN, 0.598),
            times("head+tail 0.64", Range100, BOTH, PLAIN, 0.640),
            times("WiredTiger 0.61", Range100, WIREDTIGER, PLAIN, 0.606),
            times("MyISAM 0.66", Range100, MYISAM, PLAIN, 0.658),
            times("PkB 0.10", Range100, PKB, PLAIN, 0.096),
            times("DB2 0.58", Range100, DB2, PLAIN, 0.576),
        ],
    }]
}

/// A figure of one set of real keys.
fn set(
    id: &'static str,
    title: &'static str,
    note: &'static str,
    experiment: Experiment,
    claims: Vec<Claim>,
) -> Figure {
    Figure { id, title, note, experiment, sort: Sort::Overall { measures: REAL }, claims }
}

fn real() -> Vec<Figure> {
    use Measure::{Compression, Search};
    let best = || {
        vec![
            most("Head+tail searches fastest", Search, &[BOTH]),
            more("MyISAM searches faster than plain", Search, MYISAM, PLAIN),
        ]
    };
    let urls = || {
        vec![
            more("MyISAM saves more than head", Compression, MYISAM, HEAD),
            more("so does WiredTiger", Compression, WIREDTIGER, HEAD),
            more("Head+tail searches faster than WiredTiger", Search, BOTH, WIREDTIGER),
            more("and faster than plain", Search, BOTH, PLAIN),
        ]
    };
    let mut spam = urls();
    spam.push(more("DB2 saves less than head", Compression, HEAD, DB2));
    vec![
        set("19", "TPC-H's LINEITEM, in memory", "Pages of 1 KiB.", Experiment::TpchMemory, best()),
        set("20", "TPC-H's LINEITEM, on disk", "Pages of 4 KiB.", Experiment::TpchDisk, best()),
        set("21", "WEBSPAM-UK2007", "A stand-in; pages of 4 KiB.", Experiment::Paths, spam),
        set("22", "MemeTracker URLs", "The same stand-in as for figure 21.", Experiment::Paths, urls()),
        set(
            "23",
            "WikiTitles",
            "A stand-in; pages of 1 KiB.",
            Experiment::Titles,
            vec![
                times("Tail separators make no great difference", Compression, TAIL, PLAIN, 1.0),
                more("MyISAM saves more than plain", Compression, MYISAM, PLAIN),
                more("Head+tail searches faster than plain", Search, BOTH, PLAIN),
            ],
        ),
    ]
}

fn features() -> Vec<Figure> {
    use Measure::{ComparedBytes, ComparingShare, Compression, Fanout, Height, Search};
    vec![
        Figure {
            id: "24",
            title: "MyISAM beside plain on real sets",
            note: "Pages of 1 KiB.",
            experiment: Experiment::RealSets,
            sort: Sort::Sets { measures: &[Search] },
            claims: vec![times("On TPC-H MyISAM searches faster than plain", Search, MYISAM, PLAIN, 1.1)],
        },
        Figure {
            id: "25",
            title: "What real keys are like",
            note: "Bytes compared: those that a binary search of all keys needs to distinguish two keys, on average. \
                   Comparing: the time which that takes where every key is near, of a search in the plain tree.",
            experiment: Experiment::RealSets,
            sort: Sort::Sets { measures: &[Compression, ComparedBytes, ComparingShare] },
            claims: vec![
                about("TPC-H's rows are told apart in 8.92 bytes", ComparedBytes, PLAIN, 2, 8.92),
                about("URLs (MemeTracker) in 25.67", ComparedBytes, PLAIN, 1, 25.67),
                about("Comparing takes 62.5 % of a search in TPC-H", ComparingShare, PLAIN, 2, 62.5),
                about("and 71.2 % in URLs", ComparingShare, PLAIN, 1, 71.2),
            ],
        },
        Figure {
            id: "26",
            title: "Lengths of real keys",
            note: "The percentage of the keys with at most each length.",
            experiment: Experiment::RealSets,
            sort: Sort::Lengths,
            claims: Vec::new(),
        },
        Figure {
            id: "table6",
            title: "Plain trees of real sets",
            note: "For replacements only the order can be compared.",
            experiment: Experiment::RealSets,
            sort: Sort::Table { measures: &[Fanout, Height, Measure::Pages, Measure::LeafEntries] },
            claims: vec![
                trend("Titles have more children a page than TPC-H's rows (57 to 14)", Fanout, PLAIN, None, false),
                trend("and lower trees (4 to 6)", Height, PLAIN, None, true),
            ],
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::args::Layouts;

    #[test]
    fn all_figures_and_tables_are_there_in_order_and_ask_about_layouts_that_there_are() {
        let figures = figures();
        let numbers = |table: bool| -> Vec<u32> {
            let ids = figures.iter().filter(|figure| figure.id.starts_with("table") == table);
            let numbers = ids.map(|figure| figure.id.trim_start_matches("table").trim_end_matches("-disk"));
            numbers.map(|number| number.parse().expect("a number")).collect()
        };
        assert_eq!(numbers(false), (8..=26).collect::<Vec<_>>());
        assert_eq!(numbers(true), [3, 4, 5, 5, 6], "the fifth has two halves");
        let names: Vec<String> = "all".parse::<Layouts>().expect("layouts").0.iter().map(ToString::to_string).collect();
        let known = [PLAIN, HEAD, TAIL, BOTH, DB2, WIREDTIGER, MYISAM, PKB];
        assert!(known.iter().all(|name| names.iter().any(|other| other == name)), "{names:?}");
    }
}
