//! The implementation of [`Scheme`] for the prefix-delta key lists: MyISAM's, and WiredTiger's with its ways to reach a
//! key.

use super::best::{self, MIN_FOOTER};
use super::{Delta, DeltaBuilder, edit};
use crate::page::keys::scheme::{EditResult, Features, Scheme, insert_planned, own_bytes};
use crate::page::keys::table::Parameter;
use crate::page::keys::{InsertPlan, KeyState};

/// How WiredTiger's list reaches a key without building all the keys before it (paper, section 2.5.3). A list with
/// neither way is MyISAM's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Instantiation {
    /// Roll-forward distance control: about every tenth key is whole.
    RollForward = 1,
    /// The best prefix group: the longest run of entries that one base key completes, each independently of the others.
    BestGroup = 2,
    /// Both ways.
    Both = 3,
}

impl Instantiation {
    const fn with_bytes(self) -> (Instantiation, [u8; 2]) {
        (self, [0, self as u8])
    }
}

impl Parameter for Instantiation {
    const ALL: &'static [(Instantiation, [u8; 2])] = &[
        Instantiation::RollForward.with_bytes(),
        Instantiation::BestGroup.with_bytes(),
        Instantiation::Both.with_bytes(),
    ];

    fn bytes(self) -> [u8; 2] {
        self.with_bytes().1
    }

    #[inline(always)]
    fn of([codec, variant]: [u8; 2]) -> Option<Instantiation> {
        match variant {
            _ if codec != 0 => None,
            1 => Some(Instantiation::RollForward),
            2 => Some(Instantiation::BestGroup),
            3 => Some(Instantiation::Both),
            _ => None,
        }
    }
}

/// The prefix-delta key list.
#[derive(Clone, Copy)]
pub(crate) struct DeltaScheme {
    /// The list has groups, each of which begins with a whole key.
    pub(super) grouped: bool,
    /// The list has a best prefix group, in room that is otherwise unused.
    pub(super) best: bool,
}

impl DeltaScheme {
    pub(crate) const MYISAM: DeltaScheme = DeltaScheme { grouped: false, best: false };

    #[inline(always)]
    pub(crate) fn wired_tiger(ways: Instantiation) -> DeltaScheme {
        DeltaScheme { grouped: ways != Instantiation::BestGroup, best: ways != Instantiation::RollForward }
    }
}

impl Scheme for DeltaScheme {
    type List<'a> = Delta<'a>;
    type Builder = DeltaBuilder;

    #[inline(always)]
    fn features(self) -> Features {
        Features { walked: true, ..Features::USUAL }
    }

    #[inline(always)]
    fn list(self, list: &[u8], count: usize, _granule: usize) -> Delta<'_> {
        Delta::of_scheme(list, count, self)
    }

    fn builder(self, _granule: usize, _inner: bool, bytes: usize) -> DeltaBuilder {
        DeltaBuilder::new(self, bytes)
    }

    fn entry_bytes(self, suffix_len: usize) -> usize {
        super::entry_bytes(suffix_len, self.grouped)
    }

    fn least_entry_bytes(self, len: usize, common: usize, _inner: bool) -> usize {
        super::least_entry_bytes(len.saturating_sub(common))
    }

    fn spare(self, _granule: usize) -> usize {
        if self.best { MIN_FOOTER } else { 0 }
    }

    fn is_changeable(self, list: &[u8], state: KeyState) -> bool {
        match self.best {
            true => best::is_changeable(list, state.count, self.grouped),
            false => super::is_changeable(list, state.count, self.grouped),
        }
    }

    fn plan(self, list: &[u8], state: KeyState, slot: usize, suffix: &[u8]) -> Result<Option<InsertPlan>, String> {
        let plan = if self.best { best::plan } else { edit::plan };
        plan(list, state, self.grouped, slot, suffix).map(Some)
    }

    fn insert(self, list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8]) -> EditResult {
        if self.best {
            return best::insert(list, state, self.grouped, slot, suffix);
        }
        insert_planned(self, list, state, slot, suffix, |list, plan| {
            edit::insert(list, state, self.grouped, slot, suffix, plan);
        })
    }

    fn remove(self, list: &mut [u8], state: KeyState, from: usize, to: usize) -> EditResult {
        let remove = if self.best { best::remove } else { edit::remove };
        remove(own_bytes(list, state), state, self.grouped, from, to).map(Some)
    }

    fn vacuumize(self, list: &mut [u8], state: KeyState) -> Option<usize> {
        if self.best { best::vacuumize(list, state, self.grouped) } else { None }
    }
}
