//! Power cuts: the states of the device that are possible at an event of the history, and the choice of one of them.
//!
//! `docs/durability.md` states the rules as assumptions about real devices. Everything that was synced is there. A
//! device block has one of the versions that it has had since the sync. A block that was being written may have a
//! mixture of them by sectors, unless the device writes blocks atomically. Lengths change in order. Changes of one name
//! keep their order; changes of different names may come in any order.

use crate::history::{Change, Event, FileId, Names, Naming};
use crate::image::{DEVICE_BLOCK, Image, SECTOR, clear_bytes, parts, usize_of};
use crate::state::{File, State};
use crate::volume::FailingVolume;
use std::collections::{BTreeMap, BTreeSet};

/// A power cut: its time, and its effect on the changes that were not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The event in flight: those before it had returned, itself and the later ones had not. The length of the
    /// history stands for a cut after everything.
    pub event: usize,
    /// Its effect on the changes that no sync had made durable.
    pub choice: CutChoice,
}

/// The effect of a power cut on the changes that were not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutChoice {
    /// All are lost, and the event in flight had no effect.
    DropUnsynced,
    /// All are durable, and the event in flight had no effect.
    KeepAll,
    /// Each device block, each length and each name has the state of some moment since its last sync, chosen by the
    /// seed; the event in flight takes part.
    Random(u64),
    /// All are durable, and the event in flight was partly done: a write torn between sectors, a sync of some sectors
    /// only, any other change done or not.
    Torn(u64),
}

impl FailingVolume {
    /// The volume as `cut` leaves it: everything on it durable, no locks held, no faults set, its history empty, so
    /// that a recovery on it can be cut again.
    pub fn crash(&self, cut: Cut) -> FailingVolume {
        self.with(|state| FailingVolume::from_state(after(state, cut)))
    }

    /// The cuts worth testing: each event of the history cut in each way, with `seeds` seeds for the random ones. Cuts
    /// with the same result as another one are left out.
    pub fn cuts(&self, seeds: u64) -> Vec<Cut> {
        self.with(|state| {
            let mut cuts = Vec::new();
            for event in 0..=state.events.len() {
                let in_flight = state.events.get(event);
                if matches!(in_flight, Some(Event::Mark(_) | Event::Rot { .. })) {
                    continue;
                }
                let before = event.checked_sub(1).and_then(|before| state.events.get(before));
                let mut choices = Vec::new();
                // A change makes nothing durable and a sync changes nothing that is kept; a mark in between may ask
                // more of the same state.
                if !before.is_some_and(Event::is_change) {
                    choices.push(CutChoice::DropUnsynced);
                }
                if !before.is_some_and(Event::is_sync) {
                    choices.push(CutChoice::KeepAll);
                }
                for seed in 0..seeds {
                    choices.push(CutChoice::Random(seed));
                    if in_flight.is_some() {
                        choices.push(CutChoice::Torn(seed));
                    }
                }
                cuts.extend(choices.into_iter().map(|choice| Cut { event, choice }));
            }
            cuts
        })
    }
}

/// The device that `cut` leaves of `state`.
fn after(state: &State, cut: Cut) -> State {
    let event = cut.event.min(state.events.len());
    let seed = match cut.choice {
        CutChoice::DropUnsynced | CutChoice::KeepAll => 0,
        CutChoice::Random(seed) | CutChoice::Torn(seed) => seed,
    };
    // The same seed must not make the same choices at every event.
    let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ event as u64);
    let mut names = surviving_names(state, event, cut.choice, &mut rng);
    let mut files = Vec::with_capacity(names.len());
    for file in names.values_mut() {
        let content = surviving_content(state, *file, event, cut.choice, &mut rng);
        *file = files.len();
        files.push(File::new(0, content));
    }
    let State { atomic_blocks, ignores_trims, ignores_reservations, .. } = *state;
    State { atomic_blocks, ignores_trims, ignores_reservations, ..State::new(rng.u64(..), names, files) }
}

fn surviving_names(state: &State, event: usize, choice: CutChoice, rng: &mut fastrand::Rng) -> Names {
    let Some((durable, pending)) = state.folder.at(event) else { return Names::new() };
    let mut names = Names::clone(durable);
    let naming = |event: usize| match state.events.get(event) {
        Some(Event::Naming(naming)) => Some(naming),
        _ => None,
    };
    let pending = pending.iter().copied().filter_map(naming);
    match (choice, state.events.get(event)) {
        (CutChoice::DropUnsynced, _) => {}
        (CutChoice::Random(_), _) | (CutChoice::Torn(_), Some(Event::SyncFolder)) => {
            scatter_names(&mut names, pending.chain(naming(event)), rng);
        }
        (CutChoice::KeepAll | CutChoice::Torn(_), _) => {
            pending.for_each(|naming| naming.apply(&mut names));
            if let (CutChoice::Torn(_), Some(in_flight)) = (choice, naming(event))
                && rng.bool()
            {
                in_flight.apply(&mut names);
            }
        }
    }
    names
}

