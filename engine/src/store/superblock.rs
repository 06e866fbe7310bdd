//! The two superblocks at the front of the file. They name the database and its page store, and contain some bytes that
//! only that store understands.
//!
//! This file only encodes and decodes. The layout is in `docs/format.md`.

use super::StoreKind;
use super::totals::{TOTALS, WriteTotals};
use crate::base::bytes::{get_u32, get_u64, put, put_u32, put_u64, put_u128, slice, u32_of};
use crate::base::checksum::checksum;
use crate::base::{Error, Lsn, Result, limits};
use std::path::Path;

/// The first 8 bytes of every database file.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("forest.duramen");
/// use duramen::{Database, db::FILE_MAGIC};
///
/// Database::create(&path)?.close()?;
/// assert!(std::fs::read(&path).unwrap().starts_with(&FILE_MAGIC));
/// # Ok::<(), duramen::Error>(())
/// ```
pub const MAGIC: [u8; 8] = *b"DURAMEN\x1a";
/// The format version that this program reads and writes.
pub const FORMAT_VERSION: u32 = 1;
/// The log names no page that is this many ids, or more, above the high water of either superblock: the writer raises
/// the high water of both first. So a wrong page id in the log is detected before any memory is allocated for it.
pub const ID_SLACK: u32 = 1 << 20;
/// Bytes of a superblock.
pub const SUPERBLOCK: usize = 4096;
/// Bytes at the front of the file that belong to the two superblocks.
pub const FRONT: usize = 2 * SUPERBLOCK;
/// The maximum number of bytes that a store can keep in a superblock.
pub const MAX_STORE_HEADER: usize = MAPS - STORE_HEADER;

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
const STORE_LSN: usize = 64;
const LAST: usize = 72;
const STORE_HEADER_LEN: usize = 80;
const STORE_HEADER: usize = 84;
const MAPS: usize = LIFE - 4;
const LIFE: usize = CHECKSUM - TOTALS;
const CHECKSUM: usize = SUPERBLOCK - 4;
const FLAG_CLEAN: u32 = 1;
const FLAG_LOG_FOLLOWS: u32 = 2;

/// The part of a superblock that belongs to the layers above the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// Identifies the database. It never changes, and the log has it, too.
    pub database_id: u128,
    /// Bytes of a page.
    pub page_size: usize,
    /// True when the database was closed in order: everything is in this file, there is no log to redo.
    pub clean: bool,
    /// A later superblock was damaged and has been overwritten: if a log begins where this clean database ends, it has
    /// commits that this superblock lacks.
    pub log_follows: bool,
    /// The epoch of the redo point in the log.
    pub epoch: u32,
    /// Redo starts here.
    pub redo: Lsn,
    /// The store knows every place and every free page that is in the log before this LSN.
    pub store_lsn: Lsn,
    /// No LSN so far is larger. The LSNs of the next epoch begin after it.
    pub last: Lsn,
    /// Every page id that the store has is smaller.
    pub high_water: u32,
    /// The number of allocation maps at the store LSN. Maps are never freed, so if the store has fewer, one is lost.
    pub maps: u32,
    /// The totals of the writes since the database was created, this superblock included. [`super::DatabaseFile`] fills
    /// it in.
    pub life: WriteTotals,
}

/// A whole superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// The part of the layers above.
    pub meta: Meta,
    /// The page store.
    pub kind: StoreKind,
    /// One more at each write. If both superblocks are sound, the one with the greater number is valid.
    pub sequence: u64,
    /// The store's header: its own bytes, at most [`MAX_STORE_HEADER`].
    pub store_header: Vec<u8>,
}

impl Superblock {
    /// Compares the state of `other` with that of this superblock, which is the valid one.
    pub(super) fn other(&self, other: &Superblock) -> OtherSuperblock {
        let state = |meta: Meta| Meta { high_water: 0, life: WriteTotals::default(), ..meta };
        match state(self.meta) == state(other.meta) && self.store_header == other.store_header {
            true => OtherSuperblock::Same,
            false => OtherSuperblock::Older,
        }
    }

