//! Conversations with one member of a quorum: `tests/quorum_talks/*.txt`. What stands after `> ` is the question, the
//! rest is what it did, `# ` explains.
//!
//! `TALKS=write cargo test -p barnabas-quorum --test quorum_talks` rewrites the answers; the diff is the review.
//!
//! The member is number 1. Voter n lives on the directory whose bytes are all n, and listens on port 9000 + n. Ends of
//! logs are written offset/epoch. Election timeouts are drawn between 1,000 and 2,000 ms.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::collections::BTreeMap;
use std::path::Path;

use barnabas_base::{
    BrokerId, DirectoryId, DurationMs, ErrorCode, LeaderEpoch, LeaderEpochs, MonotonicMs, Offset, Text,
    TimestampMs,
};
use barnabas_metadata::MetadataVersion;
use barnabas_quorum::batches::{
    Content, Control, EncodedBatch, Place, control_batch, data_batches, read_batch,
};
use barnabas_quorum::raft::membership::history::History;
use barnabas_quorum::raft::message::*;
use barnabas_quorum::raft::state::quorum_state::QuorumState;
use barnabas_quorum::raft::{Config, Effect, Past, Raft, Read};
use barnabas_quorum::snapshot::{SnapshotVoters, SnapshotWriter};
use barnabas_quorum::{Now, SnapshotId, Voter, VoterEndpoint, Voters};
use barnabas_wire::messages::NoOpRecord;
use barnabas_wire::records::{Batch, batches};
use bytes::{Bytes, BytesMut};

struct Said<'a> {
    verb: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Said<'a> {
    fn word(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn or(&self, key: &str, default: i64) -> i64 {
        self.word(key).map_or(default, |word| word.parse().unwrap())
    }

    fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
    }

    fn ids(&self, key: &str) -> Vec<i32> {
        let list = self.word(key).unwrap_or_default();
        list.split(',').filter(|item| !item.is_empty()).map(|item| item.parse().unwrap()).collect()
    }

    /// `offset/epoch`
    fn point(&self, key: &str) -> Option<OffsetAndEpoch> {
        let (offset, epoch) = self.word(key)?.split_once('/')?;
        Some(OffsetAndEpoch {
            offset: Offset(offset.parse().unwrap()),
            epoch: LeaderEpoch(epoch.parse().unwrap()),
        })
    }

    fn epoch(&self) -> LeaderEpoch {
        LeaderEpoch(self.or("epoch", 0) as i32)
    }

    fn from(&self) -> i32 {
        self.or("from", 2) as i32
    }
}

fn directory(id: i32) -> DirectoryId {
    DirectoryId::from_random([id as u8; 16])
}

fn endpoint(id: i32) -> VoterEndpoint {
    VoterEndpoint { listener: Text::from("CONTROLLER"), host: Text::from("c"), port: 9000 + id as u16 }
}

fn voter(id: i32) -> Voter {
    Voter {
        id: BrokerId(id),
        directory: directory(id),
        endpoints: vec![endpoint(id)],
        kraft_min: 0,
        kraft_max: 1,
    }
}

fn key(id: i32) -> ReplicaKey {
    ReplicaKey { id: BrokerId(id), directory: directory(id) }
}

#[derive(Default)]
struct Talk {
    raft: Option<Raft>,
    time: u64,
    tickets: u64,
    /// The number of the last request to each.
    sent: BTreeMap<i32, u64>,
    /// How much of a snapshot has been sent.
    position: usize,
}

impl Talk {
    fn now(&self) -> Now {
        Now { wall: TimestampMs(1_000_000 + self.time as i64), monotonic: MonotonicMs(self.time) }
    }

    fn raft(&mut self) -> &mut Raft {
        self.raft.as_mut().unwrap()
    }

    fn say(&mut self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let said = Said { verb: words.next().unwrap(), words: words.collect() };
        let shown = self.act(&said);
        let effects = self.raft.as_mut().map(Raft::take_effects).unwrap_or_default();
        let mut text = shown;
        for effect in effects {
            if let Effect::Send { to, number, .. } = &effect {
                self.sent.insert(to.get(), *number);
            }
            text += &show(&effect);
        }
        if text.is_empty() { "nothing\n".to_owned() } else { text }
    }

