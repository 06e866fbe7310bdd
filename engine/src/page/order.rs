//! How key images compare, and how long a page prefix may be. Without long keys, both depend only on the bytes of the
//! keys. This file works with images only, never with whole long keys.

use crate::base::{bytes, limits};
use std::cmp::Ordering;

/// Compares two key images of pages of `page_size` bytes. Returns `None` if the page does not hold enough to decide:
/// one of the two is the image of a long key, and they agree in their first `limits::long_key_head` bytes. Only the run
/// has the rest of a long key.
pub fn compare_images(a: &[u8], b: &[u8], page_size: usize) -> Option<Ordering> {
    let image = limits::max_inline_key(page_size) + 1;
    if a.len() < image && b.len() < image {
        return Some(a.cmp(b));
    }
    let head = limits::long_key_head(page_size);
    match bytes::slice(a, 0, head.min(a.len())).cmp(bytes::slice(b, 0, head.min(b.len()))) {
        Ordering::Equal if a == b => Some(Ordering::Equal),
        Ordering::Equal => None,
        other => Some(other),
    }
}

/// Returns false only if the page can tell that `a` is not below `b`.
pub(super) fn may_precede(a: &[u8], b: &[u8], page_size: usize) -> bool {
    compare_images(a, b, page_size).is_none_or(Ordering::is_lt)
}

/// Returns the length of the prefix that every key between the fences shares. This is the fences' common prefix,
/// limited to `limits::long_key_head`, because the tail of an image could begin after that. Returns 0 without an upper
/// fence.
pub(super) fn fence_prefix(lower: &[u8], upper: Option<&[u8]>, page_size: usize) -> usize {
    let common = upper.map_or(0, |upper| bytes::common_prefix(lower, upper));
    common.min(limits::long_key_head(page_size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_share_their_head_have_no_order_here() {
        let (size, head) = (256, limits::long_key_head(256));
        let image = |first: u8, tail: u8| {
            let mut image = vec![first; head];
            image.extend([tail; limits::LONG_KEY_TAIL]);
            image
        };
        assert_eq!(compare_images(&image(7, 1), &image(7, 2), size), None);
        assert_eq!(compare_images(&image(7, 1), &image(7, 1), size), Some(Ordering::Equal));
        assert_eq!(compare_images(&image(7, 9), &image(8, 1), size), Some(Ordering::Less));
        assert_eq!(compare_images(&image(7, 9), &vec![7; head + 3], size), None);
        assert_eq!(compare_images(&image(7, 0), &vec![7; head - 1], size), Some(Ordering::Greater));
    }

    #[test]
    fn a_prefix_ends_before_an_image_tail() {
        let (size, head) = (256, limits::long_key_head(256));
        let (a, mut b) = (vec![1; head + 5], vec![1; head + 5]);
        b.push(2);
        assert_eq!(fence_prefix(&a, Some(&b), size), head);
        assert_eq!(fence_prefix(b"abc", Some(b"abd"), size), 2);
        assert_eq!(fence_prefix(b"abc", None, size), 0);
    }
}
