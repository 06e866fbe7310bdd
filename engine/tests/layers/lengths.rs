//! Files of code and documents have at most 600 lines. `clippy.toml` has the limit for functions.

use crate::tokens::files_of_type;
use crate::widths::FOLDERS;
use std::path::Path;

const LINES: usize = 600;

/// The number of lines of a file, if it is too long.
fn too_long(text: &str) -> Option<usize> {
    Some(text.lines().count()).filter(|lines| *lines > LINES)
}

#[test]
fn no_file_is_too_long() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = FOLDERS.iter().chain(&["docs"]).flat_map(|folder| {
        let folder = root.join(folder);
        files_of_type(&folder, "rs").into_iter().chain(files_of_type(&folder, "md"))
    });
    let (mut long, mut looked_at) = (Vec::new(), 0);
    for file in files {
        looked_at += 1;
        let lines = too_long(&std::fs::read_to_string(&file).unwrap());
        long.extend(lines.map(|lines| format!("{}: {lines} lines", file.display())));
    }
    assert!(looked_at > 330, "the files are not where this test looks for them");
    assert!(long.is_empty(), "{} files have more than {LINES} lines:\n{}", long.len(), long.join("\n"));
}

#[test]
fn long_files_are_found() {
    assert_eq!(too_long(&"\n".repeat(LINES)), None);
    assert_eq!(too_long(&"\n".repeat(LINES + 1)), Some(601));
}
