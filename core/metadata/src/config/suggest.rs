//! The known key that an unknown one was probably meant to be.

use super::{ConfigKey, Resource};

/// The key of `resource` nearest to `name`; `None` where nothing is near enough to be worth naming.
///
/// Near is an edit distance (insert, delete, change, swap of neighbours) of at most a third of the name's length.
pub fn nearest(resource: Resource, name: &str) -> Option<&'static str> {
    let most = (name.len() / 3).clamp(1, 8);
    let distance = |key: &'static str| (distance(name.as_bytes(), key.as_bytes()), key);
    // The difference in length is the least distance: most keys, and all where a client sent 32 kB, need no look.
    let is_candidate = |key: &&ConfigKey| !key.internal && key.name.len().abs_diff(name.len()) <= most;
    let best = resource.keys().filter(is_candidate).map(|key| distance(key.name)).min()?;
    (best.0 <= most).then_some(best.1)
}

/// Optimal string alignment distance, in bytes: config names are ASCII.
fn distance(left: &[u8], right: &[u8]) -> usize {
    let width = right.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (row, &a) in left.iter().enumerate() {
        let mut next = vec![row + 1; width];
        for (column, &b) in right.iter().enumerate() {
            let changed = last[column] + usize::from(a != b);
            next[column + 1] = changed.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && a == right[column - 1] && left[row - 1] == b {
                next[column + 1] = next[column + 1].min(before[column - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, next);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_key_is_found_and_a_far_one_is_not() {
        assert_eq!(nearest(Resource::Topic, "retension.ms"), Some("retention.ms"));
        assert_eq!(nearest(Resource::Topic, "cleanup"), None);
        assert_eq!(nearest(Resource::Topic, ""), None);
    }

    /// One took a second of the controller.
    #[test]
    fn names_of_32_kilobytes_are_not_compared() {
        let name = "n".repeat(32_767);
        for _ in 0..10_000 {
            assert_eq!(nearest(Resource::Topic, &name), None);
        }
    }
}
