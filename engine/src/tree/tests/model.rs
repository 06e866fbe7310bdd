//! Tests with random operations against a `BTreeMap`, for several page sizes, layouts and shapes of keys.

use super::keys::{any_key, fixed_key, integer_key};
use super::*;
use crate::base::{Error, limits};
use crate::page::{Instantiation, NewEntry};
use crate::tree::{KeyRange, LeafCopy, LeafHint, LeafTarget, PageRead, Put, Removal};
use proptest::prelude::*;
use std::ops::Bound;

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, u16),
    Remove(Vec<u8>),
    /// Removes the nth existing key.
    RemoveNth(usize),
    /// Adds to the number at a byte offset of the record of the nth existing key.
    AddToNth(usize, u16, i64),
    Get(Vec<u8>),
    RemoveRange(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Walk(Vec<u8>, Vec<bool>),
    /// Puts `count` keys that begin with the given bytes.
    Fill(Vec<u8>, u16, u16),
    /// Like [`Step::Fill`], but sorted, together and among other keys. The places are found before, or not.
    FillTogether(Vec<u8>, u16, Vec<(Vec<u8>, u16)>, bool),
    Free(usize),
}

fn bound(key: BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Bound<Vec<u8>>> {
    (key, 0..5).prop_map(|(key, kind)| match kind {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    })
}

fn steps(key: BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (key.clone(), 0u16..60).prop_map(|(key, len)| Step::Put(key, len)),
        2 => key.clone().prop_map(Step::Remove),
        6 => any::<usize>().prop_map(Step::RemoveNth),
        3 => (any::<usize>(), 0u16..9, any::<i64>()).prop_map(|(n, offset, delta)| Step::AddToNth(n, offset, delta)),
        2 => key.clone().prop_map(Step::Get),
        1 => (bound(key.clone()), bound(key.clone())).prop_map(|(from, to)| Step::RemoveRange(from, to)),
        1 => (key.clone(), prop::collection::vec(any::<bool>(), 0..30)).prop_map(|(k, moves)| Step::Walk(k, moves)),
        2 => (key.clone(), 1u16..90, 0u16..40).prop_map(|(key, count, len)| Step::Fill(key, count, len)),
        2 => (key.clone(), 0u16..300, prop::collection::vec((key, 0u16..40), 0..40), any::<bool>())
            .prop_map(|(key, count, others, looked)| Step::FillTogether(key, count, others, looked)),
        1 => (1usize..20).prop_map(Step::Free),
    ];
    prop::collection::vec(step, 1..120)
}

struct Run {
    store: VecStore,
    tree: Tree,
    model: Model,
    detached: Vec<DetachedSubtree>,
}

impl Run {
    fn new(page_size: usize, layout: TreeLayout) -> Run {
        let store = VecStore::new(page_size);
        let tree = new_tree(&store, layout);
        Run { store, tree, model: Model::new(), detached: Vec::new() }
    }

    fn value(&self, key: &[u8], len: u16) -> Vec<u8> {
        match self.tree.layout.records {
            RecordListKind::None => Vec::new(),
            RecordListKind::Fixed => vec![len as u8; 8],
            RecordListKind::Variable => {
                let room = limits::max_record(self.store.page_size(), key.len());
                // Sometimes the longest value that fits.
                let len = if len == 0 && key.len() % 7 == 3 { room } else { room.min(len.into()) };
                vec![len as u8; len]
            }
        }
    }

