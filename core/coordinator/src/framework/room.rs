//! What one shard holds of its node's memory, and whether there is room for more.
//!
//! All coordinators of a node share one bound (`groups.memory.max.bytes`). A shard knows its own bytes; the shell adds
//! up the shards of the node and tells each shard before a request what the others hold ([`Room::others_hold`]). So the
//! sum may be as old as the last request of the shard, and the node is over its bound by at most what its workers take
//! in one turn.

/// Bytes of one shard and of the others of its node; refusals for want of room.
#[derive(Debug, Default)]
pub struct Room {
    held: usize,
    elsewhere: usize,
    refused: u64,
    why: String,
}

impl Room {
    /// Bytes that the shard holds.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Requests that were refused for want of room, since the shard was made.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Why the last of them was.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Bytes that the node's other shards hold now.
    pub fn others_hold(&mut self, bytes: usize) {
        self.elsewhere = bytes;
    }

    /// Bytes that all shards of the node hold.
    pub(crate) fn node(&self) -> usize {
        self.held + self.elsewhere
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.held += bytes;
    }

    /// Something that weighed `before` weighs `now`.
    pub(crate) fn change(&mut self, before: usize, now: usize) {
        assert!(before <= self.held, "{before} bytes are given back of {}", self.held);
        self.held = self.held - before + now;
    }

    /// Whether something that weighs `before` may weigh `now`. What gets no heavier always may.
    pub(crate) fn has(&self, before: usize, now: usize, node_max: usize) -> bool {
        now <= before || self.node() + (now - before) <= node_max
    }

    pub(crate) fn refuse(&mut self, why: String) {
        self.refused += 1;
        self.why = why;
    }

    /// As [`Room::refuse`], because the node holds all that it may.
    pub(crate) fn refuse_for_node(&mut self, node_max: usize) {
        let all = self.node();
        self.refuse(format!(
            "The coordinators of this broker hold {all} bytes, and groups.memory.max.bytes allows {node_max}."
        ));
    }
}
