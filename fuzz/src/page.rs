//! Pages and page operations: no bytes cause a panic, and a page that passes its check keeps its promises.

use duramen::base::{Lsn, PageId, bytes};
use duramen::page::{Page, PageOp, SeparatorRule, apply, choose_split, unpack};

/// Reads `data` as a page, calls every accessor, and checks what a page that passes promises: it packs and unpacks to
/// itself. Returns whether it passed.
pub fn check_page(data: &[u8]) -> bool {
    let id = PageId(bytes::get_u32(data, 8));
    read_all(Page::new(data));
    let Ok(page) = Page::check(data, id) else { return false };
    let mut packed = Vec::new();
    page.packed_into(&mut packed);
    assert_eq!(packed.len(), page.used());
    let mut back = vec![0xA5; data.len()];
    unpack(&packed, &mut back).expect("a sound page's image is one page's");
    assert_eq!(back, data, "a sound page has no byte beside its parts");
    true
}

/// Takes `data` as `page size / 256 - 1 | packed page | operations`, the page's length being the first two bytes, and
/// applies the operations one after the other. A refused one must leave a page that passes its check as it was.
/// Returns how many were applied.
pub fn apply_op(data: &[u8]) -> usize {
    let mut input = data;
    let Some(front) = bytes::take(&mut input, 3) else { return 0 };
    let size = 256 << (bytes::get_u8(front, 0) % 9);
    let len = usize::from(bytes::get_u16(front, 1)).min(input.len());
    let packed = bytes::take(&mut input, len).unwrap_or_default();
    let mut page = vec![0xA5; size];
    if unpack(packed, &mut page).is_err() {
        return 0;
    }
    let mut applied = 0;
    for lsn in 1.. {
        let Ok(op) = PageOp::decode(&mut input) else { break };
        let (mut again, mut twice) = (Vec::new(), Vec::new());
        op.encode(&mut again);
        PageOp::decode(&mut again.as_slice()).expect("it was just encoded").encode(&mut twice);
        assert_eq!(again, twice, "an operation comes back from its bytes");
        let before = page.clone();
        let sound = Page::check(&page, Page::new(&page).id()).is_ok();
        match apply(&mut page, &op, Lsn(lsn)) {
            Ok(true) => {
                applied += 1;
                assert_eq!(Page::new(&page).lsn(), Lsn(lsn));
            }
            Ok(false) | Err(_) => assert!(!sound || page == before, "a refused operation changed the page"),
        }
        read_all(Page::new(&page));
    }
    applied
}

fn read_all(page: Page<'_>) {
    let (mut key, mut fence) = (Vec::new(), Vec::new());
    page.upper_fence_into(&mut fence);
    for slot in 0..page.count().min(4096) {
        page.key_into(slot, &mut key);
        let found = page.search(&key).unwrap_or_else(|at| at);
        assert!(found <= page.count() && page.child_for(&key) <= page.count());
        let _ = (page.record(slot), page.child(slot), page.entry_bytes(slot), page.below_upper(&key));
    }
    for number in [0, 7, u16::MAX] {
        let _ = (page.heap_key(number), page.key_place(number.into()), page.part_is(number.into(), &fence, &key));
    }
    let found = page.search_out_of_line(page.lower_fence(), &key, |slot| Ok::<_, ()>(slot.to_string()));
    assert!(found.is_ok_and(|found| found.is_none_or(|(Ok(slot) | Err(slot))| slot <= page.count())));
    let _ = (page.free_number(), page.open_heap_page());
    let _ = (page.payload(), page.bit(77), page.first_clear(3), page.free());
    for rule in [SeparatorRule::Full, SeparatorRule::TAIL] {
        let _ = choose_split(page, Some((page.count() / 2, &key, 9)), rule);
    }
}
