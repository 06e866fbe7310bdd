//! Key lists: how the keys of a page are kept. A small closed interface with one `match` a page; one file a list.
//!
//! A key list sees *suffixes*: keys without the prefix that the page cuts off ([`KeyListKind::cuts_prefix`]). It
//! knows nothing of fences, records, inner pages (whose key 0 is an empty suffix) or long keys.

mod blocks;
mod db2;
mod delta;
mod fixed;
mod pkb;
mod slotted;
mod walk;

use crate::base::{Error, PageId, Result, bytes};
pub(super) use blocks::Blocks;
use blocks::BlocksBuilder;
pub use blocks::{Index, IntKey};
use db2::{Db2, Db2Builder, Origin};
use delta::{Delta, DeltaBuilder};
use duramen_codec::Codec;
use fixed::{Fixed, FixedBuilder};
use pkb::{Pkb, PkbBuilder};
use slotted::{Slotted, SlottedBuilder};
use std::ops::Range;
pub(super) use walk::{KeyWalk, Place, Walked};

/// The kind of a key list; [`KeyListKind::tag`] is its tag in the page header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyListKind {
    /// Whole keys with slots.
    Plain,
    /// Keys of one length, packed, without slots.
    Fixed,
    /// Keys with slots, without the common prefix of the page's fences.
    Head,
    /// Several prefixes, each for a run of keys, and slots.
    Db2,
    /// Prefix deltas, searched from the first one on without building keys.
    MyIsam,
    /// Whole keys, and beside them what tells each from the one before, in two bytes: for pages in memory.
    Pkb,
    /// The same in five bytes: for pages on a device.
    PkbLong,
    /// Prefix deltas in groups of about ten that begin with a whole key, searched from the last such one below.
    WiredTiger,
    /// Integer keys of 4 bytes in compressed blocks.
    Blocks32(Codec),
    /// Integer keys of 8 bytes in compressed blocks.
    Blocks64(Codec),
}

/// Tag of the blocks of 4-byte keys of the first codec; the others follow.
const BLOCKS32: u8 = 0x40;
/// Likewise of 8-byte keys.
const BLOCKS64: u8 = 0x48;

impl KeyListKind {
    /// The kind of that tag.
    #[inline(always)]
    pub fn from_tag(tag: u8) -> Option<KeyListKind> {
        KeyListKind::BY_TAG.get(usize::from(tag)).copied().flatten()
    }

    /// The number that stands for the kind in page headers and in the catalog.
    #[inline(always)]
    pub const fn tag(self) -> u8 {
        match self {
            KeyListKind::Plain => 1,
            KeyListKind::Fixed => 2,
            KeyListKind::Head => 3,
            KeyListKind::Db2 => 4,
            KeyListKind::MyIsam => 5,
            KeyListKind::WiredTiger => 0x15,
            KeyListKind::Pkb => 6,
            KeyListKind::PkbLong => 0x16,
            KeyListKind::Blocks32(codec) => BLOCKS32 + codec as u8,
            KeyListKind::Blocks64(codec) => BLOCKS64 + codec as u8,
        }
    }

    /// Every kind at the place of its tag: a search asks for it in each page.
    #[allow(clippy::indexing_slicing)] // done by the compiler, which would refuse one that fails
    const BY_TAG: [Option<KeyListKind>; 128] = {
        let mut kinds = [None; 128];
        let mut i = 0;
        while i < KeyListKind::ALL.len() {
            kinds[KeyListKind::ALL[i].tag() as usize] = Some(KeyListKind::ALL[i]);
            i += 1;
        }
        kinds
    };

    /// All kinds.
    #[allow(clippy::indexing_slicing)]
    pub const ALL: [KeyListKind; 24] = {
        let mut all = [KeyListKind::Plain; 24];
        all[1] = KeyListKind::Fixed;
        all[2] = KeyListKind::Head;
        all[3] = KeyListKind::MyIsam;
        all[4] = KeyListKind::WiredTiger;
        all[5] = KeyListKind::Db2;
        all[6] = KeyListKind::Pkb;
        all[7] = KeyListKind::PkbLong;
        let mut codec = 0;
        while codec < Codec::ALL.len() {
            all[8 + codec] = KeyListKind::Blocks32(Codec::ALL[codec]);
            all[16 + codec] = KeyListKind::Blocks64(Codec::ALL[codec]);
            codec += 1;
        }
        all
    };