    fn act(&mut self, said: &Said<'_>) -> String {
        let now = self.now();
        match said.verb {
            "start" => self.start(said),
            "wait" => {
                self.time += said.words[0].parse::<u64>().unwrap();
                let now = self.now();
                self.raft().tick(now).unwrap();
            }
            "synced" => {
                let end = self.raft().log_end();
                self.raft().synced(Offset(said.or("end", end.get())), now).unwrap();
            }
            "append" => {
                let records = vec![NoOpRecord::default().into(); said.words[0].parse().unwrap()];
                self.raft().append(&records, MetadataVersion::LATEST, false, now).unwrap();
            }
            "gone" => self.raft().leader_is_gone(BrokerId(said.words[0].parse().unwrap()), now).unwrap(),
            "resign" => self.raft().resign(now).unwrap(),
            "stored" => {
                let id = self.snapshot(said);
                self.raft().snapshot_stored(id, Some(1), now).unwrap();
            }
            "snapshot" => {
                let id = self.snapshot(said);
                let size = said.or("size", 100) as u64;
                self.raft().snapshot_written(id, size);
                self.raft().log_started(id.end, &[]);
            }
            "raise" => match self.raft().refuse_kraft_version(1) {
                Some(why) => return format!("{why}\n"),
                None => self.raft().raise_kraft_version(1, now).unwrap(),
            },
            "show" => return self.show_state(),
            "known" => match self.raft().known_by(now) {
                Some((below, at)) => return format!("by {} ms: all below {below}\n", at.0),
                None => return "by no moment\n".to_owned(),
            },
            verb if verb.starts_with('<') => self.answered(said, &verb[1..]),
            _ => {
                self.tickets += 1;
                let (ticket, request) = (self.tickets, self.request(said));
                self.raft().request(ticket, request, now).unwrap();
            }
        }
        String::new()
    }

    fn snapshot(&self, said: &Said<'_>) -> SnapshotId {
        let OffsetAndEpoch { offset, epoch } = said.point("id").unwrap();
        SnapshotId { end: offset, epoch }
    }

    fn start(&mut self, said: &Said<'_>) {
        let voters = Voters::new(said.ids("voters").into_iter().map(voter));
        let mut past = Past::default();
        if said.has("static") {
            let fixed = voters.iter().cloned().map(|voter| Voter { directory: DirectoryId::ZERO, ..voter });
            past.history = History::new(Voters::new(fixed));
        } else {
            past.history.reset(Offset::ZERO, 1, (!voters.is_empty()).then_some(voters));
        }
        // The log, as ends of its epochs, the oldest first.
        let mut start = Offset::ZERO;
        let mut epochs = LeaderEpochs::default();
        for word in said.word("log").into_iter().flat_map(|word| word.split(',')) {
            let (end, epoch) = word.split_once('/').unwrap();
            epochs.assign(LeaderEpoch(epoch.parse().unwrap()), start);
            start = Offset(end.parse().unwrap());
        }
        (past.log_end, past.epochs) = (start, epochs);
        past.state = said.word("state-epoch").map(|epoch| QuorumState {
            epoch: LeaderEpoch(epoch.parse().unwrap()),
            leader: said.word("leader").map(|id| BrokerId(id.parse().unwrap())),
            voted: said.word("voted").map(|id| id.parse().unwrap()).map(|id| (BrokerId(id), directory(id))),
            voters: Vec::new(),
        });
        let mut config = Config::new(voter(1), Text::from("CONTROLLER"), 7);
        config.bootstrap = said.ids("bootstrap").into_iter().map(endpoint).collect();
        config.auto_join = said.has("auto-join");
        let now = self.now();
        self.raft = Some(Raft::new(config, past, now).unwrap());
    }

    fn request(&self, said: &Said<'_>) -> Request {
        let (from, epoch) = (said.from(), said.epoch());
        match said.verb {
            "vote" | "pre-vote" => Request::Vote(Vote {
                to: Some(key(said.or("to", 1) as i32)),
                candidate: key(from),
                epoch,
                last: said.point("last").unwrap_or_default(),
                pre_vote: said.verb == "pre-vote",
            }),
            "begin" => Request::BeginEpoch(BeginEpoch {
                to: Some(key(1)),
                leader: BrokerId(from),
                epoch,
                endpoints: vec![endpoint(from)],
            }),
            "end" => Request::EndEpoch(EndEpoch {
                leader: BrokerId(from),
                epoch,
                successors: said.ids("successors").into_iter().map(key).collect(),
                endpoints: vec![endpoint(from)],
            }),
            "fetch" => {
                let OffsetAndEpoch { offset, epoch: last_epoch } = said.point("at").unwrap_or_default();
                Request::Fetch(Fetch {
                    replica: key(from),
                    epoch,
                    from: offset,
                    last_epoch,
                    high_watermark: Offset(said.or("hw", i64::MAX)),
                    max_wait: DurationMs(said.or("wait", 500)),
                    bytes_max: 1 << 20,
                })
            }
            "fetch-snapshot" => {
                let id = self.snapshot(said);
                let position = said.or("position", 0);
                Request::FetchSnapshot(FetchSnapshot {
                    replica: key(from),
                    epoch,
                    id,
                    position,
                    bytes_max: 100,
                })
            }
            _ => Self::voter_request(said),
        }
    }

