//! A start that finds a log directory without room waits for some.

use crate::node::Node;
use std::time::Duration;

/// Between two tries of the start to find room.
const WAIT: Duration = Duration::from_millis(500);
/// How long a start waits for room in one directory while others could serve.
const WAIT_BESIDE_OTHERS: Duration = Duration::from_secs(30);

/// At the start, before any client is served: retries until there is room. Nothing is lost meanwhile, and the
/// operator need not start the node a second time. If other directories could serve, it waits only for a while.
///
/// # Errors
/// What `work` ends with; a full disk where the node is to stop, or others wait for it.
pub fn with_room<T, E: std::fmt::Display>(
    node: &Node,
    directory: usize,
    is_full: impl Fn(&E) -> bool,
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let begun = barnabas_clock::now();
    let others =
        node.log_dirs.directories.iter().filter(|other| other.holds_partitions && other.is_online()).count()
            > 1;
    let mut was_said = false;
    loop {
        let error = match work() {
            Err(error) if is_full(&error) => error,
            done => return done,
        };
        if node.shutdown.is_wanted() || (others && barnabas_clock::since(begun) > WAIT_BESIDE_OTHERS) {
            return Err(error);
        }
        if !std::mem::replace(&mut was_said, true) {
            let path = node.log_dirs.directories[directory].path.display();
            tracing::error!(%error, "the start waits for free space in {path}");
            // That may be all it takes.
            if let Err(error) = node.peers.controller.give_reserve_away(node, |_| true) {
                tracing::warn!(%error, "the space reserved for the metadata log could not be used for it");
            }
            continue;
        }
        std::thread::sleep(WAIT);
    }
}
