//! What expressions may take.

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
    Resolving { group: "g".into(), patterns, image: image(&["a", "b", "c"]) }
}

#[test]
fn expressions_that_match_the_same_hold_it_once() {
    let topics = resolving(&["[a-c]", "a|b|c", "a"]).run();
    assert!(Arc::ptr_eq(&topics.by_pattern["[a-c]"], &topics.by_pattern["a|b|c"]));
    assert_eq!(topics.by_pattern["a"].len(), 1);
}

#[test]
fn what_there_is_no_room_for_stays_unresolved_and_the_others_do_not() {
    let topics = resolving(&["a|b", "a|b|c", "c", "[ab]"]).run_within(3);
    let resolved: Vec<&str> = topics.by_pattern.keys().map(|pattern| pattern.as_str()).collect();
    assert_eq!(resolved, ["[ab]", "a|b", "c"]);
}

#[test]
fn a_group_has_no_more_expressions_than_it_may() {
    let mut group = ConsumerGroup::new("g".into());
    let with = |id: String, pattern: String| {
        let mut member = ConsumerMember::new(id.into());
        member.regex = Some(pattern.into());
        member
    };
    for number in 0..EXPRESSIONS_MAX {
        let member = with(format!("m{number}"), format!("t{number}"));
        check(&group, &member).expect("there is room");
        group.put(member);
    }
    let refused = check(&group, &with("more".into(), "more".into())).expect_err("there is none");
    assert_eq!(refused.code, ErrorCode::InvalidRegularExpression);
    check(&group, &with("same".into(), "t7".into())).expect("the same as somebody's");
}
