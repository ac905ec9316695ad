//! One request's way through the node, cut into phases that follow each other without gap: they add up to its latency.
//!
//! The connection's worker reads the clock when a frame is complete, when its request starts, when
//! the answer is ready and when the socket has taken it. The partition's owner and the journal's
//! thread put stamps for the phases between into the outcome that they return anyway. If a request
//! had several owners, the slowest one's stamps count. Nothing is allocated, and no other thread's
//! memory is written.
//!
//! Always true: [`spans`] adds up to `written − read`, whatever the stamps are ([`Passed`] is cut to what the
//! connection saw).

use barnabas_clock::Stamp;
use barnabas_wire::ApiKey;

/// What a request's time goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Decoding, checks, the records' checksums, and sending the parts to their owners: the connection's worker works.
    Decide = 0,
    /// In the mailboxes of the partitions' workers.
    Queue = 1,
    /// The owner reads records for a Fetch.
    Read = 2,
    /// With the owner, and then behind the journal's round before it. What is large is written into its segment and
    /// synced in this time.
    JournalWait = 3,
    /// The write of the journal's round, which is the sync. Nothing with `log.ack.durability=written`.
    Sync = 4,
    /// Durable here, and not yet on every replica in sync.
    Replicate = 5,
    /// For data to come (Fetch), for a group's members, for the controller.
    Wait = 6,
    /// From what it waited for to the answer: the way back between threads.
    Answer = 7,
    /// Behind earlier answers of its connection, encoding, and the socket's write.
    Write = 8,
}

pub const PHASES: usize = 9;

impl Phase {
    pub const ALL: [Self; PHASES] = [
        Self::Decide,
        Self::Queue,
        Self::Read,
        Self::JournalWait,
        Self::Sync,
        Self::Replicate,
        Self::Wait,
        Self::Answer,
        Self::Write,
    ];

    /// As the metrics call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Queue => "queue",
            Self::Read => "read",
            Self::JournalWait => "journal_wait",
            Self::Sync => "sync",
            Self::Replicate => "replicate",
            Self::Wait => "wait",
            Self::Answer => "answer",
            Self::Write => "write",
        }
    }

    /// What Kafka counts into RemoteTimeMs: waiting for others.
    pub const fn is_remote(self) -> bool {
        matches!(self, Self::Replicate | Self::Wait)
    }

    /// What Kafka counts into LocalTimeMs; [`Phase::Queue`] is its RequestQueueTimeMs.
    pub const fn is_local(self) -> bool {
        matches!(self, Self::Decide | Self::Read | Self::JournalWait | Self::Sync | Self::Answer)
    }
}

/// The round of a journal that made something durable.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RoundTimes {
    /// Its write began.
    pub begun: Stamp,
    pub durable: Stamp,
}

/// An append on its owner's thread.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct AppendTimes {
    /// The owner took it out of its mailbox.
    pub taken: Stamp,
    pub round: RoundTimes,
    /// It was decided: by the round itself, or in a turn after that, since others had to have it first.
    pub decided: Stamp,
}

/// What happened to a request between its start and its answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// No stamps: the request waited on another thread that reports none, or was answered at once.
    #[default]
    Untold,
    Appended(AppendTimes),
    Read {
        taken: Stamp,
        /// Its first reading was over.
        read: Stamp,
    },
}

/// A request from its frame to its answer.
#[derive(Debug, Clone, Copy)]
pub struct Track {
    pub api: ApiKey,
    pub version: i16,
    /// Its client's number for it.
    pub correlation_id: i32,
    /// The first error code of its answer. `None`: requests are not pushed as spans, or its answer has none to read.
    pub error: Option<i16>,
    /// A Fetch of a broker that follows, or of a member of the metadata quorum: Kafka tells them from consumers'.
    pub is_follower: bool,
    /// Its client's place ([`super::clients`]).
    pub client: u16,
    /// The frame's bytes, its length's four included.
    pub bytes: u32,
    pub bytes_out: u64,
    pub read: Stamp,
    /// Everything that has to happen in the order of the requests had happened.
    pub started: Stamp,
    pub ready: Stamp,
    pub passed: Passed,
}

