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
    /// All texts, one after the other: a binary search then stays within few cache lines.
    texts: String,
    entries: Vec<Entry>,
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

    /// Those that begin the name, the longest first.
    pub(super) fn of<'a, W: Work>(
        &'a self,
        name: &str,
        work: &mut W,
    ) -> impl Iterator<Item = &'a Bucket> + use<'a, W> {
        let after = self.entries.partition_point(|entry| {
            work.step();
            self.text(entry) <= name
        });
        let last = after.checked_sub(1);
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

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Bucket)> {
        self.entries.iter().map(|entry| (self.text(entry), &entry.bucket))
    }

    fn text(&self, entry: &Entry) -> &str {
        &self.texts[entry.start as usize..entry.end as usize]
    }
}

fn in_common(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
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
    fn prefixes_may_end_inside_a_letter_of_another() {
        // é is c3 a9 and è is c3 a8: they have a byte in common, which is no letter.
        assert_eq!(found(&["caf", "cafè"], "café"), [0]);
        assert_eq!(found(&["caf", "café"], "cafés"), [1, 0]);
    }
}
