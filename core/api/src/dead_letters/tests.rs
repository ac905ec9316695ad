use super::*;
use crate::testing::{Fixture, broker_config, config, partition, topic};
use barnabas_base::{LeaderEpoch, Offset, Uuid};
use barnabas_wire::messages::{FeatureLevelRecord, MetadataRecord};
use barnabas_wire::records::Batch;

const DLQ: Uuid = Uuid([0xd1; 16]);

fn version(level: i16) -> MetadataRecord {
    let name = "share.version".into();
    MetadataRecord::FeatureLevel(FeatureLevelRecord { name, feature_level: level, ..Default::default() })
}

fn named(topic: &str) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.add(&[version(2), config(32, "g", TOPIC_NAME, topic)]);
    fixture
}

fn there(fixture: &mut Fixture, name: &str, takes: bool) {
    fixture.add(&[topic(name, DLQ), partition(DLQ, 0, 1), partition(DLQ, 1, 2)]);
    if takes {
        fixture.add(&[config(2, name, TOPIC_TAKES, "true")]);
    }
}

fn destination(fixture: &Fixture, source: i32) -> Result<Destination, NoDestination> {
    let letters = DeadLetters::of("g", &fixture.image).expect("dead letters");
    letters.destination(PartitionIndex(source), &fixture.image, &fixture.config)
}

#[test]
fn a_group_has_dead_letters_if_it_names_a_topic_and_the_cluster_knows_them() {
    let mut fixture = named("dlq.g");
    let letters = DeadLetters::of("g", &fixture.image).expect("dead letters");
    assert_eq!((letters.topic.as_str(), letters.copies_records), ("dlq.g", false));
    fixture.add(&[config(32, "g", COPY_RECORD, "true")]);
    assert!(DeadLetters::of("g", &fixture.image).is_some_and(|letters| letters.copies_records));
    assert_eq!(DeadLetters::of("another", &fixture.image), None);
    fixture.add(&[version(1)]);
    assert_eq!(DeadLetters::of("g", &fixture.image), None);
    assert_eq!(DeadLetters::of("g", &named(" ").image), None);
}

#[test]
fn a_topic_must_say_that_it_takes_them() {
    let mut fixture = named("dlq.g");
    there(&mut fixture, "dlq.g", false);
    assert_eq!(destination(&fixture, 0), Err(NoDestination::NotEnabled("dlq.g".into())));
    fixture.add(&[config(2, "dlq.g", TOPIC_TAKES, "true")]);
    let leader = |source| match destination(&fixture, source) {
        Ok(Destination::Partition(Place { topic: DLQ, partition, leader, bytes_max })) => {
            (partition.get(), leader.get(), bytes_max)
        }
        other => panic!("{other:?}"),
    };
    let most = usize::try_from(fixture.config.long("message.max.bytes")).expect("a size");
    assert_eq!([0, 1, 2, 7].map(leader), [(0, 1, most), (1, 2, most), (0, 1, most), (1, 2, most)]);
    fixture.add(&[config(2, "dlq.g", "max.message.bytes", "1000")]);
    let Ok(Destination::Partition(Place { bytes_max, .. })) = destination(&fixture, 0) else {
        panic!("a place")
    };
    assert_eq!(bytes_max, 1000);
}

#[test]
fn names_are_checked_in_kafkas_order() {
    assert_eq!(destination(&named("__g"), 0), Err(NoDestination::Internal("__g".into())));
    let mut fixture = named("letters");
    let prefix = || NoDestination::Prefix { topic: "letters".into(), prefix: "dlq.".to_owned() };
    assert_eq!(destination(&fixture, 0), Err(prefix()));
    there(&mut fixture, "letters", false);
    assert_eq!(destination(&fixture, 0), Err(NoDestination::NotEnabled("letters".into())));
    fixture.add(&[config(2, "letters", TOPIC_TAKES, "true")]);
    assert_eq!(destination(&fixture, 0), Err(prefix()));
    fixture.config = broker_config(&[(PREFIX, "")]);
    assert!(destination(&fixture, 0).is_ok());
}

#[test]
fn a_missing_topic_is_created_where_the_cluster_says_so() {
    let mut fixture = named("dlq.g");
    assert_eq!(destination(&fixture, 0), Err(NoDestination::NoTopic("dlq.g".into())));
    fixture.config = broker_config(&[(AUTO_CREATE, "true")]);
    assert_eq!(destination(&fixture, 0), Ok(Destination::Missing));
    let letters = DeadLetters::of("g", &fixture.image).expect("dead letters");
    let creation = letters.creation(&fixture.config);
    let [topic] = &creation.topics[..] else { panic!("one topic") };
    assert_eq!((topic.name.as_str(), topic.num_partitions, topic.replication_factor), ("dlq.g", -1, -1));
    let configs: Vec<_> =
        topic.configs.iter().map(|set| (set.name.as_str(), set.value.as_deref().unwrap_or(""))).collect();
    assert_eq!(configs, [(TOPIC_TAKES, "true"), ("message.timestamp.type", "CreateTime")]);
}

fn letter(offset: i64, cause: Cause) -> Letter {
    Letter { offset: Offset(offset), delivery_count: 5, cause }
}

const SENDER: Sender<'_> = Sender { group: "g", topic: "orders", partition: PartitionIndex(3) };

