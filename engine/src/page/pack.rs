//! Packed images: a page without the free bytes in its middle, as it goes to the log and to the device.

use super::header::{self, Header};
use super::view::Page;
use crate::base::{Error, PageId, Result, bytes, limits::PAGE_HEADER};

impl Page<'_> {
    /// Appends the packed image to `out`: the page without the free bytes between its lists.
    pub fn packed_into(&self, out: &mut Vec<u8>) {
        let records = self.record_bytes();
        let front = self.keys_at() + self.header().u16(header::KEY_BYTES);
        out.extend_from_slice(bytes::slice(self.bytes(), 0, front.min(self.bytes().len() - records.len())));
        out.extend_from_slice(records);
    }
}

/// Writes a packed image over the whole of `page`. Any bytes are safe. Bytes that do not make exactly one page are
/// refused and leave `page` unchanged. [`Page::check`] tells whether the image is a sound page.
pub fn unpack(packed: &[u8], page: &mut [u8]) -> Result<()> {
    let header = Header::of(packed);
    let records = header.u16(header::RECORD_BYTES);
    let view = Page::new(packed);
    let front = view.keys_at() + header.u16(header::KEY_BYTES);
    if packed.len() < PAGE_HEADER || packed.len() != front + records || packed.len() > page.len() {
        let id = PageId(header.u32(header::ID));
        let what = format!(
            "a packed image of {} bytes cannot have {front} bytes of header, fences and keys and {records} of records \
             in a page of {}",
            packed.len(),
            page.len()
        );
        return Err(Error::corrupt(id, what));
    }
    let (front, records) = packed.split_at_checked(front).unwrap_or_default();
    let (target, back) = page.split_at_mut_checked(page.len() - records.len()).unwrap_or_default();
    bytes::put(back, 0, records);
    bytes::put(target, 0, front);
    bytes::zero(target, front.len(), target.len());
    Ok(())
}
