//! What `--describe` prints, to the tab, and which partitions its reports show.

use super::describe::{Moment, PARTITIONS_PER_ANSWER, Shown, topics};
use super::row::{Partition, REPORTS, Reassignment};
use crate::fake_broker::{fake_broker, nodes};
use barnabas_base::Uuid;
use barnabas_client::{Cluster, ClusterConfig};
use barnabas_wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult,
};
use barnabas_wire::messages::describe_topic_partitions_request::DescribeTopicPartitionsRequest;
use barnabas_wire::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
};
use barnabas_wire::messages::metadata_response::{
    MetadataResponse, MetadataResponsePartition, MetadataResponseTopic,
};
use barnabas_wire::{RequestBody, ResponseBody};

fn partition(leader: Option<i32>, isr: &[i32]) -> Partition {
    Partition { leader, replicas: vec![1, 2, 3], isr: isr.to_vec(), ..Partition::default() }
}

/// The flags that show it where two replicas must be in sync.
fn shown_by(partition: &Partition) -> Vec<&'static str> {
    REPORTS.iter().filter(|report| (report.shows)(partition, 2)).map(|report| report.flag).collect()
}

#[test]
fn each_report_shows_its_partitions() {
    const REPLICATED: &str = "under-replicated-partitions";
    const UNDER: &str = "under-min-isr-partitions";
    const AT: &str = "at-min-isr-partitions";
    const UNAVAILABLE: &str = "unavailable-partitions";
    assert_eq!(shown_by(&partition(Some(1), &[1, 2, 3])), Vec::<&str>::new());
    assert_eq!(shown_by(&partition(Some(1), &[1, 2])), [REPLICATED, AT]);
    assert_eq!(shown_by(&partition(Some(1), &[1])), [REPLICATED, UNDER]);
    assert_eq!(shown_by(&partition(None, &[1])), [REPLICATED, UNDER, UNAVAILABLE]);
    // Without a leader the partition takes no writes, whatever its ISR is.
    assert_eq!(shown_by(&partition(None, &[1, 2, 3])), [UNDER, UNAVAILABLE]);
}

#[test]
fn replicas_that_are_to_come_are_not_missed() {
    let mut moving = partition(Some(1), &[1, 2]);
    moving.replicas = vec![3, 4, 1, 2];
    let of = Reassignment { replicas: vec![3, 4, 1, 2], adding: vec![3, 4], removing: vec![1, 2] };
    moving.reassignment = Some(of);
    assert!(!shown_by(&moving).contains(&"under-replicated-partitions"));
    assert_eq!(
        moving.words("t"),
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 3,4,1,2\tIsr: 1,2\tAdding Replicas: 3,4\tRemoving Replicas: 1,2\tElr: N/A\tLastKnownElr: N/A"
    );
    // It was done between the two questions: who is in sync no more is missed.
    moving.replicas = vec![5, 6, 7];
    assert!(shown_by(&moving).contains(&"under-replicated-partitions"));
}

const DEFAULT: i8 = 5;
const STATIC: i8 = 4;
const OF_TOPIC: i8 = 1;

fn configs(asked: RequestBody) -> ResponseBody {
    let RequestBody::DescribeConfigs(asked) = asked else { panic!("{asked:?}") };
    let config = |(name, value, config_source): (&str, &str, i8)| DescribeConfigsResourceResult {
        name: name.into(),
        value: Some(value.into()),
        config_source,
        ..Default::default()
    };
    let all = [
        ("cleanup.policy", "delete", DEFAULT),
        ("min.insync.replicas", "2", STATIC),
        ("retention.ms", "1", OF_TOPIC),
    ];
    let told = asked.resources.iter().map(|resource| DescribeConfigsResult {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        configs: all.map(config).to_vec(),
        ..Default::default()
    });
    DescribeConfigsResponse { results: told.collect(), ..Default::default() }.into()
}

async fn described(address: &str, names: &[&str]) -> Vec<String> {
    let mut cluster = Cluster::new(ClusterConfig::new(address, "test"));
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    // Broker 3 has died.
    let moment = Moment { alive: [1, 2].into_iter().collect(), reassignments: Default::default() };
    let shown = Shown {
        reports: Vec::new(),
        overridden: false,
        partitions_per_answer: PARTITIONS_PER_ANSWER,
        may_be_gone: false,
        is_json: false,
    };
    let told = topics(&mut cluster, &names, &moment, &shown).await.expect("told");
    let lines = told.iter().map(|topic| {
        let rows = topic.partitions.iter().map(|row| row.words(&topic.name));
        std::iter::once(topic.words()).chain(rows).collect::<Vec<String>>()
    });
    lines.flatten().collect()
}

