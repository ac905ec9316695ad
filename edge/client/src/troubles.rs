//! What keeps partitions from being read or written, for a tool that reports it.
//!
//! Each reason is reported once for each partition until the partition works again. Partitions with the same reason are
//! one report. A reason that clients cure by themselves, such as a leader that has moved, is reported only after it has
//! lasted [`Troubles::patience`]; all others at once.
//!
//! Source of the distinction: Kafka `FetchCollector.handleInitializeErrors` (DEBUG or WARN).

use crate::ClientError;
use barnabas_base::{BrokerId, ErrorCode, Map, PartitionIndex};
use std::time::{Duration, Instant};

/// Partitions that a line names; of the others it says how many they are.
const NAMED_MAX: usize = 10;
/// Reasons that are remembered for each partition. A partition that has had more is not reported again.
const REASONS_MAX: usize = 16;

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// In order. None: all of the topic.
    pub partitions: Vec<PartitionIndex>,
    /// The broker, if one is known, and its error; `None`: the partitions work again.
    pub why: Option<String>,
    /// The broker refuses this client's login or certificate, or the client the broker's: no later try cures that by
    /// itself. Kafka's clients end with an AuthenticationException.
    pub is_refusal: bool,
}

impl Trouble {
    /// A sentence about partitions of `topic`. `done`: "read" or "written".
    pub fn words(&self, topic: &str, done: &str) -> String {
        let named = self.partitions.iter().take(NAMED_MAX).map(|partition| format!("{topic}-{partition}"));
        let mut places = named.collect::<Vec<_>>().join(", ");
        if self.partitions.is_empty() {
            places = format!("topic {topic}");
        } else if self.partitions.len() > NAMED_MAX {
            places += &format!(" and {} more", self.partitions.len() - NAMED_MAX);
        }
        match &self.why {
            Some(why) => format!("{places} cannot be {done}, trying again: {why}"),
            None => format!("{places} can be {done} again"),
        }
    }
}

/// A partition, or the whole topic.
type Place = Option<PartitionIndex>;

#[derive(Debug)]
struct Standing {
    since: Instant,
    /// The newest reason.
    why: String,
    is_due_at_once: bool,
    is_refusal: bool,
    reported: Vec<String>,
}

/// The troubles of one topic.
#[derive(Debug)]
pub(crate) struct Troubles {
    patience: Duration,
    standing: Map<Place, Standing>,
    /// Partitions that work again after a report.
    ended: Vec<Place>,
}

impl Troubles {
    pub fn new(patience: Duration) -> Self {
        Self { patience, standing: Map::default(), ended: Vec::new() }
    }

    /// Whether everything works.
    pub fn is_empty(&self) -> bool {
        self.standing.is_empty() && self.ended.is_empty()
    }

    /// A try failed. `places`: no partition means the topic.
    pub fn note(
        &mut self,
        places: impl IntoIterator<Item = Place>,
        broker: Option<BrokerId>,
        error: &ClientError,
        now: Instant,
    ) {
        let why = match (broker, reason(error)) {
            (Some(broker), reason) => format!("broker {broker}: {reason}"),
            (None, reason) => reason,
        };
        for place in places {
            let known = self.standing.entry(place).or_insert_with(|| Standing {
                since: now,
                why: String::new(),
                is_due_at_once: false,
                is_refusal: false,
                reported: Vec::new(),
            });
            known.why.clone_from(&why);
            known.is_due_at_once = is_due_at_once(error);
            known.is_refusal = matches!(error, ClientError::Login { .. } | ClientError::Tls { .. });
        }
    }

    /// The partition works.
    pub fn end(&mut self, place: Place) {
        if self.standing.remove(&place).is_some_and(|standing| !standing.reported.is_empty()) {
            self.ended.push(place);
        }
    }

    /// Forgets the partition without a report.
    pub fn forget(&mut self, place: Place) {
        self.standing.remove(&place);
        self.ended.retain(|ended| *ended != place);
    }

