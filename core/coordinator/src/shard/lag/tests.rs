use barnabas_base::{ErrorCode, LeaderEpoch};

use super::*;
use crate::CommittedOffset;

const TOPIC: TopicId = barnabas_base::Uuid([1; 16]);

fn place(partition: i32) -> Place {
    (TOPIC, PartitionIndex(partition))
}

fn position(partition: i32, offset: i64, done: u64) -> Position {
    Position { topic: "t".into(), at: place(partition), offset: Offset(offset), done }
}

fn ends(log_start: i64, last_stable: i64, high_watermark: i64) -> Ends {
    let [log_start, last_stable, high_watermark] = [log_start, last_stable, high_watermark].map(Offset);
    Ends { high_watermark, last_stable, log_start }
}

fn judge(survey: &mut LagSurvey, group: &str, positions: Vec<Position>) {
    survey.judge(group.into(), GroupKind::Consumer, positions, |(_, partition)| {
        (partition.get() < 2).then(|| ends(4, 8, 10))
    });
}

#[test]
fn done_records_are_no_lag_and_lag_is_never_negative() {
    assert_eq!(position(0, 10, 0).lag(Offset(15)), 5);
    assert_eq!(position(0, 10, 3).lag(Offset(15)), 2);
    assert_eq!(position(0, 10, 9).lag(Offset(15)), 0);
    assert_eq!(position(0, 20, 0).lag(Offset(15)), 0, "a log that was truncated");
}

#[test]
fn lag_is_summed_over_partitions_whose_ends_are_known() {
    let mut survey = LagSurvey::new(Whole::None);
    judge(&mut survey, "g", vec![position(0, 1, 0), position(1, 9, 0), position(2, 0, 0)]);
    // The first record that is there is the fourth.
    assert_eq!(survey.wanted_times(), [(place(0), Offset(4)), (place(1), Offset(9))]);
    let time_of = |(at, _): (Place, Offset)| (at == place(0)).then_some(TimestampMs(400));
    let sample = survey.finish(time_of, TimestampMs(1_000));
    let [lag] = &sample.shown[..] else { panic!("{sample:?}") };
    assert_eq!((lag.records, lag.stable, lag.most), (10, 7, 9));
    assert_eq!(lag.age, Some(Duration::from_millis(600)));
    assert_eq!((sample.unknown, sample.records[&GroupKind::Consumer]), (1, 10));
    assert_eq!(sample.lagging[&GroupKind::Consumer], 1);
}

#[test]
fn group_without_lag_has_no_age_and_unknown_times_none() {
    let mut survey = LagSurvey::new(Whole::None);
    judge(&mut survey, "behind", vec![position(0, 5, 0)]);
    judge(&mut survey, "done", vec![position(0, 10, 0)]);
    let sample = survey.finish(|_| None, TimestampMs(1_000));
    let ages: Vec<_> = sample.shown.iter().map(|lag| (&*lag.group, lag.age)).collect();
    assert_eq!(ages, [("behind", None), ("done", Some(Duration::ZERO))]);
}

#[test]
fn largest_lags_are_shown_and_the_others_counted() {
    let mut survey = LagSurvey::new(Whole::None);
    let groups = 3 * GROUPS_SHOWN;
    for number in 0..groups {
        // Every other group lags by one.
        judge(&mut survey, &format!("g-{number:05}"), vec![position(0, 10 - (number % 2) as i64, 0)]);
    }
    judge(&mut survey, &"n".repeat(NAME_BYTES_MAX + 1), vec![position(0, 0, 0)]);
    survey.wanted_times();
    let sample = survey.finish(|_| None, TimestampMs(0));
    assert_eq!(sample.shown.len(), GROUPS_SHOWN);
    assert!(sample.shown.iter().all(|lag| lag.records == 1));
    assert_eq!(sample.left_out, (groups - GROUPS_SHOWN + 1) as u64);
    assert_eq!(sample.records[&GroupKind::Consumer], (groups / 2 + 10) as u64, "all are in the sum");
}

