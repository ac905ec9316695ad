//! Plans, proposals and throttles as Kafka's tool reads and makes them.

use super::plan::{Plan, line, topics};
use super::proposal::{Broker, Start, assign};
use super::throttles::{moves, throttled};
use super::{Ongoing, execution, log_dirs, verification};
use std::collections::{BTreeMap, BTreeSet};

fn partition(number: i32) -> super::Partition {
    ("orders".to_owned(), number)
}

#[test]
fn plans_are_read_and_written_as_kafkas() {
    let text = r#"{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[2,1],"log_dirs":["/d","any"]}]}"#;
    let plan = Plan::parse_for_execution(text).expect("a plan");
    assert_eq!(plan.partitions, [(partition(0), vec![2, 1])]);
    assert_eq!(plan.log_dirs, BTreeMap::from([((2, "orders".to_owned(), 0), "/d".to_owned())]));
    let partitions = plan.partitions.into_iter().collect();
    assert_eq!(line(&partitions), text.replace("/d", "any"));
}

#[test]
fn plans_that_kafka_refuses_are_refused() {
    for (text, why) in [
        ("{}", "Partition reassignment list cannot be empty"),
        (r#"{"version":2}"#, "Not supported version field value 2"),
        (
            r#"{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}"#,
            "Partition replica list cannot be empty",
        ),
        (
            r#"{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}"#,
            "Partition replica lists may not contain duplicate entries: t-0 contains multiple entries for 1",
        ),
        (
            r#"{"partitions":[{"topic":"t","partition":0,"replicas":[1]},{"topic":"t","partition":0,"replicas":[2]}]}"#,
            "Partition reassignment contains duplicate topic partitions: t-0",
        ),
        (
            r#"{"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["/a"]}]}"#,
            "Size of replicas list [1, 2] is different from size of log dirs list [/a] for partition t-0",
        ),
    ] {
        let refused = Plan::parse_for_execution(text).expect_err(text).to_string();
        assert_eq!(refused, format!("Error: {why}"));
    }
    let twice = topics(r#"{"topics":[{"topic":"a"},{"topic":"a"}]}"#).expect_err("twice").to_string();
    assert_eq!(twice, "Error: List of topics to reassign contains duplicate entries: [a]");
}

fn brokers(racks: &[Option<&str>]) -> Vec<Broker> {
    let broker =
        |(at, rack): (usize, &Option<&str>)| Broker { id: at as i32 + 1, rack: rack.map(str::to_owned) };
    racks.iter().enumerate().map(broker).collect()
}

#[test]
fn proposals_spread_leaders_and_replicas() {
    let start = Start { leader: 0, shift: 0 };
    let proposed = assign(&brokers(&[None; 5]), 10, 3, &start).expect("enough brokers");
    // The table in the comment of Kafka's AdminUtils, of five brokers and ten partitions.
    assert_eq!(proposed[..6], [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 1], [5, 1, 2], [1, 3, 4]]);
    let refused = assign(&brokers(&[None; 2]), 1, 3, &start).expect_err("too few").to_string();
    assert_eq!(
        refused,
        "Error: The target replication factor of 3 cannot be reached because only 2 broker(s) are registered or some brokers have all their \
         log directories cordoned."
    );
    let refused = assign(&[], 1, 1, &start).expect_err("none").to_string();
    assert_eq!(
        refused,
        "Error: All brokers are currently fenced, or have all their log directories cordoned."
    );
    assert_eq!(assign(&brokers(&[None]), 2, 1, &start).expect("one"), [[1], [1]]);
}

#[test]
fn proposals_put_replicas_into_different_racks() {
    let racks = [Some("a"), Some("a"), Some("b"), Some("b"), Some("c"), Some("c")];
    let brokers = brokers(&racks);
    for shift in 0..6 {
        for replicas in assign(&brokers, 12, 3, &Start { leader: 1, shift }).expect("enough brokers") {
            let used: BTreeSet<_> = replicas.iter().map(|id| racks[*id as usize - 1]).collect();
            assert_eq!(used.len(), 3, "{replicas:?}");
        }
        for replicas in assign(&brokers, 12, 5, &Start { leader: 1, shift }).expect("enough brokers") {
            assert_eq!(replicas.iter().collect::<BTreeSet<_>>().len(), 5, "{replicas:?}");
        }
    }
}

#[test]
fn throttles_name_sources_and_destinations() {
    let under_way = BTreeMap::from([(
        partition(1),
        Ongoing { replicas: vec![1, 2, 3], adding: vec![3], removing: vec![1] },
    )]);
    let proposed = BTreeMap::from([(partition(0), vec![2, 4]), (partition(1), vec![2, 5])]);
    let current = BTreeMap::from([(partition(0), vec![1, 2]), (partition(1), vec![1, 2, 3])]);
    let moves = moves(&under_way, &proposed, &current);
    assert_eq!(throttled(&moves, |of| &of.sources)["orders"], "0:1,0:2,1:1,1:2");
    assert_eq!(throttled(&moves, |of| &of.destinations)["orders"], "0:4,1:5");
}

#[test]
fn cancellation_passes_over_pure_additions() {
    let entry = |number| (partition(number), vec![1]);
    let plan = Plan { partitions: [3, 1, 0, 2].map(entry).into(), ..Plan::default() };
    let ongoing = |adding: &[i32], removing: &[i32]| Ongoing {
        replicas: vec![1, 2],
        adding: adding.to_vec(),
        removing: removing.to_vec(),
    };
    let under_way = BTreeMap::from([
        (partition(0), ongoing(&[2], &[1])),
        (partition(1), ongoing(&[2], &[])),
        (partition(2), ongoing(&[], &[2])),
        (partition(4), ongoing(&[2], &[1])),
    ]);
    let (cancelled, passed_over) = execution::cancellable(&plan, &under_way);
    assert_eq!(cancelled, [&partition(0), &partition(2)]);
    assert_eq!(passed_over, [&partition(1)]);
}

#[test]
fn verification_is_worded_as_kafkas() {
    assert_eq!(
        verification::done(&partition(0), &[1, 2], &[1, 2]),
        "Reassignment of partition orders-0 is completed."
    );
    assert_eq!(
        verification::done(&partition(0), &[1, 2], &[]),
        "There is no active reassignment of partition orders-0, but replica set is  rather than 1,2."
    );
    let replica = (1, "orders".to_owned(), 0);
    let words = |current: Option<&str>, future: Option<&str>| {
        let place =
            log_dirs::Place { current: current.map(str::to_owned), future: future.map(str::to_owned) };
        log_dirs::words(&replica, "/b", &place)
    };
    for (current, future, said) in [
        (Some("/b"), None, "Reassignment of replica orders-0-1 completed successfully."),
        (Some("/a"), Some("/b"), "Reassignment of replica orders-0-1 is still in progress."),
        (
            Some("/a"),
            Some("/c"),
            "Partition orders-0 on broker 1 is being moved to log dir /c instead of /b.",
        ),
        (Some("/a"), None, "Partition orders-0 on broker 1 is not being moved from log dir /a to /b."),
        (
            None,
            None,
            "Partition orders-0 is not found in any live log dir on broker 1. There is likely an offline log directory on the broker.",
        ),
    ] {
        assert_eq!(words(current, future), said);
    }
}
