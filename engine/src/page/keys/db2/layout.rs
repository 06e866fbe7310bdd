//! Chooses the prefixes: the greedy first pass, prefix merge and prefix expansion. The result depends only on the keys,
//! their present groups and a bound, so that redo chooses the same. The code does not rely on the order of the keys: it
//! uses only the common prefix of each key and the one before.

use super::GROUP;
use crate::base::bytes;
use crate::page::keys::slotted::heap_bytes;

/// The number of rounds of merging or expanding.
const ROUNDS: usize = 4;

/// Adjacent keys in one buffer.
#[derive(Default)]
pub(super) struct KeyBuffer {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyBuffer {
    /// Allocates memory for keys of about `bytes` bytes together.
    pub(super) fn of_about(bytes: usize) -> KeyBuffer {
        KeyBuffer { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(bytes / 16) }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn key(&self, index: usize) -> &[u8] {
        let from = index.checked_sub(1).map_or(0, |before| self.end(before));
        bytes::slice(&self.bytes, from, self.end(index))
    }

    fn end(&self, index: usize) -> usize {
        self.ends.get(index).copied().unwrap_or(0)
    }

    pub(super) fn push(&mut self, key: impl FnOnce(&mut Vec<u8>)) {
        key(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }
}

/// A run of keys that share a prefix: its first key and the length of the prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PrefixRun {
    pub(super) first: usize,
    pub(super) prefix: usize,
}

/// Keys and the length of the common prefix of each key and the one before.
struct Planner<'k> {
    keys: &'k KeyBuffer,
    common: Vec<usize>,
    /// The most bytes that directory and prefixes may take.
    most: usize,
}

/// Returns the best of the keys' present runs and the results of the heuristics. An empty result means that no prefixes
/// are used. `most` is the most bytes that directory and prefixes may take; the present runs may exceed it. The present
/// runs are kept unless another choice is shorter, so that the list never grows because of a new choice.
pub(super) fn optimize(keys: &KeyBuffer, now: &[PrefixRun], most: usize) -> Vec<PrefixRun> {
    let common = (0..keys.len())
        .map(|index| index.checked_sub(1).map_or(0, |left| bytes::common_prefix(keys.key(left), keys.key(index))))
        .collect();
    let planner = Planner { keys, common, most };
    let greedy = planner.greedy();
    let mut choices = vec![Vec::new(), planner.merged(&greedy), greedy];
    let holds = planner.holds(now);
    if holds {
        choices.extend([planner.merged(now), planner.expanded(now)]);
    }
    choices.retain(|runs| planner.front(runs) <= most);
    if holds {
        choices.insert(0, now.to_vec());
    }
    choices.into_iter().min_by_key(|runs| planner.cost(runs)).unwrap_or_default()
}

impl Planner<'_> {
    fn common(&self, index: usize) -> usize {
        self.common.get(index).copied().unwrap_or(0)
    }

    /// Returns the length of the common prefix of all keys of `[first, end)`.
    fn shared(&self, first: usize, end: usize) -> usize {
        let least = self.common.get(first + 1..end).unwrap_or_default().iter().min();
        least.copied().unwrap_or_else(|| self.keys.key(first).len())
    }

    /// Returns the bytes of directory and prefixes.
    fn front(&self, runs: &[PrefixRun]) -> usize {
        runs.iter().map(|run| GROUP + run.prefix).sum()
    }

    /// Returns all bytes that depend on the runs.
    fn cost(&self, runs: &[PrefixRun]) -> usize {
        let mut runs_left = runs.iter().peekable();
        let mut prefix = 0;
        let heap: usize = (0..self.keys.len())
            .map(|index| {
                if let Some(run) = runs_left.next_if(|run| run.first == index) {
                    prefix = run.prefix;
                }
                heap_bytes(self.keys.key(index).len().saturating_sub(prefix))
            })
            .sum();
        heap + self.front(runs)
    }

    /// Returns true if there are runs, they are in order, and their keys have their prefixes.
    fn holds(&self, runs: &[PrefixRun]) -> bool {
        let ends = runs.iter().skip(1).map(|run| run.first).chain([self.keys.len()]);
        runs.first().is_some_and(|run| run.first == 0)
            && runs.iter().zip(ends).all(|(run, end)| run.first < end && run.prefix <= self.shared(run.first, end))
    }