    /// The length that every key must have, where the kind itself says it.
    pub fn key_len(self) -> Option<usize> {
        self.blocks().map(|(_, wide)| if wide { 8 } else { 4 })
    }

    /// The codec of a list of blocks, and whether its keys are those of 8 bytes.
    #[inline(always)]
    pub(super) fn blocks(self) -> Option<(Codec, bool)> {
        match self {
            KeyListKind::Blocks32(codec) => Some((codec, false)),
            KeyListKind::Blocks64(codec) => Some((codec, true)),
            _ => None,
        }
    }

    /// True where the list keeps keys without the common prefix of the page's fences.
    pub fn cuts_prefix(self) -> bool {
        !matches!(self, KeyListKind::Plain | KeyListKind::Fixed | KeyListKind::Blocks32(_) | KeyListKind::Blocks64(_))
    }

    /// True where neighbours share bytes of the list, so that whoever wants several entries walks ([`KeyWalk`]): it is
    /// quicker and says what each takes.
    #[inline(always)]
    pub(super) fn is_walked(self) -> bool {
        matches!(self, KeyListKind::Db2 | KeyListKind::MyIsam | KeyListKind::WiredTiger)
    }

    /// True where a tree may have inner pages of this list: any run of a page's entries fits in a page again that has the
    /// first key of the run and the one behind it for fences. Where an entry takes less than its key, it might not.
    pub fn suits_inner_pages(self) -> bool {
        !self.is_walked() && self.blocks().is_none()
    }

    /// Bytes of the key in the parts of a PkB list.
    #[inline(always)]
    fn part(self) -> usize {
        if self == KeyListKind::Pkb { pkb::SHORT } else { pkb::LONG }
    }

    /// True for the prefix-delta list with groups.
    #[inline(always)]
    fn has_groups(self) -> bool {
        self == KeyListKind::WiredTiger
    }

    /// True where an inner page's key 0, which is empty, may be kept in `len` bytes (zeros).
    pub(super) fn bare_len_is_valid(self, len: usize) -> bool {
        match self {
            KeyListKind::Fixed => true,
            KeyListKind::Blocks32(_) | KeyListKind::Blocks64(_) => false,
            _ => len == 0,
        }
    }

    /// Bytes that a suffix of that length takes, slots included, unused capacity not.
    pub(super) fn entry_bytes(self, suffix_len: usize) -> usize {
        match self {
            KeyListKind::Plain | KeyListKind::Head => slotted::entry_bytes(suffix_len),
            KeyListKind::Fixed | KeyListKind::Blocks32(_) | KeyListKind::Blocks64(_) => suffix_len,
            KeyListKind::Db2 => db2::entry_bytes(suffix_len),
            KeyListKind::Pkb | KeyListKind::PkbLong => pkb::entry_bytes(suffix_len, self.part()),
            KeyListKind::MyIsam | KeyListKind::WiredTiger => delta::entry_bytes(suffix_len, self.has_groups()),
        }
    }
}

/// The granule that the capacity of slotted lists is rounded up to, in entries.
#[inline(always)]
pub(super) fn granule(page_size: usize) -> usize {
    (page_size / 512).clamp(1, 16)
}

/// The capacity of a slotted list of `count` entries: a multiple of `granule`, which is a power of two.
#[inline(always)]
pub(super) fn capacity(count: usize, granule: usize) -> usize {
    (count + granule - 1) & !(granule - 1)
}

