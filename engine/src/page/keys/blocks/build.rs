//! Builds a list of blocks from keys in order, or from blocks of other lists, and lays out the finished bytes.

use super::codec::IntKey;
use super::index::{FRONT, Index, entry_bytes, is_packed};
use super::policy::append_cost;
use super::rule::BlockRule;
use crate::base::bytes;
use duramen_codec::{Block, Codec, MAX_BLOCK};
use std::ops::Range;

/// Appends the bytes of a list of `blocks`; nothing if there are no blocks.
fn lay_out<'b, T: IntKey>(codec: Codec, blocks: impl Iterator<Item = (Block<T>, &'b [u8])> + Clone, out: &mut Vec<u8>) {
    let count = blocks.clone().count();
    if count == 0 {
        return;
    }
    out.extend_from_slice(&bytes::u16_of(count).to_le_bytes());
    for (block, _) in blocks.clone() {
        out.extend_from_slice(bytes::slice(&block.first.widen().to_le_bytes(), 0, T::BYTES));
    }
    for (block, _) in blocks.clone() {
        out.extend_from_slice(bytes::slice(&block.last.widen().to_le_bytes(), 0, T::BYTES));
    }
    let mut start = 0;
    for (block, _) in blocks.clone() {
        out.extend_from_slice(&bytes::u16_clamped(start).to_le_bytes());
        start += usize::from(block.count);
    }
    let mut offset = 0;
    for (_, body) in blocks.clone() {
        out.extend_from_slice(&bytes::u16_clamped(offset).to_le_bytes());
        offset += body.len();
    }
    if is_packed(codec) {
        out.extend(blocks.clone().map(|(block, _)| bytes::u8_of(block.extent.into())));
    }
    blocks.for_each(|(_, body)| out.extend_from_slice(body));
}

/// A list of blocks under construction. Its last block is open: keys can be appended to it.
pub(crate) struct IntegerBlocksBuilder<T: IntKey> {
    rule: BlockRule,
    /// Descriptors, each with the offset of the block's bytes in `body`.
    blocks: Vec<(Block<T>, usize)>,
    /// The blocks' bytes, with room for the last block to grow.
    body: Vec<u8>,
    used: usize,
    /// True if a codec has refused its input. This happens only if a block comes from a damaged list.
    broken: bool,
}

impl<T: IntKey> IntegerBlocksBuilder<T> {
    pub(super) fn new(rule: BlockRule) -> IntegerBlocksBuilder<T> {
        IntegerBlocksBuilder { rule, blocks: Vec::new(), body: Vec::new(), used: 0, broken: false }
    }

    /// Returns the bytes that the list takes now.
    pub(super) fn bytes(&self) -> usize {
        if self.blocks.is_empty() { 0 } else { self.bytes_of(self.blocks.len(), self.used) }
    }

    fn bytes_of(&self, blocks: usize, body: usize) -> usize {
        FRONT + blocks * entry_bytes::<T>(self.rule.codec()) + body
    }

    /// Returns the bytes that the list takes with `key`; `None` if `key` is not above all other keys.
    #[inline]
    pub(super) fn bytes_with(&self, key: T) -> Option<usize> {
        let Some((last, _)) = self.blocks.last() else { return Some(self.bytes_of(1, 0)) };
        if key <= last.last || self.broken {
            return None;
        }
        Some(match append_cost(self.rule, last, key) {
            Some(cost) => self.bytes_of(self.blocks.len(), self.used + cost),
            None => self.bytes_of(self.blocks.len() + 1, self.used),
        })
    }

    /// Appends a key for which [`IntegerBlocksBuilder::bytes_with`] is not `None`.
    #[inline]
    pub(super) fn push(&mut self, key: T) {
        if let Some((block, at)) = self.blocks.last_mut()
            && append_cost(self.rule, block, key).is_some()
        {
            let room = self.body.get_mut(*at..).unwrap_or_default();
            let done = T::append(self.rule.codec(), block, room, key).and_then(|()| T::used(self.rule.codec(), block));
            match done {
                Ok(len) => self.used = *at + len,
                Err(_) => self.broken = true,
            }
            return;
        }
        self.open(Block { first: key, last: key, count: 1, extent: 0 }, &[]);
    }

    /// Appends an encoded block, which becomes the open one.
    pub(super) fn open(&mut self, block: Block<T>, bytes: &[u8]) {
        let (at, end) = (self.used, self.used + bytes.len());
        // A block of a damaged list may have more bytes than any valid block.
        let room = size_of::<T::Scratch>().max(bytes.len());
        if self.body.len() < at + room {
            self.body.resize(at + 4 * room, 0);
        }
        bytes::put(&mut self.body, at, bytes);
        self.blocks.push((block, at));
        self.used = end;
    }

    /// Appends keys as a block of their own.
    pub(super) fn push_block(&mut self, keys: &[T]) {
        let mut body = T::scratch();
        match T::encode(self.rule.codec(), keys, body.as_mut())
            .and_then(|block| Ok((block, T::used(self.rule.codec(), &block)?)))
        {
            Ok((block, len)) if block.count > 0 => self.open(block, bytes::slice(body.as_ref(), 0, len)),
            Ok(_) => {}
            Err(_) => self.broken = true,
        }
    }

    /// Copies the keys of some slots of another list: whole blocks unchanged, parts of blocks encoded again, which
    /// never makes them longer. Returns false if the keys are not above those before, or the other list is damaged.
    pub(super) fn take(&mut self, index: &Index<'_, T>, slots: Range<usize>) -> bool {
        if slots.is_empty() {
            return true;
        }
        for at in index.block_of_slot(slots.start)..index.len() {
            let (start, end) = (index.start(at), index.start(at + 1));
            if start >= slots.end || self.broken {
                break;
            }
            if start >= end {
                return false;
            }
            let (block, body) = index.block(at);
            if self.blocks.last().is_some_and(|(last, _)| last.last >= block.first) {
                return false;
            }
            if slots.start <= start && end <= slots.end {
                self.open(block, body);
                continue;
            }
            let mut keys = [T::default(); MAX_BLOCK];
            let keys = index.decode(at, &mut keys);
            let (from, to) = (slots.start.saturating_sub(start), slots.end.saturating_sub(start).min(keys.len()));
            self.push_block(keys.get(from..to).unwrap_or_default());
        }
        !self.broken
    }

    /// Appends the finished list to `out`.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        let ends = self.blocks.iter().skip(1).map(|(_, at)| *at).chain([self.used]);
        let blocks = self.blocks.iter().zip(ends);
        lay_out(self.rule.codec(), blocks.map(|((block, at), end)| (*block, bytes::slice(&self.body, *at, end))), out);
    }
}
