//! The two superblocks at the front of the file: what names the database and its page store, and bytes that only that
//! store understands.
//!
//! Bytes in, values out; nothing here reads or writes a device. The layout is in `docs/format.md`.

use super::StoreKind;
use crate::base::bytes::{get_u32, get_u64, put_u32, put_u64, slice};
use crate::base::checksum::checksum;
use crate::base::{Error, Lsn, Result, limits};
use std::path::Path;

/// The first 8 bytes of every database file.
pub const MAGIC: [u8; 8] = *b"DURAMEN\x1a";
/// The format version that this program reads and writes.
pub const FORMAT_VERSION: u32 = 1;
/// The log names no page so far, or further, beyond the high water of either superblock: whoever comes that far with new
/// pages writes both anew first. So a page id that is nobody's is told before anything is made for it.
pub const ID_SLACK: u32 = 1 << 20;
/// Bytes of a superblock.
pub const SUPERBLOCK: usize = 4096;
/// Bytes at the front of the file that belong to the two superblocks.
pub const FRONT: usize = 2 * SUPERBLOCK;
/// The most bytes that a store can keep in a superblock.
pub const MAX_OWN: usize = CHECKSUM - OWN;

// The magic, the version and the checksum are at the same offsets in every version.
const VERSION: usize = 8;
const PAGE_SIZE: usize = 12;
const DATABASE_ID: usize = 16;
const SEQUENCE: usize = 32;
const FLAGS: usize = 40;
const HIGH_WATER: usize = 44;
const EPOCH: usize = 48;
const KIND: usize = 52;
const REDO: usize = 56;
const TABLE: usize = 64;
const LAST: usize = 72;
const OWN_LEN: usize = 80;
const OWN: usize = 84;
const CHECKSUM: usize = SUPERBLOCK - 4;
const FLAG_CLEAN: u32 = 1;

/// What the layers above keep in the superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// Names the database for ever; the log carries it, too.
    pub database_id: u128,
    /// Bytes of a page.
    pub page_size: usize,
    /// True when the database was closed in order: everything is in this file, there is no log to redo.
    pub clean: bool,
    /// The epoch of the redo point in the log.
    pub epoch: u32,
    /// Redo starts here.
    pub redo: Lsn,
    /// The store knows every place and every free page that the log names before this LSN.
    pub table: Lsn,
    /// No LSN given out so far is larger; those of the next epoch begin after it.
    pub last: Lsn,
    /// Every page id that the store has is smaller.
    pub high_water: u32,
}

/// A whole superblock: the caller's part and the store's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// The caller's part.
    pub meta: Meta,
    /// Which store the pages are in.
    pub kind: StoreKind,
    /// One more at each writing; of two good superblocks the one with the greater sequence counts.
    pub sequence: u64,
    /// What the store has written for itself, at most [`MAX_OWN`] bytes; nothing in a new database.
    pub own: Vec<u8>,
}

impl Superblock {
    /// Its 4096 bytes.
    pub fn encode(&self) -> [u8; SUPERBLOCK] {
        let mut bytes = [0; SUPERBLOCK];
        let meta = &self.meta;
        put_u64(&mut bytes, 0, u64::from_le_bytes(MAGIC));
        put_u32(&mut bytes, VERSION, FORMAT_VERSION);
        put_u32(&mut bytes, PAGE_SIZE, u32::try_from(meta.page_size).unwrap_or(0));
        if let Some(field) = bytes.get_mut(DATABASE_ID..SEQUENCE) {
            field.copy_from_slice(&meta.database_id.to_le_bytes());
        }
        put_u64(&mut bytes, SEQUENCE, self.sequence);
        put_u32(&mut bytes, FLAGS, if meta.clean { FLAG_CLEAN } else { 0 });
        put_u32(&mut bytes, HIGH_WATER, meta.high_water);
        put_u32(&mut bytes, EPOCH, meta.epoch);
        put_u32(&mut bytes, KIND, self.kind.tag());
        put_u64(&mut bytes, REDO, meta.redo.0);
        put_u64(&mut bytes, TABLE, meta.table.0);
        put_u64(&mut bytes, LAST, meta.last.0);
        assert!(self.own.len() <= MAX_OWN, "a store keeps {} bytes in the superblock", self.own.len());
        put_u32(&mut bytes, OWN_LEN, u32::try_from(self.own.len()).unwrap_or(0));
        if let Some(own) = bytes.get_mut(OWN..OWN + self.own.len()) {
            own.copy_from_slice(&self.own);
        }
        let crc = checksum(slice(&bytes, 0, CHECKSUM));
        put_u32(&mut bytes, CHECKSUM, crc);
        bytes
    }

