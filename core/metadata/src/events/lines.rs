//! What the log says of the cluster: brokers fenced, ISRs that shrank, partitions below their minimum or without a
//! leader, unclean elections.
//!
//! Brokers and metadata.version are one line each, on every node, at once. Partitions are gathered: the first of a kind
//! is written at once, what follows within a second waits and becomes one line with its number. ISRs are written by the
//! partition's leader; lost leaders and unclean elections by every node, since no leader may be left to do it. Topics
//! that clients bring about by naming them share lines in the same way.
//!
//! A lost leader is INFO at first; leaderless.rs raises the alarm if none is found.
//!
//! Levels: ERROR where producers, consumers or records suffer; WARN where a fault has cost a copy; INFO for what was
//! planned or is over.
//!
//! Bounded: [`NAMED_MAX`] partitions of each kind are named, the rest is counted. So are changes of brokers beyond a
//! number in a minute: who reaches a controller's listener can register brokers.
//!
//! Before: core/metadata/src/events.rs, which finds the events. After: shell/broker/src/node/cluster_events.rs, which
//! writes the lines.

use super::leaderless::{self, Leaderless};
use super::line::{Level, Line, NAMED_MAX, ids};
use super::{Event, PartitionChange};
use crate::{Image, Partition};
use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs, TopicPartition};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Lines of one kind are so far apart.
pub const APART: DurationMs = DurationMs(1_000);
/// Kinds of changes that share a line, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    UncleanElection,
    LostLeader,
    BelowMinIsr,
    IsrShrank,
    IsrExpanded,
    MinIsrReached,
    LeaderFound,
    TopicCreated,
    TopicNamedByClient,
    TopicNotCreated,
    TopicDeleted,
}

#[derive(Debug, Default)]
struct Waiting {
    count: u64,
    named: Vec<String>,
    /// The most severe of those that wait.
    level: Option<Level>,
    written: Option<MonotonicMs>,
}

/// The broker of this node.
#[derive(Debug, Clone, Copy)]
pub struct Here {
    pub broker: BrokerId,
    /// It is registered by this process, and not fenced.
    pub serves: bool,
}

/// Partition changes that were not written yet.
#[derive(Debug, Default)]
pub struct EventLines {
    lines: BTreeMap<Kind, Waiting>,
    leaderless: Leaderless,
}

impl EventLines {
    /// Partitions have lost their leaders in this image, or may have none: it is the first one.
    pub fn watch_leaders(&mut self, image: &Arc<Image>) {
        self.leaderless.lost(image);
    }

    /// Takes an event; hands back the line that is to be written at once, if it is no partition's.
    pub fn happened(&mut self, event: &Event, me: Here) -> Option<Line> {
        let line = |level, text: String| Some(Line { level, text });
        match event {
            Event::Registered(id) => line(Level::Info, format!("broker {id} registered")),
            Event::Unregistered(id) => line(Level::Info, format!("broker {id} unregistered")),
            Event::Unfenced(id) => line(Level::Info, format!("broker {id} unfenced: it serves clients")),
            Event::Fenced { broker, is_planned: true } => {
                line(Level::Info, format!("broker {broker} fenced after its controlled shutdown"))
            }
            Event::Fenced { broker, is_planned: false } => line(
                Level::Warn,
                format!(
                    "broker {broker} fenced: the controller lost contact with it. Replicas in sync lead what it led. Check the process and the \
                     host of broker {broker}"
                ),
            ),
            Event::MetadataVersion { from, to } => {
                line(Level::Info, format!("metadata.version raised from {from} to {to}"))
            }
            Event::TopicCreated { .. } | Event::TopicDeleted { .. } => {
                self.add_topic(event);
                None
            }
            Event::Partition { partition, change, state, .. } => {
                self.gather(partition, *change, state, me);
                None
            }
        }
    }

    fn add_topic(&mut self, event: &Event) {
        match event {
            Event::TopicCreated { name, id, partitions } => {
                let s = if *partitions == 1 { "" } else { "s" };
                self.add(
                    Kind::TopicCreated,
                    Level::Info,
                    format!("{name} ({partitions} partition{s}, id {id})"),
                );
            }
            Event::TopicDeleted { name, id } => {
                self.add(Kind::TopicDeleted, Level::Info, format!("{name} (id {id})"));
            }
            _ => {}
        }
    }

