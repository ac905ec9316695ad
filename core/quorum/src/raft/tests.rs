//! The quorum's member by itself: epochs, the high watermark, who may lead.

use barnabas_base::{Text, TimestampMs};
use barnabas_wire::messages::NoOpRecord;

use super::*;
use crate::batches::Control;
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
    let mut history = History::new(Voters::default());
    history.reset(Offset::ZERO, 1, Some(Voters::new(voters.to_vec())));
    Past { history, ..Past::default() }
}

const NOW: Now = Now { wall: TimestampMs(1), monotonic: MonotonicMs(1) };

fn start(me: &Voter, past: Past) -> Raft {
    Raft::new(Config::new(me.clone(), Text::from("CONTROLLER"), 1), past, NOW).unwrap()
}

fn append(raft: &mut Raft) -> Offset {
    let places = raft.append(&[NoOpRecord::default().into()], MetadataVersion::LATEST, false, NOW).unwrap();
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
    let mut past = past(std::slice::from_ref(&me));
    past.history.apply(Offset(2), &Control::Voters(Voters::new([me.clone()]).to_record()));
    past.epochs.assign(LeaderEpoch(1), Offset(0));
    let mut raft = start(&me, Past { log_end: Offset(10), ..past });
    let effects = raft.take_effects();
    assert!(
        matches!(&effects[0], Effect::Persist { state, .. } if state.leader == Some(me.id)),
        "the epoch is on disk before anything is written under it"
    );
    let appended = effects.iter().find_map(|effect| match effect {
        Effect::Append(batch) => Some((batch.base, batch.end)),
        _ => None,
    });
    assert_eq!(appended, Some((Offset(10), Offset(11))));
    raft.synced(Offset(10), NOW).unwrap();
    assert_eq!(committed(&mut raft), None);
    raft.synced(Offset(11), NOW).unwrap();
    assert_eq!(committed(&mut raft), Some(11));
}

#[test]
fn the_high_watermark_follows_the_disk_and_never_goes_back() {
    let me = voter(1, 1);
    let mut raft = start(&me, past(std::slice::from_ref(&me)));
    let first = append(&mut raft);
    let second = append(&mut raft);
    raft.synced(second, NOW).unwrap();
    assert_eq!(committed(&mut raft), Some(second.get()));
    raft.synced(first, NOW).unwrap();
    assert_eq!((committed(&mut raft), raft.high_watermark()), (None, second));
}

#[test]
#[should_panic(expected = "beyond the end of the log")]
fn a_sync_of_what_was_not_written_is_a_bug() {
    let me = voter(1, 1);
    let mut raft = start(&me, past(std::slice::from_ref(&me)));
    raft.synced(Offset(100), NOW).unwrap();
}

#[test]
#[should_panic(expected = "only the leader writes")]
fn who_does_not_lead_does_not_write() {
    let me = voter(1, 1);
    let mut raft = start(&me, past(&[me.clone(), voter(2, 2)]));
    append(&mut raft);
}

#[test]
fn an_epoch_is_above_all_that_was_seen() {
    let me = voter(1, 1);
    let led = |past: Past| start(&me, past).epoch().get();
    let state = QuorumState { epoch: LeaderEpoch(7), leader: None, voted: None, voters: Vec::new() };
    let entries = vec![EpochEntry { epoch: LeaderEpoch(9), start: Offset(0) }];
    let epochs = LeaderEpochs::from_entries(entries).unwrap();
    let snapshot = SnapshotId { end: Offset(5), epoch: LeaderEpoch(11) };
    let past = past(std::slice::from_ref(&me));
    assert_eq!(led(past.clone()), 1);
    let past = Past { state: Some(state), ..past };
    assert_eq!(led(past.clone()), 8);
    let past = Past { epochs, log_end: Offset(5), ..past };
    assert_eq!(led(past.clone()), 10);
    assert_eq!(led(Past { snapshots: vec![(snapshot, 1)], ..past }), 12);
}

#[test]
fn only_a_voter_leads_and_at_once_only_alone() {
    let me = voter(1, 1);
    let role = |voters: &[Voter]| start(&me, past(voters)).role();
    assert_eq!(role(&[]), RoleName::Observer);
    assert_eq!(role(&[voter(2, 2)]), RoleName::Observer);
    // The same id on another disk is another voter (KIP-853).
    assert_eq!(role(&[voter(1, 2)]), RoleName::Observer);
    assert_eq!(role(&[voter(1, 1), voter(2, 2)]), RoleName::Unattached);
    // A static voter has no directory.
    assert_eq!(role(&[Voter { directory: DirectoryId::ZERO, ..me.clone() }]), RoleName::Leader);
}

#[test]
fn voters_go_into_the_log_when_they_are_new_there() {
    let me = voter(1, 1);
    let batch_of = |as_known: Voter, is_in_log: bool| {
        let mut past = past(std::slice::from_ref(&as_known));
        if is_in_log {
            past.history.apply(Offset(2), &Control::Voters(Voters::new([as_known]).to_record()));
        }
        start(&me, Past { log_end: Offset(10), ..past }).log_end().get() - 10
    };
    assert_eq!(batch_of(me.clone(), true), 1, "the leader change alone");
    assert_eq!(batch_of(me.clone(), false), 3, "only the format tool wrote them");
    let moved = Voter { endpoints: Vec::new(), ..me.clone() };
    assert_eq!(batch_of(moved, true), 3, "another address");
}

#[test]
fn broker_alone_in_a_voters_directory_only_observes() {
    let me = voter(1, 7);
    let mut past = past(std::slice::from_ref(&me));
    // As the controller that it was has left it.
    past.state = Some(QuorumState {
        epoch: LeaderEpoch(4),
        leader: Some(me.id),
        voted: Some((me.id, me.directory)),
        voters: Vec::new(),
    });
    let elsewhere = VoterEndpoint { host: Text::from("other"), ..me.endpoints[0].clone() };
    let config = Config {
        is_controller: false,
        bootstrap: vec![elsewhere.clone()],
        ..Config::new(Voter { endpoints: Vec::new(), ..me }, Text::from("CONTROLLER"), 1)
    };
    let mut raft = Raft::new(config, past, NOW).unwrap();
    assert!(!raft.is_voter() && !raft.may_lead() && !raft.is_alone());
    assert_eq!(raft.role(), RoleName::Observer);
    for second in 1..60 {
        raft.tick(Now { monotonic: MonotonicMs(second * 1_000), ..NOW }).unwrap();
        assert_eq!((raft.role(), raft.epoch()), (RoleName::Observer, LeaderEpoch(4)), "at {second} s");
        for effect in raft.take_effects() {
            match effect {
                Effect::Send { endpoint, request: Request::Fetch(_), .. } => assert_eq!(endpoint, elsewhere),
                Effect::Persist { .. } | Effect::Leader(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}
