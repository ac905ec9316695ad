use super::*;
use crate::testing::{Fixture, Memory, ORDERS, config, opener};
use barnabas_base::Text;

fn key(member: &str) -> MemberKey {
    MemberKey { group: Text::from("g"), member: Text::from(member) }
}

fn orders(partition: i32) -> SharePart {
    part(ORDERS, partition)
}

const ONE: Connection = Connection(1);
const TWO: Connection = Connection(2);

#[test]
fn a_session_counts_its_requests() {
    let mut sessions = ShareSessions::new(10);
    let a = key("a");
    let open = |sessions: &mut ShareSessions, epoch| {
        sessions.open(&a, epoch, &[orders(0)], &[], false, &opener(ONE))
    };
    assert_eq!(open(&mut sessions, 1), Err(ErrorCode::ShareSessionNotFound));
    assert_eq!(open(&mut sessions, -1), Err(ErrorCode::ShareSessionNotFound));
    assert_eq!(sessions.open(&a, 0, &[], &[], true, &opener(ONE)), Err(ErrorCode::InvalidRequest));
    assert_eq!(open(&mut sessions, 0), Ok(Opened::First(vec![orders(0)])));
    assert_eq!(sessions.acknowledge(&a, 0), Err(ErrorCode::InvalidShareSessionEpoch));
    assert_eq!(sessions.acknowledge(&key("b"), 1), Err(ErrorCode::ShareSessionNotFound));
    assert_eq!(sessions.acknowledge(&a, 1), Ok(()));
    assert_eq!(open(&mut sessions, 1), Err(ErrorCode::InvalidShareSessionEpoch));
    let next = sessions.open(&a, 2, &[orders(1)], &[orders(0)], true, &opener(ONE));
    assert_eq!(next, Ok(Opened::Next(vec![orders(1)])));
    assert_eq!(sessions.acknowledge(&a, -1), Ok(()));
    assert_eq!(open(&mut sessions, -1), Ok(Opened::Last));
    let ended = Ended { key: a.clone(), parts: vec![orders(1)], is_last: true };
    assert_eq!(sessions.end(&a), Some(ended));
    assert_eq!((sessions.end(&a), sessions.count()), (None, 0));
}

#[test]
fn what_is_new_or_was_wrong_is_answered_though_there_is_nothing() {
    let mut sessions = ShareSessions::new(10);
    let a = key("a");
    sessions.open(&a, 0, &[orders(0)], &[], false, &opener(ONE)).unwrap();
    sessions.open(&a, 1, &[orders(1)], &[], false, &opener(ONE)).unwrap();
    let of = |has_records, is_error| [(orders(0), has_records, false), (orders(1), false, is_error)];
    assert_eq!(sessions.must_answer(&a, 1, &of(false, true)), Some(vec![false, true]));
    assert_eq!(sessions.must_answer(&a, 1, &of(true, false)), Some(vec![true, true]));
    assert_eq!(sessions.must_answer(&a, 1, &of(false, false)), Some(vec![false, false]));
    sessions.open(&a, 2, &[], &[], false, &opener(ONE)).unwrap();
    assert_eq!(sessions.must_answer(&a, 1, &of(true, true)), None);
}

#[test]
fn sessions_end_with_the_connection_that_began_them() {
    let mut sessions = ShareSessions::new(2);
    for (member, connection) in [("a", ONE), ("b", TWO)] {
        sessions.open(&key(member), 0, &[orders(0)], &[], false, &opener(connection)).unwrap();
    }
    let full = sessions.open(&key("c"), 0, &[], &[], false, &opener(ONE));
    assert_eq!(full, Err(ErrorCode::ShareSessionLimitReached));
    // The client opens the session again over a second connection. The end of the first connection
    // must not close it.
    sessions.open(&key("a"), 0, &[orders(1)], &[], false, &opener(TWO)).unwrap();
    assert_eq!(sessions.disconnected(ONE), []);
    let ended = sessions.disconnected(TWO);
    assert_eq!(ended.iter().map(|ended| ended.is_last).collect::<Vec<_>>(), [false, true]);
    assert_eq!((sessions.count(), sessions.disconnected(TWO)), (0, vec![]));
}

