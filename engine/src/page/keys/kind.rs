//! What can be said of a list of some kind without looking at its bytes: its features, and what its entries take.

use super::scheme::{Features, Scheme};
use super::{KeyListKind, KeyPlace};
use duramen_codec::Codec;
use std::ops::Range;

impl KeyListKind {
    /// The list where nothing speaks for another: the quickest for keys of any length, and small enough.
    pub const USUAL: KeyListKind = KeyListKind::Head;
    /// The list of the numbers in pages of the key heap.
    pub(in crate::page) const NUMBERS: KeyListKind = KeyListKind::Fixed;

    /// The most bytes of a key that a part of a PkB list has.
    pub const LONGEST_PART: u8 = 8;

    #[inline(always)]
    fn features(self) -> Features {
        with_scheme!(self, scheme => scheme.features())
    }

    /// The length that every key must have, where the kind itself says it: that of integers in blocks.
    #[inline(always)]
    pub fn key_len(self) -> Option<usize> {
        self.features().key_len
    }

    /// The codec of the blocks that keys are in.
    pub fn codec(self) -> Option<Codec> {
        self.features().codec
    }

    /// True where all keys have one length, which the first key of a page sets.
    pub fn has_one_length(self) -> bool {
        self.features().one_length
    }

    /// True where the list keeps keys without the common prefix of the page's fences.
    #[inline(always)]
    pub fn cuts_prefix(self) -> bool {
        self.features().cuts_prefix
    }

    /// True where neighbours share bytes of the list, so that whoever wants several entries walks ([`super::KeyWalk`]): it is
    /// quicker and says what each takes.
    #[inline(always)]
    pub(crate) fn is_walked(self) -> bool {
        self.features().walked
    }

    /// The list of a tree's inner pages whose leaves have this one: any run of an inner page's entries has to fit in a page again
    /// that has the first key of the run and the one behind it for fences. Inner pages are few and searched by all.
    pub fn inner(self) -> KeyListKind {
        self.features().inner
    }

    /// True if a key takes as much room among others as it has bytes, at the most: then it is known when a page is full.
    pub fn adds_up(self) -> bool {
        !self.is_walked() && self.key_len().is_none() && !self.keys_are_out_of_line()
    }

    /// True where a tree may have inner pages of this list.
    pub fn suits_inner_pages(self) -> bool {
        self.adds_up()
    }

    /// True where the page has parts of its keys only: the tree keeps the keys themselves in its key heap, and what the page
    /// says of keys ([`super::super::Page::key_into`] and all that compares them) means nothing.
    #[inline(always)]
    pub fn keys_are_out_of_line(self) -> bool {
        self.features().out_of_line
    }

    /// Where in a leaf of this list without records a key most likely is that is so many 65536ths of the way from its first key to
    /// its last: two ranges of bytes, that of the front and that around the key. `None` where that cannot be told.
    /// `part` says how far, and is asked only where that is of use.
    #[inline(always)]
    pub(in crate::page) fn likely_parts(
        self,
        page_size: usize,
        part: impl FnOnce() -> Option<usize>,
    ) -> Option<[Range<usize>; 2]> {
        with_scheme!(self, scheme => scheme.likely_parts(page_size, part))
    }

    /// See [`crate::page::out_of_line_image`].
    pub(in crate::page) fn image(self, before: &[u8], key: &[u8], next: Option<&[u8]>, place: KeyPlace) -> Vec<u8> {
        with_scheme!(self, scheme => scheme.image(before, key, next, place))
    }

    /// See [`Scheme::bare_len_is_valid`].
    pub(in crate::page) fn bare_len_is_valid(self, len: usize) -> bool {
        with_scheme!(self, scheme => scheme.bare_len_is_valid(len))
    }

    /// See [`Scheme::spare`].
    pub(in crate::page) fn spare(self, granule: usize) -> usize {
        with_scheme!(self, scheme => scheme.spare(granule))
    }

    /// See [`Scheme::front`].
    pub(in crate::page) fn front(self) -> usize {
        with_scheme!(self, scheme => scheme.front())
    }

    /// Bytes that an entry behind the first one of its page takes at the very least: its key has `len` bytes and agrees in
    /// `common` of them with the key before, which is all that the page's prefix, a group's or a delta can save it. `inner`:
    /// the page is an inner one.
    pub(crate) fn least_entry_bytes(self, len: usize, common: usize, inner: bool) -> usize {
        with_scheme!(self, scheme => scheme.least_entry_bytes(len, common, inner))
    }

    /// Bytes that a suffix of that length takes, slots included, unused capacity not; of a list that is not dense.
    pub(in crate::page) fn entry_bytes(self, suffix_len: usize) -> usize {
        with_scheme!(self, scheme => scheme.entry_bytes(suffix_len))
    }
}
