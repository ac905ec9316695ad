use super::*;
use crate::testing::{carried, versions};
use barnabas_wire::messages::describe_log_dirs_request::DescribableLogDirTopic;

fn directories() -> Vec<Directory> {
    let replica = |topic: &str, partition, is_future| Replica {
        topic: topic.into(),
        partition: PartitionIndex(partition),
        size_bytes: 100,
        offset_lag: 0,
        is_future,
    };
    let good = Directory {
        path: "/d1".into(),
        is_offline: false,
        is_cordoned: true,
        total_bytes: Some(1000),
        usable_bytes: None,
        partitions: vec![replica("b", 0, false), replica("a", 1, false), replica("a", 0, true)],
    };
    let failed = Directory { path: "/d2".into(), is_offline: true, ..good.clone() };
    vec![good, failed]
}

#[test]
fn every_version_shows_the_directories() {
    for version in versions::<DescribeLogDirsResponse>() {
        let wanted = plan(DescribeLogDirsRequest { topics: None, ..DescribeLogDirsRequest::default() });
        let response = carried(whole(&wanted, directories(), version), version);
        let [good, failed] = &response.results[..] else { panic!("two directories") };
        let topics: Vec<_> = good.topics.iter().map(|topic| (&*topic.name, topic.partitions.len())).collect();
        assert_eq!(topics, [("a", 2), ("b", 1)]);
        assert_eq!((good.total_bytes, good.usable_bytes), (if version >= 4 { 1000 } else { -1 }, -1));
        assert_eq!(good.is_cordoned, version >= 5);
        assert_eq!((failed.error_code, failed.topics.len(), &*failed.log_dir), (56, 0, "/d2"));
    }
}

#[test]
fn only_what_is_asked_for_is_shown() {
    let topic = DescribableLogDirTopic { topic: "a".into(), partitions: vec![1, 7], ..Default::default() };
    let wanted = plan(DescribeLogDirsRequest { topics: Some(vec![topic]), ..Default::default() });
    let response = whole(&wanted, directories(), 5);
    assert_eq!(response.results[0].topics.len(), 1);
    assert_eq!(response.results[0].topics[0].partitions.len(), 1);
    let nothing = plan(DescribeLogDirsRequest { topics: Some(vec![]), ..Default::default() });
    assert_eq!(whole(&nothing, directories(), 5).results[0].topics, []);
}

#[test]
fn long_answers_are_made_in_pieces() {
    let wanted = plan(DescribeLogDirsRequest { topics: None, ..Default::default() });
    assert!(matches!(respond(&wanted, directories(), 5), Response::Whole(_)));
    let mut directories = directories();
    let replica = directories[0].partitions[0].clone();
    directories[0].partitions = vec![replica; LARGE_MIN];
    assert!(matches!(respond(&wanted, directories, 5), Response::Large(_)));
}

#[test]
fn memory_refusal_is_in_the_field_that_the_version_has_for_it() {
    for version in versions::<DescribeLogDirsResponse>() {
        let response = carried(refuse(["/d1".into(), "/d2".into()], version), version);
        let codes: Vec<i16> = response.results.iter().map(|result| result.error_code).collect();
        let is_at_top = version >= 3;
        assert_eq!((response.error_code, codes), if is_at_top { (7, vec![]) } else { (0, vec![7, 7]) });
    }
}