    /// Reads a superblock of this version whose checksum is right; [`Error::CorruptMeta`] where a field cannot be.
    fn decode(bytes: &[u8]) -> Result<Superblock> {
        let corrupt = |why: String| Error::CorruptMeta { what: "the superblock", why };
        let page_size = get_u32(bytes, PAGE_SIZE) as usize;
        if limits::check_page_size(page_size, false).is_err() {
            return Err(corrupt(format!("it names a page size of {page_size}")));
        }
        let flags = get_u32(bytes, FLAGS);
        if flags & !FLAG_CLEAN != 0 {
            return Err(corrupt(format!("it has unknown flags {flags:#x}")));
        }
        let mut id = [0; 16];
        id.copy_from_slice(slice(bytes, DATABASE_ID, SEQUENCE));
        let meta = Meta {
            database_id: u128::from_le_bytes(id),
            page_size,
            clean: flags & FLAG_CLEAN != 0,
            epoch: get_u32(bytes, EPOCH),
            redo: Lsn(get_u64(bytes, REDO)),
            table: Lsn(get_u64(bytes, TABLE)),
            last: Lsn(get_u64(bytes, LAST)),
            high_water: get_u32(bytes, HIGH_WATER),
        };
        let kind = get_u32(bytes, KIND);
        let kind = StoreKind::of_tag(kind)
            .ok_or_else(|| corrupt(format!("it names page store {kind}, which this program does not have")))?;
        let own = get_u32(bytes, OWN_LEN) as usize;
        if own > MAX_OWN {
            return Err(corrupt(format!("it says that its store has {own} bytes in it")));
        }
        Ok(Superblock { meta, kind, sequence: get_u64(bytes, SEQUENCE), own: slice(bytes, OWN, OWN + own).to_vec() })
    }

    /// A superblock for a file that has no sound one: of a database that was closed in order, and nothing of the store.
    pub(crate) fn unknown(kind: StoreKind, page_size: usize) -> Superblock {
        let never = Lsn(1);
        let (redo, table, last) = (never, never, never);
        let meta = Meta { database_id: 0, page_size, clean: true, epoch: 0, redo, table, last, high_water: 1 };
        Superblock { meta, kind, sequence: 0, own: Vec::new() }
    }
}

enum Slot {
    NoMagic,
    OtherVersion { found: u32, sound: bool },
    Damaged,
    Sound,
}

fn look(bytes: &[u8]) -> Slot {
    if slice(bytes, 0, 8) != MAGIC {
        return Slot::NoMagic;
    }
    if bytes.len() < VERSION + 4 {
        return Slot::Damaged;
    }
    let sound = bytes.len() == SUPERBLOCK && checksum(slice(bytes, 0, CHECKSUM)) == get_u32(bytes, CHECKSUM);
    match get_u32(bytes, VERSION) {
        FORMAT_VERSION if sound => Slot::Sound,
        FORMAT_VERSION => Slot::Damaged,
        found => Slot::OtherVersion { found, sound },
    }
}

/// The bytes of one of the two superblocks, as far as the file has them.
fn half(front: &[u8], slot: usize) -> &[u8] {
    let at = |slot: usize| front.len().min(slot * SUPERBLOCK);
    slice(front, at(slot), at(slot + 1))
}

/// Whether the superblock in that slot is one of this version with its checksum.
pub fn is_sound(front: &[u8], slot: usize) -> bool {
    matches!(look(half(front, slot)), Slot::Sound)
}

/// Whether a sound superblock is one of another version.
pub(crate) fn is_of_another_version(front: &[u8]) -> bool {
    [0, 1].into_iter().any(|slot| matches!(look(half(front, slot)), Slot::OtherVersion { sound: true, .. }))
}