    fn voter_request(said: &Said<'_>) -> Request {
        match said.verb {
            "add" => {
                let id = said.words[0].parse().unwrap();
                let endpoints = vec![endpoint(id)];
                let timeout = DurationMs(1_000);
                Request::AddVoter(AddVoter { voter: key(id), endpoints, ack_when_committed: true, timeout })
            }
            "remove" => {
                let mut voter = key(said.words[0].parse().unwrap());
                if let Some(lives_on) = said.word("directory") {
                    voter.directory = directory(lives_on.parse().unwrap());
                }
                Request::RemoveVoter(RemoveVoter { voter })
            }
            "update" => {
                let id = said.words[0].parse().unwrap();
                let mut endpoint = endpoint(id);
                endpoint.port += 1_000;
                let endpoints = vec![endpoint];
                Request::UpdateVoter(UpdateVoter {
                    epoch: said.epoch(),
                    voter: key(id),
                    endpoints,
                    kraft_min: 0,
                    kraft_max: 1,
                })
            }
            verb => panic!("unknown: {verb}"),
        }
    }

    /// An answer to the last request to `from`: `<vote granted from=2`, `<fetch from=2 records=3@1`.
    fn answered(&mut self, said: &Said<'_>, verb: &str) {
        let (from, now) = (said.from(), self.now());
        let number = self.sent.get(&from).copied().unwrap_or_default();
        let error = said.word("error").map_or(ErrorCode::None, named);
        let leader = said.word("leader").map(|id| BrokerId(id.parse().unwrap()));
        let endpoints = leader.map(|id| vec![endpoint(id.get())]).unwrap_or_default();
        let epoch = LeaderEpoch(said.or("epoch", i64::from(self.raft().epoch().get())) as i32);
        let head = Head { error, leader, epoch, endpoints };
        let response = match verb {
            "lost" => None,
            "refused" => Some(Response::Refused(error)),
            "vote" => Some(Response::Vote { head, granted: said.has("granted") }),
            "begin" => Some(Response::BeginEpoch(head)),
            "end" => Some(Response::EndEpoch(head)),
            "versions" => Some(Response::ApiVersions { error, kraft: Some((0, said.or("max", 1) as i16)) }),
            "fetch" => Some(self.fetched(said, head)),
            "update" => Some(Response::UpdateVoter(head)),
            "removed" => Some(Response::RemoveVoter { error, message: None }),
            "piece" => Some(self.piece(said, head)),
            verb => panic!("unknown: {verb}"),
        };
        self.raft().response(BrokerId(from), number, response, now).unwrap();
    }

    fn fetched(&mut self, said: &Said<'_>, head: Head) -> Response {
        let content = match (said.point("diverging"), said.point("snapshot")) {
            (Some(end), _) => FetchedContent::Diverging(end),
            (_, Some(OffsetAndEpoch { offset, epoch })) => {
                FetchedContent::Snapshot(SnapshotId { end: offset, epoch })
            }
            _ => FetchedContent::Records(self.records(said)),
        };
        let high_watermark = said.word("hw").map(|hw| Offset(hw.parse().unwrap()));
        Response::Fetch(Fetched { head, log_start: Offset::ZERO, high_watermark, content })
    }

    /// The next piece of a snapshot that comes in `of` pieces.
    fn piece(&mut self, said: &Said<'_>, head: Head) -> Response {
        let id = self.snapshot(said);
        let voters = Voters::new(said.ids("voters").into_iter().map(voter));
        let voters = SnapshotVoters { kraft_version: 1, voters: Some(voters) };
        let mut writer = SnapshotWriter::new(id, TimestampMs(5), MetadataVersion::LATEST);
        let mut whole = BytesMut::from(&writer.header(TimestampMs(4), Some(&voters)).unwrap()[..]);
        whole.extend_from_slice(&writer.footer().unwrap());
        let from = self.position;
        let end = (from + whole.len().div_ceil(said.or("of", 1) as usize)).min(whole.len());
        let (size, position) = (whole.len() as i64, from as i64);
        let mut bytes = Bytes::new();
        if head.error == ErrorCode::None {
            self.position = end;
            bytes = whole.freeze().slice(from..end);
        }
        Response::FetchSnapshot(SnapshotFetched { head, id, size, position, bytes })
    }

