//! One look at all groups of the coordinators here: names first, some groups at a time after that, the ends of the logs
//! that they read, once each, and the ages of what those have before them that are shown.

use super::times::Times;
use super::{GROUPS_SHOWN, GroupLag, NAME_BYTES_MAX, PARTITIONS_SHOWN, PartitionLag, Sample};
use crate::mailbox::{AskItem, Command, GroupAsk, PartitionKey, Question, Said};
use crate::node::Node;
use crate::routing::owners;
use crate::routing::share_persister;
use barnabas_base::{Map, Offset, PartitionIndex, Text, TimestampMs};
use barnabas_coordinator::{GroupKind, GroupLook, SharePartitionKey, ShareStateRequest, ShareStateResponse};
use barnabas_metadata::Image;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// For all groups. Those that are left then are counted.
pub(super) const BUDGET: Duration = Duration::from_secs(2);
/// Groups asked for at once, and positions that end an answer early: a millisecond of a worker.
const GROUPS_AT_ONCE: usize = 512;
const POSITIONS_AT_ONCE: usize = 4_096;
/// Logs asked for their ends at once, and in all.
const ENDS_AT_ONCE: usize = 512;
const ENDS_MAX: usize = 100_000;
/// Share-partitions whose state is asked for, in all.
const SHARES_MAX: usize = 5_000;
/// For other brokers: where logs end that they lead and that are not here, where a share group stands.
const OTHERS_WITHIN: Duration = Duration::from_secs(1);
/// Of a group: partitions with the largest lag, whose oldest record is looked up.
const AGES_OF_A_GROUP: usize = 256;

/// Where a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub high_watermark: Offset,
    pub last_stable: Offset,
    pub log_start: Offset,
}

/// Where a group goes on, and how many records from there on are done all the same (share groups).
#[derive(Debug, Clone)]
pub(super) struct Position {
    pub topic: Text,
    pub at: PartitionKey,
    pub offset: Offset,
    pub done: u64,
}

impl Position {
    /// Records up to `end` that are not done.
    pub fn lag(&self, end: Offset) -> u64 {
        let behind = end.get().saturating_sub(self.offset.get());
        u64::try_from(behind).unwrap_or(0).saturating_sub(self.done)
    }
}

/// What is known of a group on the way.
#[derive(Debug)]
struct Found {
    lag: GroupLag,
    /// Where the records stand that it is to read next: of the partitions that it is furthest behind in.
    next: Vec<(PartitionKey, Offset)>,
}

struct Survey<'a> {
    node: &'a Node,
    image: Arc<Image>,
    begun: Instant,
    ends: Map<PartitionKey, Option<Ends>>,
    shares: usize,
    sample: Sample,
    found: Vec<Found>,
}

/// See the file's header. `whole`: a group whose partitions are wanted.
pub(super) async fn survey(node: &Node, times: &mut Times, whole: Option<&Text>) -> Sample {
    let mut survey = Survey {
        node,
        image: node.cluster.image.load_full(),
        begun: barnabas_clock::now(),
        ends: Map::default(),
        shares: 0,
        sample: Sample::default(),
        found: Vec::new(),
    };
    let mut partitions = Vec::new();
    for (shard, names) in names(node).await {
        survey.look_at(shard, &names, whole, &mut partitions).await;
    }
    survey.keep_largest();
    let shown = survey.found.iter().flat_map(|found| found.next.iter().copied());
    let wanted = partitions.iter().map(|(position, ends)| next_of(position, ends));
    times.learn(node, wanted.chain(shown)).await;
    let now = node.clock.wall();
    let mut sample = survey.sample;
    sample.shown = survey.found.into_iter().map(|found| aged(found, times, now)).collect();
    sample.whole = whole.map(|group| {
        let partitions = partitions.iter().map(|(position, ends)| PartitionLag {
            topic: position.topic.clone(),
            partition: position.at.partition.get(),
            records: position.lag(ends.high_watermark),
            age: match position.lag(ends.high_watermark) {
                0 => Some(Duration::ZERO),
                _ => times.get(next_of(position, ends)).map(|time| age(time, now)),
            },
        });
        (group.clone(), partitions.collect())
    });
    sample
}

/// The groups of every shard that is loaded here. Those of shards that are not are looked at next time.
async fn names(node: &Node) -> Vec<(PartitionKey, Vec<Text>)> {
    let mut all = Vec::new();
    for mailbox in &node.workers.mailboxes {
        let (reply, answer) = oneshot::channel();
        mailbox.send(Command::GroupAsk(GroupAsk::Names(reply))).await;
        // A worker that has ended has none.
        all.extend(answer.await.unwrap_or_default());
    }
    all
}

