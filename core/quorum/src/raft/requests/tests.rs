//! What is asked and answered reads back as it was, through the bytes of every version that can carry it.

use barnabas_base::{DirectoryId, DurationMs, Offset};
use barnabas_wire::{Message, Reader, Writer};
use bytes::Bytes;

use super::*;
use crate::raft::message::*;
use crate::snapshot_id::SnapshotId;

fn here() -> Here {
    Here { cluster_id: Text::from("cluster"), listener: Text::from("CONTROLLER") }
}

fn key(id: i32) -> ReplicaKey {
    ReplicaKey { id: BrokerId(id), directory: DirectoryId::from_random([id as u8; 16]) }
}

fn endpoint() -> VoterEndpoint {
    here().endpoint(&Str::from_static("c1"), 9093)
}

fn head() -> Head {
    let (error, leader) = (ErrorCode::None, Some(BrokerId(1)));
    Head { error, leader, epoch: LeaderEpoch(7), endpoints: vec![endpoint()] }
}

fn through<M: Message>(message: &M, version: i16) -> M {
    let mut w = Writer::new();
    message.encode(&mut w, version).unwrap();
    let mut r = Reader::new(w.finish().into_bytes());
    M::decode(&mut r, version).unwrap()
}

#[test]
fn votes() {
    let last = OffsetAndEpoch { offset: Offset(12), epoch: LeaderEpoch(3) };
    for version in 0..=2 {
        let pre_vote = version >= 2;
        let named = version >= 1;
        let mut candidate = key(2);
        if !named {
            candidate.directory = DirectoryId::ZERO;
        }
        let vote = Vote { to: named.then(|| key(3)), candidate, epoch: LeaderEpoch(4), last, pre_vote };
        let asked = through(&k52_vote::ask(&vote, &here(), version).unwrap(), version);
        assert_eq!(k52_vote::plan(&asked, &here()), Ok(Request::Vote(vote)));
        let mut head = head();
        if !named {
            head.endpoints.clear();
        }
        let answer = Response::Vote { head, granted: true };
        let said = through(&k52_vote::respond(&answer, &here(), version), version);
        assert_eq!(k52_vote::read(&said, &here()), answer);
    }
    let vote = Vote { to: None, candidate: key(2), epoch: LeaderEpoch(4), last, pre_vote: true };
    assert_eq!(k52_vote::ask(&vote, &here(), 1), None, "a version without pre-votes");
}

#[test]
fn answer_names_the_listener_that_was_asked() {
    let other = VoterEndpoint { listener: Text::from("SECURE"), host: Text::from("c1"), port: 9095 };
    let head = Head { endpoints: vec![endpoint(), other], ..head() };
    let answer = Response::Vote { head, granted: false };
    let said = |listener: &str| {
        let here = Arc::new(here()).at(listener);
        k52_vote::respond(&answer, &here, 1).node_endpoints.iter().map(|node| node.port).collect::<Vec<_>>()
    };
    assert_eq!(said("CONTROLLER"), [9093]);
    assert_eq!(said("SECURE"), [9095]);
    // Its sender has the voters' addresses.
    assert_eq!(said("THIRD"), [0_u16; 0]);
}

#[test]
fn epochs() {
    for version in 0..=1 {
        let named = version >= 1;
        let endpoints = if named { vec![endpoint()] } else { Vec::new() };
        let (leader, epoch) = (BrokerId(1), LeaderEpoch(7));
        let begin = BeginEpoch { to: named.then(|| key(3)), leader, epoch, endpoints: endpoints.clone() };
        let asked = through(&k53_begin_quorum_epoch::ask(&begin, &here(), version).unwrap(), version);
        assert_eq!(k53_begin_quorum_epoch::plan(&asked, &here()), Ok(Request::BeginEpoch(begin)));
        let mut successor = key(2);
        if !named {
            successor.directory = DirectoryId::ZERO;
        }
        let end = EndEpoch { leader, epoch, successors: vec![successor], endpoints: endpoints.clone() };
        let asked = through(&k54_end_quorum_epoch::ask(&end, &here(), version).unwrap(), version);
        assert_eq!(k54_end_quorum_epoch::plan(&asked, &here()), Ok(Request::EndEpoch(end)));
        let head = Head { endpoints, ..head() };
        let answer = Response::BeginEpoch(head.clone());
        let said = through(&k53_begin_quorum_epoch::respond(&answer, &here(), version), version);
        assert_eq!(k53_begin_quorum_epoch::read(&said, &here()), answer);
        let answer = Response::EndEpoch(head);
        let said = through(&k54_end_quorum_epoch::respond(&answer, &here(), version), version);
        assert_eq!(k54_end_quorum_epoch::read(&said, &here()), answer);
    }
}