    /// Its 4096 bytes.
    pub fn encode(&self) -> [u8; SUPERBLOCK] {
        let mut bytes = [0; SUPERBLOCK];
        let meta = &self.meta;
        put_u64(&mut bytes, 0, u64::from_le_bytes(MAGIC));
        put_u32(&mut bytes, VERSION, FORMAT_VERSION);
        put_u32(&mut bytes, PAGE_SIZE, u32_of(meta.page_size));
        put_u128(&mut bytes, DATABASE_ID, meta.database_id);
        put_u64(&mut bytes, SEQUENCE, self.sequence);
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(meta.clean, FLAG_CLEAN) | flag(meta.log_follows, FLAG_LOG_FOLLOWS);
        put_u32(&mut bytes, FLAGS, flags);
        put_u32(&mut bytes, HIGH_WATER, meta.high_water);
        put_u32(&mut bytes, EPOCH, meta.epoch);
        put_u32(&mut bytes, KIND, self.kind.tag());
        put_u64(&mut bytes, REDO, meta.redo.0);
        put_u64(&mut bytes, STORE_LSN, meta.store_lsn.0);
        put_u64(&mut bytes, LAST, meta.last.0);
        assert!(
            self.store_header.len() <= MAX_STORE_HEADER,
            "a store keeps {} bytes in the superblock",
            self.store_header.len()
        );
        put_u32(&mut bytes, STORE_HEADER_LEN, u32_of(self.store_header.len()));
        put(&mut bytes, STORE_HEADER, &self.store_header);
        put_u32(&mut bytes, MAPS, meta.maps);
        meta.life.encode(&mut bytes, LIFE);
        let crc = checksum(slice(&bytes, 0, CHECKSUM));
        put_u32(&mut bytes, CHECKSUM, crc);
        bytes
    }

    /// Decodes a superblock of this version and of a known page store, whose checksum is right. The error says which
    /// field has an impossible value.
    fn decode(bytes: &[u8], kind: StoreKind) -> Result<Superblock, String> {
        let page_size = get_u32(bytes, PAGE_SIZE) as usize;
        if limits::check_page_size(page_size.saturating_add(kind.trailer()), false).is_err() {
            return Err(format!("it names a page size of {page_size}"));
        }
        let flags = get_u32(bytes, FLAGS);
        if flags & !(FLAG_CLEAN | FLAG_LOG_FOLLOWS) != 0 {
            return Err(format!("it has unknown flags {flags:#x}"));
        }
        let mut id = [0; 16];
        id.copy_from_slice(slice(bytes, DATABASE_ID, SEQUENCE));
        let meta = Meta {
            database_id: u128::from_le_bytes(id),
            page_size,
            clean: flags & FLAG_CLEAN != 0,
            log_follows: flags & FLAG_LOG_FOLLOWS != 0,
            epoch: get_u32(bytes, EPOCH),
            redo: Lsn(get_u64(bytes, REDO)),
            store_lsn: Lsn(get_u64(bytes, STORE_LSN)),
            last: Lsn(get_u64(bytes, LAST)),
            high_water: get_u32(bytes, HIGH_WATER),
            maps: get_u32(bytes, MAPS),
            life: WriteTotals::decode(bytes, LIFE),
        };
        let len = get_u32(bytes, STORE_HEADER_LEN) as usize;
        if len > MAX_STORE_HEADER {
            return Err(format!("the length of its store's part, {len} bytes, is wrong"));
        }
        Ok(Superblock {
            meta,
            kind,
            sequence: get_u64(bytes, SEQUENCE),
            store_header: slice(bytes, STORE_HEADER, STORE_HEADER + len).to_vec(),
        })
    }
}

/// The content of one of the two places of a superblock.
enum SuperblockCopy {
    NoMagic,
    /// A superblock of another format version; `sound`: with the right checksum.
    OtherVersion {
        found: u32,
        sound: bool,
    },
    /// A superblock with the right checksum that names a page store of a newer program.
    UnknownStore(u32),
    /// A superblock of this version that cannot be used, and why.
    Damaged(String),
    Sound(Box<Superblock>),
}

impl SuperblockCopy {
    fn cut_short() -> SuperblockCopy {
        SuperblockCopy::Damaged("the file is truncated".to_owned())
    }
}

