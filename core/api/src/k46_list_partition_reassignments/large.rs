//! All reassignments of a large cluster, listed and written piece by piece.
//!
//! Kafka's tool asks for all of them, and a cluster that is being moved may have a million.
//!
//! Always true: the pieces in their order are the bytes that the encoder makes of [`super::answer`]'s.

use std::sync::Arc;

use barnabas_base::{PartitionIndex, Text};
use barnabas_metadata::Topic;
use barnabas_wire::messages::list_partition_reassignments_request::ListPartitionReassignmentsRequest;
use barnabas_wire::messages::list_partition_reassignments_response::{
    ListPartitionReassignmentsResponse, OngoingTopicReassignment,
};
use barnabas_wire::{EncodeError, Str, Struct, Writer};
use bytes::Bytes;

use super::ongoing;
use crate::Context;
use crate::pieces::{InPieces, LARGE_MIN, PIECE_BYTES, around};

const VERSION: i16 = 0;

/// A long list while it is written.
#[derive(Debug, Default)]
pub struct Large {
    has_begun: bool,
    has_ended: bool,
    /// The topic that was looked at last.
    last: Option<Text>,
    /// The topic in the middle of which the last piece ended, and the partition to go on with.
    current: Option<(Text, PartitionIndex)>,
}

/// The request as a long answer; `None` where [`super::answer`] is right: it names topics, or the cluster is small.
pub fn large(request: &ListPartitionReassignmentsRequest, ctx: &Context<'_>) -> Option<Large> {
    let topics = &ctx.image.topics;
    let is_large = request.topics.is_none() && topics.len() + topics.partition_count() >= LARGE_MIN;
    is_large.then(Large::default)
}

fn count(topic: &Topic) -> usize {
    topic.partitions().filter(|(_, partition)| partition.is_reassigning()).count()
}

/// What stands before and after all topics.
fn around_topics(count: usize) -> Result<(Bytes, Bytes), EncodeError> {
    let bare = ListPartitionReassignmentsResponse {
        error_message: None,
        ..ListPartitionReassignmentsResponse::default()
    };
    let mut w = Writer::new();
    bare.write(&mut w, VERSION)?;
    Ok(around(&w.into_bytes(), 0, count, true))
}

/// What stands before and after a topic's partitions.
fn around_partitions(name: &Text, count: usize) -> Result<(Bytes, Bytes), EncodeError> {
    let bare = OngoingTopicReassignment { name: Str::from(name), ..OngoingTopicReassignment::default() };
    let mut w = Writer::new();
    bare.write(&mut w, VERSION)?;
    Ok(around(&w.into_bytes(), 0, count, true))
}

impl Large {
    /// The next topic with reassignments, its number of them written; `None` after the last.
    fn next_topic(&mut self, w: &mut Writer, ctx: &Context<'_>) -> Result<Option<Arc<Topic>>, EncodeError> {
        let from = self.last.clone();
        let topics = ctx.image.topics.iter_from(from.as_deref().unwrap_or_default());
        for topic in topics.filter(|topic| from.as_ref().is_none_or(|last| topic.name > *last)) {
            self.last = Some(topic.name.clone());
            let count = count(topic);
            if count > 0 {
                w.raw_slice(&around_partitions(&topic.name, count)?.0);
                return Ok(Some(Arc::clone(topic)));
            }
        }
        Ok(None)
    }

    /// Writes a topic's reassignments from `first` on, and what stands after the last; or notes where to go on.
    fn partitions(
        &mut self,
        w: &mut Writer,
        topic: &Topic,
        first: PartitionIndex,
    ) -> Result<(), EncodeError> {
        for (index, partition) in topic.partitions_from(first) {
            if w.len() >= PIECE_BYTES {
                self.current = Some((topic.name.clone(), index));
                return Ok(());
            }
            if partition.is_reassigning() {
                ongoing(index, partition).write(w, VERSION)?;
            }
        }
        w.raw_slice(&around_partitions(&topic.name, 0)?.1);
        Ok(())
    }
}

