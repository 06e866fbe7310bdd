//! Lines with comments have at most 120 columns, and lines of documents 100. `rustfmt` breaks code at 120 columns, but
//! leaves comments as they are.

use crate::tokens::{files, files_of_type};
use std::path::Path;

const COLUMNS: usize = 120;

const DOCUMENT_COLUMNS: usize = 100;

/// The members of the workspace, and the programs beside other stores.
pub(crate) const FOLDERS: &[&str] = &["bench", "cli", "codec", "engine", "fuzz", "peers/src", "query", "sim", "size"];

/// The numbers of the lines with more than `most` columns, each with its columns. `counts` says which lines count.
fn wider(text: &str, most: usize, counts: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.chars().count(), line));
    let wide = lines.filter(|(_, columns, line)| *columns > most && counts(line));
    wide.map(|(number, columns, _)| format!("{number}: {columns} columns")).collect()
}

/// The lines with a comment that are too wide. A line without `//` may be wider: a string that cannot be broken, or
/// code in a macro.
fn too_wide(source: &str) -> Vec<String> {
    wider(source, COLUMNS, |line| line.contains("//"))
}

/// The lines of a document that are too wide. A row of a table may be wider, because it cannot be broken.
fn too_wide_in_document(text: &str) -> Vec<String> {
    wider(text, DOCUMENT_COLUMNS, |line| !line.trim_start().starts_with('|'))
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
fn no_line_of_a_document_is_too_wide() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = FOLDERS.iter().chain(&["docs"]).flat_map(|folder| files_of_type(&root.join(folder), "md"));
    let documents: Vec<_> =
        ["README.md", "CHANGELOG.md"].map(|name| root.join(name)).into_iter().chain(folders).collect();
    let wide = documents.iter().flat_map(|file| {
        let lines = too_wide_in_document(&std::fs::read_to_string(file).unwrap());
        lines.into_iter().map(move |what| format!("{}:{what}", file.display()))
    });
    let wide: Vec<String> = wide.collect();
    assert!(documents.len() > 30, "the documents are not where this test looks for them");
    assert!(wide.is_empty(), "{} lines of documents are too wide:\n{}", wide.len(), wide.join("\n"));
}

#[test]
fn wide_lines_of_documents_are_found_and_wide_tables_are_not() {
    let more = "é".repeat(DOCUMENT_COLUMNS + 1);
    assert_eq!(too_wide_in_document(&format!("{}\n{more}", &more[2..])), ["2: 101 columns"]);
    assert!(too_wide_in_document(&format!("| {more} |\n  | {more} |")).is_empty());
}

#[test]
fn wide_comments_are_found_and_wide_code_is_not() {
    let (most, more) = ("é".repeat(COLUMNS - 4), "é".repeat(COLUMNS - 3));
    assert_eq!(too_wide(&format!("/// {most}\n/// {more}\nf(); // {more}")), ["2: 121 columns", "3: 125 columns"]);
    assert!(too_wide(&format!("const X: &str = \"{more}\";")).is_empty());
}