    fn put(&mut self, key: Vec<u8>, len: u16) {
        let value = self.value(&key, len);
        let mut seen = Vec::new();
        let before = |old: Option<Record<'_>>| {
            seen.push(old.map(|old| old.bytes.to_vec()));
            Ok(())
        };
        let existed = self.tree.put(&self.store, &key, Record::inline(&value), before).unwrap();
        let old = self.model.insert(key, value);
        assert_eq!(existed, old.is_some());
        assert_eq!(seen, [old]);
    }

    fn put_together(&mut self, mut entries: Model, looked: bool) {
        for (key, value) in &mut entries {
            *value = self.value(key, value.len() as u16);
        }
        let mut places = vec![LeafHint::NONE; entries.len()];
        if looked {
            places.clear();
            let keys = entries.keys().map(Vec::as_slice);
            self.tree.find_many(&self.store, keys, |place| places.push(place)).unwrap();
            self.check_inner(entries.keys(), &places);
        }
        let mut entries: Vec<(Vec<u8>, Vec<u8>)> = entries.into_iter().collect();
        let above = self.model.last_key_value().map_or(0, |(last, _)| entries.partition_point(|(key, _)| key <= last));
        let appended = entries.split_off(above);
        let mut done = 0;
        while let Some((key, value)) = entries.get(done) {
            let puts = entries[done..].iter().zip(&places[done..]);
            let puts = puts.map(|((key, value), hint)| Put { key, record: Record::inline(value), hint: *hint });
            let mut passed: Vec<Vec<u8>> = Vec::new();
            let before = |new: &[NewEntry<'_>]| {
                passed = new.iter().map(|entry| entry.key.to_vec()).collect();
                Ok(())
            };
            let some = self.tree.put_run(&self.store, puts, before).unwrap();
            assert_eq!(passed.len(), some);
            for ((key, value), passed) in entries[done..].iter().zip(&passed) {
                assert_eq!(key, passed);
                assert!(self.model.insert(key.clone(), value.clone()).is_none());
            }
            if some == 0 {
                self.tree.put_with_hint(&self.store, places[done], key, Record::inline(value), |_| Ok(())).unwrap();
                self.model.insert(key.clone(), value.clone());
            }
            done += some.max(1);
        }
        self.append_run(&appended, places.get(above).copied());
    }

    /// Checks how many inner pages of each path are not on the path of the key before. Keys are searched in batches, of
    /// which each counts all pages again.
    fn check_inner<'k>(&self, keys: impl Iterator<Item = &'k Vec<u8>>, places: &[LeafHint]) {
        let (mut path, mut before) = (Vec::new(), Vec::new());
        for (at, (key, place)) in keys.zip(places).enumerate() {
            std::mem::swap(&mut path, &mut before);
            self.tree
                .leaf_with_path(&self.store, LeafTarget::Covering(key), &mut path, |leaf| {
                    assert_eq!(leaf.id(), place.leaf)
                })
                .unwrap();
            let known = path.iter().zip(&before).take_while(|(now, before)| now == before).count();
            let (new, counted) = (path.len() - known, usize::from(place.inner));
            assert!(counted == new || counted == path.len() && at > 0, "{counted} of {path:?} after {before:?}");
        }
    }

    /// Puts entries after all existing ones.
    fn append_run(&mut self, entries: &[(Vec<u8>, Vec<u8>)], hint: Option<LeafHint>) {
        let short = entries.iter().all(|(key, _)| key.len() <= limits::long_key_head(self.store.page_size()));
        let all = entries.iter().map(|(key, value)| (key.as_slice(), Record::inline(value)));
        let (mut called, hint) = (false, hint.unwrap_or(LeafHint::NONE));
        let before = || {
            called = true;
            Ok(())
        };
        let done = self.tree.append_run(&self.store, hint, all, before).unwrap();
        // After removals, the entries may belong to several leaves.
        assert_eq!(done, called || entries.is_empty());
        assert!(!called || short && !self.tree.layout.leaf.keys_are_out_of_line());
        for (key, value) in entries {
            if !done {
                self.tree.put_with_hint(&self.store, hint, key, Record::inline(value), |_| Ok(())).unwrap();
            }
            self.model.insert(key.clone(), value.clone());
        }
        // They are not after all others any more.
        if let [(key, value), ..] = entries {
            let again = std::iter::once((key.as_slice(), Record::inline(value)));
            assert!(!self.tree.append_run(&self.store, hint, again, || panic!("nothing may be put")).unwrap());
        }
    }

    fn remove(&mut self, key: &[u8]) {
        let mut seen = Vec::new();
        let before = |old: Record<'_>| {
            seen.push(old.bytes.to_vec());
            Ok(())
        };
        let existed = self.tree.remove(&self.store, key, before).unwrap();
        let old = self.model.remove(key);
        assert_eq!(existed, old.is_some());
        assert_eq!(seen, old.into_iter().collect::<Vec<_>>());
    }

    fn add_to_nth(&mut self, n: usize, offset: u16, delta: i64) {
        let len = self.model.len();
        let Some((key, value)) = self.model.iter_mut().nth(n % len.max(1)) else {
            assert!(
                self.tree.add_to_record(&self.store, b"none", offset, delta, |_| panic!("nothing is there")).is_err()
            );
            return;
        };
        let mut seen = Vec::new();
        let before = |old: Record<'_>| {
            seen.push(old.bytes.to_vec());
            Ok(())
        };
        let operations = self.store.operations();
        let done = self.tree.add_to_record(&self.store, key, offset, delta, before);
        assert_eq!(seen, std::slice::from_ref(value));
        match value.get_mut(usize::from(offset)..).and_then(|rest| rest.first_chunk_mut()) {
            Some(number) => {
                *number = u64::from_le_bytes(*number).saturating_add_signed(delta).to_le_bytes();
                assert!(done.is_ok() && self.store.operations() == operations + 1);
            }
            None => assert!(matches!(done, Err(Error::Corrupt { .. })) && self.store.operations() == operations),
        }
    }

    fn get(&self, key: &[u8]) {
        let found = self.tree.get(&self.store, key, |_, record| record.map(|r| r.bytes.to_vec())).unwrap();
        assert_eq!(found.as_ref(), self.model.get(key));
    }

    fn remove_range(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>) {
        let mut seen = Model::new();
        let mut subtrees = Vec::new();
        let before = |removal: Removal<'_>| {
            match removal {
                Removal::Entry { key, record } => assert!(seen.insert(key.to_vec(), record.bytes.to_vec()).is_none()),
                Removal::Subtree(subtree) => subtrees.push(subtree.clone()),
            }
            Ok(())
        };
        let removed = self.tree.remove_range(&self.store, &KeyRange::of(from, to), before).unwrap();
        assert_eq!(removed.detached, subtrees);
        assert_eq!(removed.entries, seen.len() as u64);
        let inside = |key: &[u8]| {
            let after = match from {
                Bound::Included(from) => from <= key,
                Bound::Excluded(from) => from < key,
                Bound::Unbounded => true,
            };
            after
                && match to {
                    Bound::Included(to) => key <= to,
                    Bound::Excluded(to) => key < to,
                    Bound::Unbounded => true,
                }
        };
        let gone: Model = self.model.extract_if(.., |key, _| inside(key)).collect();
        for subtree in &subtrees {
            let tree = Tree { root: subtree.root, ..self.tree };
            let within = collect(TreeCursor::of_subtree(self.tree, &self.store, subtree));
            assert_eq!(count_subtree(&tree, &self.store, subtree.root).unwrap().entries, within.len() as u64);
            for (key, value) in &within {
                assert!(subtree.lower <= *key && subtree.upper.as_ref().is_none_or(|upper| key < upper));
                let found = tree.get(&self.store, key, |_, record| record.map(|r| r.bytes.to_vec())).unwrap();
                assert_eq!(found.as_ref(), Some(value));
            }
            seen.extend(within);
        }
        assert_eq!(seen, gone);
        self.detached.extend(subtrees);
    }

    fn walk(&self, key: &[u8], moves: &[bool]) {
        let keys: Vec<_> = self.model.keys().collect();
        let mut at = keys.partition_point(|k| k.as_slice() < key);
        let mut cursor = TreeCursor::new(self.tree, &self.store);
        cursor.seek(key).unwrap();
        for &forward in moves {
            let found = if forward { cursor.next_entry() } else { cursor.prev_entry() }.unwrap();
            let expected = if forward { keys.get(at) } else { at.checked_sub(1).map(|at| &keys[at]) };
            assert_eq!(found.map(|(key, _)| key), expected.map(|key| key.as_slice()));
            match (forward, expected.is_some()) {
                (true, true) => at += 1,
                (false, true) => at -= 1,
                _ => {}
            }
        }
    }

    fn walk_back(&self) {
        let mut cursor = TreeCursor::new(self.tree, &self.store);
        cursor.seek_last().unwrap();
        for (key, value) in self.model.iter().rev() {
            let (found, record) = cursor.prev_entry().unwrap().unwrap();
            assert_eq!((found, record.bytes), (key.as_slice(), value.as_slice()));
        }
        assert!(cursor.prev_entry().unwrap().is_none());
    }

    /// One of the keys that begin with these bytes. If the keys of the table have a fixed length, the bytes are
    /// shortened.
    fn extended(&self, key: &[u8], n: u16) -> Vec<u8> {
        let leaf = self.tree.layout.leaf;
        let len = if leaf == KeyListKind::Fixed { Some(16) } else { leaf.key_len() };
        let start = len.map_or(key, |len| &key[..len - 2]);
        [start, &n.to_be_bytes()].concat()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Put(key, len) => self.put(key, len),
            Step::Remove(key) => self.remove(&key),
            Step::RemoveNth(n) => {
                let key = self.model.keys().nth(n % self.model.len().max(1)).cloned();
                key.into_iter().for_each(|key| self.remove(&key));
            }
            Step::AddToNth(n, offset, delta) => self.add_to_nth(n, offset, delta),
            Step::Get(key) => self.get(&key),
            Step::RemoveRange(from, to) => {
                self.remove_range(from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
            }
            Step::Walk(key, moves) => self.walk(&key, &moves),
            Step::Fill(key, count, len) => {
                (0..count).for_each(|n| self.put(self.extended(&key, n * 7 % count), len));
            }
            Step::FillTogether(start, count, others, looked) => {
                let fill = (0..count).map(|n| (self.extended(&start, n), n % 40));
                let all = fill.chain(others).map(|(key, len)| (key, vec![0; len.into()])).collect();
                self.put_together(all, looked);
            }
            Step::Free(budget) => self.free(budget),
        }
    }

    /// Frees a detached subtree in steps. Between them it is a valid subtree that can be counted.
    fn free(&mut self, budget: usize) {
        let Some(subtree) = self.detached.pop() else { return };
        let root = subtree.root;
        loop {
            let before = count_subtree(&self.tree, &self.store, root).unwrap();
            let progress = self
                .tree
                .free_subtree(&self.store, root, |freed| freed >= budget, |records| Ok(records.len()))
                .unwrap();
            if progress.done {
                break;
            }
            let left = self.tree.verify_subtree(&self.store, &subtree, &mut |_| ()).unwrap();
            assert_eq!(left.problems, []);
            let after = count_subtree(&self.tree, &self.store, root).unwrap();
            if self.tree.layout.leaf.keys_are_out_of_line() {
                assert!(after.entries < before.entries || after.pages < before.pages);
            } else {
                assert!(progress.freed >= budget && after.pages < before.pages);
            }
        }
    }

    fn finish(mut self) {
        assert_eq!(entries(&self.tree, &self.store), self.model);
        self.walk_back();
        for key in self.model.keys() {
            self.get(key);
            let mut leaf = LeafCopy::new();
            leaf.load(&self.tree, &self.store, LeafTarget::Covering(key)).unwrap();
            assert!(leaf.lower() <= key.as_slice() && leaf.upper().is_none_or(|upper| key.as_slice() < upper));
            assert!(leaf.search(key).is_ok());
        }
        while !self.detached.is_empty() {
            self.free(3);
        }
        check(&self.tree, &self.store, &[]);
        for key in self.model.keys().cloned().collect::<Vec<_>>() {
            self.remove(&key);
        }
        check(&self.tree, &self.store, &[]);
        assert_eq!(self.store.allocated().len(), 1, "pages left in an empty tree");
        self.store.check_replay();
    }
}