    /// The next report that is due.
    pub fn next(&mut self, now: Instant) -> Option<Trouble> {
        if !self.ended.is_empty() {
            let partitions = in_order(self.ended.drain(..));
            return Some(Trouble { partitions, why: None, is_refusal: false });
        }
        let patience = self.patience;
        let is_due = |standing: &Standing| {
            (standing.is_due_at_once || now.saturating_duration_since(standing.since) >= patience)
                && standing.reported.len() < REASONS_MAX
                && !standing.reported.contains(&standing.why)
        };
        let (why, is_refusal) =
            self.standing.values().find(|one| is_due(one)).map(|one| (one.why.clone(), one.is_refusal))?;
        let mut places = Vec::new();
        for (place, standing) in &mut self.standing {
            if standing.why == why && is_due(standing) {
                standing.reported.push(why.clone());
                places.push(*place);
            }
        }
        Some(Trouble { partitions: in_order(places.into_iter()), why: Some(why), is_refusal })
    }

    /// What stands now, reported or not: for the end of a tool.
    pub fn standing(&self) -> Vec<Trouble> {
        let mut by_reason: Vec<(&str, Vec<Place>, bool)> = Vec::new();
        for (place, standing) in &self.standing {
            match by_reason.iter_mut().find(|known| known.0 == standing.why) {
                Some(known) => known.1.push(*place),
                None => by_reason.push((&standing.why, vec![*place], standing.is_refusal)),
            }
        }
        let trouble = |(why, places, is_refusal): (&str, Vec<Place>, bool)| Trouble {
            partitions: in_order(places.into_iter()),
            why: Some(why.to_owned()),
            is_refusal,
        };
        let mut troubles: Vec<Trouble> = by_reason.into_iter().map(trouble).collect();
        troubles.sort_by(|one, other| one.partitions.cmp(&other.partitions));
        troubles
    }
}

fn in_order(places: impl Iterator<Item = Place>) -> Vec<PartitionIndex> {
    let mut partitions: Vec<PartitionIndex> = places.flatten().collect();
    partitions.sort_unstable();
    partitions
}

fn reason(error: &ClientError) -> String {
    match error {
        ClientError::Refused { code, message, .. } if message.is_empty() => code.name().to_owned(),
        ClientError::Refused { code, message, .. } => format!("{}: {message}", code.name()),
        ClientError::Records(_, why) => format!("its records cannot be read: {why}"),
        other => other.to_string(),
    }
}

