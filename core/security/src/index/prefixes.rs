//! Prefixes, sorted, each with the longest other prefix that it begins with: its parent.
//!
//! The prefixes of a name all begin the last prefix that sorts at or before the name. For let `p` begin the name and
//! sort at or before that last one, `q`. Every text between `p` and a text that begins with `p` begins with `p` itself,
//! so `q` does. One binary search and a walk up the parents therefore find them all, and the walk needs no comparison
//! of texts: an ancestor of `q` begins the name if it is no longer than what `q` and the name have in common.

use barnabas_base::Text;

use super::{Bucket, Work};

const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// All texts, one after the other.
    texts: String,
    entries: Vec<Entry>,
    /// The length of what all texts begin with.
    shared: usize,
    /// Of each text the eight bytes behind that: a binary search stays within few cache lines and compares numbers.
    keys: Vec<u64>,
}

#[derive(Debug)]
struct Entry {
    start: u32,
    end: u32,
    parent: u32,
    bucket: Bucket,
}

impl Entry {
    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}

impl Prefixes {
    /// Adds a prefix that sorts after all that were added.
    pub(super) fn push(&mut self, prefix: &Text, bucket: Bucket) {
        let mut parent = self.entries.len().checked_sub(1).map_or(NONE, |last| last as u32);
        while let Some(entry) = self.entries.get(parent as usize) {
            if prefix.starts_with(self.text(entry)) {
                break;
            }
            parent = entry.parent;
        }
        let start = self.texts.len() as u32;
        self.texts.push_str(prefix);
        // Names of 4 GiB together do not fit the metadata log.
        self.entries.push(Entry { start, end: self.texts.len() as u32, parent, bucket });
    }

    /// After the last one was added: makes them ready to be searched.
    pub(super) fn finish(&mut self) {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else { return };
        // All texts between two that are sorted begin with what these two have in common.
        self.shared = in_common(self.text(first), self.text(last));
        self.keys = self.entries.iter().map(|entry| key(self.text(entry), self.shared)).collect();
    }

    /// Those that begin the name, the longest first.
    pub(super) fn of<'a, W: Work>(
        &'a self,
        name: &str,
        work: &mut W,
    ) -> impl Iterator<Item = &'a Bucket> + use<'a, W> {
        let last = self.last_at_or_before(name, work);
        let in_common = last.map_or(0, |last| in_common(self.text(&self.entries[last]), name));
        let mut at = last.map_or(NONE, |last| last as u32);
        std::iter::from_fn(move || {
            loop {
                let entry = self.entries.get(at as usize)?;
                at = entry.parent;
                if entry.len() <= in_common {
                    return Some(&entry.bucket);
                }
            }
        })
    }

    /// The last text that sorts at or before a name. `None` also where the name does not begin as all texts do: none of
    /// them begins it.
    fn last_at_or_before<W: Work>(&self, name: &str, work: &mut W) -> Option<usize> {
        let first = self.entries.first()?;
        work.step();
        if in_common(self.text(first), name) < self.shared {
            return None;
        }
        let key = key(name, self.shared);
        let mut after = self.keys.partition_point(|other| {
            work.step();
            *other < key
        });
        // Texts that have the same eight bytes there.
        if self.keys.get(after) == Some(&key) {
            let same = self.keys[after..].partition_point(|other| *other == key);
            after += self.entries[after..after + same].partition_point(|entry| {
                work.step();
                self.text(entry) <= name
            });
        }
        after.checked_sub(1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Bucket)> {
        self.entries.iter().map(|entry| (self.text(entry), &entry.bucket))
    }

    fn text(&self, entry: &Entry) -> &str {
        &self.texts[entry.start as usize..entry.end as usize]
    }
}

/// Eight bytes of a text from `at` on. They sort as the text does there, but for texts that have them in common.
fn key(text: &str, at: usize) -> u64 {
    let bytes = text.as_bytes().get(at..).unwrap_or_default();
    let mut word = [0; 8];
    let count = bytes.len().min(8);
    word[..count].copy_from_slice(&bytes[..count]);
    u64::from_be_bytes(word)
}

