//! Replicas of a log directory that this node does not have any more, because its disk was replaced.
//!
//! Such a replica is empty now. If another replica has all acknowledged records, this one is created in
//! another directory and fetches from the leader. If none has, an empty replica would lose acknowledged
//! records, and only an operator may decide that.
//!
//! | the metadata log says | then |
//! |---|---|
//! | another broker leads; this one is not in ISR or ELR | assign a new directory; then open and follow |
//! | others are in the ISR or ELR, but none leads yet, or this broker is not registered yet | wait |
//! | no other replica is in the ISR or ELR | offline until the directory is back, or an unclean election |
//! | a directory of this node could not be read at the start | offline: it may be that one |
//!
//! Always true: the controller has removed the replica from ISR and ELR since this process registered. So an
//! empty replica neither acknowledges records nor wins an election, except an unclean one.
//!
//! Neighbour: shell/broker/src/upkeep/placement/lost.rs, which remembers what is not settled and places what can be.
//!
//! Source: KIP-858; Kafka `LogManager.getOrCreateLog`, which creates every missing log while all directories are
//! online, even that of an only replica.

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, DirectoryId};
use barnabas_metadata::{Image, Partition as Row};
use barnabas_partition::PartitionKey;

/// Of many partitions, so many are named.
const NAMES_SAID: usize = 3;

/// What becomes of such a replica, as things are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It may be fetched from its leader.
    Refilled,
    /// The same, once the partition has a leader.
    Waits,
    /// No other replica has its records.
    Alone,
    /// It may lie in a directory that could not be read.
    Unread,
}

/// This broker's directories.
#[derive(Clone, Copy)]
pub struct Own<'a> {
    pub me: BrokerId,
    pub has: &'a dyn Fn(DirectoryId) -> bool,
    /// A directory for partitions could not be read at the start.
    pub some_unread: bool,
}

impl std::fmt::Debug for Own<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Own").field("me", &self.me).finish_non_exhaustive()
    }
}

/// UNASSIGNED, LOST, MIGRATING and what may come after them: no directory's id (KIP-858).
pub fn is_reserved(id: DirectoryId) -> bool {
    id.0[..15] == [0; 15] && id.0[15] < 100
}

/// Partitions of one kind and directory, in an image.
#[derive(Debug)]
pub struct Lost {
    pub found: BTreeMap<(Fate, DirectoryId), Named>,
    /// Those that may be placed, now or later.
    pub keys: Vec<PartitionKey>,
}

impl Own<'_> {
    /// Whether the replica of this broker lies in a directory that is none of its own, by the metadata log.
    pub fn is_lost(&self, row: &Row) -> bool {
        let id = row.directory(self.me).filter(|id| !is_reserved(*id));
        id.is_some_and(|id| !(self.has)(id))
    }

    /// `None`: the replica is not lost.
    pub fn fate(&self, row: &Row) -> Option<Fate> {
        let me = self.me;
        if !self.is_lost(row) {
            return None;
        }
        let mut with_all = row.isr().iter().chain(row.elr());
        Some(if self.some_unread {
            Fate::Unread
        } else if with_all.clone().all(|broker| *broker == me) {
            Fate::Alone
        } else if row.leader == BrokerId::NONE || row.leader == me || with_all.any(|broker| *broker == me) {
            Fate::Waits
        } else {
            Fate::Refilled
        })
    }

    /// All lost replicas of an image.
    pub fn look(&self, image: &Image) -> Lost {
        let mut lost = Lost { found: BTreeMap::new(), keys: Vec::new() };
        for topic in image.topics.iter() {
            for (partition, row) in topic.partitions() {
                let Some(fate) = self.fate(row) else { continue };
                let id = row.directory(self.me).unwrap_or_default();
                // In the log, those that wait count as refilled, as they will be.
                let said = if fate == Fate::Waits { Fate::Refilled } else { fate };
                lost.found.entry((said, id)).or_default().add(|| format!("{}-{partition}", topic.name));
                if fate != Fate::Unread {
                    lost.keys.push(PartitionKey { topic: topic.id, partition });
                }
            }
        }
        lost
    }
}

/// Partitions of one kind.
#[derive(Debug, Default)]
pub struct Named {
    count: u64,
    names: Vec<String>,
}

impl Named {
    fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.names.len() < NAMES_SAID {
            self.names.push(name());
        }
    }
}

