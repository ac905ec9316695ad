//! One look at all groups of the coordinators here: names first, some groups at a time after that, the ends of the logs
//! that they read, once each, and the ages of what those have before them that are shown.
//!
//! What of it makes a lag: core/coordinator/src/shard/lag.rs.

use super::times::Times;
use crate::mailbox::{AskItem, Command, GroupAsk, PartitionKey, Question, Said};
use crate::node::Node;
use crate::routing::owners;
use crate::routing::share_persister;
use barnabas_base::{Map, Offset, PartitionIndex, Text};
use barnabas_coordinator::lag::{Ends, LagSample, LagSurvey, Place, Position, Whole};
use barnabas_coordinator::{GroupLook, SharePartitionKey, ShareStateRequest};
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

struct Survey<'a> {
    node: &'a Node,
    image: Arc<Image>,
    begun: Instant,
    ends: Map<PartitionKey, Option<Ends>>,
    shares: usize,
    lags: LagSurvey,
}

/// See the file's header. `whole`: the groups whose partitions are wanted.
pub(super) async fn survey(node: &Node, times: &mut Times, whole: Whole) -> LagSample {
    let mut survey = Survey {
        node,
        image: node.cluster.image.load_full(),
        begun: barnabas_clock::now(),
        ends: Map::default(),
        shares: 0,
        lags: LagSurvey::new(whole),
    };
    for (shard, names) in names(node).await {
        survey.look_at(shard, &names).await;
    }
    let mut lags = survey.lags;
    let wanted = lags.wanted_times().into_iter().map(|(place, offset)| (key_of(place), offset));
    times.learn(node, wanted).await;
    lags.finish(|(place, offset)| times.get((key_of(place), offset)), node.clock.wall())
}

fn key_of((topic, partition): Place) -> PartitionKey {
    PartitionKey { topic, partition }
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

/// Where logs end that are on this node: it opens them.
pub(super) async fn ends_here(node: &Node, keys: &[PartitionKey]) -> Map<PartitionKey, Ends> {
    let mut known = Map::default();
    for some in keys.chunks(ENDS_AT_ONCE) {
        let items = some.iter().enumerate().map(|(slot, &partition)| AskItem {
            slot: slot as u32,
            partition,
            leader_epoch: None,
            question: Question::Ends,
        });
        for outcome in owners::ask(node, items.collect()).await.all().await {
            if let (Some(key), Ok(Said::Ends { high_watermark, last_stable, log_start })) =
                (some.get(outcome.slot as usize), outcome.result)
            {
                known.insert(*key, Ends { high_watermark, last_stable, log_start });
            }
        }
    }
    known
}

impl Survey<'_> {
    async fn look_at(&mut self, shard: PartitionKey, names: &[Text]) {
        let mut seen = 0;
        while seen < names.len() {
            if barnabas_clock::since(self.begun) > BUDGET {
                self.lags.unseen((names.len() - seen) as u64);
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
            self.take(looks).await;
        }
    }

    async fn take(&mut self, looks: Vec<GroupLook>) {
        let mut groups = Vec::with_capacity(looks.len());
        for look in looks {
            let mut positions = self.lags.committed(&look, |topic| self.image.topics.id_of(topic));
            self.shared(&look, &mut positions).await;
            groups.push((look.group, look.kind, positions));
        }
        let all = groups.iter().flat_map(|(_, _, positions)| positions.iter().map(|each| key_of(each.at)));
        self.ask_ends(all).await;
        for (group, kind, positions) in groups {
            let end_of = |place| self.ends.get(&key_of(place)).copied().flatten();
            self.lags.judge(group, kind, positions, end_of);
        }
    }

    /// Where a share group stands.
    async fn shared(&mut self, look: &GroupLook, positions: &mut Vec<Position>) {
        for (id, partitions) in &look.shared {
            let Some(topic) = self.image.topics.by_id(*id).map(|topic| topic.name.clone()) else { continue };
            for &partition in partitions {
                let partition = PartitionIndex(partition);
                self.shares += 1;
                let answer = match self.shares > SHARES_MAX || barnabas_clock::since(self.begun) > BUDGET {
                    true => None,
                    false => {
                        let key = SharePartitionKey { group: look.group.clone(), topic: *id, partition };
                        let request = ShareStateRequest::ReadSummary { key };
                        let asked = share_persister::ask_once(self.node, request);
                        tokio::time::timeout(OTHERS_WITHIN, asked).await.ok()
                    }
                };
                positions.extend(self.lags.shared(&topic, (*id, partition), answer.as_ref()));
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
        let known = ends_here(self.node, &unknown).await;
        self.ends.extend(known.into_iter().map(|(key, ends)| (key, Some(ends))));
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
}
