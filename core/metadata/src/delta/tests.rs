//! What replay makes of records: transactions, refusals, changes.

use barnabas_wire::messages::{
    AbortTransactionRecord, BeginTransactionRecord, BrokerRegistrationChangeRecord, EndTransactionRecord,
    FenceBrokerRecord, PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord,
    RemoveAccessControlEntryRecord, RemoveTopicRecord, TopicRecord, UnfenceBrokerRecord,
    UnregisterBrokerRecord,
};
use barnabas_wire::{MetadataRecord, Str};

use super::*;

fn topic(name: &str, id: u8) -> MetadataRecord {
    TopicRecord { name: Str::from(name), topic_id: Uuid([id; 16]), ..TopicRecord::default() }.into()
}

fn partition(id: u8, index: i32) -> MetadataRecord {
    PartitionRecord {
        partition_id: index,
        topic_id: Uuid([id; 16]),
        replicas: vec![1, 2],
        isr: vec![1, 2],
        leader: 1,
        leader_epoch: 4,
        partition_epoch: 6,
        ..PartitionRecord::default()
    }
    .into()
}

fn config(topic: &str, value: Option<&str>) -> MetadataRecord {
    ConfigRecord {
        resource_type: 2,
        resource_name: Str::from(topic),
        name: Str::from("retention.ms"),
        value: value.map(Str::from),
        ..ConfigRecord::default()
    }
    .into()
}

fn replayed(records: &[MetadataRecord]) -> Result<Delta, ReplayError> {
    let mut delta = Delta::new(Image::default());
    records.iter().try_for_each(|record| delta.replay(record))?;
    Ok(delta)
}

fn names(image: &Image) -> Vec<String> {
    image.topics.iter().map(|topic| topic.name.to_string()).collect()
}

#[test]
fn a_transaction_is_seen_when_it_ends_and_only_then() {
    let begin = MetadataRecord::from(BeginTransactionRecord::default());
    let mut delta = replayed(&[topic("before", 1), begin, topic("inside", 2), partition(2, 0)]).unwrap();
    let (image, changes) = delta.take();
    assert_eq!((names(&image), changes.topics.len()), (vec!["before".to_owned()], 1));
    assert_eq!(names(delta.image()), ["before", "inside"]);
    delta.replay(&topic("more", 3)).unwrap();
    let (image, changes) = delta.take();
    assert_eq!(names(&image), ["before"]);
    assert!(changes.is_empty());
    delta.replay(&EndTransactionRecord::default().into()).unwrap();
    let (image, changes) = delta.take();
    assert_eq!(names(&image), ["before", "inside", "more"]);
    assert_eq!(changes.topics.len(), 2);
}

#[test]
fn an_aborted_transaction_was_never_there() {
    let begin = MetadataRecord::from(BeginTransactionRecord::default());
    let records =
        [topic("before", 1), config("before", Some("1")), begin, topic("inside", 2), config("before", None)];
    let mut delta = replayed(&records).unwrap();
    delta.replay(&AbortTransactionRecord::default().into()).unwrap();
    let (image, changes) = delta.take();
    assert!(image == replayed(&records[..2]).unwrap().take().0);
    assert_eq!((changes.topics.len(), changes.configs.len()), (1, 1));
}

#[test]
fn transactions_do_not_nest_and_do_not_end_by_themselves() {
    let begin = || MetadataRecord::from(BeginTransactionRecord::default());
    assert_eq!(replayed(&[begin(), begin()]).err(), Some(ReplayError::NestedTransaction));
    let end = MetadataRecord::from(EndTransactionRecord::default());
    assert!(matches!(replayed(&[end]), Err(ReplayError::NoTransaction { .. })));
    let abort = MetadataRecord::from(AbortTransactionRecord::default());
    assert!(matches!(replayed(&[abort]), Err(ReplayError::NoTransaction { .. })));
}

#[test]
fn a_deleted_topic_takes_its_configs_along() {
    let remove = RemoveTopicRecord { topic_id: Uuid([1; 16]), ..RemoveTopicRecord::default() };
    let records = [topic("a", 1), partition(1, 0), config("a", Some("1"))];
    let mut delta = replayed(&records).unwrap();
    delta.take();
    delta.replay(&remove.clone().into()).unwrap();
    let (image, changes) = delta.take();
    assert!(image == Image::default());
    assert_eq!((changes.topics[&Uuid([1; 16])].deleted, changes.configs.len()), (true, 1));
    assert!(matches!(delta.replay(&remove.into()), Err(ReplayError::UnknownTopic { .. })));
}