    fn gather(&mut self, partition: &TopicPartition, change: PartitionChange, state: &Partition, me: Here) {
        let (kind, mut level, name) = shown(partition, change, state);
        let is_leaders =
            matches!(kind, Kind::BelowMinIsr | Kind::IsrShrank | Kind::IsrExpanded | Kind::MinIsrReached);
        if is_leaders && state.leader != me.broker {
            return;
        }
        if kind == Kind::BelowMinIsr && !me.serves {
            // All brokers start: others register, and producers are not served by this one yet anyway.
            level = Level::Info;
        }
        self.add(kind, level, name);
    }

    /// This broker asked for a topic that a client named, and the controller created it.
    pub fn created(&mut self, topic: &str) {
        self.add(Kind::TopicNamedByClient, Level::Info, topic.to_owned());
    }

    /// As [`EventLines::created`], and the controller refused.
    pub fn not_created(&mut self, topic: &str, code: ErrorCode, why: &str) {
        let separator = if why.is_empty() { "" } else { ": " };
        // The broker's own principal was refused: its operator has to grant CREATE.
        let is_denied =
            matches!(code, ErrorCode::TopicAuthorizationFailed | ErrorCode::ClusterAuthorizationFailed);
        let level = if is_denied { Level::Warn } else { Level::Info };
        self.add(Kind::TopicNotCreated, level, format!("{topic} ({code}{separator}{why})"));
    }

    fn add(&mut self, kind: Kind, level: Level, name: String) {
        let waiting = self.lines.entry(kind).or_default();
        waiting.count += 1;
        // The more severe level is the lesser one.
        waiting.level = Some(waiting.level.map_or(level, |other| other.min(level)));
        if waiting.named.len() < NAMED_MAX {
            waiting.named.push(name);
        }
    }

    /// Whether there is something to write, now or later.
    pub fn are_waiting(&self) -> bool {
        self.leaderless.is_waiting() || self.lines.values().any(|waiting| waiting.count > 0)
    }

    /// The lines that are due. `image`: the newest. `patience`: how long a partition may be without a leader before it
    /// is an alarm.
    pub fn due(&mut self, now: MonotonicMs, image: &Arc<Image>, patience: DurationMs) -> Vec<Line> {
        let mut lines: Vec<Line> = self.leaderless.due(now, image, patience).into_iter().collect();
        for (kind, waiting) in &mut self.lines {
            let is_early = waiting.written.is_some_and(|written| now.since(written) < APART);
            if waiting.count == 0 || is_early {
                continue;
            }
            let Waiting { count, named, level, .. } = std::mem::take(waiting);
            waiting.written = Some(now);
            lines.push(Line { level: level.unwrap_or(Level::Info), text: text(*kind, count, &named) });
        }
        lines
    }
}

/// The line that a change belongs to, how loud it is, and how it names the partition.
fn shown(partition: &TopicPartition, change: PartitionChange, state: &Partition) -> (Kind, Level, String) {
    let unless_planned = |is_planned, level: Level, planned| if is_planned { planned } else { level };
    let (isr, replicas) = (ids(state.isr()), ids(state.replicas()));
    match change {
        PartitionChange::IsrShrank { is_planned } => (
            Kind::IsrShrank,
            unless_planned(is_planned, Level::Warn, Level::Info),
            format!("{partition} to {isr} of {replicas}"),
        ),
        PartitionChange::IsrExpanded => {
            (Kind::IsrExpanded, Level::Info, format!("{partition} to {isr} of {replicas}"))
        }
        PartitionChange::BelowMinIsr { is_planned, needed } => (
            Kind::BelowMinIsr,
            unless_planned(is_planned, Level::Error, Level::Warn),
            format!("{partition} (in sync {isr}, needed {needed})"),
        ),
        PartitionChange::MinIsrReached => {
            (Kind::MinIsrReached, Level::Info, format!("{partition} (in sync {isr})"))
        }
        PartitionChange::LostLeader => {
            (Kind::LostLeader, Level::Info, leaderless::described(partition, state))
        }
        PartitionChange::LeaderFound => {
            (Kind::LeaderFound, Level::Info, format!("{partition} (led by {})", state.leader))
        }
        PartitionChange::UncleanElection { led_last } => {
            // The last to lead it has all records, unless its disk was replaced (KIP-966).
            let (level, last) =
                if led_last { (Level::Warn, ", the last to lead it") } else { (Level::Error, "") };
            (Kind::UncleanElection, level, format!("{partition} (now led by {}{last})", state.leader))
        }
    }
}