/// How many bytes two texts begin with together.
fn in_common(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).take_while(|(a, b)| a == b).count();
    let rest = a[8 * words..].iter().zip(&b[8 * words..]).take_while(|(a, b)| a == b).count();
    8 * words + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(prefixes: &[&str], name: &str) -> Vec<u32> {
        let mut sorted = prefixes.to_vec();
        sorted.sort_unstable();
        let mut table = Prefixes::default();
        for prefix in &sorted {
            let place = prefixes.iter().position(|other| other == prefix).unwrap() as u32;
            table.push(&Text::from(*prefix), place..place);
        }
        table.finish();
        table.of(name, &mut ()).map(|bucket| bucket.start).collect()
    }

    #[test]
    fn prefixes_of_a_name_are_found_longest_first() {
        let prefixes = ["foo", "f", "foobar", "foob", "fa", "g", "foo-"];
        assert_eq!(found(&prefixes, "foobaz"), [3, 0, 1]);
        assert_eq!(found(&prefixes, "foobar"), [2, 3, 0, 1]);
        assert_eq!(found(&prefixes, "fz"), [1]);
        assert_eq!(found(&prefixes, "foo"), [0, 1]);
        assert_eq!(found(&prefixes, "h"), [0u32; 0]);
        assert_eq!(found(&prefixes, ""), [0u32; 0]);
        assert_eq!(found(&[], "x"), [0u32; 0]);
    }

    #[test]
    fn long_texts_with_much_in_common_are_told_apart() {
        let prefixes =
            ["team-000017-", "team-000017-orders-", "team-000017-orders-eu", "team-000018-", "team-00002"];
        assert_eq!(found(&prefixes, "team-000017-orders-eu-1"), [2, 1, 0]);
        assert_eq!(found(&prefixes, "team-000017-orders-us"), [1, 0]);
        assert_eq!(found(&prefixes, "team-000017-"), [0]);
        assert_eq!(found(&prefixes, "team-000017"), [0u32; 0]);
        assert_eq!(found(&prefixes, "team-0"), [0u32; 0]);
        assert_eq!(found(&prefixes, "team-00002"), [4]);
        assert_eq!(found(&prefixes, "zeta"), [0u32; 0]);
        assert_eq!(found(&prefixes, "a"), [0u32; 0]);
    }

    #[test]
    fn what_texts_have_in_common_is_counted_in_bytes() {
        for length in 0..20 {
            let text = &"abcdefghijklmnopqrst"[..length];
            assert_eq!(in_common(text, text), length);
            assert_eq!(in_common(text, "abcdefghijklmnopqrstuvw"), length);
            assert_eq!(in_common(&format!("{text}1"), &format!("{text}2xxxxxxxxx")), length);
        }
    }

    /// Against a comparison of all, where texts share few or many bytes.
    #[test]
    fn finds_what_a_comparison_of_all_finds() {
        let texts = [
            "",
            "a",
            "ab",
            "abc",
            "abcdefgh",
            "abcdefghi",
            "abcdefgh0",
            "abcdefghij",
            "abd",
            "b",
            "a\0",
            "a\0b",
        ];
        for chosen in 0..1usize << texts.len() {
            let prefixes: Vec<&str> = texts
                .iter()
                .enumerate()
                .filter(|(at, _)| chosen >> at & 1 == 1)
                .map(|(_, text)| *text)
                .collect();
            for name in texts.iter().chain(&["abcdefghijk", "abcdefg", "abcdefgh00", "c", "a\0c"]) {
                let mut expected: Vec<u32> = (0..prefixes.len() as u32)
                    .filter(|at| name.starts_with(prefixes[*at as usize]))
                    .collect();
                expected.sort_by_key(|at| std::cmp::Reverse(prefixes[*at as usize].len()));
                assert_eq!(found(&prefixes, name), expected, "{prefixes:?} {name:?}");
            }
        }
    }

    #[test]
    fn prefixes_may_end_inside_a_letter_of_another() {
        // é is c3 a9 and è is c3 a8: they have a byte in common, which is no letter.
        assert_eq!(found(&["caf", "cafè"], "café"), [0]);
        assert_eq!(found(&["caf", "café"], "cafés"), [1, 0]);
    }
}
