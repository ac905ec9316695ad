//! Whose partitions a connection's requests are for: where it had better be served.
//!
//! Asked by: connection.rs, which moves it there.

/// Requests in a row that had nothing for the connection's own worker.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Foreign {
    /// One of those whom the last of them was for.
    pub owner: usize,
    /// So many were for this one alone.
    pub same: u32,
    pub any: u32,
}

impl Foreign {
    /// With one request more, on a connection of `worker`, for partitions of `owners`.
    pub fn after(self, worker: usize, owners: impl Iterator<Item = usize>) -> Self {
        let (mut first, mut is_one) = (None, true);
        for owner in owners {
            is_one &= *first.get_or_insert(owner) == owner;
            if owner == worker {
                return Self::default();
            }
        }
        let Some(owner) = first else { return Self::default() };
        let goes_on = is_one && owner == self.owner;
        let same = if goes_on { self.same.saturating_add(1) } else { u32::from(is_one) };
        Self { owner, same, any: self.any.saturating_add(1) }
    }
}
