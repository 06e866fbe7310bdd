//! Lines with comments have at most 120 columns. `rustfmt` breaks code at that width, but leaves comments as they are.

use crate::tokens::files;
use std::path::Path;

const COLUMNS: usize = 120;

/// The members of the workspace, and the programs beside other stores.
const FOLDERS: &[&str] = &["bench", "cli", "codec", "engine", "fuzz", "peers/src", "query", "sim"];

/// The numbers of the lines with a comment that are too wide, each with its columns. A line without `//` may be wider:
/// a string that cannot be broken, or code in a macro.
fn too_wide(source: &str) -> Vec<String> {
    let lines = source.lines().enumerate().map(|(index, line)| (index + 1, line.chars().count(), line));
    let wide = lines.filter(|(_, columns, line)| *columns > COLUMNS && line.contains("//"));
    wide.map(|(number, columns, _)| format!("{number}: {columns} columns")).collect()
}

#[test]
fn no_line_with_a_comment_is_too_wide() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut wide, mut looked_at) = (Vec::new(), 0);
    for folder in FOLDERS {
        for file in files(&root.join(folder)) {
            looked_at += 1;
            let source = std::fs::read_to_string(&file).unwrap();
            wide.extend(too_wide(&source).into_iter().map(|what| format!("{}:{what}", file.display())));
        }
    }
    assert!(looked_at > 300, "the code is not where this test looks for it");
    assert!(wide.is_empty(), "{} lines with comments are too wide:\n{}", wide.len(), wide.join("\n"));
}

#[test]
fn wide_comments_are_found_and_wide_code_is_not() {
    let (most, more) = ("é".repeat(COLUMNS - 4), "é".repeat(COLUMNS - 3));
    assert_eq!(too_wide(&format!("/// {most}\n/// {more}\nf(); // {more}")), ["2: 121 columns", "3: 125 columns"]);
    assert!(too_wide(&format!("const X: &str = \"{more}\";")).is_empty());
}