fn text(kind: Kind, count: u64, named: &[String]) -> String {
    let more = count - named.len() as u64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = format!("{}{more}", named.join(", "));
    match kind {
        Kind::UncleanElection => format!(
            "unclean election of {names}: the leader was neither in sync nor eligible; acknowledged records that it does not have are lost"
        ),
        Kind::LostLeader => {
            format!("partitions lost their leader: {names}: they wait for a broker that was last in sync")
        }
        Kind::BelowMinIsr => format!(
            "partitions below min.insync.replicas: {names}: producers with acks=all are refused until more replicas are in sync"
        ),
        Kind::IsrShrank => format!("in-sync replicas shrank: {names}"),
        Kind::IsrExpanded => format!("in-sync replicas expanded: {names}"),
        Kind::MinIsrReached => format!("partitions back at min.insync.replicas: {names}"),
        Kind::LeaderFound => format!("partitions have a leader again: {names}"),
        Kind::TopicCreated => format!("topics created: {names}"),
        Kind::TopicDeleted => format!("topics deleted: {names}"),
        Kind::TopicNamedByClient => format!("topics created because clients named them: {names}"),
        Kind::TopicNotCreated => format!("topics that clients named were not created: {names}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placement;
    use barnabas_base::{LeaderEpoch, PartitionEpoch, PartitionIndex, Text, TopicId};

    const ME: Here = Here { broker: BrokerId(1), serves: true };
    const PATIENCE: DurationMs = DurationMs(9_000);
    const NOW: MonotonicMs = MonotonicMs(1);

    fn due(events: &mut EventLines, now: MonotonicMs) -> Vec<Line> {
        events.due(now, &Arc::default(), PATIENCE)
    }

    fn event(partition: i32, leader: i32, change: PartitionChange) -> Event {
        let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect();
        let placement = Placement { replicas: ids(&[1, 2, 3]), isr: ids(&[1]), ..Placement::default() };
        let state = Partition {
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(1),
            partition_epoch: PartitionEpoch(1),
            placement: Arc::new(placement),
        };
        let partition = TopicPartition::new(Text::from("t"), PartitionIndex(partition));
        Event::Partition { partition, change, old_leader: BrokerId(1), state }
    }

    #[test]
    fn topics_that_a_client_brings_about_share_a_line_a_second() {
        let (mut events, start) = (EventLines::default(), NOW);
        let texts = |events: &mut EventLines, at_ms: u64| {
            let lines = due(events, MonotonicMs(start.0 + at_ms));
            lines.into_iter().map(|line| line.text).collect::<Vec<_>>()
        };
        events.created("a0");
        events.not_created("b", ErrorCode::InvalidReplicationFactor, "");
        let first = [
            "topics created because clients named them: a0",
            "topics that clients named were not created: b (INVALID_REPLICATION_FACTOR)",
        ];
        assert_eq!(texts(&mut events, 0), first);
        (1..=40).for_each(|at| events.created(&format!("a{at}")));
        assert!(texts(&mut events, 999).is_empty() && events.are_waiting());
        let rest =
            "topics created because clients named them: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 and 30 more";
        assert_eq!(texts(&mut events, 1000), [rest]);
        assert!(!events.are_waiting());
    }

    #[test]
    fn topics_that_come_and_go_have_a_line_each_second() {
        let (mut events, id) = (EventLines::default(), TopicId::default());
        let name = Text::from("paid");
        events.happened(&Event::TopicCreated { name: name.clone(), id, partitions: 3 }, ME);
        events.happened(&Event::TopicCreated { name: Text::from("one"), id, partitions: 1 }, ME);
        events.happened(&Event::TopicDeleted { name, id }, ME);
        let texts: Vec<String> = due(&mut events, NOW).into_iter().map(|line| line.text).collect();
        let created = format!("topics created: paid (3 partitions, id {id}), one (1 partition, id {id})");
        assert_eq!(texts, [created, format!("topics deleted: paid (id {id})")]);
    }

    #[test]
    fn first_change_is_written_at_once_and_the_rest_in_one_line() {
        let (mut events, start) = (EventLines::default(), NOW);
        let due = |events: &mut EventLines, at_ms: u64| due(events, MonotonicMs(start.0 + at_ms));
        let shrank = PartitionChange::IsrShrank { is_planned: false };
        assert_eq!(due(&mut events, 0), []);
        assert_eq!(events.happened(&event(0, 1, shrank), ME), None);
        assert!(events.are_waiting());
        let text = "in-sync replicas shrank: t-0 to [1] of [1, 2, 3]".to_owned();
        assert_eq!(due(&mut events, 10), [Line { level: Level::Warn, text }]);
        assert!(!events.are_waiting());
        (1..=1_000).for_each(|partition| drop(events.happened(&event(partition, 1, shrank), ME)));
        assert_eq!(due(&mut events, 1_009), [], "not yet");
        let line = &due(&mut events, 1_010)[0].text;
        assert!(line.starts_with("in-sync replicas shrank: t-1 to [1] of [1, 2, 3], t-2 to"), "{line}");
        assert!(line.ends_with("t-10 to [1] of [1, 2, 3] and 990 more"), "{line}");
    }

    #[test]
    fn isr_is_written_by_its_leader_alone_and_a_lost_leader_by_all() {
        let (mut events, now) = (EventLines::default(), NOW);
        events.happened(&event(0, 2, PartitionChange::IsrShrank { is_planned: false }), ME);
        assert_eq!(due(&mut events, now), []);
        events.happened(&event(0, -1, PartitionChange::LostLeader), ME);
        let line = &due(&mut events, now)[0];
        assert_eq!(line.level, Level::Info);
        let wanted = "partitions lost their leader: t-0 (replicas [1, 2, 3], last in sync [1]): they wait";
        assert!(line.text.starts_with(wanted), "{line:?}");
    }

    #[test]
    fn watched_leaders_are_asked_about_until_the_time_is_over() {
        let (mut events, now, image) = (EventLines::default(), NOW, Arc::default());
        events.watch_leaders(&image);
        assert!(events.are_waiting());
        assert_eq!(due(&mut events, now), []);
        assert!(events.are_waiting());
        assert_eq!(due(&mut events, now.plus(PATIENCE)), [], "nothing is without a leader");
        assert!(!events.are_waiting());
    }

    #[test]
    fn planned_changes_are_quieter_and_the_loudest_decides_a_line() {
        let (mut events, now) = (EventLines::default(), NOW);
        let below = |is_planned| PartitionChange::BelowMinIsr { is_planned, needed: 2 };
        events.happened(&event(0, 1, below(true)), ME);
        assert_eq!(due(&mut events, now)[0].level, Level::Warn);
        events.happened(&event(1, 1, below(true)), ME);
        events.happened(&event(2, 1, below(false)), ME);
        assert_eq!(due(&mut events, now.plus(APART))[0].level, Level::Error);
    }

    #[test]
    fn leader_of_a_former_life_raises_no_alarm() {
        let mut events = EventLines::default();
        let below = PartitionChange::BelowMinIsr { is_planned: false, needed: 2 };
        events.happened(&event(0, 1, below), Here { serves: false, ..ME });
        assert_eq!(due(&mut events, NOW)[0].level, Level::Info);
    }

    #[test]
    fn fenced_broker_is_a_warning_unless_it_asked_for_it() {
        let mut events = EventLines::default();
        let mut line = |is_planned| {
            let event = Event::Fenced { broker: BrokerId(2), is_planned };
            events.happened(&event, ME).expect("written at once")
        };
        assert_eq!(line(false).level, Level::Warn);
        assert!(line(false).text.starts_with("broker 2 fenced:"), "{:?}", line(false));
        assert_eq!(line(true).level, Level::Info);
    }
}
