//! The stories, one per file; each takes the table and adds what it measured.

pub mod apache;
pub mod crowd;
pub mod one_topic;
pub mod written;

use crate::node::{Failure, Node};
use crate::table::Table;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What all stories share.
#[derive(Debug)]
pub struct Run {
    pub binary: PathBuf,
    pub root: PathBuf,
    pub table: Table,
    /// A tenth of everything, for an ordinary test.
    pub quick: bool,
}

impl Run {
    pub fn node(&self, name: &str) -> Result<Node, Failure> {
        Node::start(&self.binary, &self.root, name, 1)
    }

    /// Notes what the node complained of: nothing is right.
    pub fn no_complaints(&mut self, node: &Node) {
        let complaints = node.complaints();
        if !complaints.is_empty() {
            self.table.is("the node's log has no ERROR and no WARN", complaints.join(" | "), false);
        }
    }
}

/// How long something took.
pub async fn timed<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<(T, Duration), Failure> {
    let begun = Instant::now();
    let done = work.await?;
    Ok((done, begun.elapsed()))
}