#[test]
fn a_change_moves_the_epochs_as_kafka_moves_them() {
    let mut delta = replayed(&[topic("a", 1), partition(1, 0)]).unwrap();
    let mut change = |edit: &dyn Fn(&mut PartitionChangeRecord)| {
        let mut record = PartitionChangeRecord {
            topic_id: Uuid([1; 16]),
            partition_id: 0,
            ..PartitionChangeRecord::default()
        };
        edit(&mut record);
        delta.replay(&record.into()).unwrap();
        let partition = delta.image().topics.partition("a", PartitionIndex(0)).unwrap();
        (
            partition.leader.get(),
            partition.leader_epoch.get(),
            partition.partition_epoch.get(),
            partition.isr().len(),
        )
    };
    assert_eq!(change(&|record| record.isr = Some(vec![1])), (1, 4, 7, 1));
    assert_eq!(change(&|record| record.leader = 2), (2, 5, 8, 1));
    // The same leader named again is a new epoch too.
    assert_eq!(change(&|record| record.leader = 2), (2, 6, 9, 1));
    assert_eq!(change(&|record| record.leader = -1), (-1, 7, 10, 1));
}

#[test]
fn directories_that_were_never_named_are_unknown_for_each_replica() {
    let delta = replayed(&[topic("a", 1), partition(1, 0)]).unwrap();
    let partition = delta.image().topics.partition("a", PartitionIndex(0)).unwrap();
    assert_eq!(partition.placement.directories, [Uuid::DIRECTORY_MIGRATING; 2]);
    assert_eq!(partition.directory(2.into()), Some(Uuid::DIRECTORY_MIGRATING));
    assert_eq!(partition.directory(3.into()), None);
}

#[test]
fn what_does_not_fit_is_refused() {
    let feature = |level| {
        let record = FeatureLevelRecord {
            name: Str::from("metadata.version"),
            feature_level: level,
            ..FeatureLevelRecord::default()
        };
        replayed(&[record.into()]).err()
    };
    assert_eq!(feature(6), Some(ReplayError::MetadataVersion { level: 6 }));
    assert_eq!(feature(34), Some(ReplayError::MetadataVersion { level: 34 }));
    assert_eq!(feature(33), None);
    assert!(matches!(replayed(&[topic("a", 1), topic("a", 2)]), Err(ReplayError::TopicExists { .. })));
    assert!(matches!(replayed(&[partition(1, 0)]), Err(ReplayError::UnknownTopic { .. })));
    assert!(matches!(replayed(&[topic("a", 1), partition(1, -1)]), Err(ReplayError::Field { .. })));
    assert!(matches!(replayed(&[topic("a", 1), partition(1, i32::MAX)]), Err(ReplayError::Field { .. })));
    let change = PartitionChangeRecord { topic_id: Uuid([1; 16]), partition_id: 5, ..Default::default() };
    assert!(matches!(replayed(&[topic("a", 1), change.into()]), Err(ReplayError::UnknownPartition { .. })));
    let config = ConfigRecord { resource_type: 3, ..ConfigRecord::default() };
    assert!(matches!(replayed(&[config.into()]), Err(ReplayError::UnknownValue { .. })));
    let scram = UserScramCredentialRecord { mechanism: 3, ..UserScramCredentialRecord::default() };
    assert!(matches!(replayed(&[scram.into()]), Err(ReplayError::UnknownValue { .. })));
}

#[test]
fn a_broker_is_changed_only_in_the_life_that_the_record_means() {
    let register = RegisterBrokerRecord { broker_id: 1, broker_epoch: 7, ..RegisterBrokerRecord::default() };
    let register = MetadataRecord::from(register);
    let unfence = |epoch| MetadataRecord::from(UnfenceBrokerRecord { id: 1, epoch, ..Default::default() });
    let fence = |epoch| MetadataRecord::from(FenceBrokerRecord { id: 1, epoch, ..Default::default() });
    let alive =
        |records: &[MetadataRecord]| replayed(records).map(|delta| delta.image().cluster.is_alive(1.into()));
    assert_eq!(alive(std::slice::from_ref(&register)), Ok(false));
    assert_eq!(alive(&[register.clone(), unfence(7)]), Ok(true));
    assert_eq!(alive(&[register.clone(), unfence(7), fence(7)]), Ok(false));
    assert!(matches!(alive(&[register.clone(), unfence(8)]), Err(ReplayError::BrokerEpoch { .. })));
    assert!(matches!(alive(&[unfence(7)]), Err(ReplayError::UnknownBroker { .. })));
    let change = |fenced| {
        MetadataRecord::from(BrokerRegistrationChangeRecord {
            broker_id: 1,
            broker_epoch: 7,
            fenced,
            ..BrokerRegistrationChangeRecord::default()
        })
    };
    assert_eq!(alive(&[register.clone(), change(-1)]), Ok(true));
    assert!(matches!(alive(&[register.clone(), change(5)]), Err(ReplayError::UnknownValue { .. })));
    let gone = UnregisterBrokerRecord { broker_id: 1, broker_epoch: 7, ..UnregisterBrokerRecord::default() };
    assert_eq!(replayed(&[register, gone.into()]).unwrap().image().cluster.broker_count(), 0);
}

