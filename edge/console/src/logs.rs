//! The logs of the node that the console is in. A search reads them where they lie: records that do not match never
//! pass a socket or the broker's threads.
//!
//! The node says what it leads and hands out bytes; whether the caller may see them is asked of the broker first, by a
//! Fetch as that caller.

use bytes::Bytes;

/// What a node lends to its console.
pub trait OwnLogs: Send + Sync + std::fmt::Debug {
    /// The log of a partition that this node leads now; `None`: it does not, or cannot read it.
    fn open(&self, topic: &str, partition: i32) -> Option<Box<dyn OwnLog>>;
    /// Lowers the priority of the calling thread for good: everything else of the node goes first.
    fn give_way(&self);
}

/// One partition's log, read from an offset on.
pub trait OwnLog: Send + Sync + std::fmt::Debug {
    /// Whole batches, from the one that holds `from` or is the next behind it on: about `bytes` of them. Batches that
    /// end before `from` may come first. Empty: the broker has to be asked for the rest.
    fn read(&mut self, from: i64, bytes: usize) -> Bytes;
}
