//! Units, and what of them is remembered.

use super::*;

fn id(n: u64) -> Id {
    Id::of(Some(&Value::Ulong(n))).expect("an id")
}

#[test]
fn ids_of_different_types_differ_and_a_missing_one_is_none() {
    let text = Id::of(Some(&Value::string("a")));
    assert_ne!(text, Id::of(Some(&Value::Binary(Bytes::from_static(b"a")))));
    assert_eq!(text, Id::of(Some(&Value::string("a"))));
    assert_eq!(Id::of(None), None);
    assert_eq!(Id::of(Some(&Value::Int(1))), None);
}

#[test]
fn what_is_written_is_read_and_the_oldest_unit_is_forgotten() {
    let mut written = State::default();
    let mut topic = BTreeMap::new();
    for unit in 0..SLOTS + 3 {
        let record = written.record(&[id(2 * unit), id(2 * unit + 1)]);
        topic.insert(record.key.expect("a key"), record.value);
        written.committed(vec![id(2 * unit), id(2 * unit + 1)]);
    }
    assert_eq!(topic.len() as u64, SLOTS);
    let mut read = State::default();
    topic.into_values().for_each(|value| read.take("t", value).expect("ours"));
    for state in [&read, &written] {
        assert!(!state.knows(id(5)) && state.knows(id(6)) && state.knows(id(2 * (SLOTS + 2))));
        assert_eq!(state.next(), SLOTS + 3);
    }
}

#[test]
fn records_that_are_not_ours_are_an_error() {
    for value in [&b""[..], b"\x02\0\0\0\0\0\0\0\0", b"\x01\0\0\0\0\0\0\0\0abc"] {
        assert!(State::default().take("t", Some(Bytes::from_static(value))).is_err());
    }
    assert!(State::default().take("t", None).is_ok());
}

#[test]
fn ids_of_the_unit_before_a_run_are_carried_by_the_units_of_the_run() {
    let ids = |text: &str| vec![Id::of(Some(&Value::string(text))).expect("an id")];
    let (mut state, now) = (State::default(), Instant::now());
    state.doubt(now);
    assert_eq!(state.with_doubted(Vec::new()), [], "there was none before");
    state.committed(ids("doubted"));
    state.doubt(now);
    for unit in 0..3 * SLOTS {
        let carried = state.with_doubted(ids(&unit.to_string()));
        assert_eq!(carried.len(), 2);
        state.committed(carried);
    }
    assert!(state.knows(ids("doubted")[0]));
    assert!(!state.knows(ids("5")[0]));
    state.doubted = None;
    for unit in 0..=SLOTS {
        state.committed(state.with_doubted(ids(&unit.to_string())));
    }
    assert!(!state.knows(ids("doubted")[0]), "its last unit is gone");
    state.doubt(now.checked_sub(DOUBTED_FOR).expect("an earlier moment"));
    assert_eq!(state.with_doubted(Vec::new()), [], "it was long ago");
}
