//! Prints reports: tables for people, JSON for programs, both from the same fields.
//!
//! A report is anything that serialises to a JSON object, or to an array of objects of the same fields. For people, the
//! fields become rows, or columns; a field whose name ends in `_bytes` is shown as KiB, MiB and so on.

use crate::args::Format;
use crate::failure::{Failure, Result};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Characters of a text that are shown to people; programs get all of them.
const WIDEST: usize = 200;

/// Prints `report` to standard output.
pub(crate) fn print(report: &impl Serialize, format: Format) -> Result<()> {
    let value = serde_json::to_value(report).map_err(|error| Failure::Output(error.into()))?;
    let text = match format {
        Format::Json => format!("{value:#}"),
        Format::Table => render(&value),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::output)
}

/// The report as text: its plain fields one a row, then what has fields or rows of its own.
fn render(report: &Value) -> String {
    match report {
        Value::Object(fields) => {
            let (parted, plain): (Vec<_>, Vec<_>) =
                fields.iter().partition(|(_, value)| value.is_array() || value.is_object());
            let mut parts = Vec::new();
            if !plain.is_empty() {
                let mut table = empty();
                for (name, value) in plain {
                    table.add_row([Cell::new(title(name)), cell(name, value).set_alignment(CellAlignment::Left)]);
                }
                parts.push(table.trim_fmt());
            }
            for (name, part) in parted {
                parts.push(format!("{}:\n{}", title(name), render(part)));
            }
            parts.join("\n\n")
        }
        Value::Array(rows) => grid(rows),
        plain => shown("", plain),
    }
}

/// A table with a row for each object and a column for each field of the first.
fn grid(rows: &[Value]) -> String {
    let Some(first) = rows.first() else { return "none".to_owned() };
    let Value::Object(first) = first else {
        return rows.iter().map(|row| shown("", row)).collect::<Vec<_>>().join("\n");
    };
    let mut table = empty();
    table.set_header(first.iter().map(|(name, value)| Cell::new(title(name)).set_alignment(alignment(value))));
    let none = Map::new();
    for row in rows {
        let row = row.as_object().unwrap_or(&none);
        table.add_row(first.keys().map(|name| cell(name, row.get(name).unwrap_or(&Value::Null))));
    }
    table.trim_fmt()
}

fn empty() -> Table {
    let mut table = Table::new();
    // Wider than the window is better than cut: whoever reads it may scroll, or ask for JSON.
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn cell(name: &str, value: &Value) -> Cell {
    Cell::new(shown(name, value)).set_alignment(alignment(value))
}

fn alignment(value: &Value) -> CellAlignment {
    if value.is_number() { CellAlignment::Right } else { CellAlignment::Left }
}

/// A field's name for people.
fn title(name: &str) -> String {
    name.strip_suffix("_bytes").unwrap_or(name).replace('_', " ")
}

/// A field's value for people.
fn shown(name: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => {
            let ellipsis = if text.chars().nth(WIDEST).is_some() { "…" } else { "" };
            let shown = text.chars().take(WIDEST).map(|c| if c.is_control() { '?' } else { c });
            shown.chain(ellipsis.chars()).collect()
        }
        Value::Number(number) => match number.as_u64() {
            Some(bytes) if name.ends_with("_bytes") => HumanBytes(bytes).to_string(),
            Some(count) => HumanCount(count).to_string(),
            None => number.as_f64().map_or_else(|| number.to_string(), |number| format!("{number:.3}")),
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
        let lines: Vec<String> = render(&report).lines().map(|line| line.trim().to_owned()).collect();
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
        let report = render(&json!({"database": {"file_bytes": 1024}, "tables": []}));
        let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words, "database: file 1.00 KiB tables: none");
    }

    #[test]
    fn control_characters_of_names_do_not_reach_the_terminal() {
        assert_eq!(shown("name", &json!("a\x1b[2J\n")), "a?[2J?");
    }

    #[test]
    fn an_empty_list_says_so() {
        assert_eq!(render(&json!([])), "none");
    }
}
