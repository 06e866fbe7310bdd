//! Key lists: how a page stores its keys. This is a small closed interface. Each access to a page has one `match`,
//! generated from the one [table] of all lists. Each list has a file or folder of its own; no code outside refers to a
//! list by name.
//!
//! A key list stores *suffixes*: keys without the prefix that the page cuts off ([`KeyListKind::cuts_prefix`]). Key 0
//! of an inner page is an empty suffix.

#[macro_use]
mod table;
mod blocks;
mod db2;
mod delta;
mod directory;
mod edit;
mod fixed;
mod kind;
mod layout;
mod pkb;
mod row;
mod scheme;
mod slotted;
mod walk;

pub use blocks::BlockRule;
pub(super) use blocks::Blocks;
pub use delta::Instantiation;
use edit::InsertPlan;
pub(super) use edit::{
    KeyState, count_in_one_block, insert, insert_in_place, insert_run, is_changeable, remove, vacuumize, would_insert,
};
pub use layout::{KeyLayout, KeyProperties};
pub use pkb::out_of_line::KeyPlace;
pub(super) use pkb::out_of_line::{OutOfLine, no_place};
pub(super) use row::AdjacentKeys;
use scheme::{Build, List};
pub use table::KeyListKind;
pub(super) use table::{KeyList, KeyListBuilder};
pub(super) use walk::{KeyWalk, WalkPosition, Walked};

/// The bytes that are reserved for a suffix of unknown length.
pub(super) const USUAL_SUFFIX: usize = 48;

pub(super) use crate::base::limits::granule;

/// The damage of a suffix that is not within the bytes of its list.
fn no_suffix(slot: usize) -> String {
    format!("the suffix of slot {slot} is not within the heap")
}

/// Returns the capacity of a slotted list of `count` entries: a multiple of `granule`, which is a power of two.
#[inline(always)]
pub(super) fn capacity(count: usize, granule: usize) -> usize {
    (count + granule - 1) & !(granule - 1)
}

/// Defines methods that call the method of the same name of the list in the enum.
macro_rules! forward {
    ($with:ident to $trait:ident: $($(#[$how:meta])* fn $name:ident($($args:tt)*) $(-> $out:ty)?;)*) => {
        $(forward! { one $with $trait $(#[$how])* fn $name($($args)*) $(-> $out)? })*
    };
    (one $with:ident $trait:ident $(#[$how:meta])*
        fn $name:ident(&$self:ident $(, $arg:ident: $ty:ty)*) $(-> $out:ty)?) => {
        #[doc = concat!("See [`", stringify!($trait), "::", stringify!($name), "`].")]
        $(#[$how])*
        pub(super) fn $name(&$self $(, $arg: $ty)*) $(-> $out)? {
            $with!($self, list => list.$name($($arg),*))
        }
    };
    (one $with:ident $trait:ident $(#[$how:meta])*
        fn $name:ident(&mut $self:ident $(, $arg:ident: $ty:ty)*) $(-> $out:ty)?) => {
        #[doc = concat!("See [`", stringify!($trait), "::", stringify!($name), "`].")]
        $(#[$how])*
        pub(super) fn $name(&mut $self $(, $arg: $ty)*) $(-> $out)? {
            $with!($self, list => list.$name($($arg),*))
        }
    };
}

impl<'a> KeyList<'a> {
    forward! { with_list to List:
        #[inline(always)] fn blocks(&self) -> Option<Blocks<'a>>;
        #[inline(always)] fn out_of_line(&self) -> Option<OutOfLine<'a>>;
        #[inline(always)] fn search(&self, suffix: &[u8]) -> Result<usize, usize>;
        #[inline] fn append(&self, slot: usize, out: &mut Vec<u8>);
        #[inline] fn entry_bytes(&self, slot: usize) -> usize;
        fn is_dense_without(&self, suffix: &[u8]) -> bool;
        fn kept_bytes(&self, count: usize) -> usize;
        #[inline] fn suffix_len(&self, slot: usize) -> usize;
        fn first_longer(&self, from: usize, len: usize) -> Option<usize>;
        #[inline] fn common_with_previous(&self, slot: usize) -> usize;
        #[inline(always)] fn is_above(&self, slot: usize, suffix: &[u8]) -> bool;
        #[inline] fn is_above_previous(&self, slot: usize) -> bool;
        #[inline(always)] fn part_of_way(&self, from: Option<&[u8]>, slot: usize, key: &[u8]) -> Option<usize>;
        fn seek(&self, place: &mut WalkPosition, slot: usize);
        #[inline] fn advance(&self, place: &mut WalkPosition) -> bool;
        fn checks_order(&self) -> bool;
    }

    /// Adds the keys of the slots `[from, to)`, each after `prefix`, to an empty row. Adds fewer keys if the list has
    /// no more. `place` is the end of the last call's keys if that call was for this list.
    #[inline(always)]
    pub(super) fn add_to(
        &self,
        row: &mut AdjacentKeys,
        prefix: &[u8],
        place: &mut WalkPosition,
        from: usize,
        to: usize,
    ) {
        row.reserve(to.saturating_sub(from));
        with_list!(self, list => list.add_to(row, prefix, place, from, to));
    }

    /// See [`List::check`].
    pub(super) fn check(&self, kind: KeyListKind, list: &[u8], count: usize) -> Result<(), String> {
        with_list!(self, own => own.check(list, count)).map_err(|what| format!("key list {kind:?}: {what}"))
    }
}

impl KeyListBuilder {
    forward! { with_builder to Build:
        #[inline] fn bytes_with(&self, suffix: &[u8]) -> Option<usize>;
        #[inline] fn push(&mut self, suffix: &[u8]);
        #[inline] fn push_walked(&mut self, entry: &Walked<'_>, cut: usize) -> Option<usize>;
        #[inline] fn bytes_after(&self, expected: usize) -> usize;
    }

    /// See [`Build::finish`].
    pub(super) fn finish(self, room: usize, out: &mut Vec<u8>) {
        with_builder!(self, list => list.finish(room, out));
    }
}
