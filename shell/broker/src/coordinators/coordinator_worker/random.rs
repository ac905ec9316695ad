//! Random numbers for members' ids, taken from the system many at a time: every request of a group may need one, and
//! next to none does.

/// Numbers taken at once.
const AT_ONCE: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Randoms {
    left: Vec<[u8; 16]>,
}

impl Randoms {
    /// A new one.
    pub fn next(&mut self) -> [u8; 16] {
        if self.left.is_empty() {
            let mut bytes = [0; 16 * AT_ONCE];
            getrandom::fill(&mut bytes)
                .expect("invariant: Linux always has random bytes for a running process");
            self.left = bytes.chunks_exact(16).filter_map(|chunk| chunk.try_into().ok()).collect();
        }
        self.left.pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_comes_twice() {
        let mut randoms = Randoms::default();
        let numbers: std::collections::BTreeSet<[u8; 16]> =
            (0..3 * AT_ONCE).map(|_| randoms.next()).collect();
        assert_eq!(numbers.len(), 3 * AT_ONCE);
    }
}