/// One partition for each answer.
fn page(asked: &DescribeTopicPartitionsRequest) -> ResponseBody {
    let names: Vec<&str> = asked.topics.iter().map(|topic| topic.name.as_str()).collect();
    let (name, index) =
        asked.cursor.as_ref().map_or((names[0], 0), |at| (at.topic_name.as_str(), at.partition_index));
    assert_eq!(names[0], name, "what was told is not asked for again");
    // "a" has two partitions, "b" one; of "b" the leader has died.
    let is_last = name == "b" || index == 1;
    let row = DescribeTopicPartitionsResponsePartition {
        partition_index: index,
        leader_id: if name == "b" { 3 } else { 1 },
        replica_nodes: vec![1, 2, 3],
        isr_nodes: vec![1],
        eligible_leader_replicas: Some(vec![2]),
        last_known_elr: Some(Vec::new()),
        ..Default::default()
    };
    let topic = DescribeTopicPartitionsResponseTopic {
        name: Some(name.into()),
        topic_id: Uuid([7; 16]),
        partitions: vec![row],
        ..Default::default()
    };
    let next = match (name, is_last) {
        (_, false) => Some((name, index + 1)),
        ("a", true) => Some(("b", 0)),
        _ => None,
    };
    let cursor = |(name, partition_index): (&str, i32)| Cursor {
        topic_name: name.into(),
        partition_index,
        ..Default::default()
    };
    DescribeTopicPartitionsResponse {
        topics: vec![topic],
        next_cursor: next.map(cursor),
        ..Default::default()
    }
    .into()
}

#[tokio::test]
async fn topics_come_page_by_page_with_their_eligible_leaders_and_what_anybody_configured() {
    let address = fake_broker(&[(3, 12), (32, 4), (75, 0)], |asked| {
        Some(match asked {
            RequestBody::DescribeTopicPartitions(asked) => page(&asked),
            asked => configs(asked),
        })
    })
    .await;
    let topic = |name: &str, partitions: usize| {
        format!(
            "Topic: {name}\tTopicId: BwcHBwcHBwcHBwcHBwcHBw\tPartitionCount: {partitions}\tReplicationFactor: 3\t\
             Configs: min.insync.replicas=2,retention.ms=1"
        )
    };
    let row = |name: &str, partition: i32, leader: &str| {
        format!(
            "\tTopic: {name}\tPartition: {partition}\tLeader: {leader}\tReplicas: 1,2,3\tIsr: 1\tElr: 2\tLastKnownElr: "
        )
    };
    assert_eq!(
        described(&address, &["a", "b"]).await,
        [topic("a", 2), row("a", 0, "1"), row("a", 1, "1"), topic("b", 1), row("b", 0, "none")]
    );
}

#[tokio::test]
async fn a_broker_without_that_api_is_asked_for_metadata() {
    let address = fake_broker(&[(3, 12), (32, 4)], |asked| {
        let RequestBody::Metadata(_) = &asked else { return Some(configs(asked)) };
        let row = MetadataResponsePartition {
            leader_id: 1,
            replica_nodes: vec![1, 2],
            isr_nodes: vec![1, 2],
            ..Default::default()
        };
        let topic =
            MetadataResponseTopic { name: Some("old".into()), partitions: vec![row], ..Default::default() };
        Some(MetadataResponse { topics: vec![topic], ..nodes(&[(1, "127.0.0.1:1")]) }.into())
    })
    .await;
    assert_eq!(
        described(&address, &["old"]).await,
        [
            "Topic: old\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: min.insync.replicas=2,retention.ms=1",
            "\tTopic: old\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: N/A\tLastKnownElr: N/A",
        ]
    );
}

