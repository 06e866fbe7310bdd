//! Tests of bulk loads: the loaded tree has the same entries as one that is built by single puts, for every fill, page
//! size, layout and shape of keys; and it can be changed afterwards.

use super::keys::{any_key, fixed_key};
use super::*;
use crate::base::{Error, PageId, Result, limits};
use crate::page::PageOp;
use crate::tree::{BulkLoader, BulkResult, BulkSink, PageRead, PageWrite};
use proptest::prelude::*;

/// Writes pages without the log, as a bulk load does.
struct Pages<'s>(&'s VecStore);

impl BulkSink for Pages<'_> {
    fn allocate(&mut self) -> Result<PageId> {
        Ok(self.0.allocate())
    }

    fn write(&mut self, id: PageId, packed: &[u8]) -> Result<()> {
        self.0.write_unlogged(id, packed);
        Ok(())
    }
}

fn load(store: &VecStore, layout: TreeLayout, fill: f32, model: &Model) -> (Tree, BulkResult) {
    let tree = new_tree(store, layout);
    let mut loader = BulkLoader::new(Pages(store), store.page_size(), layout, tree.table, fill);
    for (key, value) in model {
        loader.push(key, Record::inline(value)).unwrap();
    }
    let loaded = loader.finish(tree.root).unwrap();
    let mut root = store.latch(tree.root).unwrap();
    assert!(store.apply(&mut root, &PageOp::Format { packed: (&loaded.root).into() }).unwrap());
    (tree, loaded)
}

fn check_load(size: usize, layout: TreeLayout, fill: f32, model: Model) {
    let store = VecStore::new(size);
    let (tree, loaded) = load(&store, layout, fill, &model);
    check(&tree, &store, &[]);
    assert_eq!(loaded.entries, model.len() as u64);
    assert_eq!(loaded.pages + 1, store.allocated().len() as u64);
    assert_eq!(entries(&tree, &store), model);
    for (key, value) in &model {
        let found = tree.get(&store, key, |_, record| record.map(|r| r.bytes.to_vec())).unwrap();
        assert_eq!(found.as_ref(), Some(value));
    }
    for (at, key) in model.keys().enumerate() {
        if at % 3 > 0 {
            assert!(remove(&tree, &store, key));
        }
    }
    check(&tree, &store, &[]);
    for (key, value) in &model {
        put(&tree, &store, key, value);
    }
    check(&tree, &store, &[]);
    assert_eq!(entries(&tree, &store), model);
}

fn model(keys: Vec<Vec<u8>>, size: usize, records: RecordListKind, len: usize) -> Model {
    let value = |key: &[u8]| match records {
        RecordListKind::None => Vec::new(),
        RecordListKind::Fixed => vec![3; 8],
        RecordListKind::Variable => {
            vec![4; len.wrapping_mul(key.len()) % limits::max_record(size, key.len())]
        }
    };
    keys.into_iter().map(|key| (value(&key), key)).map(|(value, key)| (key, value)).collect()
}

fn many(key: BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let near = (key.clone(), 0u16..300).prop_map(|(key, count)| {
        (0..count).map(|n| [key.get(..key.len().min(14)).unwrap(), &n.to_be_bytes()].concat()).collect::<Vec<_>>()
    });
    let lists = prop_oneof![3 => prop::collection::vec(key, 0..20), 2 => near];
    prop::collection::vec(lists, 0..8).prop_map(|lists| lists.concat())
}

fn kinds() -> impl Strategy<Value = (KeyListKind, RecordListKind, SeparatorRule)> {
    (
        prop::sample::select(free_lists()),
        prop::sample::select(vec![RecordListKind::None, RecordListKind::Fixed, RecordListKind::Variable]),
        prop::sample::select(vec![SeparatorRule::Full, SeparatorRule::TAIL]),
    )
}

proptest! {
    #![proptest_config(super::model::cases())]

    #[test]
    fn a_loaded_tree_is_the_map_it_was_loaded_from(
        size in prop::sample::select(vec![256usize, 512, 4096, 8192, 65536]),
        (list, records, rule) in kinds(), fill in 0.0f32..1.1, len in 0usize..50, keys in many(any_key()),
    ) {
        check_load(size, layout(list, records, rule), fill, model(keys, size, records, len));
    }

    #[test]
    fn a_loaded_tree_of_keys_of_one_length_is_the_map_it_was_loaded_from(
        size in prop::sample::select(vec![256usize, 512, 4096]), fill in 0.3f32..1.0,
        keys in prop::collection::vec(fixed_key(), 0..2000),
    ) {
        let layout = layout(KeyListKind::Fixed, RecordListKind::Fixed, SeparatorRule::TAIL);
        check_load(size, layout, fill, model(keys, size, RecordListKind::Fixed, 0));
    }
}

#[test]
fn leaves_are_as_full_as_was_asked() {
    let paths: Model = (0..20_000u32)
        .map(|n| (format!("usr/share/doc/package-{:05}/file-{:03}", n / 37, n % 37).into_bytes(), vec![0; 8]))
        .collect();
    let all = free_lists().into_iter().flat_map(|list| [0.5, 0.9, 1.0].map(|fill| (fill, list)));
    for (fill, list) in all {
        let store = VecStore::new(4096);
        let layout = layout(list, RecordListKind::Fixed, SeparatorRule::TAIL);
        let (tree, _) = load(&store, layout, fill, &paths);
        let leaves = tree.verify(&store, &mut |_| ()).unwrap().levels[0];
        let used = leaves.used_bytes as f32 / (leaves.pages * 4096) as f32;
        // The page may end a sixteenth early for a shorter separator, and the next entry may not fit.
        assert!((fill - 0.08..=fill).contains(&used), "{list:?} at {fill}: {used}");
    }
}

#[test]
fn inner_pages_are_as_full_as_was_asked() {
    let numbers: Model = (0..60_000u32).map(|n| (format!("{:08}", n * 1663).into_bytes(), vec![0; 8])).collect();
    for fill in [0.5, 0.9, 1.0] {
        let store = VecStore::new(512);
        let layout = layout(KeyListKind::Head, RecordListKind::Fixed, SeparatorRule::TAIL);
        let (tree, _) = load(&store, layout, fill, &numbers);
        let inner = tree.verify(&store, &mut |_| ()).unwrap().levels[1];
        let used = inner.used_bytes as f32 / (inner.pages * 512) as f32;
        // Dense key lists and others, and a last page with the rest.
        assert!(inner.pages > 20 && (fill - 0.1..=fill).contains(&used), "at {fill}: {used} of {}", inner.pages);
    }
}

#[test]
fn keys_out_of_order_are_refused() {
    let store = VecStore::new(4096);
    let layout = layout(KeyListKind::Head, RecordListKind::None, SeparatorRule::TAIL);
    for (first, second) in [("b", "a"), ("b", "b"), ("b", "")] {
        let mut loader = BulkLoader::new(Pages(&store), 4096, layout, TableId(7), 1.0);
        loader.push(first.as_bytes(), Record::default()).unwrap();
        let refused = loader.push(second.as_bytes(), Record::default());
        assert!(matches!(refused, Err(Error::Unsorted { entry: 1 })), "{refused:?}");
    }
}