/// Not one of those that pass in a moment.
fn is_due_at_once(error: &ClientError) -> bool {
    match error {
        ClientError::Lost { .. } => false,
        ClientError::Refused { code, .. } => !matches!(
            code,
            ErrorCode::NotLeaderOrFollower
                | ErrorCode::LeaderNotAvailable
                | ErrorCode::FencedLeaderEpoch
                | ErrorCode::UnknownLeaderEpoch
                | ErrorCode::OffsetNotAvailable
                | ErrorCode::ReplicaNotAvailable
                | ErrorCode::UnknownTopicOrPartition
                | ErrorCode::UnknownTopicId
                | ErrorCode::InconsistentTopicId
                | ErrorCode::BrokerNotAvailable
                | ErrorCode::NetworkException
                | ErrorCode::OutOfOrderSequenceNumber
                | ErrorCode::UnknownProducerId
                | ErrorCode::InvalidProducerEpoch
        ),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    fn refused(code: ErrorCode) -> ClientError {
        ClientError::refused("fetching", code.code(), None)
    }

    fn at(partition: i32) -> Place {
        Some(PartitionIndex(partition))
    }

    fn reports(troubles: &mut Troubles, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| troubles.next(now)).map(|trouble| trouble.words("t", "read")).collect()
    }

    #[test]
    fn a_reason_is_reported_once_and_again_after_its_end() {
        let (mut troubles, now) = (Troubles::new(PATIENCE), Instant::now());
        let full = refused(ErrorCode::KafkaStorageError);
        for _ in 0..3 {
            troubles.note([at(3), at(1)], Some(BrokerId(2)), &full, now);
            troubles.note([at(0)], None, &refused(ErrorCode::CorruptMessage), now);
        }
        let mut told = reports(&mut troubles, now);
        told.sort();
        let both = "t-1, t-3 cannot be read, trying again: broker 2: KAFKA_STORAGE_ERROR";
        assert_eq!(told, ["t-0 cannot be read, trying again: CORRUPT_MESSAGE", both]);
        troubles.note([at(3), at(1)], Some(BrokerId(2)), &full, now);
        assert_eq!(reports(&mut troubles, now), Vec::<String>::new(), "it is known");
        troubles.note([at(1)], Some(BrokerId(4)), &full, now);
        let other = "t-1 cannot be read, trying again: broker 4: KAFKA_STORAGE_ERROR";
        assert_eq!(reports(&mut troubles, now), [other], "another broker is another reason");
        troubles.end(at(1));
        assert_eq!(reports(&mut troubles, now), ["t-1 can be read again"]);
        troubles.note([at(1)], Some(BrokerId(4)), &full, now);
        assert_eq!(reports(&mut troubles, now), [other]);
    }

    #[test]
    fn refused_login_or_certificate_differs_from_what_passes() {
        let (address, why) = ("h:1".to_owned(), "no".to_owned());
        for (error, is_refusal) in [
            (ClientError::Login { address: address.clone(), why: why.clone() }, true),
            (ClientError::Tls { address: address.clone(), why: why.clone() }, true),
            (ClientError::Unreachable { address, why }, false),
            (refused(ErrorCode::TopicAuthorizationFailed), false),
        ] {
            let (mut troubles, now) = (Troubles::new(PATIENCE), Instant::now());
            troubles.note([at(0)], Some(BrokerId(1)), &error, now);
            assert_eq!(troubles.next(now).map(|trouble| trouble.is_refusal), Some(is_refusal), "{error}");
            assert_eq!(troubles.standing()[0].is_refusal, is_refusal);
        }
    }

    #[test]
    fn a_moved_leader_is_reported_only_if_it_lasts() {
        let (mut troubles, now) = (Troubles::new(PATIENCE), Instant::now());
        let moved = refused(ErrorCode::NotLeaderOrFollower);
        troubles.note([at(0), at(1)], Some(BrokerId(1)), &moved, now);
        assert_eq!(troubles.next(now), None);
        troubles.end(at(1));
        assert_eq!(troubles.next(now), None, "what was not reported does not end in a report");
        let told = "t-0 cannot be read, trying again: broker 1: NOT_LEADER_OR_FOLLOWER";
        let standing = troubles.standing();
        assert_eq!(standing.iter().map(|one| one.words("t", "read")).collect::<Vec<_>>(), [told]);
        troubles.note([at(0)], Some(BrokerId(1)), &moved, now + PATIENCE);
        assert_eq!(reports(&mut troubles, now + PATIENCE), [told]);
    }

    #[test]
    fn many_partitions_are_counted_and_a_topic_is_named() {
        let (mut troubles, now) = (Troubles::new(PATIENCE), Instant::now());
        let error = refused(ErrorCode::KafkaStorageError);
        troubles.note((0..12).map(at), None, &error, now);
        let told = reports(&mut troubles, now);
        assert!(told[0].starts_with("t-0, t-1, "), "{told:?}");
        assert!(
            told[0].ends_with("t-9 and 2 more cannot be read, trying again: KAFKA_STORAGE_ERROR"),
            "{told:?}"
        );
        troubles.note([None], None, &error, now);
        assert_eq!(
            reports(&mut troubles, now),
            ["topic t cannot be read, trying again: KAFKA_STORAGE_ERROR"]
        );
    }

    #[test]
    fn a_partition_that_fails_in_ever_new_ways_is_not_reported_for_ever() {
        let (mut troubles, now) = (Troubles::new(PATIENCE), Instant::now());
        let reported = (0..1_000).filter(|number| {
            let error = ClientError::Records("t-0".to_owned(), number.to_string());
            troubles.note([at(0)], None, &error, now);
            troubles.next(now).is_some()
        });
        assert_eq!(reported.count(), REASONS_MAX);
    }
}