    /// `records=2@1,1@3`: batches of so many records of those epochs; `voters=1,2`: then one of voters.
    fn records(&mut self, said: &Said<'_>) -> Bytes {
        let mut base = self.raft().log_end();
        let mut bytes = BytesMut::new();
        let mut last = self.raft().epoch();
        for word in said.word("records").into_iter().flat_map(|word| word.split(',')) {
            let (count, epoch) = word.split_once('@').unwrap();
            last = LeaderEpoch(epoch.parse().unwrap());
            let place = Place { base, epoch: last, timestamp: TimestampMs(5) };
            let records = vec![NoOpRecord::default().into(); count.parse().unwrap()];
            let batches = data_batches(&records, MetadataVersion::LATEST, false, place).unwrap();
            batches.iter().for_each(|batch| bytes.extend_from_slice(&batch.bytes));
            base = batches.last().unwrap().end;
        }
        if said.word("voters").is_some() {
            let on = |id: i32| {
                // This node's id on another directory than this node's.
                let other = id == 1 && said.has("old-disk");
                Voter { directory: directory(if other { 99 } else { id }), ..voter(id) }
            };
            let voters = Voters::new(said.ids("voters").into_iter().map(on));
            let place = Place { base, epoch: last, timestamp: TimestampMs(5) };
            let batch = control_batch(&[Control::Voters(voters.to_record())], place).unwrap();
            bytes.extend_from_slice(&batch.bytes);
        }
        bytes.freeze()
    }

    fn show_state(&mut self) -> String {
        let now = self.now();
        let raft = self.raft();
        let voters: Vec<String> = raft.voters().ids().iter().map(ToString::to_string).collect();
        let mut text = format!(
            "{:?} epoch={} leader={} log=[{}, {}) high watermark={} voters=[{}]\n",
            raft.role(),
            raft.epoch(),
            or_none(raft.leader_and_epoch().leader),
            raft.log_start(),
            raft.log_end(),
            raft.high_watermark(),
            voters.join(" ")
        );
        for (kind, views) in raft
            .describe(now)
            .map(|of| [("voter", of.voters), ("observer", of.observers)])
            .into_iter()
            .flatten()
        {
            for view in views {
                text += &format!("  {kind} {} end={}\n", view.key.id, view.log_end);
            }
        }
        text
    }
}

fn named(name: &str) -> ErrorCode {
    (0..=200).map(ErrorCode::from_code).find(|error| error.name() == name).unwrap()
}

fn or_none(id: Option<BrokerId>) -> String {
    id.map_or("none".to_owned(), |id| id.to_string())
}

fn point(point: OffsetAndEpoch) -> String {
    format!("{}/{}", point.offset, point.epoch)
}

fn show(effect: &Effect) -> String {
    match effect {
        Effect::Persist { state, .. } => {
            let voted = or_none(state.voted.map(|(id, _)| id));
            format!("persist epoch={} leader={} voted={voted}\n", state.epoch, or_none(state.leader))
        }
        Effect::Append(batch) => show_batch(batch),
        Effect::Truncate(end) => format!("truncate to {end}\n"),
        Effect::Committed(end) => format!("committed below {end}\n"),
        Effect::Send { to, endpoint, request, .. } => {
            format!("send to {to} at {}: {}\n", endpoint.port, show_request(request))
        }
        Effect::Answer { ticket, response, read } => {
            let read = match read {
                None => String::new(),
                Some(Read::Log { from, end, .. }) => format!(" with [{from}, {end})"),
                Some(Read::Snapshot { id, position, .. }) => format!(" with {id} from byte {position}"),
            };
            format!("answer #{ticket}: {}{read}\n", show_response(response))
        }
        Effect::Leader(known) => format!("leader of epoch {}: {}\n", known.epoch, or_none(known.leader)),
        Effect::SnapshotPiece { id, position, bytes } => {
            format!("piece of {id} at {position}: {} bytes\n", bytes.len())
        }
        Effect::StoreSnapshot(id) => format!("store {id}\n"),
        Effect::RestartLog(id) => format!("begin the log after {id}\n"),
    }
}