#[test]
fn group_that_was_asked_for_is_shown_whole() {
    let mut survey = LagSurvey::new(Whole::One("g".into()));
    judge(&mut survey, "other", vec![position(0, 1, 0)]);
    judge(&mut survey, "g", vec![position(0, 10, 0), position(1, 7, 0), position(2, 0, 0)]);
    let sample = survey.finish(|_| Some(TimestampMs(100)), TimestampMs(150));
    let known: Vec<_> = sample.whole.iter().map(|each| (each.partition, each.records, each.age)).collect();
    let (none, some) = (Some(Duration::ZERO), Some(Duration::from_millis(50)));
    assert_eq!(known, [(0, 0, none), (1, 3, some)]);
    assert!(sample.whole.iter().all(|each| &*each.group == "g"));
}

#[test]
fn each_group_but_share_groups_is_shown_whole_up_to_a_bound() {
    let mut survey = LagSurvey::new(Whole::Each);
    let mut take = |group: &str, kind, partitions: i32| {
        let positions = (0..partitions).map(|partition| position(partition, 4, 0)).collect();
        survey.judge(group.into(), kind, positions, |_| Some(ends(0, 10, 10)));
    };
    take("classic", GroupKind::Classic, 2);
    take("share", GroupKind::Share, 2);
    take("large", GroupKind::Consumer, PARTITIONS_SHOWN as i32);
    take("late", GroupKind::Consumer, 1);
    let sample = survey.finish(|_| None, TimestampMs(150));
    let of = |group: &str| sample.whole.iter().filter(|each| &*each.group == group).count();
    assert_eq!((of("classic"), of("share"), of("large"), of("late")), (2, 0, PARTITIONS_SHOWN - 2, 0));
    assert_eq!((sample.whole[0].offset, sample.whole[0].records), (Offset(4), 6));
}

#[test]
fn offset_of_an_earlier_topic_of_the_name_is_unknown() {
    let committed = |topic_id| CommittedOffset {
        topic: "t".into(),
        topic_id,
        partition: PartitionIndex(1),
        offset: Offset(3),
    };
    let look = GroupLook {
        group: "g".into(),
        kind: GroupKind::Classic,
        state: "Empty",
        committed: vec![committed(TOPIC), committed(TopicId::ZERO), committed(TopicId::from_random([9; 16]))],
        shared: Vec::new(),
    };
    let mut survey = LagSurvey::new(Whole::None);
    assert_eq!(survey.committed(&look, |_| Some(TOPIC)), [position(1, 3, 0), position(1, 3, 0)]);
    assert!(survey.committed(&look, |_| None).is_empty());
    let sample = survey.finish(|_| None, TimestampMs(0));
    assert_eq!((sample.unknown, sample.offsets, sample.states[&(GroupKind::Classic, "Empty")]), (4, 6, 2));
}

#[test]
fn share_group_stands_at_its_start_unless_the_state_is_not_known() {
    let mut survey = LagSurvey::new(Whole::None);
    let summary = |start| {
        ShareStateResponse::Summary(Ok(ShareStateSummary {
            state_epoch: 1,
            leader_epoch: LeaderEpoch(1),
            start_offset: start,
            delivery_complete_count: 4,
        }))
    };
    let topic = Text::from("t");
    assert_eq!(survey.shared(&topic, place(0), Some(&summary(Offset(6)))), Some(position(0, 6, 4)));
    assert_eq!(survey.shared(&topic, place(0), Some(&summary(Offset::NONE))), None);
    let moved = ShareStateResponse::Summary(Err(ErrorCode::NotCoordinator.into()));
    assert_eq!(survey.shared(&topic, place(0), Some(&moved)), None);
    assert_eq!(survey.shared(&topic, place(0), None), None);
    assert_eq!(survey.finish(|_| None, TimestampMs(0)).unknown, 2);
}
