use super::*;
use bytes::Bytes;

const PARTITIONS: i32 = 1;

/// A put of `bytes` bytes of value; `from` and `tag` in its name: `a1` is the first one of connection a.
fn put(name: &'static str, bytes: usize) -> Put<&'static str> {
    let record = Outgoing { value: Some(Bytes::from(vec![0; bytes])), ..Outgoing::default() };
    let from = Origin(u64::from(name.as_bytes()[0]));
    Put { tag: name, from, bytes: size_bytes(&record), record }
}

fn round(batching: &mut Batching<&'static str>) -> Vec<&'static str> {
    batching.next_round().map_or(Vec::new(), |(_, puts)| puts.iter().map(|put| put.tag).collect())
}

fn refused(code: ErrorCode) -> Result<(), ClientError> {
    Err(ClientError::refused("t-0", code.code(), None))
}

/// Each put that has its outcome, and the error's name.
fn outcomes(batching: &mut Batching<&'static str>) -> Vec<(&'static str, &'static str)> {
    let next = || batching.next_outcome();
    let name = |error: &Rc<ClientError>| error.code().map_or("other", ErrorCode::name);
    std::iter::from_fn(next)
        .map(|(put, outcome)| (put.tag, outcome.as_ref().err().map_or("", name)))
        .collect()
}

#[test]
fn first_put_goes_at_once_and_later_ones_together() {
    let mut batching = Batching::default();
    batching.add(put("a1", 10), PARTITIONS);
    assert_eq!(round(&mut batching), ["a1"]);
    for name in ["a2", "b1", "c1"] {
        batching.add(put(name, 10), PARTITIONS);
        assert_eq!(round(&mut batching), [""; 0], "one batch is under way");
    }
    batching.ended(0, Ok(()));
    assert_eq!(outcomes(&mut batching), [("a1", "")]);
    assert_eq!(round(&mut batching), ["a2", "b1", "c1"]);
    batching.ended(0, Ok(()));
    assert_eq!(outcomes(&mut batching), [("a2", ""), ("b1", ""), ("c1", "")]);
    assert_eq!((round(&mut batching), batching.busy()), (vec![], 0));
}

#[test]
fn full_batch_takes_connections_in_turn_and_keeps_their_order() {
    let mut batching = Batching::default();
    // Four of them fill a batch.
    for name in ["a1", "a2", "a3", "a4", "a5", "b1", "c1", "c2"] {
        batching.add(put(name, ROUND_BYTES / 4 - 100), PARTITIONS);
    }
    assert_eq!(
        round(&mut batching),
        ["a1", "b1", "c1", "a2"],
        "the one with many does not go first with all"
    );
    batching.ended(0, Ok(()));
    assert_eq!(round(&mut batching), ["c2", "a3", "a4", "a5"]);
}

#[test]
fn record_larger_than_a_batch_is_a_batch_alone() {
    let mut batching = Batching::default();
    batching.add(put("a1", 10), PARTITIONS);
    batching.add(put("b1", 2 * ROUND_BYTES), PARTITIONS);
    batching.add(put("c1", 10), PARTITIONS);
    for name in ["a1", "b1", "c1"] {
        assert_eq!(round(&mut batching), [name]);
        batching.ended(0, Ok(()));
    }
    batching.add(put("d1", RECORD_BYTES_MAX), PARTITIONS);
    assert_eq!(round(&mut batching), [""; 0], "it is not sent");
    let last = outcomes(&mut batching).pop();
    assert_eq!(last, Some(("d1", "MESSAGE_TOO_LARGE")));
}

/// Answers as a topic that takes batches of `bytes_max`, and no record of `poison`.
fn drain(
    batching: &mut Batching<&'static str>,
    bytes_max: usize,
    poison: &str,
) -> (Vec<&'static str>, usize) {
    let (mut written, mut rounds) = (Vec::new(), 0);
    while let Some((partition, puts)) = batching.next_round() {
        let (bytes, tags): (usize, Vec<_>) =
            (puts.iter().map(|put| put.bytes).sum(), puts.iter().map(|put| put.tag).collect());
        rounds += 1;
        batching.ended(
            partition,
            match () {
                () if bytes > bytes_max => refused(ErrorCode::MessageTooLarge),
                () if tags.contains(&poison) => refused(ErrorCode::InvalidRecord),
                () => {
                    written.extend(tags);
                    Ok(())
                }
            },
        );
    }
    (written, rounds)
}

#[test]
fn too_large_record_gets_its_error_alone() {
    let mut batching = Batching::default();
    for name in ["a1", "b1", "c1", "d1", "a2", "b2", "c2", "d2"] {
        batching.add(put(name, if name == "c1" { 5000 } else { 100 }), PARTITIONS);
    }
    let (written, rounds) = drain(&mut batching, 3000, "");
    assert_eq!(written, ["a1", "b1", "d1", "a2", "b2", "c2", "d2"], "in their order");
    assert!(rounds <= 8, "{rounds}");
    let failed: Vec<_> = outcomes(&mut batching).into_iter().filter(|one| !one.1.is_empty()).collect();
    assert_eq!(failed, [("c1", "MESSAGE_TOO_LARGE")]);

    for name in ["a3", "c3", "b3", "d3"] {
        batching.add(put(name, if name == "c3" { 5000 } else { 100 }), PARTITIONS);
    }
    assert_eq!(
        drain(&mut batching, 3000, ""),
        (vec!["a3", "b3", "d3"], 3),
        "the next one goes alone at once"
    );
}

#[test]
fn invalid_record_gets_its_error_alone_and_later_puts_stay_behind() {
    let mut batching = Batching::default();
    for name in ["a1", "a2", "a3", "a4", "b1"] {
        batching.add(put(name, 100), PARTITIONS);
    }
    assert_eq!(round(&mut batching), ["a1", "b1", "a2", "a3", "a4"]);
    batching.add(put("a5", 100), PARTITIONS);
    batching.ended(0, refused(ErrorCode::InvalidRecord));
    let (written, _) = drain(&mut batching, usize::MAX, "a2");
    assert_eq!(written, ["a1", "b1", "a3", "a4", "a5"]);
    let failed: Vec<_> = outcomes(&mut batching).into_iter().filter(|one| !one.1.is_empty()).collect();
    assert_eq!(failed, [("a2", "INVALID_RECORD")]);
}

#[test]
fn batches_become_as_large_as_the_topic_takes() {
    let mut batching = Batching::default();
    let names = ["a1", "b1", "c1", "d1", "e1", "f1", "g1", "h1"];
    names.into_iter().for_each(|name| batching.add(put(name, 960), PARTITIONS));
    assert_eq!(drain(&mut batching, 4500, "").0, names);
    names.into_iter().for_each(|name| batching.add(put(name, 960), PARTITIONS));
    assert_eq!(drain(&mut batching, 4500, ""), (names.to_vec(), 2), "none is refused any more");
}

#[test]
fn error_of_the_topic_is_that_of_the_batch() {
    let mut batching = Batching::default();
    batching.add(put("a1", 10), PARTITIONS);
    batching.add(put("b1", 10), PARTITIONS);
    assert_eq!(round(&mut batching), ["a1", "b1"]);
    batching.add(put("c1", 10), PARTITIONS);
    batching.ended(0, refused(ErrorCode::TopicAuthorizationFailed));
    let name = "TOPIC_AUTHORIZATION_FAILED";
    assert_eq!(outcomes(&mut batching), [("a1", name), ("b1", name)]);
    assert_eq!(round(&mut batching), ["c1"]);
}

#[test]
fn partition_that_cannot_be_written_answers_those_that_wait_for_it() {
    let mut batching = Batching::default();
    // `d` is 100: partition 0 of two; `a` and `c` are 97 and 99.
    batching.add(put("a1", 10), 2);
    batching.add(put("d1", 10), 2);
    assert_eq!((round(&mut batching), round(&mut batching)), (vec!["a1"], vec!["d1"]));
    batching.add(put("c1", 10), 2);
    batching.add(put("d2", 10), 2);
    batching.ended(1, refused(ErrorCode::NotEnoughReplicas));
    let name = "NOT_ENOUGH_REPLICAS";
    assert_eq!(outcomes(&mut batching), [("a1", name), ("c1", name)]);
    batching.ended(0, Ok(()));
    assert_eq!(round(&mut batching), ["d2"]);
    batching.fail_all(&Rc::new(ClientError::Invalid("gone".to_owned())));
    assert_eq!(outcomes(&mut batching), [("d1", ""), ("d2", "other")]);
    assert_eq!((round(&mut batching), batching.busy()), (vec![], 0));
}

#[test]
fn puts_with_a_key_go_where_kafkas_clients_put_them() {
    let mut batching = Batching::default();
    let mut keyed = put("a1", 10);
    keyed.record.key = Some(Bytes::from_static(b"k"));
    batching.add(keyed, 3);
    let (partition, _) = batching.next_round().expect("one");
    assert_eq!(partition, (murmur2(b"k") & i32::MAX) % 3);
}
