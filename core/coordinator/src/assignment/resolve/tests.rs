//! How much resolved expressions hold.

use barnabas_base::{LeaderEpoch, Offset, TimestampMs, Uuid};
use barnabas_metadata::{Delta, Image, Provenance};
use barnabas_wire::messages::{MetadataRecord, TopicRecord};

use super::*;

fn image(names: &[&str]) -> Image {
    let mut delta = Delta::new(Image::default());
    for (n, name) in names.iter().enumerate() {
        let topic_id = Uuid(std::array::from_fn(|at| (at + n + 1) as u8));
        let record = TopicRecord { name: (*name).into(), topic_id, ..Default::default() };
        delta.replay(&MetadataRecord::Topic(record)).expect("a topic");
    }
    let (last_epoch, last_timestamp) = (LeaderEpoch(1), TimestampMs(0));
    delta.advance(Provenance { end: Offset(1), last_epoch, last_timestamp });
    delta.apply().0
}

fn resolving(patterns: &[&str]) -> Resolving {
    let patterns = patterns.iter().map(|pattern| Text::from(*pattern)).collect();
    Resolving { group: "g".into(), patterns, image: image(&["a", "b", "c"]), describable: None }
}

#[test]
fn expressions_that_match_the_same_hold_it_once() {
    let topics = resolving(&["[a-c]", "a|b|c", "a"]).run();
    assert!(Arc::ptr_eq(&topics.by_pattern["[a-c]"], &topics.by_pattern["a|b|c"]));
    assert_eq!(topics.by_pattern["a"].len(), 1);
}

#[test]
fn topics_that_the_client_may_not_describe_are_not_matched() {
    let describable = Some(Describable::new(|name| name != "b"));
    let topics = Resolving { describable, ..resolving(&[".*", "b", "a|b"]) }.run();
    let names = |pattern: &str| topics.by_pattern[pattern].iter().map(Text::as_str).collect::<Vec<_>>();
    assert_eq!((names(".*"), names("b"), names("a|b")), (vec!["a", "c"], vec![], vec!["a"]));
}

#[test]
fn what_there_is_no_room_for_stays_unresolved_and_the_others_do_not() {
    let topics = resolving(&["a|b", "a|b|c", "c", "[ab]"]).run_within(3);
    let resolved: Vec<&str> = topics.by_pattern.keys().map(|pattern| pattern.as_str()).collect();
    assert_eq!(resolved, ["[ab]", "a|b", "c"]);
}
