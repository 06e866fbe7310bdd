//! Prints reports: tables for people, JSON for programs, both from the same fields.
//!
//! A report is anything that serialises to a JSON object, or to an array of objects with the same fields. For people,
//! the fields become rows or columns. A field whose name ends in `_bytes` is shown in KiB, MiB and so on.

use crate::args::Format;
use crate::failure::{Failure, Result};
use crate::{size, streams};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use indicatif::HumanCount;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::Write;

/// The number of characters of a text that a table shows. JSON has all of them.
const WIDEST: usize = 200;
/// The same for a table that is printed in parts.
const WIDEST_IN_PARTS: usize = 30;
/// The number of characters of a line of a report whose tables are printed in parts.
const LINE: usize = 100;

/// How to print a table in parts.
#[derive(Clone, Copy)]
pub(crate) struct ColumnParts<'a> {
    /// The fields that name a row. Each part begins with them.
    pub(crate) labels: &'a [&'a str],
    /// The fields that begin a new part.
    pub(crate) begins: &'a [&'a str],
}

/// Prints `report` to standard output.
pub(crate) fn print(report: &impl Serialize, format: Format) -> Result<()> {
    print_with(report, format, None)
}

/// Like [`print`], with tables in parts, and lines of at most [`LINE`] characters.
pub(crate) fn print_in_parts(report: &impl Serialize, format: Format, parts: ColumnParts<'_>) -> Result<()> {
    print_with(report, format, Some(parts))
}

fn print_with(report: &impl Serialize, format: Format, in_parts: Option<ColumnParts<'_>>) -> Result<()> {
    let value = serde_json::to_value(report).map_err(|error| Failure::Output(error.into()))?;
    let text = match format {
        Format::Json => format!("{value:#}"),
        Format::Table => render(&value, in_parts),
    };
    let print = |mut out: File| out.write_all(format!("{text}\n").as_bytes());
    streams::stdout().and_then(print).map_err(Failure::output)
}

/// The report as text: a row for each plain field, then the fields that are objects or lists.
fn render(report: &Value, in_parts: Option<ColumnParts<'_>>) -> String {
    match report {
        Value::Object(fields) => {
            let (parted, plain): (Vec<_>, Vec<_>) =
                fields.iter().partition(|(_, value)| value.is_array() || value.is_object());
            let mut parts = Vec::new();
            if !plain.is_empty() {
                parts.push(block(&plain, in_parts.is_some()).trim_fmt());
            }
            for (name, part) in parted {
                parts.push(format!("{}:\n{}", title(name), render(part, in_parts)));
            }
            parts.join("\n\n")
        }
        Value::Array(rows) => grid(rows, in_parts),
        plain => shown("", plain, WIDEST),
    }
}