    /// The first pass: the common prefix of two keys is the prefix for as long as the following keys have it. The last
    /// run takes the remaining keys when directory and prefixes have reached their bound.
    fn greedy(&self) -> Vec<PrefixRun> {
        let (mut runs, mut first, mut front) = (Vec::new(), 0, 0);
        while first < self.keys.len() {
            let mut prefix = self.common(first + 1).min(self.keys.key(first).len());
            let mut end = first + 1;
            if front + 2 * GROUP + prefix > self.most {
                (prefix, end) = (0, self.keys.len());
            }
            while end < self.keys.len() && self.common(end) >= prefix && (prefix > 0 || self.common(end + 1) == 0) {
                end += 1;
            }
            runs.push(PrefixRun { first, prefix });
            front += GROUP + prefix;
            first = end;
        }
        runs
    }

    /// Prefix merge. A boundary between two runs has a closed range: the runs around it that have the common prefix of
    /// the two keys at the boundary. A merge gives these runs that one prefix. The best merges are done first, none
    /// overlaps another, and there are a few rounds.
    fn merged(&self, runs: &[PrefixRun]) -> Vec<PrefixRun> {
        let mut runs = runs.to_vec();
        for _ in 0..ROUNDS {
            let mut merges = self.closed_ranges(&runs);
            if merges.is_empty() {
                break;
            }
            merges.sort_by_key(|merge| (std::cmp::Reverse(merge.gain), merge.from));
            let mut taken = vec![false; runs.len()];
            for Merge { from, to, prefix, .. } in merges {
                let Some(range) = taken.get_mut(from..to).filter(|range| range.iter().all(|taken| !taken)) else {
                    continue;
                };
                range.fill(true);
                if let Some(run) = runs.get_mut(from) {
                    run.prefix = prefix;
                }
                // The other runs become part of the run before them.
                for run in runs.get_mut(from + 1..to).unwrap_or_default() {
                    run.first = usize::MAX;
                }
            }
            runs.retain(|run| run.first != usize::MAX);
        }
        runs
    }

    /// Returns the merges that save bytes.
    fn closed_ranges(&self, runs: &[PrefixRun]) -> Vec<Merge> {
        let first = |index: usize| runs.get(index).map_or(self.keys.len(), |run| run.first);
        let own: Vec<usize> = (0..runs.len()).map(|index| self.shared(first(index), first(index + 1))).collect();
        let own = |index: usize| own.get(index).copied().unwrap_or(0);
        let mut merges = Vec::new();
        for boundary in 1..runs.len() {
            let prefix = self.common(first(boundary)).min(own(boundary - 1)).min(own(boundary));
            let (mut from, mut to) = (boundary - 1, boundary + 1);
            while from > 0 && to - from < MAX_MERGED && self.common(first(from)) >= prefix && own(from - 1) >= prefix {
                from -= 1;
            }
            while to < runs.len() && to - from < MAX_MERGED && self.common(first(to)) >= prefix && own(to) >= prefix {
                to += 1;
            }
            let range = runs.get(from..to).unwrap_or_default();
            let saved: usize = self.front(range).saturating_sub(GROUP + prefix);
            let lost: usize = range
                .iter()
                .zip(from..)
                .map(|(run, index)| (first(index + 1) - run.first) * run.prefix.saturating_sub(prefix))
                .sum();
            let won: usize = range
                .iter()
                .zip(from..)
                .map(|(run, index)| (first(index + 1) - run.first) * prefix.saturating_sub(run.prefix))
                .sum();
            if saved + won > lost {
                merges.push(Merge { gain: saved + won - lost, from, to, prefix });
            }
        }
        merges
    }