fn run(page_size: usize, layout: TreeLayout, steps: Vec<Step>) {
    let mut run = Run::new(page_size, layout);
    for (at, step) in steps.into_iter().enumerate() {
        run.step(step);
        if at % 5 == 0 {
            check(&run.tree, &run.store, &run.detached);
        }
    }
    run.finish();
}

fn separators() -> impl Strategy<Value = SeparatorRule> {
    prop::sample::select(vec![SeparatorRule::Full, SeparatorRule::TAIL])
}

fn records() -> impl Strategy<Value = RecordListKind> {
    prop::sample::select(vec![RecordListKind::None, RecordListKind::Fixed, RecordListKind::Variable])
}

fn sizes() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![256usize, 512, 4096, 8192, 65536])
}

fn block_lists() -> impl Strategy<Value = KeyListKind> {
    let lists: Vec<_> = KeyListKind::ALL.into_iter().filter(|list| list.key_len().is_some()).collect();
    prop::sample::select(lists)
}

/// Few cases, because each is long. PROPTEST_CASES sets another number.
pub(super) fn cases() -> ProptestConfig {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { 24 };
    ProptestConfig::with_cases(cases)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_plain_tree_is_a_map(size in sizes(), records in records(), rule in separators(), steps in steps(any_key())) {
        run(size, layout(KeyListKind::Plain, records, rule), steps);
    }

    #[test]
    fn a_head_tree_is_a_map(size in sizes(), records in records(), rule in separators(), steps in steps(any_key())) {
        run(size, layout(KeyListKind::Head, records, rule), steps);
    }

    #[test]
    fn a_db2_tree_is_a_map(size in sizes(), records in records(), rule in separators(), steps in steps(any_key())) {
        run(size, layout(KeyListKind::Db2, records, rule), steps);
    }

    #[test]
    fn a_pkb_tree_is_a_map(
        size in sizes(), records in records(), rule in separators(), part in 1u8..9, steps in steps(any_key()),
    ) {
        run(size, layout(KeyListKind::Pkb(part), records, rule), steps);
    }

    #[test]
    fn a_tree_with_a_key_heap_is_a_map(
        size in sizes(), records in records(), rule in separators(), part in 1u8..9, steps in steps(any_key()),
    ) {
        run(size, layout(KeyListKind::PkbHeap(part), records, rule), steps);
    }

    #[test]
    fn a_tree_with_a_key_heap_in_the_smallest_pages_is_a_map(
        records in records(), rule in separators(), part in 1u8..9, steps in steps(any_key()),
    ) {
        run(256, layout(KeyListKind::PkbHeap(part), records, rule), steps);
    }

    #[test]
    fn a_wiredtiger_tree_is_a_map(size in sizes(), records in records(), rule in separators(), steps in steps(any_key())) {
        run(size, layout(KeyListKind::WiredTiger(Instantiation::RollForward), records, rule), steps);
    }

    #[test]
    fn a_tree_of_best_prefix_groups_is_a_map(
        size in sizes(), records in records(), rule in separators(), both: bool, steps in steps(any_key()),
    ) {
        let ways = if both { Instantiation::Both } else { Instantiation::BestGroup };
        run(size, layout(KeyListKind::WiredTiger(ways), records, rule), steps);
    }

    #[test]
    fn a_myisam_tree_is_a_map(size in sizes(), records in records(), rule in separators(), steps in steps(any_key())) {
        run(size, layout(KeyListKind::MyIsam, records, rule), steps);
    }

    #[test]
    fn a_head_tree_of_the_smallest_pages_is_a_map(records in records(), rule in separators(), steps in steps(any_key())) {
        run(256, layout(KeyListKind::Head, records, rule), steps);
    }

    #[test]
    fn a_tree_of_blocks_is_a_map(
        (leaf, steps) in block_lists().prop_flat_map(|leaf| (Just(leaf), steps(integer_key(leaf.key_len().unwrap())))),
        size in sizes(), records in records(),
    ) {
        run(size, layout(leaf, records, SeparatorRule::Full), steps);
    }

    #[test]
    fn a_tree_of_blocks_in_the_smallest_pages_is_a_map(
        (leaf, steps) in block_lists().prop_flat_map(|leaf| (Just(leaf), steps(integer_key(leaf.key_len().unwrap())))),
        records in records(),
    ) {
        run(256, layout(leaf, records, SeparatorRule::Full), steps);
    }

    #[test]
    fn a_fixed_length_tree_is_a_map(
        size in prop::sample::select(vec![256usize, 512, 4096]),
        records in records(), rule in separators(), steps in steps(fixed_key()),
    ) {
        run(size, layout(KeyListKind::Fixed, records, rule), steps);
    }
}
