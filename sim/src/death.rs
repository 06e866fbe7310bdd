//! The death of a process on a machine that continues to run, and the files that the next process finds. The system has
//! all bytes that were written, and reads return them. Bytes that no sync has covered may still reach the device; bytes
//! that a failed sync has lost never will. `crash` decides the effect of a later power cut.

use crate::history::{Change, Event, FileId};
use crate::image::{DEVICE_BLOCK, Image, usize_of};
use crate::state::{File, State};
use crate::volume::FailingVolume;
use std::sync::Arc;

/// The end of a process: its time and its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Death {
    /// The event in flight: those before it had returned. The length of the history stands for a death after
    /// everything.
    pub event: usize,
    /// The effect on the event in flight.
    pub kind: DeathKind,
}

/// How a process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeathKind {
    /// It is killed. The event in flight has not been done; of a write the system has the first part, up to a border of
    /// device blocks that the seed chooses.
    Killed(u64),
    /// The event in flight is the sync of a file, and fails: of what it was to make durable the seed chooses a part,
    /// the rest is lost for good, although reads still show it. Then the process ends.
    FailedSync(u64),
}

impl FailingVolume {
    /// The volume as the next process finds it on the same machine: no locks held, no faults set. Its history begins
    /// with the changes that no sync has covered, so that every cut of it from its present length on is one that comes
    /// later.
    pub fn outlive(&self, death: Death) -> FailingVolume {
        self.with(|state| FailingVolume::from_state(after(state, death)))
    }

    /// The deaths worth testing: one at each event, and for each sync of a file one by its failure.
    pub fn deaths(&self, seed: u64) -> Vec<Death> {
        self.with(|state| {
            let mut deaths = Vec::new();
            for event in 0..=state.events.len() {
                let in_flight = state.events.get(event);
                if matches!(in_flight, Some(Event::Mark(_) | Event::Rot { .. })) {
                    continue;
                }
                deaths.push(Death { event, kind: DeathKind::Killed(seed) });
                if in_flight.and_then(Event::synced_file).is_some() {
                    deaths.push(Death { event, kind: DeathKind::FailedSync(seed) });
                }
            }
            deaths
        })
    }
}

fn after(state: &State, death: Death) -> State {
    let event = death.event.min(state.events.len());
    let (DeathKind::Killed(seed) | DeathKind::FailedSync(seed)) = death.kind;
    let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ event as u64);
    // Events that are still to come to the device, in their order.
    let mut pending: Vec<usize> = Vec::new();
    let mut files = Vec::with_capacity(state.files.len());
    for (file, target) in state.files.iter().enumerate() {
        files.push(match target.versions.at(event) {
            None => File::new(0, Image::default()),
            Some((durable, changes)) => {
                pending.extend(changes);
                match state.seen_astray(file, event) {
                    Some(seen) => File::diverged(0, durable.clone(), seen),
                    None => File::new(0, durable.clone()),
                }
            }
        });
    }
    let names = state.folder.at(event).map(|(durable, namings)| {
        pending.extend(namings);
        (**durable).clone()
    });
    pending.sort_unstable();
    let mut next = State::new(rng.u64(..), names.unwrap_or_default(), files);
    next.atomic_blocks = state.atomic_blocks;
    next.ignores_trims = state.ignores_trims;
    next.ignores_reservations = state.ignores_reservations;
    for event in pending {
        match &state.events[event] {
            Event::Change { file, change } => next.change(*file, change.clone()),
            Event::Naming(naming) => next.rename(naming.clone()),
            _ => {}
        }
    }
    match (death.kind, state.events.get(event)) {
        (DeathKind::Killed(_), Some(Event::Change { file, change })) => begin(&mut next, *file, change, &mut rng),
        (DeathKind::FailedSync(_), Some(sync)) => {
            if let Some(file) = sync.synced_file() {
                next.fail_sync(file);
            }
        }
        _ => {}
    }
    next
}

/// Does the first part of a write, between none of it and all.
fn begin(state: &mut State, file: FileId, change: &Change, rng: &mut fastrand::Rng) {
    let Change::Write { offset, data } = change else { return };
    let first = DEVICE_BLOCK - usize_of(*offset) % DEVICE_BLOCK;
    let borders = (first..data.len()).step_by(DEVICE_BLOCK).count();
    if let Some(done) = rng.usize(0..=borders).checked_sub(1).map(|borders| first + borders * DEVICE_BLOCK) {
        state.change(file, Change::Write { offset: *offset, data: Arc::from(&data[..done]) });
    }
}
