//! How an operator abandons a partition's records: by an empty file `barnabas-abandon-TOPIC-PARTITION` in the log
//! directory. The topic's id may replace its name in any case, and must if the file's name would be too long for the
//! file system.
//!
//! Neighbour: shell/broker/src/upkeep/placement/abandon.rs, which looks for the file and puts the files aside.

use barnabas_base::{BrokerId, TopicId, TopicPartition};
use barnabas_metadata::{Image, Partition as Row};
use barnabas_storage::NAME_BYTES_MAX;

const NAME: &str = "barnabas-abandon-";

/// The name of the file that an operator is to make.
pub fn file_name(name: &TopicPartition, topic: TopicId) -> String {
    by_name(name).unwrap_or_else(|| by_id(name, topic))
}

/// The names under which the file is looked for.
pub fn file_names(name: &TopicPartition, topic: TopicId) -> impl Iterator<Item = String> {
    by_name(name).into_iter().chain([by_id(name, topic)])
}

/// What abandoning a replica of `me` costs, for the log. `row`: the partition, by the image. `is_current`: this broker
/// knows that the image is.
pub fn consequence(me: BrokerId, image: &Image, row: Option<&Row>, is_current: bool) -> &'static str {
    let is_other = |broker: &BrokerId| *broker != me;
    let may_come = |broker: &BrokerId| is_other(broker) && !image.cluster.is_active(*broker);
    match row {
        Some(row) if row.isr().iter().chain(row.elr()).any(is_other) => {
            "the replica is then fetched from its leader"
        }
        // After a restart of all brokers, this one may be the first that is up.
        Some(row) if !is_current || row.replicas().iter().any(may_come) => {
            "no other replica is in sync yet: start the brokers of the other replicas and wait for them first"
        }
        Some(row) if row.replicas().iter().any(is_other) => {
            "no other replica is in sync: elect one that has the records first (--election-type UNCLEAN), or \
             they are lost"
        }
        _ => "its records are lost then, as no other broker has a replica",
    }
}

fn by_name(name: &TopicPartition) -> Option<String> {
    Some(format!("{NAME}{name}")).filter(|file| file.len() <= NAME_BYTES_MAX)
}

fn by_id(name: &TopicPartition, topic: TopicId) -> String {
    format!("{NAME}{topic}-{}", name.partition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Of, TOPIC, with};
    use barnabas_base::{PartitionIndex, Text};

    #[test]
    fn name_that_is_too_long_for_a_file_is_replaced_by_the_id() {
        let of = |topic: &str| TopicPartition { topic: Text::from(topic), partition: PartitionIndex(3) };
        let id = TopicId::default();
        assert_eq!(file_name(&of("orders"), id), "barnabas-abandon-orders-3");
        let both = [file_name(&of("orders"), id), format!("{NAME}{id}-3")];
        assert_eq!(file_names(&of("orders"), id).collect::<Vec<_>>(), both);
        let long = of(&"x".repeat(249));
        assert_eq!(file_name(&long, id), format!("{NAME}{id}-3"));
        assert_eq!(file_names(&long, id).collect::<Vec<_>>(), [format!("{NAME}{id}-3")]);
    }

    #[test]
    fn consequence_depends_on_who_has_the_records() {
        let said = |replicas: &[i32], isr: &[i32], active: &[i32], is_current| {
            let of = Of { leader: -1, replicas, isr, directories: &[] };
            let (image, _) = with(Image::default(), active, 0, &[of]);
            let row = image.topics.by_id(TOPIC).and_then(|topic| topic.partition(PartitionIndex(0)));
            consequence(BrokerId(1), &image, row, is_current)
        };
        assert!(said(&[1, 2], &[2], &[1, 2], true).contains("fetched from its leader"));
        assert!(said(&[1, 2], &[1], &[1], true).contains("wait for them first"), "2 may come back");
        assert!(said(&[1, 2], &[1], &[1, 2], false).contains("wait for them first"), "an old image");
        assert!(said(&[1, 2], &[1], &[1, 2], true).contains("--election-type UNCLEAN"));
        assert!(said(&[1], &[1], &[1], true).contains("no other broker has a replica"));
        let nothing = consequence(BrokerId(1), &Image::default(), None, true);
        assert!(nothing.contains("no other broker has a replica"));
    }
}