impl Survey<'_> {
    async fn look_at(
        &mut self,
        shard: PartitionKey,
        names: &[Text],
        whole: Option<&Text>,
        partitions: &mut Vec<(Position, Ends)>,
    ) {
        let mut seen = 0;
        while seen < names.len() {
            if barnabas_clock::since(self.begun) > BUDGET {
                self.sample.unseen += (names.len() - seen) as u64;
                return;
            }
            let some = names[seen..].iter().take(GROUPS_AT_ONCE).cloned().collect();
            let (reply, answer) = oneshot::channel();
            let ask = GroupAsk::Look { shard, names: some, positions_max: POSITIONS_AT_ONCE, reply };
            self.node.workers.owner(shard).send(Command::GroupAsk(ask)).await;
            // The shard is gone meanwhile, or the worker.
            let Ok((looks, count)) = answer.await else { return };
            if count == 0 {
                return;
            }
            seen += count;
            self.take(looks, whole, partitions).await;
        }
    }

    async fn take(
        &mut self,
        looks: Vec<GroupLook>,
        whole: Option<&Text>,
        partitions: &mut Vec<(Position, Ends)>,
    ) {
        let mut groups = Vec::with_capacity(looks.len());
        for look in looks {
            *self.sample.states.entry((look.kind, look.state)).or_default() += 1;
            self.sample.offsets += look.committed.len() as u64;
            let mut positions = self.committed(&look);
            self.shared(&look, &mut positions).await;
            groups.push((look.group, look.kind, positions));
        }
        self.ask_ends(groups.iter().flat_map(|(_, _, positions)| positions.iter().map(|each| each.at))).await;
        for (group, kind, positions) in groups {
            if whole == Some(&group) {
                let known =
                    positions.iter().filter_map(|position| Some((position.clone(), self.end(position)?)));
                partitions.extend(known.take(PARTITIONS_SHOWN));
            }
            let found = self.judge(group, kind, positions);
            *self.sample.records.entry(kind).or_default() += found.lag.records;
            *self.sample.lagging.entry(kind).or_default() += u64::from(found.lag.records > 0);
            match found.lag.group.len() <= NAME_BYTES_MAX {
                true => self.found.push(found),
                false => self.sample.left_out += 1,
            }
        }
        if self.found.len() > 2 * GROUPS_SHOWN {
            self.keep_largest();
        }
    }

    /// Offsets of topics that are there. An offset that was committed to another topic of the same name stands nowhere.
    fn committed(&mut self, look: &GroupLook) -> Vec<Position> {
        let mut positions = Vec::with_capacity(look.committed.len());
        for committed in &look.committed {
            let topic = self.image.topics.id_of(&committed.topic);
            match topic.filter(|id| committed.topic_id.is_zero() || committed.topic_id == *id) {
                Some(topic) => positions.push(Position {
                    topic: committed.topic.clone(),
                    at: PartitionKey { topic, partition: committed.partition },
                    offset: committed.offset,
                    done: 0,
                }),
                None => self.sample.unknown += 1,
            }
        }
        positions
    }

    /// Where a share group stands, as KIP-1226 counts: from its start, without what is done behind that.
    async fn shared(&mut self, look: &GroupLook, positions: &mut Vec<Position>) {
        for (id, partitions) in &look.shared {
            let Some(topic) = self.image.topics.by_id(*id).map(|topic| topic.name.clone()) else { continue };
            for &partition in partitions {
                let partition = PartitionIndex(partition);
                self.shares += 1;
                if self.shares > SHARES_MAX || barnabas_clock::since(self.begun) > BUDGET {
                    self.sample.unknown += 1;
                    continue;
                }
                let key = SharePartitionKey { group: look.group.clone(), topic: *id, partition };
                let request = ShareStateRequest::ReadSummary { key };
                let asked = share_persister::ask_once(self.node, request);
                let Ok(said) = tokio::time::timeout(OTHERS_WITHIN, asked).await else {
                    self.sample.unknown += 1;
                    continue;
                };
                match said {
                    ShareStateResponse::Summary(Ok(summary)) if summary.start_offset != Offset::NONE => {
                        positions.push(Position {
                            topic: topic.clone(),
                            at: PartitionKey { topic: *id, partition },
                            offset: summary.start_offset,
                            done: u64::try_from(summary.delivery_complete_count).unwrap_or(0),
                        });
                    }
                    // Nobody of the group has read from it yet.
                    ShareStateResponse::Summary(Ok(_)) => {}
                    _ => self.sample.unknown += 1,
                }
            }
        }
    }

    /// Learns the ends of logs that are not known yet: from replicas here, else from their leaders.
    async fn ask_ends(&mut self, keys: impl Iterator<Item = PartitionKey>) {
        let (mut unknown, mut away) = (Vec::new(), Vec::new());
        for key in keys {
            let room = ENDS_MAX - self.ends.len();
            self.ends.entry(key).or_insert_with(|| {
                let topic = self.image.topics.by_id(key.topic);
                let state = topic.and_then(|topic| topic.partition(key.partition));
                match state {
                    Some(state) if room > 0 && state.has_replica(self.node.identity.broker_id) => {
                        unknown.push(key)
                    }
                    Some(_) if room > 0 => away.push(key),
                    Some(_) | None => {}
                }
                None
            });
        }
        for some in unknown.chunks(ENDS_AT_ONCE) {
            let items = some.iter().enumerate().map(|(slot, &partition)| AskItem {
                slot: slot as u32,
                partition,
                leader_epoch: None,
                question: Question::Ends,
            });
            for outcome in owners::ask(self.node, items.collect()).await.all().await {
                if let (Some(key), Ok(Said::Ends { high_watermark, last_stable, log_start })) =
                    (some.get(outcome.slot as usize), outcome.result)
                {
                    self.ends.insert(*key, Some(Ends { high_watermark, last_stable, log_start }));
                }
            }
        }
        self.ask_leaders(away).await;
    }

    /// Of logs that are not here only the high watermark is known, and nothing of times.
    async fn ask_leaders(&mut self, away: Vec<PartitionKey>) {
        if away.is_empty() || barnabas_clock::since(self.begun) > BUDGET {
            return;
        }
        let asked = share_persister::ends_of(self.node, away.iter().copied());
        let Ok(ends) = tokio::time::timeout(OTHERS_WITHIN, asked).await else { return };
        for key in away {
            if let Some(Ok(end)) = ends.get(&(key.topic, key.partition)) {
                let ends = Ends { high_watermark: *end, last_stable: *end, log_start: Offset::ZERO };
                self.ends.insert(key, Some(ends));
            }
        }
    }

    fn end(&self, position: &Position) -> Option<Ends> {
        self.ends.get(&position.at).copied().flatten()
    }

    fn judge(&mut self, group: Text, kind: GroupKind, positions: Vec<Position>) -> Found {
        let mut lag = GroupLag { group, kind, records: 0, stable: 0, most: 0, age: None };
        let mut behind = Vec::new();
        for position in positions {
            let Some(ends) = self.end(&position) else {
                self.sample.unknown += 1;
                continue;
            };
            let records = position.lag(ends.high_watermark);
            lag.records += records;
            lag.stable += position.lag(ends.last_stable);
            lag.most = lag.most.max(records);
            if records > 0 {
                behind.push((records, next_of(&position, &ends)));
            }
        }
        behind.sort_unstable_by(|a, b| b.cmp(a));
        behind.truncate(AGES_OF_A_GROUP);
        Found { lag, next: behind.into_iter().map(|(_, next)| next).collect() }
    }

    /// Keeps the groups that are shown.
    fn keep_largest(&mut self) {
        self.found.sort_by(|a, b| (b.lag.records, &a.lag.group).cmp(&(a.lag.records, &b.lag.group)));
        let over = self.found.len().saturating_sub(GROUPS_SHOWN);
        self.found.truncate(GROUPS_SHOWN);
        self.sample.left_out += over as u64;
    }
}

/// The record that is to be read next: what is deleted is passed over.
fn next_of(position: &Position, ends: &Ends) -> (PartitionKey, Offset) {
    (position.at, position.offset.max(ends.log_start))
}

/// With the age of the oldest record that the group is to read next, as far as such ages are known.
fn aged(found: Found, times: &Times, now: TimestampMs) -> GroupLag {
    let oldest = found.next.iter().filter_map(|place| times.get(*place)).min();
    let age = match found.next.is_empty() {
        true => Some(Duration::ZERO),
        false => oldest.map(|time| age(time, now)),
    };
    GroupLag { age, ..found.lag }
}

fn age(time: TimestampMs, now: TimestampMs) -> Duration {
    Duration::from_millis(u64::try_from(now.0.saturating_sub(time.0)).unwrap_or(0))
}
