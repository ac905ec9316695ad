//! The quorum's member by itself: epochs, the high watermark, who may lead.

use barnabas_base::Text;
use barnabas_wire::messages::NoOpRecord;

use super::*;
use crate::voters::VoterEndpoint;

fn voter(id: i32, directory: u8) -> Voter {
    let endpoint =
        VoterEndpoint { listener: Text::from("CONTROLLER"), host: Text::from("localhost"), port: 9093 };
    Voter {
        id: BrokerId(id),
        directory: DirectoryId::from_random([directory; 16]),
        endpoints: vec![endpoint],
        kraft_min: 0,
        kraft_max: 1,
    }
}

fn past(voters: &[Voter]) -> Past {
    Past { kraft_version: 1, voters: Voters::new(voters.to_vec()), ..Past::default() }
}

fn append(raft: &mut Raft) -> Offset {
    let places =
        raft.append(&[NoOpRecord::default().into()], MetadataVersion::LATEST, false, TimestampMs(1)).unwrap();
    places[0].1
}

fn committed(raft: &mut Raft) -> Option<i64> {
    let effects = raft.take_effects();
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Committed(end) => Some(end.get()),
        _ => None,
    })
}

#[test]
fn nothing_is_committed_before_the_leader_change_is_on_disk() {
    let me = voter(1, 1);
    let mut raft = Raft::new(&me, &Past { log_end: Offset(10), ..past(std::slice::from_ref(&me)) }).unwrap();
    raft.synced(Offset(10));
    assert_eq!(committed(&mut raft), None);
    raft.lead(&me, Some(Offset(2)), TimestampMs(1)).unwrap();
    let effects = raft.take_effects();
    assert!(
        matches!(effects[0], Effect::Persist { .. }),
        "the epoch is on disk before anything is written under it"
    );
    assert!(
        matches!(&effects[1], Effect::Append(batch) if batch.base == Offset(10) && batch.end == Offset(11))
    );
    raft.synced(Offset(10));
    assert_eq!(committed(&mut raft), None);
    raft.synced(Offset(11));
    assert_eq!(committed(&mut raft), Some(11));
}

#[test]
fn the_high_watermark_follows_the_disk_and_never_goes_back() {
    let me = voter(1, 1);
    let mut raft = Raft::new(&me, &past(std::slice::from_ref(&me))).unwrap();
    raft.lead(&me, Some(Offset(0)), TimestampMs(1)).unwrap();
    let first = append(&mut raft);
    let second = append(&mut raft);
    raft.synced(second);
    assert_eq!(committed(&mut raft), Some(second.get()));
    raft.synced(first);
    assert_eq!((committed(&mut raft), raft.high_watermark()), (None, second));
}

#[test]
#[should_panic(expected = "beyond the end of the log")]
fn a_sync_of_what_was_not_written_is_a_bug() {
    let me = voter(1, 1);
    let mut raft = Raft::new(&me, &past(std::slice::from_ref(&me))).unwrap();
    raft.synced(Offset(1));
}

#[test]
#[should_panic(expected = "only the leader writes")]
fn who_does_not_lead_does_not_write() {
    let me = voter(1, 1);
    let mut raft = Raft::new(&me, &past(std::slice::from_ref(&me))).unwrap();
    append(&mut raft);
}

#[test]
fn an_epoch_is_above_all_that_was_seen() {
    let me = voter(1, 1);
    let state = QuorumState { epoch: LeaderEpoch(7), leader: None, voted: None, voters: Vec::new() };
    let entries = vec![EpochEntry { epoch: LeaderEpoch(9), start: Offset(0) }];
    let epochs = LeaderEpochs::from_entries(entries).unwrap();
    let snapshot = SnapshotId { end: Offset(5), epoch: LeaderEpoch(11) };
    let led = |past: Past| {
        let mut raft = Raft::new(&me, &past).unwrap();
        raft.lead(&me, Some(Offset(0)), TimestampMs(1)).unwrap();
        raft.epoch().get()
    };
    let past = past(std::slice::from_ref(&me));
    assert_eq!(led(past.clone()), 1);
    let past = Past { state: Some(state), ..past };
    assert_eq!(led(past.clone()), 8);
    let past = Past { epochs, log_end: Offset(5), ..past };
    assert_eq!(led(past.clone()), 10);
    assert_eq!(led(Past { snapshot: Some(snapshot), ..past }), 12);
}

#[test]
fn only_the_voter_leads_and_only_alone() {
    let me = voter(1, 1);
    assert!(matches!(Raft::new(&me, &past(&[])), Err(QuorumError::NotAVoter { .. })));
    assert!(matches!(Raft::new(&me, &past(&[voter(2, 2)])), Err(QuorumError::NotAVoter { .. })));
    // The same id on another disk is another voter (KIP-853).
    assert!(matches!(Raft::new(&me, &past(&[voter(1, 2)])), Err(QuorumError::NotAVoter { .. })));
    let others = [voter(1, 1), voter(2, 2)];
    assert!(matches!(Raft::new(&me, &past(&others)), Err(QuorumError::ManyVoters { .. })));
    // A static voter has no directory.
    let fixed = Voter { directory: DirectoryId::ZERO, ..me.clone() };
    assert!(Raft::new(&me, &past(&[fixed])).is_ok());
}

#[test]
fn voters_go_into_the_log_when_they_are_new_there() {
    let me = voter(1, 1);
    let batch_of = |as_known: Voter, voters_at| {
        let mut raft = Raft::new(&me, &past(&[as_known])).unwrap();
        raft.lead(&me, voters_at, TimestampMs(1)).unwrap();
        raft.log_end().get()
    };
    assert_eq!(batch_of(me.clone(), Some(Offset(2))), 1, "the leader change alone");
    assert_eq!(batch_of(me.clone(), None), 3, "only the format tool wrote them");
    let moved = Voter { endpoints: Vec::new(), ..me.clone() };
    assert_eq!(batch_of(moved, Some(Offset(2))), 3, "another address");
}
