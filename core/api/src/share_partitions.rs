//! What the requests to share coordinators (keys 83 to 87) have in common: they name share-partitions of one group by
//! topic, and are answered for each in its place.
//!
//! Source: Kafka 4.4 `KafkaApis`, `ShareCoordinatorService`.

use barnabas_base::{ErrorCode, Text, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::{
    delete_share_group_state_response, initialize_share_group_state_response,
    read_share_group_state_response, read_share_group_state_summary_response,
    write_share_group_state_response,
};

use crate::{Plan, Slot};

/// Share-partitions of one group; `Part` is what is to be done with one of them.
#[derive(Debug)]
pub struct Work<Part, Said> {
    pub group: Text,
    pub parts: Vec<Part>,
    pub pending: Pending<Said>,
}

/// The answers known so far, in the order of the request; `Said` is the answer for one
/// share-partition.
#[derive(Debug)]
pub struct Pending<Said> {
    topics: Vec<(TopicId, Vec<Said>)>,
}

/// What an answer says of a share-partition, whatever was asked.
pub trait Refusable {
    fn refuse(&mut self, code: i16, why: Option<Str>);
}

macro_rules! refusable {
    ($($of:ident),*) => {
        $(impl Refusable for $of::PartitionResult {
            fn refuse(&mut self, code: i16, why: Option<Str>) {
                (self.error_code, self.error_message) = (code, why);
            }
        })*
    };
}

refusable!(
    delete_share_group_state_response,
    initialize_share_group_state_response,
    read_share_group_state_response,
    read_share_group_state_summary_response,
    write_share_group_state_response
);

/// Splits a request by share-partition. `each` turns one requested partition into its part of the
/// work and its answer so far. A request without a group, or with a topic without partitions, gets
/// an empty answer.
pub(crate) fn plan<Asked, Part, Said, Response: Default>(
    group: &Str,
    asked: impl ExactSizeIterator<Item = (TopicId, Vec<Asked>)>,
    each: impl Fn(Slot, TopicId, Asked) -> (Part, Said),
) -> Plan<Work<Part, Said>, Response> {
    let (mut parts, mut topics) = (Vec::new(), Vec::with_capacity(asked.len()));
    for (topic_at, (topic, asked)) in asked.enumerate() {
        if asked.is_empty() {
            return Plan::Answer(Response::default());
        }
        let mut said = Vec::with_capacity(asked.len());
        for (at, asked) in asked.into_iter().enumerate() {
            let (part, of_it) = each(Slot::new(topic_at, at), topic, asked);
            parts.push(part);
            said.push(of_it);
        }
        topics.push((topic, said));
    }
    if group.is_empty() || parts.is_empty() {
        return Plan::Answer(Response::default());
    }
    Plan::Work(Work { group: group.text(), parts, pending: Pending { topics } })
}

impl<Said> Pending<Said> {
    /// Takes over that a share-partition was refused. What is not refused is done.
    pub fn refuse(&mut self, slot: Slot, code: ErrorCode, why: Option<&'static str>)
    where
        Said: Refusable,
    {
        self.at(slot).refuse(code.code(), why.map(Str::from_static));
    }

    /// Takes over that all of them are refused.
    pub(crate) fn refuse_all(&mut self, code: ErrorCode, why: &'static str)
    where
        Said: Refusable,
    {
        let all = self.topics.iter_mut().flat_map(|(_, said)| said);
        all.for_each(|said| said.refuse(code.code(), Some(Str::from_static(why))));
    }

    pub(crate) fn at(&mut self, slot: Slot) -> &mut Said {
        &mut self.topics[slot.topic()].1[slot.partition()]
    }

    /// All of it, in the words of one request's answer.
    pub(crate) fn by_topic<Topic>(self, topic: impl Fn(TopicId, Vec<Said>) -> Topic) -> Vec<Topic> {
        self.topics.into_iter().map(|(id, said)| topic(id, said)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ORDERS;

    type Planned = Plan<Work<(Slot, i32), i32>, i32>;

    fn planned(group: &'static str, topics: Vec<(TopicId, Vec<i32>)>) -> Planned {
        plan(&Str::from_static(group), topics.into_iter(), |slot, _, partition| ((slot, partition), 0))
    }

    #[test]
    fn what_asks_for_nothing_gets_nothing() {
        for nothing in [
            planned("", vec![(ORDERS, vec![1])]),
            planned("g", Vec::new()),
            planned("g", vec![(ORDERS, vec![1]), (ORDERS, Vec::new())]),
        ] {
            assert!(matches!(nothing, Plan::Answer(0)));
        }
    }

    #[test]
    fn each_is_answered_in_its_place() {
        let Plan::Work(mut work) = planned("g", vec![(ORDERS, vec![3, 1]), (ORDERS, vec![3])]) else {
            panic!("no work")
        };
        for (slot, partition) in work.parts {
            *work.pending.at(slot) = partition;
        }
        assert_eq!(work.pending.by_topic(|_, said| said), [vec![3, 1], vec![3]]);
    }
}
