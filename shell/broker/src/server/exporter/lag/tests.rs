use super::*;
use barnabas_base::Offset;

fn group(name: &str, records: u64) -> GroupLag {
    GroupLag {
        group: name.into(),
        kind: GroupKind::Consumer,
        records,
        stable: records,
        most: records,
        age: (records > 1).then_some(Duration::from_millis(1_500)),
    }
}

#[test]
fn the_page_says_what_is_known() {
    let sample = LagSample {
        states: [((GroupKind::Classic, "Empty"), 2), ((GroupKind::Share, "Stable"), 1)].into(),
        offsets: 7,
        records: [(GroupKind::Consumer, 9)].into(),
        lagging: [(GroupKind::Consumer, 2)].into(),
        shown: vec![group("a", 8), group("b \"x\"", 1)],
        left_out: 3,
        whole: vec![PartitionLag {
            group: "a".into(),
            topic: "t".into(),
            partition: 4,
            offset: Offset(2),
            records: 8,
            age: None,
        }],
        ..LagSample::default()
    };
    let mut lags = Lags::new().expect("a runtime");
    lags.newest = Some((barnabas_clock::now(), sample));
    let written = |group: Option<&Text>| {
        let mut page = Page::default();
        lags.write(&mut page, group);
        page.into_text()
    };
    let text = written(Some(&"a".into()));
    for line in [
        "kafka_server_group_coordinator_metrics_group_count{protocol=\"classic\"} 2\n",
        "kafka_server_group_coordinator_metrics_group_count{protocol=\"streams\"} 0\n",
        "kafka_server_group_coordinator_metrics_share_group_count{state=\"Stable\"} 1\n",
        "kafka_server_group_coordinator_metrics_streams_group_count{state=\"NotReady\"} 0\n",
        "kafka_server_group_coordinator_metrics_offset_count 7\n",
        "barnabas_groups_lag{protocol=\"consumer\"} 9\n",
        "barnabas_groups_lagging{protocol=\"consumer\"} 2\n",
        "barnabas_group_lag{group=\"a\",protocol=\"consumer\"} 8\n",
        "barnabas_group_lag{group=\"b \\\"x\\\"\",protocol=\"consumer\"} 1\n",
        "barnabas_group_lag_seconds{group=\"a\",protocol=\"consumer\"} 1.5\n",
        "barnabas_groups_lag_unlisted 3\n",
        "barnabas_group_partition_lag{group=\"a\",topic=\"t\",partition=\"4\"} 8\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(
        text.matches("\nbarnabas_group_lag_seconds{").count(),
        1,
        "an age that is not known is not shown"
    );
    assert!(!text.contains("barnabas_group_partition_lag_seconds"));
    assert!(!written(None).contains("barnabas_group_partition_lag"), "only where it is asked for");
}