/// A key list to read. Any bytes are safe.
#[derive(Clone, Copy)]
pub(super) enum KeyList<'a> {
    Slotted(Slotted<'a>),
    Fixed(Fixed<'a>),
    Pkb(Pkb<'a>),
    Db2(Db2<'a>),
    Delta(Delta<'a>),
    Blocks(Blocks<'a>),
}

impl<'a> KeyList<'a> {
    /// The list of that kind in `list` (its bytes alone), with `count` entries.
    #[inline(always)]
    pub(super) fn new(kind: KeyListKind, list: &'a [u8], count: usize, granule: usize) -> KeyList<'a> {
        match kind {
            KeyListKind::Plain | KeyListKind::Head => KeyList::Slotted(Slotted::new(list, count, granule)),
            KeyListKind::Fixed => KeyList::Fixed(Fixed::new(list, count)),
            KeyListKind::Pkb | KeyListKind::PkbLong => KeyList::Pkb(Pkb::new(list, count, granule, kind.part())),
            KeyListKind::Db2 => KeyList::Db2(Db2::new(list, count, granule)),
            KeyListKind::MyIsam | KeyListKind::WiredTiger => KeyList::Delta(Delta::new(list, count, kind.has_groups())),
            KeyListKind::Blocks32(codec) => KeyList::Blocks(Blocks::new(codec, false, list, count)),
            KeyListKind::Blocks64(codec) => KeyList::Blocks(Blocks::new(codec, true, list, count)),
        }
    }

    /// The index of a list of blocks of that width.
    #[inline(always)]
    pub(super) fn index<T: IntKey>(&self) -> Option<Index<'a, T>> {
        match self {
            KeyList::Blocks(list) => list.index(),
            _ => None,
        }
    }

    /// `Ok(slot)` of the equal suffix, or `Err(slot)` of the first greater one.
    #[inline(always)]
    pub(super) fn search(&self, suffix: &[u8]) -> Result<usize, usize> {
        match self {
            KeyList::Slotted(list) => list.search(suffix),
            KeyList::Fixed(list) => list.search(suffix),
            KeyList::Pkb(list) => list.search(suffix),
            KeyList::Db2(list) => list.search(suffix),
            KeyList::Delta(list) => list.search(suffix),
            KeyList::Blocks(list) => list.search(suffix),
        }
    }

    /// Appends the suffix of `slot` to `out`; nothing where there is no such slot.
    #[inline]
    pub(super) fn append(&self, slot: usize, out: &mut Vec<u8>) {
        match self {
            KeyList::Slotted(list) => list.append(slot, out),
            KeyList::Fixed(list) => out.extend_from_slice(list.key(slot)),
            KeyList::Pkb(list) => out.extend_from_slice(list.key(slot)),
            KeyList::Db2(list) => list.append(slot, out),
            KeyList::Delta(list) => list.append(slot, out),
            KeyList::Blocks(list) => list.append(slot, out),
        }
    }

    /// Bytes of the list that the entry of `slot` takes, slots included, unused capacity not.
    #[inline]
    pub(super) fn entry_bytes(&self, slot: usize) -> usize {
        match self {
            KeyList::Slotted(list) => list.entry_bytes(slot),
            KeyList::Fixed(list) => list.stride(),
            KeyList::Pkb(list) => list.entry_bytes(slot),
            KeyList::Db2(list) => list.entry_bytes(slot),
            KeyList::Delta(list) => list.entry_bytes(slot),
            KeyList::Blocks(list) => list.entry_bytes(slot),
        }
    }

    /// The length of the suffix of `slot`.
    #[inline]
    pub(super) fn suffix_len(&self, slot: usize) -> usize {
        match self {
            KeyList::Slotted(list) => list.suffix_len(slot),
            KeyList::Fixed(list) => list.stride(),
            KeyList::Pkb(list) => list.key(slot).len(),
            KeyList::Db2(list) => list.suffix_len(slot),
            KeyList::Delta(list) => list.suffix_len(slot),
            KeyList::Blocks(list) => list.key_len(),
        }
    }

    /// The first slot from `from` on whose suffix is longer than `len`.
    pub(super) fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        match self {
            KeyList::Slotted(list) => list.first_longer(from, len),
            KeyList::Fixed(list) => list.first_longer(from, len),
            KeyList::Pkb(list) => list.first_longer(from, len),
            KeyList::Db2(list) => list.first_longer(from, len),
            KeyList::Delta(list) => list.first_longer(from, len),
            KeyList::Blocks(list) => list.first_longer(from, len),
        }
    }

    /// The length of the common prefix of the suffixes of `slot` and of the one before it.
    #[inline]
    pub(super) fn common_with_previous(&self, slot: usize) -> usize {
        match self {
            KeyList::Slotted(list) => list.common_with_previous(slot),
            KeyList::Fixed(list) => {
                slot.checked_sub(1).map_or(0, |left| bytes::common_prefix(list.key(left), list.key(slot)))
            }
            KeyList::Pkb(list) => list.common_with_previous(slot),
            KeyList::Db2(list) => list.common_in_group(slot).unwrap_or_else(|| self.built(slot, bytes::common_prefix)),
            KeyList::Delta(_) | KeyList::Blocks(_) => self.built(slot, bytes::common_prefix),
        }
    }

    /// True where the suffix of `slot` is above that of the one before it.
    #[inline]
    pub(super) fn is_above_previous(&self, slot: usize) -> bool {
        match self {
            KeyList::Slotted(list) => list.is_above_previous(slot),
            KeyList::Fixed(list) => slot.checked_sub(1).is_none_or(|left| list.key(left) < list.key(slot)),
            KeyList::Pkb(list) => list.is_above_previous(slot),
            KeyList::Db2(list) if slot > 0 => {
                list.is_above_in_group(slot).unwrap_or_else(|| self.built(slot, |left, right| left < right))
            }
            KeyList::Db2(_) | KeyList::Delta(_) | KeyList::Blocks(_) => {
                slot == 0 || self.built(slot, |left, right| left < right)
            }
        }
    }

    /// Asks about the suffixes of the slot before and of `slot`, as they are built; the default for slot 0.
    fn built<R: Default>(&self, slot: usize, ask: impl FnOnce(&[u8], &[u8]) -> R) -> R {
        let Some(before) = slot.checked_sub(1) else { return R::default() };
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.append(before, &mut left);
        self.append(slot, &mut right);
        ask(&left, &right)
    }

    /// Puts `place` before `slot`, or behind the last entry where there is no such slot.
    pub(super) fn seek(&self, place: &mut Place, slot: usize) {
        match self {
            KeyList::Delta(list) => list.seek(place, slot),
            _ => place.slot = slot,
        }
    }

    /// Passes the entry behind `place` and takes its key. False: the list has no more.
    #[inline]
    pub(super) fn advance(&self, place: &mut Place) -> bool {
        match self {
            KeyList::Delta(list) => return list.advance(place),
            KeyList::Db2(list) => return list.advance(place),
            _ => {
                place.key.clear();
                self.append(place.slot, &mut place.key);
                place.bytes = self.entry_bytes(place.slot);
                place.common = self.common_with_previous(place.slot);
                place.slot += 1;
            }
        }
        true
    }

    /// True where [`KeyList::check`] looks at the order of the keys as well.
    pub(super) fn checks_order(&self) -> bool {
        matches!(self, KeyList::Blocks(_))
    }

    /// Says what is wrong with the structure of the list (but for [`KeyList::checks_order`], not with the order of its
    /// keys).
    pub(super) fn check(&self, kind: KeyListKind, list: &[u8], count: usize) -> Result<(), String> {
        match self {
            KeyList::Slotted(slotted) => slotted.check(count),
            KeyList::Fixed(_) => fixed::check(list, count),
            KeyList::Pkb(pkb) => pkb.check(count),
            KeyList::Db2(db2) => db2.check(list, count),
            KeyList::Delta(delta) => delta.check(list, count, kind.has_groups()),
            KeyList::Blocks(blocks) => blocks.check(),
        }
        .map_err(|what| format!("key list {kind:?}: {what}"))
    }
}

/// Where a key list stands, for changing it: its bytes now, its entries, the granule of the page.
#[derive(Clone, Copy)]
pub(super) struct KeyState {
    pub(super) kind: KeyListKind,
    pub(super) bytes: usize,
    pub(super) count: usize,
    pub(super) granule: usize,
    /// Key 0 is an inner page's: empty.
    pub(super) inner: bool,
    /// Bytes that the list may have at the most, with what else the operation brings in the page.
    pub(super) room: usize,
}

/// What an insertion makes of a list: found once, to know whether it fits, and then done.
#[derive(Clone, Copy, Default)]
pub(super) struct Plan {
    /// Bytes that the list takes afterwards.
    pub(super) bytes: usize,
    /// What the list found out on the way; only it knows what that is.
    pub(super) found: [usize; 4],
}

impl Plan {
    fn of(bytes: usize) -> Plan {
        Plan { bytes, found: [0; 4] }
    }
}

/// False where the list's bytes cannot hold its entries' slots or keys: then it must not be changed.
pub(super) fn is_changeable(list: &[u8], state: KeyState) -> bool {
    match state.kind {
        KeyListKind::Plain | KeyListKind::Head => {
            state.bytes >= slotted::FIXED_PART * capacity(state.count, state.granule)
        }
        KeyListKind::Fixed => fixed::check(list, state.count).is_ok(),
        KeyListKind::Pkb | KeyListKind::PkbLong => {
            pkb::is_changeable(list, state.count, state.granule, state.kind.part())
        }
        KeyListKind::Db2 => db2::is_changeable(list, state.count, state.granule),
        KeyListKind::MyIsam | KeyListKind::WiredTiger => {
            delta::is_changeable(list, state.count, state.kind.has_groups())
        }
        KeyListKind::Blocks32(codec) => blocks::is_changeable(list, codec, false, state.count),
        KeyListKind::Blocks64(codec) => blocks::is_changeable(list, codec, true, state.count),
    }
}

/// Puts `suffix` at `slot`, if the list then has at most `state.room` bytes, and returns how many it has. `list` has all
/// the bytes up to the record list, those behind `state.bytes` being zero. What a shorter list frees is zeroed.
#[inline]
pub(super) fn insert(
    page: PageId,
    list: &mut [u8],
    state: KeyState,
    slot: usize,
    suffix: &[u8],
) -> Result<Option<usize>> {
    if let Some(blocks) = state.kind.blocks() {
        return blocks::insert(list, blocks, state, slot, suffix).map_err(|what| Error::corrupt(page, what));
    }
    let plan = plan(page, bytes::slice(list, 0, state.bytes), state, slot, suffix)?;
    if plan.bytes > state.room {
        return Ok(None);
    }
    insert_planned(list.get_mut(..plan.bytes.max(state.bytes)).unwrap_or_default(), state, slot, suffix, plan);
    Ok(Some(plan.bytes))
}

/// What putting `suffix` at `slot` makes of a list that is not of blocks.
#[inline]
fn plan(page: PageId, list: &[u8], state: KeyState, slot: usize, suffix: &[u8]) -> Result<Plan> {
    match state.kind {
        KeyListKind::Fixed => {
            fixed::bytes_with(list, state, suffix).map(Plan::of).map_err(|what| Error::corrupt(page, what))
        }
        KeyListKind::Pkb | KeyListKind::PkbLong => {
            Ok(Plan::of(pkb::edit::bytes_with(state, state.kind.part(), suffix)))
        }
        KeyListKind::Db2 => Ok(db2::edit::plan(list, state, slot, suffix)),
        KeyListKind::MyIsam | KeyListKind::WiredTiger => {
            Ok(delta::edit::plan(list, state, state.kind.has_groups(), slot, suffix))
        }
        _ => Ok(Plan::of(slotted::edit::bytes_with(state, suffix))),
    }
}

/// Puts `suffix` at `slot` as planned; `list` has the bytes of the plan or those of now, whichever are more.
#[inline]
fn insert_planned(list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8], plan: Plan) {
    match state.kind {
        KeyListKind::Fixed => fixed::insert(list, state, slot, suffix),
        KeyListKind::Pkb | KeyListKind::PkbLong => pkb::edit::insert(list, state, state.kind.part(), slot, suffix),
        KeyListKind::Db2 => db2::edit::insert(list, state, slot, suffix, plan),
        KeyListKind::MyIsam | KeyListKind::WiredTiger => {
            delta::edit::insert(list, state, state.kind.has_groups(), slot, suffix, plan);
        }
        _ => slotted::edit::insert(list, state, slot, suffix),
    }
}

/// Takes the entries `[from, to)` out, zeroes what that frees and returns the bytes that the list takes then: `None`
/// where that would be more than `state.room`. `list` is as for [`insert`].
pub(super) fn remove(page: PageId, list: &mut [u8], state: KeyState, from: usize, to: usize) -> Result<Option<usize>> {
    if let Some(blocks) = state.kind.blocks() {
        return blocks::remove(list, blocks, state, from, to).map_err(|what| Error::corrupt(page, what));
    }
    let list = list.get_mut(..state.bytes).unwrap_or_default();
    Ok(Some(match state.kind {
        KeyListKind::Fixed => fixed::remove(list, state, from, to),
        KeyListKind::Pkb | KeyListKind::PkbLong => pkb::edit::remove(list, state, state.kind.part(), from, to),
        KeyListKind::Db2 => db2::edit::remove(list, state, from, to),
        KeyListKind::MyIsam | KeyListKind::WiredTiger => {
            delta::edit::remove(list, state, state.kind.has_groups(), from, to)
        }
        _ => slotted::edit::remove(list, state, from, to),
    }))
}

/// Lays the list out anew so that it takes at most `state.room` bytes, and returns how many; `None` where it cannot.
pub(super) fn vacuumize(list: &mut [u8], state: KeyState) -> Option<usize> {
    blocks::vacuumize(list, state.kind.blocks()?, state)
}

/// A key list under construction.
pub(super) enum KeyListBuilder {
    Slotted(SlottedBuilder),
    Fixed(FixedBuilder),
    Pkb(PkbBuilder),
    Db2(Db2Builder),
    Delta(DeltaBuilder),
    Blocks(BlocksBuilder),
}

impl KeyListBuilder {
    /// Begins a list of up to some `bytes`.
    pub(super) fn new(kind: KeyListKind, granule: usize, inner: bool, bytes: usize) -> KeyListBuilder {
        match kind {
            KeyListKind::Plain | KeyListKind::Head => KeyListBuilder::Slotted(SlottedBuilder::new(granule, bytes)),
            KeyListKind::Fixed => KeyListBuilder::Fixed(FixedBuilder::new(inner)),
            KeyListKind::Pkb | KeyListKind::PkbLong => {
                KeyListBuilder::Pkb(PkbBuilder::new(granule, kind.part(), bytes))
            }
            KeyListKind::Db2 => KeyListBuilder::Db2(Db2Builder::new(granule, bytes)),
            KeyListKind::MyIsam | KeyListKind::WiredTiger => {
                KeyListBuilder::Delta(DeltaBuilder::new(kind.has_groups(), bytes))
            }
            KeyListKind::Blocks32(codec) => KeyListBuilder::Blocks(BlocksBuilder::new(codec, false)),
            KeyListKind::Blocks64(codec) => KeyListBuilder::Blocks(BlocksBuilder::new(codec, true)),
        }
    }

    /// Bytes that the list takes with one more entry of `suffix`; `None` where it cannot hold that one at all.
    #[inline]
    pub(super) fn bytes_with(&self, suffix: &[u8]) -> Option<usize> {
        match self {
            KeyListBuilder::Slotted(list) => Some(list.bytes_with(suffix.len())),
            KeyListBuilder::Fixed(list) => list.bytes_with(suffix),
            KeyListBuilder::Pkb(list) => Some(list.bytes_with(suffix.len())),
            KeyListBuilder::Db2(list) => Some(list.bytes_with(suffix, None)),
            KeyListBuilder::Delta(list) => Some(list.bytes_with(suffix, None)),
            KeyListBuilder::Blocks(list) => list.bytes_with(suffix),
        }
    }

    /// Appends an entry; [`KeyListBuilder::bytes_with`] it is not `None`.
    #[inline]
    pub(super) fn push(&mut self, suffix: &[u8]) {
        match self {
            KeyListBuilder::Slotted(list) => list.push(suffix),
            KeyListBuilder::Fixed(list) => list.push(suffix),
            KeyListBuilder::Pkb(list) => list.push(suffix),
            KeyListBuilder::Db2(list) => list.push(suffix, None),
            KeyListBuilder::Delta(list) => list.push(suffix, None),
            KeyListBuilder::Blocks(list) => list.push(suffix),
        }
    }

    /// Bytes that the list takes with an entry of another list of its kind, less the first `cut` bytes of its suffix.
    #[inline]
    pub(super) fn bytes_with_walked(&self, entry: &Walked<'_>, cut: usize) -> Option<usize> {
        let suffix = entry.suffix.get(cut..)?;
        match self {
            KeyListBuilder::Db2(list) => Some(list.bytes_with(suffix, Some(Origin::of(entry, cut)))),
            KeyListBuilder::Delta(list) => Some(list.bytes_with(suffix, Some(entry.group))),
            _ => self.bytes_with(suffix),
        }
    }

    /// Appends that entry; [`KeyListBuilder::bytes_with_walked`] it is not `None`.
    #[inline]
    pub(super) fn push_walked(&mut self, entry: &Walked<'_>, cut: usize) {
        let suffix = entry.suffix.get(cut..).unwrap_or_default();
        match self {
            KeyListBuilder::Db2(list) => list.push(suffix, Some(Origin::of(entry, cut))),
            KeyListBuilder::Delta(list) => list.push(suffix, Some(entry.group)),
            _ => self.push(suffix),
        }
    }

    /// Bytes that the list takes with the entry of `slot` of another list, less the first `cut` bytes of its suffix;
    /// `None` where that one cannot be taken over as it is.
    #[inline]
    pub(super) fn bytes_with_entry(&self, list: &KeyList<'_>, slot: usize, cut: usize) -> Option<usize> {
        match (self, list) {
            (KeyListBuilder::Slotted(to), KeyList::Slotted(from)) => {
                Some(to.bytes_with(from.suffix_len(slot).checked_sub(cut)?))
            }
            (KeyListBuilder::Fixed(to), KeyList::Fixed(from)) if cut == 0 => to.bytes_with(from.key(slot)),
            (KeyListBuilder::Pkb(to), KeyList::Pkb(from)) => Some(to.bytes_with(from.key(slot).get(cut..)?.len())),
            _ => None,
        }
    }

    /// Appends that entry; [`KeyListBuilder::bytes_with_entry`] it is not `None`.
    #[inline]
    pub(super) fn push_entry(&mut self, list: &KeyList<'_>, slot: usize, cut: usize) {
        match (self, list) {
            (KeyListBuilder::Slotted(to), KeyList::Slotted(from)) => to.push_entry(from.entry(slot).without(cut)),
            (KeyListBuilder::Fixed(to), KeyList::Fixed(from)) => to.push(from.key(slot)),
            (KeyListBuilder::Pkb(to), KeyList::Pkb(from)) => to.push(from.key(slot).get(cut..).unwrap_or_default()),
            _ => {}
        }
    }

    /// Bytes of the list after a push that was to make it `expected`: fewer where it has found a better layout.
    #[inline]
    pub(super) fn bytes_after(&self, expected: usize) -> usize {
        match self {
            KeyListBuilder::Db2(list) => list.bytes(),
            _ => expected,
        }
    }

    /// Takes over the entries of some slots of another list whole blocks at a time, and returns the bytes that the list
    /// takes then. `None`: the two are no lists of blocks of one codec, or the keys are none that this one can hold.
    pub(super) fn take(&mut self, list: &KeyList<'_>, slots: Range<usize>) -> Option<usize> {
        match (self, list) {
            (KeyListBuilder::Blocks(to), KeyList::Blocks(from)) => to.take(from, slots).then(|| to.bytes()),
            _ => None,
        }
    }

    /// Appends the finished list to `out`.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        match self {
            KeyListBuilder::Slotted(list) => list.finish(out),
            KeyListBuilder::Fixed(list) => list.finish(out),
            KeyListBuilder::Pkb(list) => list.finish(out),
            KeyListBuilder::Db2(list) => list.finish(out),
            KeyListBuilder::Delta(list) => list.finish(out),
            KeyListBuilder::Blocks(list) => list.finish(out),
        }
    }
}