/// Nanoseconds in each phase, by [`Phase`]'s numbers. See the file's header.
pub fn spans(track: &Track, written: Stamp) -> [u64; PHASES] {
    let mut spans = [0; PHASES];
    let mut at = track.read;
    let ready = track.ready.clamp(track.read, written.max(track.read));
    // A stamp of another thread may lie beyond what the connection saw: before the start that it had not noted yet.
    let mut step = |phase: Phase, until: Stamp| {
        let until = until.clamp(at, ready);
        spans[phase as usize] += until.0 - at.0;
        at = until;
    };
    let decided = match track.passed {
        // The owner had it before the connection came to note that: its thread had to wait for the processor.
        Passed::Appended(AppendTimes { taken, .. }) | Passed::Read { taken, .. } if taken.0 > 0 => {
            track.started.min(taken)
        }
        _ => track.started,
    };
    step(Phase::Decide, decided);
    match track.passed {
        Passed::Untold => step(Phase::Wait, ready),
        Passed::Appended(AppendTimes { taken, round, decided }) => {
            step(Phase::Queue, taken);
            step(Phase::JournalWait, round.begun);
            step(Phase::Sync, round.durable);
            step(Phase::Replicate, decided);
            step(Phase::Answer, ready);
        }
        Passed::Read { taken, read } => {
            step(Phase::Queue, taken);
            step(Phase::Read, read);
            step(Phase::Wait, ready);
        }
    }
    spans[Phase::Write as usize] = written.since(ready);
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(passed: Passed) -> Track {
        let (read, started, ready) = (Stamp(1000), Stamp(1100), Stamp(5000));
        Track {
            api: ApiKey::Produce,
            version: 13,
            correlation_id: 7,
            error: None,
            is_follower: false,
            client: 0,
            bytes: 100,
            bytes_out: 0,
            read,
            started,
            ready,
            passed,
        }
    }

    fn appended(taken: u64, begun: u64, durable: u64) -> Passed {
        let round = RoundTimes { begun: Stamp(begun), durable: Stamp(durable) };
        Passed::Appended(AppendTimes { taken: Stamp(taken), round, decided: Stamp(durable) })
    }

    #[test]
    fn a_produce_request_in_order() {
        let spans = spans(&track(appended(1500, 2500, 4500)), Stamp(6000));
        assert_eq!(spans, [100, 400, 0, 1000, 2000, 0, 0, 500, 1000]);
    }

    #[test]
    fn what_others_have_yet_to_write_is_waited_for_by_itself() {
        let Passed::Appended(times) = appended(1500, 2500, 3000) else { panic!("appended") };
        let replicated = Passed::Appended(AppendTimes { decided: Stamp(4600), ..times });
        assert_eq!(spans(&track(replicated), Stamp(6000)), [100, 400, 0, 1000, 500, 1600, 0, 400, 1000]);
    }

    #[test]
    fn the_owner_may_be_faster_than_the_connection_notes() {
        // Taken up before the connection had noted its start, and in a round that had begun before.
        let spans = spans(&track(appended(1050, 900, 4500)), Stamp(5000));
        assert_eq!(spans, [50, 0, 0, 0, 3450, 0, 0, 500, 0]);
    }

    #[test]
    fn a_connection_that_was_not_run_until_all_was_durable_has_waited_for_the_disk() {
        let late = Track { started: Stamp(4800), ..track(appended(1050, 2000, 4500)) };
        assert_eq!(spans(&late, Stamp(5000)), [50, 0, 0, 950, 2500, 0, 0, 500, 0]);
    }

    #[test]
    fn phases_add_up_whatever_the_stamps_are() {
        let edges = [0, 900, 1000, 1001, 1100, 3000, 5000, 5001, 9000, u64::MAX];
        for taken in edges {
            for begun in edges {
                for durable in edges {
                    let read = Passed::Read { taken: Stamp(taken), read: Stamp(begun) };
                    for passed in [appended(taken, begun, durable), read, Passed::Untold] {
                        for written in [5000, 5001, 70_000] {
                            let total: u64 = spans(&track(passed), Stamp(written)).iter().sum();
                            assert_eq!(total, written - 1000, "{passed:?}");
                        }
                    }
                }
            }
        }
    }
}