fn checked(words: &str) -> Result<(), String> {
    let words = ["topics", "--bootstrap-server", "h:1"].into_iter().chain(words.split_whitespace());
    let matches =
        clap::Command::new("topics").args(super::flags()).try_get_matches_from(words).expect("flags");
    let action = crate::command_line::args::exactly_one(&matches, &super::ACTIONS);
    action.and_then(|action| super::check(&matches, action)).map_err(|error| error.to_string())
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    for (words, refusal) in [
        ("", "give exactly one of --create, --list, --describe, --alter and --delete"),
        (
            "--create --list --topic t",
            "give exactly one of --create, --list, --describe, --alter and --delete",
        ),
        ("--create", "--create needs --topic. Example: --topic orders"),
        ("--delete --if-exists", "--delete needs --topic. Example: --topic orders"),
        (
            "--alter --topic t",
            "--alter needs --partitions: how many the topic is to have. Example: --partitions 6",
        ),
        (
            "--alter --topic t --partitions 2 --config a=1",
            "--config goes with create, not with alter. Use: barnabas configs --alter --topic NAME --add-config key=value",
        ),
        ("--list --config a=1", "--config goes with create, alter, not with list"),
        ("--describe --partitions 3", "--partitions goes with create, alter, not with describe"),
        (
            "--alter --topic t --partitions 2 --replication-factor 1",
            "--replication-factor goes with create, not with alter",
        ),
        (
            "--delete --topic t --replica-assignment 1",
            "--replica-assignment goes with create, alter, not with delete",
        ),
        (
            "--create --topic t --replica-assignment 1 --partitions 1",
            "--replica-assignment cannot be used together with --partitions",
        ),
        ("--create --topic t --if-exists", "--if-exists goes with alter, delete, describe, not with create"),
        (
            "--alter --topic t --partitions 2 --if-not-exists",
            "--if-not-exists goes with create, not with alter",
        ),
        (
            "--delete --topic t --exclude-internal",
            "--exclude-internal goes with list, describe, not with delete",
        ),
        ("--list --topic-id x", "--topic-id goes with describe, not with list"),
        ("--describe --if-exists", "--if-exists needs --topic or --topic-id"),
        (
            "--describe --topics-with-overrides --unavailable-partitions",
            "--topics-with-overrides cannot be used together with --unavailable-partitions",
        ),
    ] {
        assert_eq!(checked(words).expect_err(words), refusal, "{words}");
    }
    for report in &REPORTS {
        checked(&format!("--describe --{}", report.flag)).expect("taken");
        for action in ["--create --topic t", "--list", "--delete --topic t"] {
            let refused = checked(&format!("{action} --{}", report.flag)).expect_err(action);
            assert!(refused.contains("goes with describe, not with"), "{refused}");
        }
    }
}

#[test]
fn a_topic_is_meant_by_its_name_or_by_an_expression() {
    let names = || ["a-b", "a.b", "logs-1", "logs-2", "other"].map(str::to_owned).to_vec();
    let chosen = |wanted| super::chosen(wanted, names()).expect("an expression");
    assert_eq!(chosen("a.b"), ["a.b"], "the topic of this name alone");
    assert_eq!(chosen("a.."), ["a-b", "a.b"]);
    assert_eq!(chosen("logs-.*"), ["logs-1", "logs-2"]);
    assert_eq!(chosen("logs-1, other"), ["logs-1", "other"]);
    assert_eq!(chosen("logs"), Vec::<String>::new(), "the whole name has to match");
    let refused = super::chosen("logs-[", names()).expect_err("no expression").to_string();
    assert!(refused.starts_with("--topic 'logs-[' is no expression: "), "{refused}");
}

#[test]
fn topic_is_json_with_its_partitions() {
    let topic = super::row::Topic {
        name: "orders".to_owned(),
        id: Uuid::default(),
        partitions: vec![partition(Some(1), &[1, 2])],
        configs: vec![("retention.ms".to_owned(), "1".to_owned())],
        min_isr: 1,
    };
    let partitions = topic.partitions.iter().map(Partition::json).collect();
    assert_eq!(
        topic.json(partitions).to_string(),
        r#"{"configs":{"retention.ms":"1"},"partitionCount":1,"partitions":[{"addingReplicas":[],"elr":null,"isr":[1,2],"lastKnownElr":null,"leader":1,"partition":0,"removingReplicas":[],"replicas":[1,2,3]}],"replicationFactor":3,"topic":"orders","topicId":null}"#
    );
}
