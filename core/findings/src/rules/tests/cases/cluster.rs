//! C.

use super::Case;
use crate::facts::{Config, Source, Topic};
use crate::rules::tests::build::{configs_of, figures_of, node, partition, topic};

pub const CASES: &[Case] = &[
    Case {
        id: "C1",
        plant: |facts| {
            facts.quorum.as_mut().expect("a quorum").voters.pop();
        },
        sentences: &["cluster: the metadata quorum has 2 voters: it survives 0 failures"],
        commands: &[
            "barnabas metadata-quorum --bootstrap-server h:1 remove-controller --controller-id 2 --controller-directory-id dir-2",
        ],
    },
    Case {
        id: "C2",
        plant: |facts| {
            let voters = &mut facts.quorum.as_mut().expect("a quorum").voters;
            (voters[1].behind_ms, voters[2].behind_ms) = (Ok(Some(12_000)), Ok(None));
        },
        sentences: &[
            "node 2: voter 2 last caught up 12 s ago",
            "node 3: voter 3 has not caught up since node 1 leads",
        ],
        commands: &[],
    },
    Case {
        id: "C3",
        plant: |facts| partition(facts, "orders", 0).leader = Some(2),
        sentences: &["cluster: 1 of 3 partitions (33 %) are led by another than their preferred replica"],
        commands: &[
            "barnabas leader-election --bootstrap-server h:1 --election-type preferred --all-topic-partitions",
        ],
    },
    Case {
        id: "C4",
        plant: |facts| {
            facts.nodes.truncate(2);
            let mut skewed = topic("skewed", 10);
            for partition in &mut skewed.partitions {
                (partition.replicas, partition.isr) = (vec![1], vec![1]);
            }
            facts.topics = Ok(vec![skewed]);
        },
        sentences: &[
            "cluster: broker 1 has 10 replicas, the mean is 5.0; broker 1 has 10 leaders, the mean is 5.0; the plan changes 5 partitions",
        ],
        commands: &[
            r#"echo '{"version":1,"partitions":[{"topic":"skewed","partition":0,"replicas":[2]},{"topic":"skewed","partition":1,"replicas":[2]},{"topic":"skewed","partition":2,"replicas":[2]},{"topic":"skewed","partition":3,"replicas":[2]},{"topic":"skewed","partition":4,"replicas":[2]}]}' | barnabas reassign-partitions --bootstrap-server h:1 --execute --additional --reassignment-json-file /dev/stdin"#,
        ],
    },
    Case {
        id: "C5",
        plant: |facts| {
            facts.nodes[1].rack = Some("r1".to_owned());
            let first = partition(facts, "orders", 0);
            (first.replicas, first.isr) = (vec![1, 2], vec![1, 2]);
        },
        sentences: &["topic orders: 1 partition with all replicas in rack r1"],
        commands: &[
            r#"echo '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,3]}]}' | barnabas reassign-partitions --bootstrap-server h:1 --execute --additional --reassignment-json-file /dev/stdin"#,
        ],
    },
    Case {
        id: "C6",
        plant: |facts| {
            let first = partition(facts, "orders", 0);
            (first.isr, first.was_under_replicated) = (vec![1], true);
            let second = partition(facts, "orders", 1);
            (second.leader, second.isr, second.was_under_replicated) = (None, vec![2, 3], true);
        },
        sentences: &[
            "topic orders: no leader: orders-1. They take and give no records",
            "topic orders: fewer replicas in sync than min.insync.replicas=2: orders-0. They refuse acks=all",
            "node 1: missing from the ISR of 1 partition (orders-1): it runs and lags",
            "node 2: missing from the ISR of 1 partition (orders-0): it runs and lags",
            "node 3: missing from the ISR of 1 partition (orders-0): it runs and lags",
        ],
        commands: &[],
    },
    Case {
        id: "C7",
        plant: |facts| {
            let figures = figures_of(facts, 1);
            (figures.isr_shrinks, figures.isr_expands) = (4.0, 3.0);
        },
        sentences: &["node 2: 4 ISR shrinks and 3 expansions in 10 s"],
        commands: &[],
    },
    Case {
        id: "C8",
        plant: |facts| figures_of(facts, 0).unclean_elections_total = 2.0,
        sentences: &["cluster: 2 unclean leader elections since the controller started"],
        commands: &[],
    },
    Case {
        id: "C9",
        plant: |facts| {
            for node in &mut facts.nodes {
                node.features.as_mut().expect("features").finalized.insert("metadata.version".to_owned(), 20);
            }
            let last = facts.nodes[2].features.as_mut().expect("features");
            last.supported.insert("group.version".to_owned(), 1);
            facts.nodes[0]
                .features
                .as_mut()
                .expect("features")
                .supported
                .insert("group.version".to_owned(), 2);
        },
        sentences: &[
            "cluster: nodes of different versions: they support group.version up to 0 and up to 2",
            "cluster: features below what all nodes support: metadata.version is 20 of 25",
        ],
        commands: &["barnabas features --bootstrap-server h:1 upgrade --feature metadata.version=25"],
    },
    Case {
        id: "C10",
        plant: |facts| {
            super::super::build::set(facts, "orders", "leader.replication.throttled.replicas", "0:1");
            let rate = Config { value: Some("1000".to_owned()), source: Source::DynamicBroker };
            configs_of(facts, 1).insert("leader.replication.throttled.rate".to_owned(), rate);
        },
        sentences: &[
            "topic orders: leader.replication.throttled.replicas set, and nothing is being reassigned",
            "node 2: leader.replication.throttled.rate set, and nothing is being reassigned",
        ],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --delete-config leader.replication.throttled.replicas",
            "barnabas configs --bootstrap-server h:1 --alter --entity-type brokers --entity-name 2 --delete-config leader.replication.throttled.rate",
        ],
    },
    Case {
        id: "C11",
        plant: |facts| {
            facts.nodes[2].is_fenced = true;
            let mut gone = node(9);
            gone.is_fenced = true;
            facts.nodes.push(gone);
        },
        sentences: &[
            "node 3: broker 3 is fenced: 3 replicas of it serve nothing until it runs again",
            "node 9: broker 9 is registered, fenced and holds no replica",
        ],
        commands: &["barnabas cluster --bootstrap-server h:1 unregister --id 9"],
    },
    Case {
        id: "C12",
        plant: |facts| {
            let other = Config { value: Some("9".to_owned()), source: Source::DynamicBroker };
            configs_of(facts, 2).insert("num.partitions".to_owned(), other);
        },
        sentences: &[
            "setting num.partitions: num.partitions differs between the nodes: 3 on [1, 2], 9 on [3]",
        ],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type brokers --entity-name 3 --delete-config num.partitions",
        ],
    },
    Case {
        id: "C13",
        plant: |facts| facts.topics.as_mut().expect("topics").push(internal()),
        sentences: &["topic __consumer_offsets: 1 partition with one replica, in a cluster of 3 brokers"],
        commands: &[
            r#"echo '{"version":1,"partitions":[{"topic":"__consumer_offsets","partition":0,"replicas":[1,2,3]}]}' | barnabas reassign-partitions --bootstrap-server h:1 --execute --additional --reassignment-json-file /dev/stdin"#,
        ],
    },
];

fn internal() -> Topic {
    let mut offsets = topic("__consumer_offsets", 1);
    offsets.is_internal = true;
    (offsets.partitions[0].replicas, offsets.partitions[0].isr) = (vec![1], vec![1]);
    offsets
}