fn look(bytes: &[u8]) -> SuperblockCopy {
    if slice(bytes, 0, 8) != MAGIC {
        return SuperblockCopy::NoMagic;
    }
    if bytes.len() < VERSION + 4 {
        return SuperblockCopy::cut_short();
    }
    let sound = bytes.len() == SUPERBLOCK && checksum(slice(bytes, 0, CHECKSUM)) == get_u32(bytes, CHECKSUM);
    let tag = get_u32(bytes, KIND);
    match get_u32(bytes, VERSION) {
        FORMAT_VERSION if bytes.len() < SUPERBLOCK => SuperblockCopy::cut_short(),
        FORMAT_VERSION if !sound => SuperblockCopy::Damaged("its checksum is wrong".to_owned()),
        FORMAT_VERSION => match StoreKind::of_tag(tag).map(|kind| Superblock::decode(bytes, kind)) {
            None => SuperblockCopy::UnknownStore(tag),
            Some(decoded) => {
                decoded.map_or_else(SuperblockCopy::Damaged, |sound| SuperblockCopy::Sound(Box::new(sound)))
            }
        },
        found => SuperblockCopy::OtherVersion { found, sound },
    }
}

/// The bytes of one of the two superblocks; fewer if the file is short.
fn half(front: &[u8], slot: usize) -> &[u8] {
    let at = |slot: usize| front.len().min(slot * SUPERBLOCK);
    slice(front, at(slot), at(slot + 1))
}

/// Whether a superblock with the right checksum is of another version.
pub(crate) fn is_of_another_version(front: &[u8]) -> bool {
    [0, 1].into_iter().any(|slot| matches!(look(half(front, slot)), SuperblockCopy::OtherVersion { sound: true, .. }))
}

/// The valid superblock of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CurrentSuperblock {
    /// The superblock.
    pub superblock: Superblock,
    /// The place of the superblock, 0 or 1.
    pub slot: usize,
    /// The superblock in the other slot.
    pub other: OtherSuperblock,
}

/// The state of the superblock in the other slot, compared with the valid one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherSuperblock {
    /// It leads to the same state of the database.
    Same,
    /// It leads to an older state.
    Older,
    /// It cannot be used.
    Damaged,
}

impl CurrentSuperblock {
    /// For a file without a valid superblock: the superblock of a database that was closed in order, with nothing of
    /// the store in it.
    pub(crate) fn unknown(kind: StoreKind, page_size: usize) -> CurrentSuperblock {
        let never = Lsn(1);
        let meta = Meta {
            database_id: 0,
            page_size,
            clean: true,
            log_follows: false,
            epoch: 0,
            redo: never,
            store_lsn: never,
            last: never,
            high_water: 1,
            maps: 0,
            life: WriteTotals::default(),
        };
        let superblock = Superblock { meta, kind, sequence: 0, store_header: Vec::new() };
        CurrentSuperblock { superblock, slot: 0, other: OtherSuperblock::Same }
    }
}