/// Picks the superblock that counts from the first bytes of a file (fewer than two superblocks where it is short).
/// Also says in which of the two slots it is.
///
/// Errors: [`Error::NotADatabase`] without the magic, [`Error::FormatVersion`] where another version speaks, which is
/// looked at before any checksum of this version, [`Error::CorruptMeta`] where both are damaged.
pub fn choose(front: &[u8], path: &Path) -> Result<(Superblock, usize)> {
    let halves = [0, 1].map(|slot| half(front, slot));
    let looks = halves.map(look);
    let version = |found| Err(Error::FormatVersion { path: path.to_owned(), found, supported: FORMAT_VERSION });
    // A sound superblock of another version counts even beside one of ours: a newer program has been here.
    for slot in &looks {
        if let Slot::OtherVersion { found, sound: true } = slot {
            return version(*found);
        }
    }
    let mut best: Option<(Superblock, usize)> = None;
    for (slot, (bytes, look)) in halves.iter().zip(&looks).enumerate() {
        if matches!(look, Slot::Sound) {
            let superblock = Superblock::decode(bytes)?;
            if best.as_ref().is_none_or(|(other, _)| superblock.sequence > other.sequence) {
                best = Some((superblock, slot));
            }
        }
    }
    if let Some(found) = best {
        return Ok(found);
    }
    for slot in &looks {
        if let Slot::OtherVersion { found, .. } = slot {
            return version(*found);
        }
    }
    if looks.iter().any(|slot| matches!(slot, Slot::Damaged)) {
        let why = if front.len() < 2 * SUPERBLOCK { "the file is cut short" } else { "neither copy has its checksum" };
        return Err(Error::CorruptMeta { what: "the superblock", why: why.into() });
    }
    let what = if front.is_empty() { "it is empty; create the database first" } else { "it does not begin as one" };
    Err(Error::NotADatabase { path: path.to_owned(), what: what.into() })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn meta() -> Meta {
        Meta {
            database_id: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
            page_size: 4096,
            clean: false,
            epoch: 3,
            redo: Lsn(100),
            table: Lsn(120),
            last: Lsn(200),
            high_water: 100_000,
        }
    }

    fn block(sequence: u64) -> Superblock {
        Superblock { meta: meta(), kind: StoreKind::Table, sequence, own: vec![7; 20] }
    }

    fn front(first: &Superblock, second: &Superblock) -> Vec<u8> {
        [first.encode(), second.encode()].concat()
    }

    #[test]
    fn the_greater_sequence_counts() {
        let path = Path::new("db");
        assert_eq!(choose(&front(&block(4), &block(5)), path).unwrap(), (block(5), 1));
        assert_eq!(choose(&front(&block(6), &block(5)), path).unwrap(), (block(6), 0));
    }

    #[test]
    fn a_torn_superblock_leaves_the_other() {
        let mut bytes = front(&block(4), &block(5));
        bytes[SUPERBLOCK + 512..].fill(0);
        assert_eq!(choose(&bytes, Path::new("db")).unwrap(), (block(4), 0));
        assert_eq!([0, 1].map(|slot| is_sound(&bytes, slot)), [true, false]);
        assert_eq!([0, 1].map(|slot| is_sound(&bytes[..100], slot)), [false, false]);
    }

    #[test]
    fn another_version_is_named_before_any_checksum() {
        let mut bytes = front(&block(4), &block(5));
        for at in [0, SUPERBLOCK] {
            bytes[at + VERSION..at + VERSION + 4].copy_from_slice(&9u32.to_le_bytes());
        }
        match choose(&bytes, Path::new("db")) {
            Err(Error::FormatVersion { found: 9, supported: FORMAT_VERSION, .. }) => {}
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_newer_program_that_wrote_one_copy_is_seen() {
        let mut newer = block(5).encode();
        put_u32(&mut newer, VERSION, FORMAT_VERSION + 1);
        let crc = checksum(&newer[..CHECKSUM]);
        put_u32(&mut newer, CHECKSUM, crc);
        let bytes = [block(4).encode(), newer].concat();
        let chosen = choose(&bytes, Path::new("db"));
        assert!(matches!(chosen, Err(Error::FormatVersion { found, .. }) if found == FORMAT_VERSION + 1));
    }

    #[test]
    fn foreign_empty_and_short_files_are_told_apart() {
        let path = Path::new("db");
        assert!(matches!(choose(b"", path), Err(Error::NotADatabase { .. })));
        assert!(matches!(choose(&[b'x'; 10_000], path), Err(Error::NotADatabase { .. })));
        assert!(matches!(choose(&block(1).encode()[..100], path), Err(Error::CorruptMeta { .. })));
        let mut both = front(&block(4), &block(5));
        both[200] ^= 1;
        both[SUPERBLOCK + 200] ^= 1;
        assert!(matches!(choose(&both, path), Err(Error::CorruptMeta { .. })));
    }

    #[test]
    fn an_unknown_store_and_impossible_bytes_of_one_are_told() {
        for (at, why) in [(KIND, "page store 99"), (OWN_LEN, "has 65535 bytes")] {
            let mut bytes = block(1).encode();
            put_u32(&mut bytes, at, if at == KIND { 99 } else { 65535 });
            let crc = checksum(&bytes[..CHECKSUM]);
            put_u32(&mut bytes, CHECKSUM, crc);
            let chosen = choose(&bytes, Path::new("db"));
            assert!(matches!(&chosen, Err(Error::CorruptMeta { why: said, .. }) if said.contains(why)), "{chosen:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_superblock_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut file = MAGIC.to_vec();
            file.extend_from_slice(&bytes);
            prop_assert!(choose(&file, Path::new("db")).is_err());
        }

        #[test]
        fn fields_come_back(
            id: u128, clean: bool, epoch: u32, redo: u64, last: u64, high_water: u32, sequence: u64,
            own in proptest::collection::vec(any::<u8>(), 0..=MAX_OWN),
        ) {
            let meta = Meta { database_id: id, clean, epoch, redo: Lsn(redo), last: Lsn(last), high_water, ..meta() };
            let block = Superblock { meta, sequence, own, ..block(1) };
            prop_assert_eq!(choose(&block.encode(), Path::new("db")).unwrap(), (block, 0));
        }
    }
}