/// A row for each field: its name and its value. `wraps`: a row has several lines if it has more than [`LINE`]
/// characters.
fn block(fields: &[Field<'_>], wraps: bool) -> Table {
    let longest = fields.iter().map(|(name, _)| title(name).chars().count()).max().unwrap_or(0);
    let width = if wraps { LINE.saturating_sub(longest + 2 * SPACE) } else { WIDEST };
    let mut table = empty();
    for (name, value) in fields {
        let value = Cell::new(wrapped(&shown(name, value, WIDEST), width)).set_alignment(CellAlignment::Left);
        table.add_row([Cell::new(title(name)), value]);
    }
    table
}

/// The text in lines of at most `width` characters. Longer words are broken.
fn wrapped(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let (mut lines, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        if used > 0 {
            let has_room = used + 1 + word.chars().count() <= width;
            lines.push(if has_room { ' ' } else { '\n' });
            used = if has_room { used + 1 } else { 0 };
        }
        for c in word.chars() {
            if used == width {
                lines.push('\n');
                used = 0;
            }
            lines.push(c);
            used += 1;
        }
    }
    lines
}

/// A table with a row for each object and a column for each field of the first.
fn grid(rows: &[Value], in_parts: Option<ColumnParts<'_>>) -> String {
    let Some(first) = rows.first() else { return "none".to_owned() };
    let Value::Object(first) = first else {
        let width = if in_parts.is_some() { LINE } else { WIDEST };
        let line = |row: &Value| wrapped(&shown("", row, WIDEST), width);
        return rows.iter().map(line).collect::<Vec<_>>().join("\n");
    };
    let all: Vec<_> = first.iter().collect();
    match in_parts {
        None => columns(rows, &all, title, WIDEST).trim_fmt(),
        Some(rule) => {
            let text = |part: Vec<Field<'_>>| columns(rows, &part, stacked, WIDEST_IN_PARTS).trim_fmt();
            parts(rows, &all, rule).into_iter().map(text).collect::<Vec<_>>().join("\n\n")
        }
    }
}

/// The name of a field, and its value in the first row.
type Field<'a> = (&'a String, &'a Value);

/// A table of some fields of all rows.
fn columns(rows: &[Value], fields: &[Field<'_>], title: fn(&str) -> String, widest: usize) -> Table {
    let mut table = empty();
    table.set_header(fields.iter().map(|(name, value)| Cell::new(title(name)).set_alignment(alignment(value))));
    let none = Map::new();
    for row in rows {
        let row = row.as_object().unwrap_or(&none);
        let cell = |name: &String| {
            let value = row.get(name).unwrap_or(&Value::Null);
            Cell::new(shown(name, value, widest)).set_alignment(alignment(value))
        };
        table.add_row(fields.iter().map(|(name, _)| cell(name)));
    }
    table
}

/// The fields of each part: the labels, and as many other fields as fit in a line.
fn parts<'a>(rows: &[Value], all: &[Field<'a>], rule: ColumnParts<'_>) -> Vec<Vec<Field<'a>>> {
    let width = |field: &Field<'_>| {
        let widths = columns(rows, &[*field], stacked, WIDEST_IN_PARTS).column_max_content_widths();
        widths.iter().map(|width| usize::from(*width) + SPACE).sum::<usize>()
    };
    let (named, others): (Vec<Field<'a>>, Vec<_>) =
        all.iter().partition(|(name, _)| rule.labels.contains(&name.as_str()));
    let least: usize = named.iter().map(width).sum();
    let mut parts = vec![named.clone()];
    let mut used = least;
    for field in others {
        let more = width(&field);
        if used > least && (used + more > LINE || rule.begins.contains(&field.0.as_str())) {
            parts.push(named.clone());
            used = least;
        }
        used += more;
        if let Some(part) = parts.last_mut() {
            part.push(field);
        }
    }
    parts
}

/// The number of spaces around each column.
const SPACE: usize = 2;

fn empty() -> Table {
    let mut table = Table::new();
    // A table that is wider than the window is not cut: the reader can scroll.
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn alignment(value: &Value) -> CellAlignment {
    if value.is_number() { CellAlignment::Right } else { CellAlignment::Left }
}

/// The name of a field for people.
fn title(name: &str) -> String {
    name.strip_suffix("_bytes").unwrap_or(name).replace('_', " ")
}

/// The name of a field for people, in two lines if it has several words.
fn stacked(name: &str) -> String {
    let title = title(name);
    let middle = title.len() / 2;
    let space = title.match_indices(' ').map(|(at, _)| at).min_by_key(|at| at.abs_diff(middle));
    match space.and_then(|at| title.split_at_checked(at)) {
        Some((first, second)) => format!("{first}\n{}", second.trim_start()),
        None => title,
    }
}

/// The value of a field for people. A text has at most `widest` characters.
fn shown(name: &str, value: &Value, widest: usize) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => {
            let ellipsis = if text.chars().nth(widest).is_some() { "…" } else { "" };
            let shown = text.chars().take(widest).map(|c| if c.is_control() { '?' } else { c });
            shown.chain(ellipsis.chars()).collect()
        }
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(bytes), _) if name.ends_with("_bytes") => size::shown(bytes),
            (None, Some(bytes)) if name.ends_with("_bytes") => format!("-{}", size::shown(bytes.unsigned_abs())),
            (Some(count), _) => HumanCount(count).to_string(),
            (None, _) => number.as_f64().map_or_else(|| number.to_string(), |number| format!("{number:.3}")),
        },
        Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_become_rows_and_lists_become_tables() {
        let report = json!({
            "file_bytes": 2048, "ratio": 0.5, "clean": true,
            "tables": [{"name": "a", "entries": 1234}, {"name": "bcd", "entries": 5}],
        });
        let lines: Vec<String> = render(&report, None).lines().map(|line| line.trim().to_owned()).collect();
        let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(0), "file 2.00 KiB");
        assert_eq!(words(1), "ratio 0.500");
        assert_eq!(words(2), "clean yes");
        assert_eq!(words(4), "tables:");
        assert_eq!(words(5), "name entries");
        assert_eq!(words(6), "a 1,234");
        assert_eq!(words(7), "bcd 5");
    }

    #[test]
    fn objects_within_become_parts_with_rows() {
        let report = render(&json!({"database": {"file_bytes": 1024}, "tables": []}), None);
        let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words, "database: file 1.00 KiB tables: none");
    }

    #[test]
    fn a_negative_size_has_a_unit_too() {
        assert_eq!(shown("saved_bytes", &json!(-2048), WIDEST), "-2.00 KiB");
    }

    #[test]
    fn control_characters_of_names_do_not_reach_the_terminal() {
        assert_eq!(shown("name", &json!("a\x1b[2J\n"), WIDEST), "a?[2J?");
    }

    #[test]
    fn a_wide_table_is_printed_in_parts_that_begin_with_the_labels() {
        let mut row = Map::from_iter([("name".to_owned(), json!("n".repeat(500))), ("level".to_owned(), json!(0))]);
        row.extend((10..40).map(|at| (format!("field number {at}"), json!(1_000_000))));
        let text =
            render(&json!([row, row]), Some(ColumnParts { labels: &["name", "level"], begins: &["field number 12"] }));
        assert!(text.lines().all(|line| line.chars().count() <= LINE), "{text}");
        assert!((10..40).all(|at| text.matches(&format!("number {at}")).count() == 1), "each field once: {text}");
        let parts = text.split("\n\n").count();
        assert!(parts > 1 && text.matches("level").count() == parts, "{text}");
    }

    #[test]
    fn long_texts_of_a_report_in_parts_are_wrapped_and_kept_whole() {
        let words = (10..36).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ");
        let long = "w".repeat(WIDEST - 1);
        let report = json!({"system": {"why_not_atomic": words, "path": long}, "warnings": [words, long]});
        let text = render(&report, Some(ColumnParts { labels: &[], begins: &[] }));
        assert!(text.lines().all(|line| line.chars().count() <= LINE), "{text}");
        assert!((10..36).all(|word| text.matches(&format!("word{word}")).count() == 2), "{text}");
        assert!(text.matches('w').count() >= 2 * (WIDEST - 1), "{text}");
        assert_eq!(wrapped("ab cd efghijk", 5), "ab cd\nefghi\njk");
        assert!(render(&report, None).lines().any(|line| line.chars().count() > LINE));
    }

    #[test]
    fn an_empty_list_is_reported() {
        assert_eq!(render(&json!([]), None), "none");
    }
}