#[test]
fn fetches() {
    let snapshot = SnapshotId { end: Offset(40), epoch: LeaderEpoch(5) };
    for version in 12..=18 {
        let mut replica = key(2);
        if version < 17 {
            replica.directory = DirectoryId::ZERO;
        }
        let high_watermark = if version < 18 { Offset(i64::MAX) } else { Offset(9) };
        let fetch = Fetch {
            replica,
            epoch: LeaderEpoch(7),
            from: Offset(12),
            last_epoch: LeaderEpoch(3),
            high_watermark,
            max_wait: DurationMs(500),
            bytes_max: 100,
        };
        let asked = through(&k01_fetch::ask(&fetch, &here(), version).unwrap(), version);
        assert_eq!(k01_fetch::plan(&asked, &here(), version), Ok(Request::Fetch(fetch)));
        let endpoints = if version >= 16 { vec![endpoint()] } else { Vec::new() };
        for content in [
            FetchedContent::Records(Bytes::from_static(b"batches")),
            FetchedContent::Diverging(OffsetAndEpoch { offset: Offset(10), epoch: LeaderEpoch(2) }),
            FetchedContent::Snapshot(snapshot),
        ] {
            let head = Head { endpoints: endpoints.clone(), ..head() };
            let answer = Response::Fetch(Fetched {
                head,
                log_start: Offset(4),
                high_watermark: Some(Offset(11)),
                content,
            });
            let said = through(&k01_fetch::respond(answer.clone(), &here(), version), version);
            assert_eq!(k01_fetch::read(&said, &here()), answer);
        }
    }
}

#[test]
fn snapshots() {
    let id = SnapshotId { end: Offset(40), epoch: LeaderEpoch(5) };
    for version in 0..=1 {
        let mut replica = key(2);
        if version < 1 {
            replica.directory = DirectoryId::ZERO;
        }
        let fetch = FetchSnapshot { replica, epoch: LeaderEpoch(7), id, position: 64, bytes_max: 100 };
        let asked = through(&k59_fetch_snapshot::ask(&fetch, &here(), version).unwrap(), version);
        assert_eq!(k59_fetch_snapshot::plan(&asked, &here()), Ok(Request::FetchSnapshot(fetch)));
        let endpoints = if version >= 1 { vec![endpoint()] } else { Vec::new() };
        let head = Head { endpoints, ..head() };
        let bytes = Bytes::from_static(b"piece");
        let answer = Response::FetchSnapshot(SnapshotFetched { head, id, size: 90, position: 64, bytes });
        let said = through(&k59_fetch_snapshot::respond(answer.clone(), &here(), version), version);
        assert_eq!(k59_fetch_snapshot::read(&said, &here()), answer);
    }
}

#[test]
fn changes_of_voters() {
    for version in 0..=1 {
        let add = AddVoter {
            voter: key(4),
            endpoints: vec![endpoint()],
            ack_when_committed: version < 1,
            timeout: DurationMs(1_000),
        };
        let asked = through(&k80_add_raft_voter::ask(&add, &here(), version).unwrap(), version);
        assert_eq!(k80_add_raft_voter::plan(&asked, &here(), version), Ok(Request::AddVoter(add)));
    }
    let remove = RemoveVoter { voter: key(4) };
    let asked = through(&k81_remove_raft_voter::ask(&remove, &here()), 0);
    assert_eq!(k81_remove_raft_voter::plan(&asked, &here()), Ok(Request::RemoveVoter(remove)));
    let update = UpdateVoter {
        epoch: LeaderEpoch(7),
        voter: key(4),
        endpoints: vec![endpoint()],
        kraft_min: 0,
        kraft_max: 1,
    };
    let asked = through(&k82_update_raft_voter::ask(&update, &here()), 0);
    assert_eq!(k82_update_raft_voter::plan(&asked, &here()), Ok(Request::UpdateVoter(update)));
    let answer = Response::UpdateVoter(head());
    let said = through(&k82_update_raft_voter::respond(&answer, &here()), 0);
    assert_eq!(k82_update_raft_voter::read(&said, &here()), answer);
    let (error, message) = (ErrorCode::DuplicateVoter, Some(Text::from("a voter has this id")));
    let answer = Response::AddVoter { error, message: message.clone() };
    let said = through(&k80_add_raft_voter::respond(&answer), 0);
    assert_eq!(k80_add_raft_voter::read(&said), answer);
    let answer = Response::RemoveVoter { error, message };
    let said = through(&k81_remove_raft_voter::respond(&answer), 0);
    assert_eq!(k81_remove_raft_voter::read(&said), answer);
}

#[test]
fn another_cluster_and_another_topic_are_refused() {
    let other = Here { cluster_id: Text::from("other"), ..here() };
    let last = OffsetAndEpoch::default();
    let vote = Vote { to: None, candidate: key(2), epoch: LeaderEpoch(4), last, pre_vote: false };
    let asked = k52_vote::ask(&vote, &other, 2).unwrap();
    let refused = k52_vote::plan(&asked, &here()).unwrap_err();
    assert_eq!(refused.error_code, ErrorCode::InconsistentClusterId.code());
    assert_eq!(k52_vote::read(&refused, &here()), Response::Refused(ErrorCode::InconsistentClusterId));
    let remove = k81_remove_raft_voter::ask(&RemoveVoter { voter: key(4) }, &other);
    let refused = k81_remove_raft_voter::plan(&remove, &here()).unwrap_err();
    assert_eq!(refused.error_code, ErrorCode::InconsistentClusterId.code());
    let mut asked = k52_vote::ask(&vote, &here(), 2).unwrap();
    asked.topics[0].topic_name = Str::from_static("orders");
    let refused = k52_vote::plan(&asked, &here()).unwrap_err();
    assert_eq!(refused.error_code, ErrorCode::InvalidRequest.code());
    // Who names no cluster is believed.
    let mut asked = k52_vote::ask(&vote, &here(), 2).unwrap();
    asked.cluster_id = None;
    assert!(k52_vote::plan(&asked, &here()).is_ok());
}