fn show_batch(batch: &EncodedBatch) -> String {
    let mut text = format!("append [{}, {})", batch.base, batch.end);
    for parsed in batches(batch.bytes.clone()) {
        let parsed: Batch = parsed.unwrap();
        text += &format!(" epoch {}", parsed.header().partition_leader_epoch);
        if let Content::Control(controls) = read_batch(&parsed).unwrap() {
            for control in controls {
                text += &match control {
                    Control::LeaderChange(change) => {
                        let granting: Vec<i32> =
                            change.granting_voters.iter().map(|voter| voter.voter_id).collect();
                        format!(" LEADER_CHANGE {} by {granting:?}", change.leader_id)
                    }
                    Control::Voters(record) => {
                        let ids: Vec<i32> = record.voters.iter().map(|voter| voter.voter_id).collect();
                        format!(" KRAFT_VOTERS {ids:?}")
                    }
                    Control::KRaftVersion(record) => format!(" KRAFT_VERSION {}", record.kraft_version),
                    _ => " ?".to_owned(),
                };
            }
        }
    }
    text + "\n"
}

fn show_request(request: &Request) -> String {
    match request {
        Request::Vote(vote) => {
            let kind = if vote.pre_vote { "pre-vote" } else { "vote" };
            format!("{kind} epoch={} last={}", vote.epoch, point(vote.last))
        }
        Request::BeginEpoch(begin) => format!("begin epoch={}", begin.epoch),
        Request::EndEpoch(end) => {
            let ids: Vec<i32> = end.successors.iter().map(|key| key.id.get()).collect();
            format!("end epoch={} successors={ids:?}", end.epoch)
        }
        Request::Fetch(fetch) => {
            let at = OffsetAndEpoch { offset: fetch.from, epoch: fetch.last_epoch };
            format!("fetch epoch={} at={} hw={}", fetch.epoch, point(at), fetch.high_watermark)
        }
        Request::FetchSnapshot(fetch) => {
            format!("fetch-snapshot epoch={} {} from byte {}", fetch.epoch, fetch.id, fetch.position)
        }
        Request::AddVoter(add) => format!("add voter {}", add.voter.id),
        Request::RemoveVoter(remove) => format!("remove voter {}", remove.voter.id),
        Request::UpdateVoter(update) => format!("update voter {}", update.voter.id),
        Request::ApiVersions => "api-versions".to_owned(),
    }
}

fn show_head(head: &Head) -> String {
    let error = if head.error == ErrorCode::None { String::new() } else { format!("{} ", head.error) };
    format!("{error}epoch={} leader={}", head.epoch, or_none(head.leader))
}

fn show_response(response: &Response) -> String {
    match response {
        Response::Vote { head, granted } => {
            format!("vote {} {}", if *granted { "granted" } else { "refused" }, show_head(head))
        }
        Response::BeginEpoch(head) => format!("begin {}", show_head(head)),
        Response::EndEpoch(head) => format!("end {}", show_head(head)),
        Response::UpdateVoter(head) => format!("update {}", show_head(head)),
        Response::Fetch(fetched) => {
            let content = match &fetched.content {
                FetchedContent::Records(_) => String::new(),
                FetchedContent::Diverging(end) => format!(" diverging={}", point(*end)),
                FetchedContent::Snapshot(id) => format!(" snapshot={id}"),
            };
            let hw = fetched.high_watermark.map_or("none".to_owned(), |hw| hw.to_string());
            format!("fetch {} hw={hw}{content}", show_head(&fetched.head))
        }
        Response::FetchSnapshot(fetched) => {
            format!("fetch-snapshot {} size={}", show_head(&fetched.head), fetched.size)
        }
        Response::AddVoter { error, message } | Response::RemoveVoter { error, message } => {
            format!("{error} {}", message.as_deref().unwrap_or_default()).trim_end().to_owned()
        }
        Response::ApiVersions { .. } | Response::Refused(_) => "?".to_owned(),
    }
}

#[test]
fn talks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quorum_talks");
    let write = std::env::var("TALKS").is_ok_and(|word| word == "write");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut talk = Talk::default();
        let mut spoken = String::new();
        for line in text.lines() {
            if let Some(said) = line.strip_prefix("> ") {
                spoken += &format!("{line}\n{}", talk.say(said));
            } else if line.is_empty() || line.starts_with('#') {
                spoken += &format!("{line}\n");
            }
        }
        if write {
            std::fs::write(&path, &spoken).unwrap();
        } else {
            assert_eq!(spoken, text, "{}", path.display());
        }
    }
}
