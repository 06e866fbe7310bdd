//! Packed images: a page without the free bytes in its middle, as it goes to the log and to the device. Copies of pages
//! for readers do not have these bytes, either.

use super::header::{self, Header};
use super::view::Page;
use crate::base::{Error, PageId, Result, bytes, limits::PAGE_HEADER};
use std::ops::Range;

impl<'a> Page<'a> {
    /// Returns the parts of the page before and after the free bytes between its lists.
    #[inline]
    fn used_parts(&self) -> [&'a [u8]; 2] {
        let records = self.record_bytes();
        let front = self.keys_at() + self.header().u16(header::KEY_BYTES);
        [bytes::slice(self.bytes(), 0, front.min(self.bytes().len() - records.len())), records]
    }

    /// Appends the packed image to `out`: the page without the free bytes between its lists.
    pub fn packed_into(&self, out: &mut Vec<u8>) {
        self.used_parts().into_iter().for_each(|part| out.extend_from_slice(part));
    }

    /// Like [`Page::packed_into`], for a page or a packed image, with zeros between the two lists. `len` gets the
    /// length without zeros, and returns the length with them. If the result is copied to the end of the memory of a
    /// page, the records are in their positions.
    pub fn packed_with_zeros_into(&self, len: impl FnOnce(usize) -> usize, out: &mut Vec<u8>) {
        let [front, records] = self.used_parts();
        let used = front.len() + records.len();
        out.extend_from_slice(front);
        out.resize(out.len() + len(used).saturating_sub(used), 0);
        out.extend_from_slice(records);
    }

    /// Copies the page to `out`. If `out` has the length of the page, the free bytes between the lists are not copied,
    /// and `out` keeps its bytes there.
    #[inline]
    pub fn copy_into(&self, out: &mut Vec<u8>) {
        if out.len() != self.bytes().len() {
            out.clear();
            return out.extend_from_slice(self.bytes());
        }
        let [front, records] = self.used_parts();
        bytes::put(out, 0, front);
        bytes::put(out, self.bytes().len() - records.len(), records);
    }
}

/// Writes a packed image over the whole of `page`. Any bytes are safe. Bytes that do not make one page are refused and
/// leave `page` unchanged. [`Page::check`] tells whether the image is a sound page.
pub fn unpack(packed: &[u8], page: &mut [u8]) -> Result<()> {
    let (front, records) = parts_of(packed, page.len())?;
    let (front, records) = (bytes::slice(packed, 0, front), bytes::slice(packed, packed.len() - records, packed.len()));
    let (target, back) = page.split_at_mut_checked(page.len() - records.len()).unwrap_or_default();
    bytes::put(back, 0, records);
    bytes::put(target, 0, front);
    bytes::zero(target, front.len(), target.len());
    Ok(())
}

/// Like [`unpack`], for a packed image that is in `page` itself, at these bytes.
pub fn unpack_within(page: &mut [u8], at: Range<usize>) -> Result<()> {
    let (front, records) = parts_of(bytes::slice(page, at.start, at.end), page.len())?;
    let back = page.len() - records;
    // The records move towards the end, so that they do not write over the front, which is before them.
    if at.end < page.len() {
        page.copy_within(at.end - records..at.end, back);
    }
    page.copy_within(at.start..at.start + front, 0);
    bytes::zero(page, front, back);
    Ok(())
}

/// The length of the front of a packed image, and of the records at its end.
fn parts_of(packed: &[u8], page_len: usize) -> Result<(usize, usize)> {
    let header = Header::of(packed);
    let records = header.u16(header::RECORD_BYTES);
    let front = Page::new(packed).keys_at() + header.u16(header::KEY_BYTES);
    if packed.len() >= PAGE_HEADER && (front + records..=page_len).contains(&packed.len()) {
        return Ok((front, records));
    }
    let id = PageId(header.u32(header::ID));
    let what = format!(
        "a packed image of {} bytes cannot have {front} bytes of header, fences and keys and {records} of records \
         in a page of {page_len}",
        packed.len(),
    );
    Err(Error::corrupt(id, what))
}