impl InPieces for Large {
    fn piece(&mut self, ctx: &Context<'_>) -> Result<Option<Bytes>, EncodeError> {
        if self.has_ended {
            return Ok(None);
        }
        let mut w = Writer::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
        if !std::mem::replace(&mut self.has_begun, true) {
            let moving = ctx.image.topics.iter().filter(|topic| count(topic) > 0).count();
            w.raw_slice(&around_topics(moving)?.0);
        }
        while w.len() < PIECE_BYTES {
            let current = self
                .current
                .take()
                .and_then(|(name, index)| Some((Arc::clone(ctx.image.topics.by_name(&name)?), index)));
            let (topic, first) = match current {
                Some(current) => current,
                None => match self.next_topic(&mut w, ctx)? {
                    Some(topic) => (topic, PartitionIndex(0)),
                    None => {
                        w.raw_slice(&around_topics(0)?.1);
                        self.has_ended = true;
                        break;
                    }
                },
            };
            self.partitions(&mut w, &topic, first)?;
        }
        Ok(Some(w.into_bytes()))
    }

    fn rewound(&self) -> Box<dyn InPieces> {
        Box::new(Self::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k46_list_partition_reassignments::answer;
    use crate::testing::{Fixture, topic};
    use crate::{AnswerRoom, Unlimited};
    use barnabas_base::Uuid;
    use barnabas_wire::messages::partition_record::PartitionRecord;
    use barnabas_wire::{Message, MetadataRecord};

    fn partition(topic_id: Uuid, partition_id: i32, adding: &[i32]) -> MetadataRecord {
        MetadataRecord::Partition(PartitionRecord {
            partition_id,
            topic_id,
            replicas: [&[1, 3], adding].concat(),
            isr: vec![1],
            adding_replicas: adding.to_vec(),
            leader: 1,
            directories: vec![Uuid([0x41; 16]); 2 + adding.len()],
            ..PartitionRecord::default()
        })
    }

    /// Every third partition moves, of 600 topics of one and of one of 40,000.
    fn crowd() -> Fixture {
        let mut records = Vec::new();
        for number in 0..600_u16 {
            let mut id = [1; 16];
            id[..2].copy_from_slice(&number.to_be_bytes());
            let adding: &[i32] = if number % 3 == 0 { &[2] } else { &[] };
            records.extend([topic(&format!("many-{number}"), Uuid(id)), partition(Uuid(id), 0, adding)]);
        }
        records.push(topic("large", Uuid([2; 16])));
        let adding = |index: i32| -> &[i32] { if index % 3 == 0 { &[2, 4] } else { &[] } };
        records.extend((0..40_000).map(|index| partition(Uuid([2; 16]), index, adding(index))));
        let mut fixture = Fixture::new();
        fixture.add(&records);
        fixture
    }

    fn all_of_them() -> ListPartitionReassignmentsRequest {
        ListPartitionReassignmentsRequest { topics: None, ..Default::default() }
    }

    #[test]
    fn pieces_equal_the_whole_answer() {
        let fixture = crowd();
        let ctx = fixture.ctx();
        let response = answer(&all_of_them(), &ctx);
        assert_eq!(response.topics.len(), 201);
        let mut w = Writer::new();
        response.encode(&mut w, VERSION).unwrap();
        let mut large = large(&all_of_them(), &ctx).expect("large enough");
        let (mut all, mut pieces) = (Vec::new(), 0);
        while let Some(piece) = large.piece(&ctx).unwrap() {
            assert!(!piece.is_empty() && piece.len() < PIECE_BYTES + 1024, "{}", piece.len());
            all.extend_from_slice(&piece);
            pieces += 1;
        }
        assert!(all == w.into_bytes(), "{pieces} pieces");
        assert!(pieces >= 2, "{pieces}");
        assert!(large.rewound().piece(&ctx).unwrap().is_some_and(|first| all.starts_with(&first)));
    }

    #[test]
    fn answer_beyond_its_room_is_refused() {
        let mut fixture = crowd();
        fixture.room = Box::new(AnswerRoom::new(1 << 20, Unlimited));
        let response = answer(&all_of_them(), &fixture.ctx());
        assert_eq!((response.error_code, response.topics.len()), (42, 0));
        assert!(response.error_message.unwrap().contains("answer.bytes.max=1048576"));
    }

    #[test]
    fn small_cluster_and_named_topics_go_the_usual_way() {
        assert!(large(&all_of_them(), &Fixture::new().ctx()).is_none());
        let named = ListPartitionReassignmentsRequest { topics: Some(Vec::new()), ..Default::default() };
        assert!(large(&named, &crowd().ctx()).is_none());
    }
}
