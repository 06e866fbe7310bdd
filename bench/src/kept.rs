//! Results in a file, with a JSON object on each line. A result is in the file as soon as it is measured, so that an
//! interrupted program can continue.

use crate::Result;
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// A file to which results are added.
pub struct Kept(File);

impl Kept {
    /// Opens a file. With `resume` its results are kept and returned, except for an incomplete last line.
    ///
    /// # Errors
    /// Errors of reading and writing, and lines that are not JSON.
    pub fn begin(path: &Path, resume: bool) -> Result<(Kept, Vec<Value>)> {
        let found = if resume && path.exists() { read_whole(path)? } else { (Vec::new(), 0) };
        let named = |error| format!("{}: {error}", path.display());
        let file = File::options().append(true).create(true).open(path).map_err(named)?;
        file.set_len(found.1)?;
        Ok((Kept(file), found.0))
    }

    /// Adds a result.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn add(&mut self, result: &Value) -> Result<()> {
        Ok(self.0.write_all(format!("{result}\n").as_bytes())?)
    }
}

/// The results in a file, except for an incomplete last line.
///
/// # Errors
/// Errors of reading, and lines that are not JSON.
pub fn read(path: &Path) -> Result<Vec<Value>> {
    Ok(read_whole(path)?.0)
}

/// The results, and the length of the complete lines.
fn read_whole(path: &Path) -> Result<(Vec<Value>, u64)> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("{name}, line {}: {error}", number + 1).into())
    };
    let results: Result<Vec<Value>> = text[..whole].lines().enumerate().map(parse).collect();
    Ok((results?, whole as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_interrupted_file_is_continued_and_a_wrong_one_is_refused() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let path = folder.path().join("results");
        let begin = |resume| Kept::begin(&path, resume).unwrap_or_else(|error| panic!("{error}"));
        let add = |kept: &mut Kept, n: u32| kept.add(&json!({ "n": n })).unwrap_or_else(|error| panic!("{error}"));
        let (mut kept, found) = begin(true);
        assert_eq!(found.len(), 0, "there is no file yet");
        add(&mut kept, 1);
        add(&mut kept, 2);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, &text[..text.len() - 3]).unwrap_or_else(|error| panic!("{error}"));
        let (mut kept, found) = begin(true);
        assert_eq!(found, [json!({"n": 1})]);
        add(&mut kept, 3);
        assert_eq!(read(&path).ok(), Some(vec![json!({"n": 1}), json!({"n": 3})]));
        std::fs::write(&path, "{}\nwrong\n").unwrap_or_else(|error| panic!("{error}"));
        let error = Kept::begin(&path, true).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("line 2"), "{error}");
        let (_, found) = begin(false);
        assert!(found.is_empty() && read(&path).ok() == Some(Vec::new()), "the file is empty");
    }
}
