//! Keys that are difficult for a page.

use duramen::base::limits::long_key_head;

/// Keys in groups of four that agree in all that a page keeps of a long key: two of them are short enough for a page,
/// and differ from those of the next groups in one byte alone, before the last one.
pub(crate) fn key_of_a_group(n: u32, page_size: usize) -> Vec<u8> {
    let group = (n / 4) as u16;
    let mut key = vec![b'm' + (group / 20) as u8; long_key_head(page_size) + 1];
    key.extend(group.to_be_bytes());
    match n % 4 {
        0 => {}
        1 => key.extend([0x10; 30]),
        2 => key.extend([[0x10; 30], [0x20; 30]].concat()),
        _ => key.push(0x30),
    }
    key
}