    /// Prefix expansion: the last keys of a run and the first keys of the next get a run of their own with their common
    /// prefix, if that saves bytes.
    fn expanded(&self, runs: &[PrefixRun]) -> Vec<PrefixRun> {
        let mut out: Vec<PrefixRun> = Vec::with_capacity(runs.len());
        let mut front = self.front(runs);
        for (index, &run) in runs.iter().enumerate() {
            let end = runs.get(index + 1).map_or(self.keys.len(), |next| next.first);
            let Some(left) = out.last().copied() else {
                out.push(run);
                continue;
            };
            let prefix = self.common(run.first);
            let from = (left.first..run.first).rev().find(|at| self.common(*at) < prefix || *at == left.first);
            let from = from.unwrap_or(left.first);
            let to = (run.first + 1..end).find(|at| self.common(*at) < prefix).unwrap_or(end);
            let won = (run.first - from) * prefix.saturating_sub(left.prefix)
                + (to - run.first) * prefix.saturating_sub(run.prefix);
            let (whole_left, whole_right) = (from == left.first, to == end);
            let freed =
                if whole_left { GROUP + left.prefix } else { 0 } + if whole_right { GROUP + run.prefix } else { 0 };
            let fits = front + GROUP + prefix <= self.most + freed;
            if prefix <= left.prefix.min(run.prefix) || won + freed <= GROUP + prefix || !fits {
                out.push(run);
                continue;
            }
            if whole_left {
                out.pop();
            }
            out.push(PrefixRun { first: from, prefix });
            if !whole_right {
                out.push(PrefixRun { first: to, prefix: run.prefix });
            }
            front = (front + GROUP + prefix).saturating_sub(freed);
        }
        out
    }
}

/// The maximum number of runs that one merge considers.
const MAX_MERGED: usize = 64;

/// A merge of the runs `[from, to)` into one with one prefix.
struct Merge {
    gain: usize,
    from: usize,
    to: usize,
    prefix: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planner<'k>(keys: &'k KeyBuffer) -> Planner<'k> {
        let common = (0..keys.len())
            .map(|i| if i == 0 { 0 } else { bytes::common_prefix(keys.key(i - 1), keys.key(i)) })
            .collect();
        Planner { keys, common, most: 1000 }
    }

    fn keys(all: &[&str]) -> KeyBuffer {
        let mut keys = KeyBuffer::default();
        all.iter().for_each(|key| keys.push(|out| out.extend_from_slice(key.as_bytes())));
        keys
    }

    #[test]
    fn the_first_pass_extends_the_common_prefix_of_two_keys() {
        let keys = keys(&["abcd", "abefg", "abexyz", "bcdmn", "bcdop", "xy"]);
        let run = |first, prefix| PrefixRun { first, prefix };
        assert_eq!(planner(&keys).greedy(), [run(0, 2), run(3, 3), run(5, 0)]);
    }

    #[test]
    fn prefixes_of_a_closed_range_are_merged_where_the_directory_costs_more() {
        let keys = keys(&["abcdfg", "abcdhi", "abceab", "abcecd", "abcexy", "bd"]);
        let run = |first, prefix| PrefixRun { first, prefix };
        let now = [run(0, 4), run(2, 4), run(5, 2)];
        assert_eq!(planner(&keys).merged(&now)[0], run(0, 3), "abcd and abce have abc in common");
    }

    #[test]
    fn a_prefix_is_expanded_across_a_boundary_if_that_saves_bytes() {
        let all = ["abea", "abeb", "abedcaaa", "abedcbbb", "abedccc", "abedcddd", "abedce", "abedcf", "abedcg"];
        let keys = keys(&all);
        let run = |first, prefix| PrefixRun { first, prefix };
        let expanded = planner(&keys).expanded(&[run(0, 3), run(4, 4)]);
        assert_eq!(expanded, [run(0, 3), run(2, 5)], "abedc takes keys of the second prefix and all of the third");
    }

    #[test]
    fn existing_groups_are_kept_unless_new_ones_are_shorter() {
        let all = keys(&["common/prefix/a", "common/prefix/b", "common/prefix/c"]);
        let one = [PrefixRun { first: 0, prefix: 14 }];
        assert_eq!(optimize(&all, &one, 1000), one);
        assert_eq!(optimize(&all, &one, 5), one, "the present runs may exceed the bound");
        let false_claim = [PrefixRun { first: 0, prefix: 15 }];
        assert_eq!(optimize(&all, &false_claim, 5), [], "groups whose keys lack the prefix are not a choice");
    }

    #[test]
    fn prefixes_that_save_nothing_are_not_used() {
        let now = keys(&["a", "b", "c", "d"]);
        assert_eq!(optimize(&now, &[], 1000), []);
        let many: Vec<String> = (0..60).map(|i| format!("common/prefix/of/{}/{i:02}", i / 20)).collect();
        let many = keys(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let runs = optimize(&many, &[], 1000);
        assert!((1..=3).contains(&runs.len()) && runs.iter().all(|run| run.prefix >= 17), "{runs:?}");
        assert_eq!(optimize(&many, &[], 10), [], "a quarter of the page is the bound");
    }
}