/// Picks the valid superblock from the first bytes of a file (fewer than two superblocks if the file is short).
///
/// # Errors
/// [`Error::NotADatabase`] without the magic. [`Error::FormatVersion`] and [`Error::UnknownStore`] if one of the
/// superblocks is from another version of this program, even if the other one can be read. [`Error::CorruptMeta`] if
/// neither can be used.
pub fn choose(front: &[u8], path: &Path) -> Result<CurrentSuperblock> {
    let slots = [0, 1].map(|slot| look(half(front, slot)));
    let version = |found| Err(Error::FormatVersion { path: path.to_owned(), found, supported: FORMAT_VERSION });
    // A newer program has written to a file that has such a superblock.
    for slot in &slots {
        match slot {
            SuperblockCopy::OtherVersion { found, sound: true } => return version(*found),
            SuperblockCopy::UnknownStore(found) => {
                return Err(Error::UnknownStore { path: path.to_owned(), found: *found });
            }
            _ => {}
        }
    }
    match slots {
        [SuperblockCopy::Sound(first), SuperblockCopy::Sound(second)] => {
            let other = first.other(&second);
            let (superblock, slot) = if second.sequence > first.sequence { (second, 1) } else { (first, 0) };
            Ok(CurrentSuperblock { superblock: *superblock, slot, other })
        }
        [SuperblockCopy::Sound(sound), _] => {
            Ok(CurrentSuperblock { superblock: *sound, slot: 0, other: OtherSuperblock::Damaged })
        }
        [_, SuperblockCopy::Sound(sound)] => {
            Ok(CurrentSuperblock { superblock: *sound, slot: 1, other: OtherSuperblock::Damaged })
        }
        [SuperblockCopy::OtherVersion { found, .. }, _] | [_, SuperblockCopy::OtherVersion { found, .. }] => {
            version(found)
        }
        [SuperblockCopy::Damaged(why), _] | [_, SuperblockCopy::Damaged(why)] => {
            Err(Error::CorruptMeta { what: "the superblock", why: format!("neither copy can be used: {why}") })
        }
        _ => {
            let empty = front.is_empty();
            let what = if empty { "it is empty; create the database first" } else { "it does not begin as one" };
            Err(Error::NotADatabase { path: path.to_owned(), what: what.into() })
        }
    }
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
            log_follows: false,
            epoch: 3,
            redo: Lsn(100),
            store_lsn: Lsn(120),
            last: Lsn(200),
            high_water: 100_000,
            maps: 7,
            life: WriteTotals::of_superblock(77),
        }
    }

    fn block(sequence: u64) -> Superblock {
        Superblock { meta: meta(), kind: StoreKind::Table, sequence, store_header: vec![7; 20] }
    }

    fn front(first: &Superblock, second: &Superblock) -> Vec<u8> {
        [first.encode(), second.encode()].concat()
    }

    #[test]
    fn the_greater_sequence_counts() {
        let path = Path::new("db");
        let current =
            |sequence, slot| CurrentSuperblock { superblock: block(sequence), slot, other: OtherSuperblock::Same };
        assert_eq!(choose(&front(&block(4), &block(5)), path).unwrap(), current(5, 1));
        assert_eq!(choose(&front(&block(6), &block(5)), path).unwrap(), current(6, 0));
    }

    /// Superblocks whose field `at` has another value, with the right checksum.
    fn with_field(sequence: u64, at: usize, value: u32) -> [u8; SUPERBLOCK] {
        let mut bytes = block(sequence).encode();
        put_u32(&mut bytes, at, value);
        let crc = checksum(&bytes[..CHECKSUM]);
        put_u32(&mut bytes, CHECKSUM, crc);
        bytes
    }

    #[test]
    fn a_torn_or_impossible_superblock_leaves_the_other() {
        let mut torn = block(5).encode();
        torn[512..].fill(0);
        let impossible =
            [(PAGE_SIZE, 4097), (FLAGS, 4), (STORE_HEADER_LEN, 65_535)].map(|(at, value)| with_field(5, at, value));
        for bad in [torn].into_iter().chain(impossible) {
            let sound = block(4).encode();
            for (halves, slot) in [([sound, bad], 0), ([bad, sound], 1)] {
                let current = choose(&halves.concat(), Path::new("db")).unwrap();
                assert_eq!(current, CurrentSuperblock { superblock: block(4), slot, other: OtherSuperblock::Damaged });
            }
            let neither = choose(&[bad, bad].concat(), Path::new("db"));
            assert!(matches!(neither, Err(Error::CorruptMeta { .. })), "{neither:?}");
        }
    }

    #[test]
    fn another_format_version_is_reported_before_the_checksum_is_checked() {
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
    fn a_superblock_of_a_newer_version_is_detected_in_either_copy() {
        let newer = with_field(5, VERSION, FORMAT_VERSION + 1);
        let bytes = [block(4).encode(), newer].concat();
        let current = choose(&bytes, Path::new("db"));
        assert!(matches!(current, Err(Error::FormatVersion { found, .. }) if found == FORMAT_VERSION + 1));
    }

    #[test]
    fn foreign_empty_and_short_files_give_different_errors() {
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
    fn an_unknown_store_is_named_even_beside_a_known_one() {
        let (newer, known) = (with_field(4, KIND, 99), block(5).encode());
        for halves in [[newer, known], [known, newer], [newer, newer]] {
            let current = choose(&halves.concat(), Path::new("db"));
            assert!(matches!(&current, Err(Error::UnknownStore { found: 99, .. })), "{current:?}");
        }
        let mut damaged = newer;
        damaged[100] ^= 1;
        let current = choose(&[damaged, known].concat(), Path::new("db")).unwrap();
        assert_eq!(current, CurrentSuperblock { superblock: block(5), slot: 1, other: OtherSuperblock::Damaged });
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
            id: u128, clean: bool, log_follows: bool, epoch: u32, redo: u64, last: u64, high_water: u32, sequence: u64,
            store_header in proptest::collection::vec(any::<u8>(), 0..=MAX_STORE_HEADER),
        ) {
            let (redo, last) = (Lsn(redo), Lsn(last));
            let meta = Meta { database_id: id, clean, log_follows, epoch, redo, last, high_water, ..meta() };
            let block = Superblock { meta, sequence, store_header, ..block(1) };
            prop_assert_eq!(choose(&block.encode(), Path::new("db")).unwrap().superblock, block);
        }
    }
}
