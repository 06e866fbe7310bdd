//! Tables and CSV of `duramen-bench codecs`. Nothing is measured here.

use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};

use super::measure::Row;

const HEADER: [&str; 13] = [
    "codec",
    "b",
    "bits/int",
    "decode Gint/s",
    "x memcpy",
    "sum Gint/s",
    "select M/s",
    "x pp",
    "search M/s",
    "x pp",
    "insert M/s",
    "naive M/s",
    "append M/s",
];

/// A table for people, with a line for the references under it.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(HEADER);
    for row in rows {
        table.add_row([
            row.codec.to_owned(),
            row.bits.to_string(),
            format!("{:.2}", row.bits_per_int),
            format!("{:.2}", row.decode_gints),
            format!("{:.3}", row.decode_to_memcpy),
            format!("{:.2}", row.sum_gints),
            format!("{:.1}", row.select_mops),
            format!("{:.2}", row.select_to_partition),
            format!("{:.1}", row.search_mops),
            format!("{:.2}", row.search_to_partition),
            format!("{:.2}", row.insert_mops),
            format!("{:.2}", row.naive_insert_mops),
            format!("{:.1}", row.append_mops),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = table.to_string();
    let mut last = 0;
    for row in rows.iter().filter(|row| std::mem::replace(&mut last, row.bits) != row.bits) {
        text += &format!(
            "\nreferences at b = {}: memcpy {:.1} Gint/s, partition_point {:.1} M/s",
            row.bits, row.memcpy_gints, row.partition_mops
        );
    }
    text
}

/// One line for each codec and bit width, after a header line.
pub(super) fn csv(rows: &[Row], out: impl Write) -> Result<(), csv::Error> {
    let mut writer = csv::Writer::from_writer(out);
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    Ok(writer.flush()?)
}
