//! Partitions that one OffsetFetch names more than once for a group.
//!
//! Kafka answers each time. Committed metadata is up to 4 KiB and a partition's number is 4 bytes: the shard says it
//! once, and the answer says it again as long as there is room.

use barnabas_base::{ErrorCode, Map, Set};
use barnabas_wire::Str;
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestTopics;
use barnabas_wire::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};

use crate::{AnswerRoom, TooLarge};

/// The topics as the request named them.
#[derive(Debug)]
pub(super) struct Repeated(Vec<OffsetFetchRequestTopics>);

/// Leaves each partition once. `None`: none was named again.
pub(super) fn take_out(topics: &mut Vec<OffsetFetchRequestTopics>) -> Option<Repeated> {
    let named: usize = topics.iter().map(|topic| topic.partition_indexes.len()).sum();
    let mut seen = Set::default();
    for topic in topics.iter() {
        seen.extend(topic.partition_indexes.iter().map(|index| (topic.name.as_str(), *index)));
    }
    if seen.len() == named {
        return None;
    }
    let asked = topics.clone();
    let mut seen = Set::default();
    topics.retain_mut(|topic| {
        let name = &topic.name;
        topic.partition_indexes.retain(|index| seen.insert((name.clone(), *index)));
        !topic.partition_indexes.is_empty()
    });
    Some(Repeated(asked))
}

impl Repeated {
    /// Says what a shard said of each partition wherever the request names it.
    ///
    /// # Errors
    /// There is no room for that.
    pub fn put_back(
        self,
        response: &mut OffsetFetchResponseGroup,
        room: &AnswerRoom,
    ) -> Result<(), TooLarge> {
        if response.error_code != ErrorCode::None.code() {
            return Ok(());
        }
        let mut said: Map<(Str, i32), &OffsetFetchResponsePartitions> = Map::default();
        for topic in &response.topics {
            said.extend(
                topic.partitions.iter().map(|each| ((topic.name.clone(), each.partition_index), each)),
            );
        }
        let mut topics = Vec::with_capacity(self.0.len());
        for asked in self.0 {
            let mut partitions = Vec::with_capacity(asked.partition_indexes.len());
            for index in asked.partition_indexes {
                let Some(&each) = said.get(&(asked.name.clone(), index)) else { continue };
                let metadata = each.metadata.as_ref().map_or(0, |text| text.len());
                room.take(2 * size_of::<OffsetFetchResponsePartitions>() + metadata)?;
                partitions.push(each.clone());
            }
            topics.push(OffsetFetchResponseTopics {
                name: asked.name,
                topic_id: asked.topic_id,
                partitions,
                ..OffsetFetchResponseTopics::default()
            });
        }
        response.topics = topics;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unlimited;

    fn asked(names: &[(&'static str, &[i32])]) -> Vec<OffsetFetchRequestTopics> {
        let topic = |(name, indexes): &(&'static str, &[i32])| OffsetFetchRequestTopics {
            name: Str::from_static(name),
            partition_indexes: indexes.to_vec(),
            ..Default::default()
        };
        names.iter().map(topic).collect()
    }

    fn answered(topics: &[OffsetFetchRequestTopics]) -> OffsetFetchResponseGroup {
        let topic = |asked: &OffsetFetchRequestTopics| OffsetFetchResponseTopics {
            name: asked.name.clone(),
            partitions: asked
                .partition_indexes
                .iter()
                .map(|index| OffsetFetchResponsePartitions {
                    partition_index: *index,
                    committed_offset: i64::from(*index),
                    metadata: Some("m".repeat(4096).into()),
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        OffsetFetchResponseGroup { topics: topics.iter().map(topic).collect(), ..Default::default() }
    }

    fn shown(group: &OffsetFetchResponseGroup) -> Vec<(String, Vec<i64>)> {
        let offsets = |topic: &OffsetFetchResponseTopics| {
            topic.partitions.iter().map(|each| each.committed_offset).collect()
        };
        group.topics.iter().map(|topic| (topic.name.to_string(), offsets(topic))).collect()
    }

    #[test]
    fn partition_named_again_is_asked_once_and_answered_each_time() {
        assert!(take_out(&mut asked(&[("a", &[0, 1]), ("b", &[0])])).is_none());
        let mut topics = asked(&[("a", &[0, 1, 0]), ("b", &[0]), ("a", &[1])]);
        let repeated = take_out(&mut topics).expect("repeats");
        assert_eq!(topics, asked(&[("a", &[0, 1]), ("b", &[0])]));
        let mut response = answered(&topics);
        let room = AnswerRoom::new(u64::MAX, Unlimited);
        repeated.put_back(&mut response, &room).unwrap();
        let say = |name: &str, offsets: &[i64]| (name.to_owned(), offsets.to_vec());
        assert_eq!(shown(&response), [say("a", &[0, 1, 0]), say("b", &[0]), say("a", &[1])]);
    }

    #[test]
    fn metadata_said_again_and_again_finds_the_limit() {
        let mut topics = asked(&[("a", &[7; 10_000])]);
        let repeated = take_out(&mut topics).expect("repeats");
        let mut response = answered(&topics);
        let room = AnswerRoom::new(4 << 20, Unlimited);
        assert_eq!(repeated.put_back(&mut response, &room), Err(TooLarge::Answer(4 << 20)));
    }
}