#[test]
fn session_takes_no_more_than_it_is_lent() {
    let mut sessions = ShareSessions::new(10);
    let memory = Memory::of(100_000);
    let share = || memory.share();
    let by = Opener { connection: ONE, share: &share };
    let parts: Vec<SharePart> = (0..4000).map(orders).collect();
    let (a, b) = (key("a"), key("b"));
    let full = Err(ErrorCode::ShareSessionLimitReached);
    assert_eq!(sessions.open(&a, 0, &parts, &[], false, &by), full);
    assert_eq!((sessions.count(), memory.held()), (0, 0));
    assert!(sessions.open(&a, 0, &parts[..1000], &[], false, &by).is_ok());
    let held = memory.held();
    assert!(held > 1000 * size_of::<(SharePart, bool)>() as u64, "{held}");
    assert_eq!(sessions.open(&a, 1, &parts[1000..], &[], false, &by), full, "nor does it grow");
    assert_eq!(sessions.open(&b, 0, &parts[..1000], &[], false, &by).map(|_| ()), Ok(()));
    assert_eq!(memory.held(), 2 * held);
    assert!(sessions.work_bytes(&a) > 1000 * 500 && sessions.work_bytes(&key("c")) == 0);
    // What it forgets and what it ends with goes back.
    assert!(sessions.open(&a, 1, &[], &parts[..900], false, &by).is_ok());
    assert!(memory.held() < held + held / 5);
    let long = MemberKey { group: Text::from("g".repeat(32_000)), member: Text::from("a") };
    let before = memory.held();
    assert!(sessions.open(&long, 0, &[], &[], false, &by).is_ok());
    assert!(memory.held() >= before + 32_000, "a group's name counts");
    assert_eq!((sessions.disconnected(ONE).len(), memory.held()), (3, 0));
}

#[test]
fn acknowledgements_that_cannot_be_meant() {
    let of = |first, last, types: &[i8]| {
        vec![Acknowledgement { first: Offset(first), last: Offset(last), types: types.to_vec() }]
    };
    let sound = |batches: &[Acknowledgement]| are_sound(batches, 2, true);
    assert!(sound(&of(3, 5, &[1])) && sound(&of(3, 5, &[0, 1, 4])) && sound(&[]));
    assert!(!sound(&of(5, 3, &[1])), "backwards");
    assert!(!sound(&of(3, 5, &[])) && !sound(&of(3, 5, &[1, 2])), "as many types as records");
    assert!(!sound(&of(i64::MIN, i64::MAX, &[1, 2])));
    assert!(!sound(&of(3, 5, &[5])) && !sound(&of(3, 5, &[-1])));
    assert!(!are_sound(&of(3, 5, &[4]), 2, false) && !are_sound(&of(3, 5, &[4]), 1, true));
    let overlapping = [of(3, 5, &[1]), of(4, 6, &[1])].concat();
    assert!(!sound(&overlapping));
}

#[test]
fn a_groups_own_settings_within_the_brokers_bounds() {
    const GROUP: i8 = 32;
    let mut fixture = Fixture::new();
    let of = |fixture: &Fixture| ShareGroupSettings::of("g", &fixture.image, &fixture.config);
    let standard = of(&fixture);
    assert_eq!((standard.lock, standard.deliveries_max), (DurationMs(30_000), 5));
    assert_eq!((standard.in_flight_max, standard.may_renew), (2_000, true));
    assert_eq!((standard.reset, standard.read_committed), (ShareReset::Latest, false));
    fixture.add(&[
        config(GROUP, "g", "share.record.lock.duration.ms", "20000"),
        config(GROUP, "g", "share.delivery.count.limit", "25"),
        config(GROUP, "g", "share.isolation.level", "read_committed"),
        config(GROUP, "g", "share.renew.acknowledge.enable", "false"),
        config(GROUP, "g", "share.auto.offset.reset", "by_duration:P1DT2H3M4.5S"),
    ]);
    let own = of(&fixture);
    assert_eq!((own.lock, own.deliveries_max, own.read_committed), (DurationMs(20_000), 10, true));
    assert!(!own.may_renew);
    assert_eq!(own.reset, ShareReset::ByDuration(DurationMs(93_784_500)));
}