/// Applies some of `changes`; one is lost for certain where an earlier one of the same name is.
fn scatter_names<'a>(names: &mut Names, changes: impl Iterator<Item = &'a Naming>, rng: &mut fastrand::Rng) {
    let mut lost = BTreeSet::new();
    for change in changes {
        let touched = change.touches();
        if touched.iter().any(|name| lost.contains(name)) || rng.bool() {
            lost.extend(touched);
        } else {
            change.apply(names);
        }
    }
}

fn surviving_content(state: &State, file: FileId, event: usize, choice: CutChoice, rng: &mut fastrand::Rng) -> Image {
    let Some((durable, mut pending)) = state.pending(file, event) else { return Image::default() };
    let in_flight = state.events.get(event);
    let changing = match in_flight {
        Some(Event::Change { file: changing, change }) if *changing == file && change.changes_content_or_length() => {
            Some(change)
        }
        _ => None,
    };
    let is_synced = match in_flight {
        Some(Event::Sync { file: syncing } | Event::FailedSync { file: syncing }) => *syncing == file,
        Some(Event::Change { file: syncing, change }) => *syncing == file && !change.changes_content_or_length(),
        _ => false,
    };
    match choice {
        CutChoice::DropUnsynced => drop_unsynced(durable, &pending),
        CutChoice::KeepAll => keep_all(Some((durable, pending))),
        CutChoice::Random(_) => {
            pending.extend(changing);
            scatter(durable, &pending, some_torn(state), rng)
        }
        CutChoice::Torn(_) => match changing {
            Some(change) => {
                let mut content = keep_all(Some((durable, pending)));
                tear(&mut content, change, if state.atomic_blocks { DEVICE_BLOCK } else { SECTOR }, rng);
                content
            }
            None if is_synced => scatter(durable, &pending, if state.atomic_blocks { 0.0 } else { 1.0 }, rng),
            None => keep_all(Some((durable, pending))),
        },
    }
}

/// Returns the durable content plus those pending changes that a [`Change::SyncBytes`] has made durable. All other
/// pending changes are dropped.
fn drop_unsynced(durable: &Image, changes: &[&Change]) -> Image {
    let mut content = durable.clone();
    if changes.iter().all(|change| change.changes_content_or_length()) {
        return content;
    }
    for (block, effects) in effects(durable, changes) {
        let done = synced(&effects);
        if done > 0 {
            content.edit(block, |bytes| {
                effects[..done].iter().for_each(|effect| effect.apply(bytes, 0, DEVICE_BLOCK));
            });
        }
    }
    content
}

/// How many of the effects on a block a sync of its bytes has made durable.
fn synced(effects: &[Effect<'_>]) -> usize {
    effects.iter().rposition(|effect| matches!(effect.what, What::Sync)).map_or(0, |last| last + 1)
}

/// All pending changes done.
pub(crate) fn keep_all(pending: Option<(&Image, Vec<&Change>)>) -> Image {
    let Some((durable, changes)) = pending else { return Image::default() };
    let mut content = durable.clone();
    changes.iter().for_each(|change| change.apply(&mut content));
    content
}

/// Some of the pending changes of a file done, as by a power cut.
pub(crate) fn scatter_some(state: &State, file: FileId, rng: &mut fastrand::Rng) -> Image {
    let Some((durable, changes)) = state.pending(file, state.events.len()) else { return Image::default() };
    scatter(durable, &changes, some_torn(state), rng)
}

/// The share of blocks that are torn where none need be.
fn some_torn(state: &State) -> f64 {
    if state.atomic_blocks { 0.0 } else { 0.25 }
}

/// Does a part of the change in flight, which the device writes in units of `unit` bytes.
fn tear(content: &mut Image, change: &Change, unit: usize, rng: &mut fastrand::Rng) {
    let Change::Write { offset, data } = change else {
        if rng.bool() {
            change.apply(content);
        }
        return;
    };
    let end = offset + data.len() as u64;
    let units = end.div_ceil(unit as u64) - offset / unit as u64;
    let (pattern, border) = (rng.u8(0..3), rng.u64(0..=units));
    let mut at = 0;
    for number in 0..units {
        let room = unit - (usize_of(*offset) + at) % unit;
        let len = room.min(data.len() - at);
        let written = match pattern {
            0 => number < border,
            1 => number >= border,
            _ => rng.bool(),
        };
        if written {
            content.write(offset + at as u64, &data[at..at + len]);
        }
        at += len;
    }
    // The length may have got through without the bytes.
    if end > content.len() && rng.bool() {
        content.resize(end);
    }
}

/// The effect of a change on one device block.
struct Effect<'a> {
    /// Which of the pending changes it belongs to.
    change: usize,
    start: usize,
    what: What<'a>,
}

enum What<'a> {
    Write(&'a [u8]),
    /// This number of bytes becomes zeros.
    Trim(usize),
    /// Everything from the start on becomes zero, because the file ends there.
    End,
    /// Nothing becomes different: the effects before it are durable.
    Sync,
}