/// A record as texts: key, value, headers.
type Told = (Option<String>, Option<String>, Vec<(String, String)>);

fn read(bytes: Bytes) -> Vec<Told> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let batch = Batch::new(bytes).expect("a batch");
    batch.check_crc().expect("sound");
    let records = batch.records().expect("records");
    let all = records.iter().map(|record| {
        let record = record.expect("a record");
        let headers = record.headers().map(|(key, value)| (text(key), value.map(text).unwrap_or_default()));
        (record.key.map(text), record.value.map(text), headers.collect())
    });
    all.collect()
}

fn copies() -> Copies {
    let mut builder = BatchBuilder::new(BatchOptions {
        base_offset: Offset(10),
        leader_epoch: LeaderEpoch(0),
        ..BatchOptions::default()
    });
    builder.push(
        TimestampMs(1),
        Some(b"k"),
        Some(b"v"),
        &[(b"h", Some(b"1")), (b"__dlq.errors.topic", None)],
    );
    builder.push(TimestampMs(1), None, None, &[]);
    let batch = Batch::new(builder.build().expect("a batch")).expect("a batch");
    let records = batch.records().expect("records");
    let all = records.iter().map(|record| {
        let record = record.expect("a record");
        (record.offset, Copied::of(&record, &records))
    });
    all.collect()
}

#[test]
fn a_letter_says_where_it_stood_behind_what_it_said_itself() {
    let letters = [letter(10, Cause::Rejected), letter(11, Cause::DeliveryCountExceeded)];
    let (bytes, count) = batch(&SENDER, &letters, &copies(), TimestampMs(9), 10_000).expect("a batch");
    assert_eq!(count, 2);
    assert_eq!(Batch::new(bytes.clone()).expect("a batch").header().max_timestamp, TimestampMs(9));
    let records = read(bytes);
    let said = |offset: &str, message: &str| {
        [
            ("__dlq.errors.topic", "orders"),
            ("__dlq.errors.partition", "3"),
            ("__dlq.errors.offset", offset),
            ("__dlq.errors.group", "g"),
            ("__dlq.errors.delivery.count", "5"),
            ("__dlq.errors.message", message),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    let mut headers =
        vec![("h".to_owned(), "1".to_owned()), ("__dlq.errors.topic".to_owned(), String::new())];
    headers.extend(said("10", "Offset rejected by client."));
    assert_eq!(records[0], (Some("k".to_owned()), Some("v".to_owned()), headers));
    let headers = said("11", "Offset delivery count exceeded the threshold.").to_vec();
    assert_eq!(records[1], (None, None, headers));
}

#[test]
fn a_batch_holds_what_the_topic_takes_and_one_letter_at_least() {
    let letters: Vec<Letter> = (10..20).map(|offset| letter(offset, Cause::Rejected)).collect();
    let none = Copies::new();
    let (one, count) = batch(&SENDER, &letters, &none, TimestampMs(9), 0).expect("a batch");
    assert_eq!((count, read(one.clone()).len()), (1, 1));
    let (_, count) = batch(&SENDER, &letters, &none, TimestampMs(9), one.len()).expect("a batch");
    assert_eq!(count, 1);
    let (bytes, count) = batch(&SENDER, &letters, &none, TimestampMs(9), 3 * one.len()).expect("a batch");
    assert!((2..10).contains(&count) && bytes.len() <= 3 * one.len(), "{count}");
    let (bytes, count) = batch(&SENDER, &letters, &none, TimestampMs(9), 1 << 20).expect("a batch");
    assert_eq!((count, read(bytes).len()), (10, 10));
    assert!(copies()[&Offset(10)].bytes() > copies()[&Offset(11)].bytes());
}

/// What Apache Kafka 4.4.0 wrote when a consumer rejected four records of `t`, with copies. Only the times are others.
#[test]
fn letters_are_as_apache_kafka_writes_them() {
    let theirs = Bytes::from_static(include_bytes!("apache_4_4_0.batch"));
    let written_at = Batch::new(theirs.clone()).expect("a batch").header().base_timestamp;
    let values = ["one", "two", "three", "four"];
    let mut builder = BatchBuilder::new(BatchOptions::default());
    values.iter().for_each(|value| builder.push(TimestampMs(1), None, Some(value.as_bytes()), &[]));
    let source = Batch::new(builder.build().expect("a batch")).expect("a batch");
    let records = source.records().expect("records");
    let copies = records.iter().map(|record| {
        let record = record.expect("a record");
        (record.offset, Copied::of(&record, &records))
    });
    let letters: Vec<Letter> =
        (0..4).map(|offset| Letter { delivery_count: 1, ..letter(offset, Cause::Rejected) }).collect();
    let sender = Sender { group: "g", topic: "t", partition: PartitionIndex(0) };
    let (ours, _) = batch(&sender, &letters, &copies.collect(), written_at, 1 << 20).expect("a batch");
    assert_eq!(ours.len(), theirs.len());
    assert_eq!(read(ours.clone()), read(theirs.clone()));
    // The leader's epoch, the checksum, the last time, and the times of three records.
    let others: Vec<usize> = (0..ours.len()).filter(|&at| ours[at] != theirs[at]).collect();
    let is_known =
        |at: &usize| (12..21).contains(at) || (35..43).contains(at) || [242, 420, 600].contains(at);
    assert!(others.iter().all(is_known), "{others:?}");
}