impl Fate {
    /// What is logged of such partitions: at WARN where they are fetched again, else at ERROR.
    pub fn said(self, id: DirectoryId, Named { count, names }: &Named) -> String {
        let names = names.join(", ");
        match self {
            Self::Refilled | Self::Waits => format!(
                "{count} partitions (such as {names}) were in log directory {id} (directory.id in its \
             meta.properties), which is not among this node's. Other brokers have all their records, so \
             they are fetched again from the leaders. If that directory is missing from log.dirs by \
             mistake, add it and restart"
            ),
            Self::Alone => format!(
                "{count} partitions (such as {names}) stay offline: they are in log directory {id} \
             (directory.id in its meta.properties), which is not among this node's, and no other broker \
             has all their records. If the directory can be restored, add it to log.dirs and restart. If \
             its data is lost, elect another replica, or restart the partition empty if this is the only \
             one: barnabas leader-election (or kafka-leader-election.sh) --bootstrap-server HOST:PORT \
             --election-type UNCLEAN --topic TOPIC --partition NUMBER"
            ),
            Self::Unread => format!(
                "{count} partitions (such as {names}) stay offline: they are in log directory {id} \
             (directory.id in its meta.properties), which may be the one that could not be read at this \
             start. If the directory can be restored, restart. If its data is lost, partitions without \
             another replica can restart empty: barnabas leader-election (or kafka-leader-election.sh) \
             --bootstrap-server HOST:PORT --election-type UNCLEAN --topic TOPIC --partition NUMBER"
            ),
        }
    }

    pub fn is_refilled(self) -> bool {
        matches!(self, Self::Refilled | Self::Waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Of, with};
    use barnabas_base::{LeaderEpoch, PartitionEpoch, Uuid};
    use barnabas_metadata::Placement;
    use std::sync::Arc;

    const ME: BrokerId = BrokerId(1);
    const HERE: DirectoryId = Uuid([7; 16]);
    const GONE: DirectoryId = Uuid([8; 16]);

    fn row(leader: i32, isr: &[i32], elr: &[i32], directory: DirectoryId) -> Row {
        let brokers = |ids: &[i32]| ids.iter().map(|id| BrokerId(*id)).collect();
        let placement = Placement {
            replicas: brokers(&[1, 2, 3]),
            directories: vec![directory, HERE, HERE],
            isr: brokers(isr),
            elr: brokers(elr),
            ..Placement::default()
        };
        Row {
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            placement: Arc::new(placement),
        }
    }

    #[test]
    fn replica_is_filled_again_only_where_others_have_all_records() {
        let own = |some_unread| Own { me: ME, has: &|id| id == HERE, some_unread };
        let fate = |leader, isr: &[i32], elr: &[i32]| own(false).fate(&row(leader, isr, elr, GONE));
        assert_eq!(fate(2, &[2, 3], &[]), Some(Fate::Refilled));
        assert_eq!(fate(2, &[2], &[1]), Some(Fate::Waits), "it still counts");
        assert_eq!(fate(-1, &[], &[2]), Some(Fate::Waits), "without a leader");
        assert_eq!(fate(1, &[1, 2], &[]), Some(Fate::Waits), "it leads");
        assert_eq!(fate(1, &[1], &[]), Some(Fate::Alone));
        assert_eq!(fate(-1, &[], &[]), Some(Fate::Alone));
        assert_eq!(own(true).fate(&row(2, &[2, 3], &[], GONE)), Some(Fate::Unread));
        assert_eq!(own(true).fate(&row(2, &[2, 3], &[], HERE)), None);
        let unassigned = DirectoryId::DIRECTORY_UNASSIGNED;
        assert_eq!(own(false).fate(&row(2, &[2, 3], &[], unassigned)), None, "no directory's id");
    }

    #[test]
    fn lost_replicas_of_an_image_are_grouped_by_what_becomes_of_them() {
        let of = |leader, isr, directory| Of {
            leader,
            replicas: &[1, 2],
            isr,
            directories: if directory == HERE { &[HERE, HERE] } else { &[GONE, HERE] },
        };
        let rows = [of(2, &[2], GONE), of(1, &[1, 2], GONE), of(1, &[1], GONE), of(2, &[2], HERE)];
        let (image, _) = with(Image::default(), &[1, 2], 0, &rows);
        let look = |some_unread| Own { me: ME, has: &|id| id == HERE, some_unread }.look(&image);
        let lost = look(false);
        let count = |lost: &Lost, fate| lost.found.get(&(fate, GONE)).map_or(0, |named| named.count);
        assert_eq!([Fate::Refilled, Fate::Alone, Fate::Unread].map(|fate| count(&lost, fate)), [2, 1, 0]);
        let mut places: Vec<i32> = lost.keys.iter().map(|key| key.partition.get()).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2]);
        let unread = look(true);
        assert_eq!((count(&unread, Fate::Unread), unread.keys.len()), (3, 0), "they may be there");
    }

    #[test]
    fn few_names_are_said_of_many_partitions() {
        let mut named = Named::default();
        (0..9).for_each(|at| named.add(|| format!("t-{at}")));
        let said = Fate::Alone.said(GONE, &named);
        assert!(said.starts_with("9 partitions (such as t-0, t-1, t-2) stay offline"), "{said}");
        assert!(Fate::Waits.is_refilled() && !Fate::Unread.is_refilled());
    }
}
