//! Members of share groups whose sessions end: with their connection, or by a request. What they hold is released.

use crate::mailbox::{Command, PartitionKey, ShareCommand};
use crate::node::Node;
use barnabas_api::share::{Connection, Ended, MemberKey, SharePart};
use std::sync::Arc;

/// The members whose sessions were begun on a connection are gone with it.
pub fn gone(node: &Arc<Node>, connection: Connection) {
    let ended = node.workers.share_sessions().disconnected(connection);
    if ended.is_empty() {
        return;
    }
    // Without a runtime the node has stopped.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let node = node.clone();
    runtime.spawn(async move {
        for ended in ended {
            release(&node, ended).await;
        }
    });
}

/// Ends a member's session, if it has one.
pub async fn end(node: &Node, key: &MemberKey) {
    let ended = node.workers.share_sessions().end(key);
    if let Some(ended) = ended {
        release(node, ended).await;
    }
}

/// What a member holds is free for others. With a group's last member everybody hears of it: partitions that it fetched
/// and forgot.
async fn release(node: &Node, ended: Ended) {
    let Ended { key, parts, is_last } = ended;
    for (owner, mailbox) in node.workers.mailboxes.iter().enumerate() {
        let of_owner = parts.iter().map(partition_key).filter(|key| key.owner(node.workers.count) == owner);
        let partitions: Vec<PartitionKey> = of_owner.collect();
        if !partitions.is_empty() || is_last {
            let (group, member) = (key.group.clone(), key.member.clone());
            let command = ShareCommand::Release { group, member, partitions, is_last };
            mailbox.send(Command::Share(Box::new(command))).await;
        }
    }
}

pub fn partition_key(part: &SharePart) -> PartitionKey {
    PartitionKey { topic: part.topic, partition: part.partition }
}