impl Effect<'_> {
    /// Does the part of it that lies in `[from, to)` of the block.
    fn apply(&self, bytes: &mut [u8; DEVICE_BLOCK], from: usize, to: usize) {
        let len = match self.what {
            What::Write(data) => data.len(),
            What::Trim(len) => len,
            What::End => DEVICE_BLOCK - self.start,
            What::Sync => 0,
        };
        let (from, to) = (from.max(self.start), to.min(self.start + len));
        if from >= to {
            return;
        }
        match self.what {
            What::Write(data) => bytes[from..to].copy_from_slice(&data[from - self.start..to - self.start]),
            What::Trim(_) => clear_bytes(&mut bytes[from..to]),
            What::End => bytes[from..to].fill(0),
            What::Sync => {}
        }
    }
}

/// The effects of `changes`, in order, by the block that they change.
fn effects<'a>(durable: &Image, changes: &[&'a Change]) -> BTreeMap<usize, Vec<Effect<'a>>> {
    let mut blocks: BTreeMap<usize, Vec<Effect<'a>>> = BTreeMap::new();
    let mut file_len = durable.len();
    for (change, &done) in changes.iter().enumerate() {
        match done {
            Change::Write { offset, data } => {
                for part in parts(*offset, data.len()) {
                    let what = What::Write(&data[part.at..part.at + part.len]);
                    blocks.entry(part.block).or_default().push(Effect { change, start: part.start, what });
                }
            }
            Change::Trim { offset, len } => {
                let len = usize_of((*len).min(file_len.saturating_sub(*offset)));
                for part in parts(*offset, len) {
                    let effect = Effect { change, start: part.start, what: What::Trim(part.len) };
                    blocks.entry(part.block).or_default().push(effect);
                }
            }
            Change::Resize { len } if *len < file_len => {
                let (first, start) = (usize_of(*len) / DEVICE_BLOCK, usize_of(*len) % DEVICE_BLOCK);
                for block in (first..durable.blocks()).filter(|&block| durable.is_written(block)) {
                    blocks.entry(block).or_default();
                }
                for (&block, effects) in blocks.range_mut(first..) {
                    let start = if block == first { start } else { 0 };
                    effects.push(Effect { change, start, what: What::End });
                }
            }
            Change::SyncBytes { offset, len } => {
                for part in parts(*offset, usize_of(*len)) {
                    let effect = Effect { change, start: part.start, what: What::Sync };
                    blocks.entry(part.block).or_default().push(effect);
                }
            }
            Change::Resize { .. } => {}
        }
        file_len = done.len_after(file_len);
    }
    blocks
}

/// Chooses a state that a power cut can leave: `durable` with each block, and the length, at some moment of
/// `changes`; a share `torn` of the blocks is a mixture of moments by sectors.
fn scatter(durable: &Image, changes: &[&Change], torn: f64, rng: &mut fastrand::Rng) -> Image {
    let mut content = durable.clone();
    if changes.is_empty() {
        return content;
    }
    // States with nearly all changes, or nearly none, are as likely as those in between: some mistakes show only if a
    // single block is missing, or is the only one.
    let mode = rng.u8(0..3);
    let moment = |rng: &mut fastrand::Rng, least: usize, most: usize| match mode {
        0 if rng.u8(0..20) > 0 => least,
        1 if rng.u8(0..20) > 0 => most,
        _ => rng.usize(least..=most),
    };
    let lengths = moment(rng, 0, changes.len());
    let len = changes[..lengths].iter().fold(durable.len(), |len, change| change.len_after(len));
    let longest = changes.iter().scan(durable.len(), |len, change| {
        *len = change.len_after(*len);
        Some(*len)
    });
    content.resize(longest.max().unwrap_or_default().max(durable.len()));
    for (block, effects) in effects(durable, changes) {
        // A file that was truncated lost its blocks at that moment, neither before nor after.
        let is_end = |effect: &Effect<'_>| matches!(effect.what, What::End);
        let least = effects.iter().rposition(|e| is_end(e) && e.change < lengths).map_or(0, |last| last + 1);
        let least = least.max(synced(&effects));
        let most = effects.iter().position(|e| is_end(e) && e.change >= lengths).unwrap_or(effects.len()).max(least);
        // A trim frees a block or does not.
        let trimmed = effects.iter().all(|effect| matches!(effect.what, What::Trim(DEVICE_BLOCK)));
        let step = if rng.f64() < torn && !trimmed { SECTOR } else { DEVICE_BLOCK };
        for from in (0..DEVICE_BLOCK).step_by(step) {
            let upto = moment(rng, least, most);
            if upto > 0 {
                content.edit(block, |bytes| {
                    effects[..upto].iter().for_each(|effect| effect.apply(bytes, from, from + step));
                });
            }
        }
    }
    content.resize(len);
    content
}