fn loaded(records: &[MetadataRecord]) -> Result<Image, ReplayError> {
    let mut delta = Delta::new(Image::default());
    delta.mark_everything();
    records.iter().try_for_each(|record| delta.load(record))?;
    delta.loaded()?;
    Ok(delta.take().0)
}

#[test]
fn snapshot_in_any_order_equals_the_replayed_log() {
    let in_order = [topic("b", 7), partition(7, 1), partition(7, 0), config("b", Some("1")), topic("a", 9)];
    let out_of_order = [topic("b", 7), topic("a", 9), partition(7, 0), partition(9, 3), topic("c", 1)];
    let begin = MetadataRecord::from(BeginTransactionRecord::default());
    let end = MetadataRecord::from(EndTransactionRecord::default());
    let remove: MetadataRecord =
        RemoveTopicRecord { topic_id: Uuid([7; 16]), ..RemoveTopicRecord::default() }.into();
    let no_snapshot = [topic("b", 7), begin, partition(7, 0), topic("a", 9), end, remove];
    for records in [&in_order[..], &out_of_order, &no_snapshot] {
        let image = loaded(records).unwrap();
        let expected = replayed(records).unwrap().take().0;
        assert_eq!(image, expected);
        assert_eq!(image.topics.partition_count(), expected.topics.partition_count());
    }
}

#[test]
fn what_cannot_be_replayed_cannot_be_loaded() {
    for twice in [[topic("a", 1), topic("a", 2)], [topic("a", 1), topic("b", 1)]] {
        assert!(matches!(loaded(&twice), Err(ReplayError::TopicExists { .. })));
    }
    assert!(matches!(loaded(&[topic("a", 1), partition(2, 0)]), Err(ReplayError::UnknownTopic { .. })));
}

fn acl(id: u8, principal: &str) -> MetadataRecord {
    AccessControlEntryRecord {
        id: Uuid([id; 16]),
        resource_type: 2,
        resource_name: Str::from("a"),
        pattern_type: 4,
        principal: Str::from(principal),
        host: Str::from("*"),
        operation: 3,
        permission_type: 2,
        ..AccessControlEntryRecord::default()
    }
    .into()
}

fn without_acl(id: u8) -> MetadataRecord {
    RemoveAccessControlEntryRecord { id: Uuid([id; 16]), ..RemoveAccessControlEntryRecord::default() }.into()
}

#[test]
fn acls_are_kept_and_removed_by_id() {
    let mut delta = replayed(&[acl(1, "User:a"), acl(2, "User:a"), acl(1, "User:b")]).unwrap();
    let (image, changes) = delta.take();
    assert!(changes.acls);
    let expected = Acl {
        resource_type: 2,
        resource_name: Text::from("a"),
        pattern_type: 4,
        principal: Text::from("User:b"),
        host: Text::from("*"),
        operation: 3,
        permission: 2,
    };
    assert_eq!(image.acls.len(), 2);
    assert_eq!(image.acls.get(&Uuid([1; 16])), Some(&expected));
    let written: Vec<MetadataRecord> = crate::snapshot::records(&image).collect();
    assert!(written.contains(&acl(1, "User:b")) && written.contains(&acl(2, "User:a")));
    assert_eq!(replayed(&written).unwrap().take().0, image);

    delta.replay(&without_acl(1)).unwrap();
    let (image, changes) = delta.take();
    assert!(changes.acls);
    assert_eq!(image.acls.keys().copied().collect::<Vec<_>>(), [Uuid([2; 16])]);
    assert!(matches!(delta.replay(&without_acl(1)), Err(ReplayError::UnknownAcl { .. })));
}
