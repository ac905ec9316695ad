//! What parts of a group take in memory: estimates, structures and keys in maps included.

use barnabas_base::Text;

const TEXT: usize = 48;
const PARTITION: usize = 48;

pub(crate) fn texts<'a>(texts: impl IntoIterator<Item = &'a Text>) -> usize {
    texts.into_iter().map(|text| TEXT + text.len()).sum()
}

/// What partitions that a member has, or is to have, take.
pub(crate) fn partitions(count: usize) -> usize {
    PARTITION * count
}
