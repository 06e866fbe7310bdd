//! The properties of a kind of list that do not depend on its bytes: its features and the size of its entries.

use super::scheme::{Features, Scheme};
use super::{KeyListKind, KeyPlace, blocks};
use duramen_codec::Codec;
use std::ops::Range;

impl KeyListKind {
    /// The default list: the quickest for keys of any length, and small enough.
    pub const USUAL: KeyListKind = KeyListKind::Head;
    /// The list of the numbers in pages of the key heap.
    pub(in crate::page) const NUMBERS: KeyListKind = KeyListKind::Fixed;

    /// The most bytes of a key in a part of a PkB list.
    pub const LONGEST_PART: u8 = 8;

    #[inline(always)]
    fn features(self) -> Features {
        with_scheme!(self, scheme => scheme.features())
    }

    /// Returns the length of every key, if the kind itself determines it: the width of integers in blocks.
    #[inline(always)]
    pub fn key_len(self) -> Option<usize> {
        self.features().key_len
    }

    /// Returns the codec of the blocks, if keys are in blocks.
    pub fn codec(self) -> Option<Codec> {
        self.features().codec
    }

    /// Returns true if all keys have one length, which the first key of a page sets.
    pub fn has_one_length(self) -> bool {
        self.features().one_length
    }

    /// Returns true if the list keeps keys without the common prefix of the page's fences.
    #[inline(always)]
    pub fn cuts_prefix(self) -> bool {
        self.features().cuts_prefix
    }

    /// Returns true if neighbours share bytes of the list. A caller that needs several entries then walks
    /// ([`super::KeyWalk`]): a walk is quicker and reports the bytes of each entry.
    #[inline(always)]
    pub(crate) fn is_walked(self) -> bool {
        self.features().walked
    }

    /// Returns the list of the inner pages above leaves with this list. Any run of an inner page's entries must fit in
    /// a page again, with the first key of the run and the key after the run as its fences. Inner pages are few, and
    /// every search reads them.
    pub fn inner(self) -> KeyListKind {
        self.features().inner
    }

    /// Returns true if a key never takes more room among others than it has bytes. Then it is known when a page is
    /// full.
    pub fn adds_up(self) -> bool {
        !self.is_walked() && self.key_len().is_none() && !self.keys_are_out_of_line()
    }

    /// Returns the most bytes by which a page grows with one more entry, beyond the bytes of its key and its record and
    /// of their slots. `None`: there is no such limit, because the keys around it may have to be encoded again.
    pub(crate) fn most_growth(self) -> Option<usize> {
        match self.codec() {
            Some(codec) => Some(blocks::most_growth(codec)),
            None => self.adds_up().then_some(0),
        }
    }

    /// Returns true if a page may grow when an entry is removed. With some codecs a block without one of its keys may
    /// be longer than with it.
    pub(crate) fn may_grow_on_removal(self) -> bool {
        self.codec().is_some_and(|codec| !codec.delete_stable())
    }

    /// Returns true if a tree may have inner pages with this list.
    pub fn suits_inner_pages(self) -> bool {
        self.adds_up()
    }

    /// Returns true if the page holds only parts of its keys. The tree keeps the whole keys in its key heap.
    /// [`super::super::Page::key_into`] and all functions that compare keys of the page are then meaningless.
    #[inline(always)]
    pub fn keys_are_out_of_line(self) -> bool {
        self.features().out_of_line
    }

    /// For a leaf of this list without records: predicts where a key is. Returns two ranges of bytes: the front of the
    /// page and the bytes around the key; `None` if this cannot be predicted. `part` returns how far the key is from
    /// the leaf's first key to its last, in 65536ths. It is called only if the answer is needed.
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

    /// See [`Scheme::first_key_len_is_valid`].
    pub(in crate::page) fn first_key_len_is_valid(self, len: usize) -> bool {
        with_scheme!(self, scheme => scheme.first_key_len_is_valid(len))
    }

    /// See [`Scheme::spare`].
    pub(in crate::page) fn spare(self, granule: usize) -> usize {
        with_scheme!(self, scheme => scheme.spare(granule))
    }

    /// See [`Scheme::slot_bytes`].
    pub(in crate::page) fn slot_bytes(self) -> usize {
        with_scheme!(self, scheme => scheme.slot_bytes())
    }

    /// See [`Scheme::front`].
    pub(in crate::page) fn front(self) -> usize {
        with_scheme!(self, scheme => scheme.front())
    }

    /// Returns the least bytes that an entry after the first one of its page takes. Its key has `len` bytes, of which
    /// `common` agree with the key before. The prefix of the page or of a group, or a delta, can save no more than
    /// these. `inner`: the page is an inner page.
    pub(crate) fn least_entry_bytes(self, len: usize, common: usize, inner: bool) -> usize {
        with_scheme!(self, scheme => scheme.least_entry_bytes(len, common, inner))
    }

    /// Returns the bytes that a suffix of that length takes in a list that is not dense, including its slot, without
    /// unused capacity.
    pub(in crate::page) fn entry_bytes(self, suffix_len: usize) -> usize {
        with_scheme!(self, scheme => scheme.entry_bytes(suffix_len))
    }
}
