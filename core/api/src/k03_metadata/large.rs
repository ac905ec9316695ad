//! Metadata of very many partitions, made and written piece by piece.
//!
//! An answer for a million topics is 60 MB on the wire and ten times that as a value, so it never
//! becomes a value. Its pieces are written straight from the image, each one after the socket has
//! taken the one before, and memory holds one piece at a time. Another thread than the connection's
//! can write them. A frame begins with its length, so the writer walks the topics twice: once to
//! add up the length, once to write.
//!
//! Always true: the pieces in their order are the bytes that the encoder makes of [`super::plan`]'s answer.

use std::collections::VecDeque;
use std::sync::Arc;

use barnabas_base::{PartitionIndex, TopicId};
use barnabas_metadata::Topic;
use barnabas_security::Operation;
use barnabas_wire::messages::create_topics_request::CreateTopicsRequest;
use barnabas_wire::messages::metadata_request::MetadataRequest;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use barnabas_wire::{EncodeError, Str, Struct, Writer};
use bytes::Bytes;

use super::{
    Wanted, denied, denied_id, describe, describe_partition, is_denied, is_shown, may_create,
    show_operations, to_create, unknown, unknown_id, wanted, without_partitions, without_topics,
};
use crate::Context;
use crate::pieces::{InPieces, LARGE_MIN, PIECE_BYTES, around};

/// Topics with more partitions than this are written partition by partition.
const PARTITIONS_AT_ONCE: usize = 64;
/// Topics that are looked up at once.
const TOPICS_AHEAD: usize = 256;

const FLEXIBLE_SINCE: i16 = 9;

/// What a large answer says, but for the image that it says it of.
#[derive(Debug)]
pub struct Large {
    version: i16,
    topics: Topics,
    /// What stands before the first topic, the count included; and after the last.
    head: Bytes,
    tail: Bytes,
    topic_operations: bool,
    create: Option<CreateTopicsRequest>,
}

/// All by id, or those that were asked for in their order.
#[derive(Debug)]
enum Topics {
    All,
    These(Vec<Asked>),
}

/// A topic that was asked for.
#[derive(Debug, Clone)]
enum Asked {
    Known(Arc<Topic>),
    UnknownName(Str),
    UnknownId(TopicId),
    Denied(Str),
    DeniedId(TopicId),
}

impl Asked {
    fn size(&self) -> usize {
        match self {
            Self::Known(topic) => 1 + topic.partition_count(),
            Self::UnknownName(_) | Self::UnknownId(_) | Self::Denied(_) | Self::DeniedId(_) => 1,
        }
    }
}

/// How far the writing has come.
#[derive(Debug, Default)]
pub struct Place {
    begun: bool,
    ahead: VecDeque<Asked>,
    /// The last that was looked up; or how many of those that were asked for were taken.
    last: TopicId,
    taken: usize,
    /// The topic in the middle of which the last piece ended, and the partition to go on with.
    current: Option<(Arc<Topic>, PartitionIndex)>,
    ended: bool,
}

/// Whether the request names so many topics that they are not to be looked up on a worker.
///
/// So are all topics where each of many is authorized.
pub fn names_many(request: &MetadataRequest, ctx: &Context<'_>) -> bool {
    let is_judged = || !ctx.access.is_open() && ctx.image.topics.len() >= LARGE_MIN;
    request.topics.as_ref().map_or_else(is_judged, |topics| topics.len() >= LARGE_MIN)
}

/// The request as a large answer; `None` where the usual way is right because it is small.
///
/// # Errors
/// Nothing that is known of: names come out of records and requests.
pub fn large(
    request: &MetadataRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Result<Option<Large>, EncodeError> {
    let image = &ctx.image.topics;
    let creates = may_create(request, version, ctx);
    let (topics, count) = match wanted(request, version) {
        None => return Ok(None),
        Some(Wanted::All) if image.len() + image.partition_count() < LARGE_MIN => return Ok(None),
        Some(Wanted::All) if ctx.access.is_open() => (Topics::All, image.len()),
        Some(wanted) => {
            let these = asked(&wanted, creates, ctx);
            if these.iter().map(Asked::size).sum::<usize>() < LARGE_MIN {
                return Ok(None);
            }
            let count = these.len();
            (Topics::These(these), count)
        }
    };
    let missing = match &topics {
        Topics::All => None,
        Topics::These(these) => to_create(
            creates,
            these.iter().filter_map(|asked| match asked {
                Asked::UnknownName(name) => Some(name),
                Asked::Known(_) | Asked::UnknownId(_) | Asked::Denied(_) | Asked::DeniedId(_) => None,
            }),
            ctx,
        ),
    };
    let mut w = Writer::new();
    without_topics(request, version, ctx).write(&mut w, version)?;
    let after = if (8..=10).contains(&version) { 4 } else { 0 } + if version == 13 { 2 } else { 0 };
    let (head, tail) = around(&w.into_bytes(), after, count, version >= FLEXIBLE_SINCE);
    let topic_operations = version >= 8 && request.include_topic_authorized_operations;
    Ok(Some(Large { version, topics, head, tail, topic_operations, create: missing }))
}

fn asked(wanted: &Wanted<'_>, creates: bool, ctx: &Context<'_>) -> Vec<Asked> {
    let image = &ctx.image.topics;
    match wanted {
        Wanted::All => {
            let shown = image.by_ids().filter(|topic| is_shown(topic, ctx));
            shown.map(|topic| Asked::Known(Arc::clone(topic))).collect()
        }
        Wanted::Ids(ids) => {
            let of = |&id: &TopicId| match image.by_id(id) {
                None => Asked::UnknownId(id),
                Some(topic) if ctx.access.topic(Operation::Describe, &topic.name) => {
                    Asked::Known(Arc::clone(topic))
                }
                Some(_) => Asked::DeniedId(id),
            };
            ids.iter().map(of).collect()
        }
        Wanted::Names(names) => {
            let of = |&name: &&Str| {
                let known = image.by_name(name);
                if is_denied(name, known.is_some(), creates, ctx) {
                    return Asked::Denied(name.clone());
                }
                let unknown = || Asked::UnknownName(name.clone());
                known.map_or_else(unknown, |topic| Asked::Known(Arc::clone(topic)))
            };
            names.iter().map(of).collect()
        }
    }
}

/// A large answer while it is written.
#[derive(Debug)]
pub struct Writing {
    large: Arc<Large>,
    place: Place,
}

impl InPieces for Writing {
    fn piece(&mut self, ctx: &Context<'_>) -> Result<Option<Bytes>, EncodeError> {
        self.large.piece(&mut self.place, ctx)
    }

    fn rewound(&self) -> Box<dyn InPieces> {
        Box::new(Self { large: Arc::clone(&self.large), place: Place::default() })
    }
}

impl Large {
    /// For the controller, as in [`super::Work`]; once.
    pub fn take_creation(&mut self) -> Option<CreateTopicsRequest> {
        self.create.take()
    }

    /// From the first piece on.
    pub fn write(self) -> Writing {
        Writing { large: Arc::new(self), place: Place::default() }
    }

    /// The next piece; `None` after the last. Always with the same image.
    ///
    /// # Errors
    /// As for [`large`].
    pub fn piece(&self, place: &mut Place, ctx: &Context<'_>) -> Result<Option<Bytes>, EncodeError> {
        if place.ended {
            return Ok(None);
        }
        let mut w = Writer::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
        if !std::mem::replace(&mut place.begun, true) {
            w.raw_slice(&self.head);
        }
        while w.len() < PIECE_BYTES {
            let (topic, first) = match place.current.take() {
                Some(current) => current,
                None => match self.next_topic(place, ctx) {
                    None => {
                        w.raw_slice(&self.tail);
                        place.ended = true;
                        break;
                    }
                    Some(Asked::Known(topic)) if topic.partition_count() > PARTITIONS_AT_ONCE => {
                        w.raw_slice(&self.around_partitions(&topic, ctx)?.0);
                        (topic, PartitionIndex(0))
                    }
                    Some(asked) => {
                        self.whole(&asked, ctx).write(&mut w, self.version)?;
                        continue;
                    }
                },
            };
            place.current = self.partitions(&mut w, topic, first, ctx)?;
        }
        Ok(Some(w.into_bytes()))
    }

    fn whole(&self, asked: &Asked, ctx: &Context<'_>) -> MetadataResponseTopic {
        let mut whole = match asked {
            Asked::Known(topic) => describe(topic, self.version, ctx),
            Asked::UnknownName(name) => unknown(name, self.version),
            Asked::UnknownId(id) => unknown_id(*id),
            Asked::Denied(name) => denied(name),
            Asked::DeniedId(id) => denied_id(*id),
        };
        if self.topic_operations {
            show_operations(&mut whole, ctx);
        }
        whole
    }

    /// Writes a topic's partitions from `first` on, and what stands after the last; or returns where to go on.
    fn partitions(
        &self,
        w: &mut Writer,
        topic: Arc<Topic>,
        first: PartitionIndex,
        ctx: &Context<'_>,
    ) -> Result<Option<(Arc<Topic>, PartitionIndex)>, EncodeError> {
        let mut full_at = None;
        for (index, state) in topic.partitions_from(first) {
            if w.len() >= PIECE_BYTES {
                full_at = Some(index);
                break;
            }
            describe_partition((topic.id, index), state, self.version, ctx).write(w, self.version)?;
        }
        if let Some(index) = full_at {
            return Ok(Some((topic, index)));
        }
        w.raw_slice(&self.around_partitions(&topic, ctx)?.1);
        Ok(None)
    }

    /// What stands before and after a topic's partitions.
    fn around_partitions(&self, topic: &Topic, ctx: &Context<'_>) -> Result<(Bytes, Bytes), EncodeError> {
        let mut bare = without_partitions(topic, self.version);
        if self.topic_operations {
            show_operations(&mut bare, ctx);
        }
        let mut w = Writer::with_capacity(64 + topic.name.len());
        bare.write(&mut w, self.version)?;
        let after = if self.version >= 8 { 4 } else { 0 };
        Ok(around(&w.into_bytes(), after, topic.partition_count(), self.version >= FLEXIBLE_SINCE))
    }

    fn next_topic(&self, place: &mut Place, ctx: &Context<'_>) -> Option<Asked> {
        let topics = &ctx.image.topics;
        if place.ahead.is_empty() {
            match &self.topics {
                Topics::All => {
                    for topic in topics.by_ids_after(place.last).take(TOPICS_AHEAD) {
                        place.last = topic.id;
                        place.ahead.push_back(Asked::Known(Arc::clone(topic)));
                    }
                }
                Topics::These(these) => {
                    place.ahead.extend(these.iter().skip(place.taken).take(TOPICS_AHEAD).cloned());
                    place.taken += TOPICS_AHEAD;
                }
            }
        }
        place.ahead.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::k03_metadata::plan;
    use crate::testing::{Fixture, partition, topic, versions};
    use barnabas_base::Uuid;
    use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
    use barnabas_wire::messages::metadata_response::MetadataResponse;
    use barnabas_wire::{Message, MetadataRecord};

    /// 600 topics of one partition and one of 30,000.
    fn crowd() -> Fixture {
        let mut records: Vec<MetadataRecord> = Vec::new();
        for number in 0..600u16 {
            let mut id = [1; 16];
            id[..2].copy_from_slice(&number.to_be_bytes());
            records.extend([topic(&format!("many-{number}"), Uuid(id)), partition(Uuid(id), 0, 1)]);
        }
        records.push(topic("large", Uuid([2; 16])));
        records.extend((0..30_000).map(|index| partition(Uuid([2; 16]), index, 1 + index % 2)));
        let mut fixture = Fixture::new();
        fixture.add(&records);
        fixture
    }

    fn usual(request: &MetadataRequest, version: i16, ctx: &Context<'_>) -> Bytes {
        let response = match plan(request.clone(), version, ctx) {
            Plan::Answer(response) => response,
            Plan::Work(work) => {
                let large = large(request, version, ctx).unwrap().expect("large enough").take_creation();
                assert_eq!(large.as_ref(), Some(&work.create));
                work.response
            }
        };
        let mut w = Writer::new();
        response.encode(&mut w, version).unwrap();
        w.into_bytes()
    }

    fn in_pieces(request: &MetadataRequest, version: i16, ctx: &Context<'_>) -> (Vec<u8>, usize) {
        let large = large(request, version, ctx).unwrap().expect("large enough");
        let mut place = Place::default();
        let (mut all, mut pieces) = (Vec::new(), 0);
        while let Some(piece) = large.piece(&mut place, ctx).unwrap() {
            assert!(piece.len() < PIECE_BYTES + PIECE_BYTES / 8, "{} bytes", piece.len());
            all.extend_from_slice(&piece);
            pieces += 1;
        }
        (all, pieces)
    }

    #[test]
    fn the_pieces_are_the_usual_answer_in_every_version() {
        let fixture = crowd();
        let ctx = fixture.ctx();
        let named = |name: &str| MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
        for version in versions::<MetadataResponse>() {
            let operations = (8..=10).contains(&version);
            let base = MetadataRequest {
                include_cluster_authorized_operations: operations,
                include_topic_authorized_operations: version >= 8,
                allow_auto_topic_creation: version >= 4,
                ..MetadataRequest::default()
            };
            let all = if version == 0 { Some(Vec::new()) } else { None };
            let some = vec![named("many-17"), named("large"), named("many-3"), named("large")];
            let mut with_unknown = some.clone();
            with_unknown.splice(1..1, [named("unknown"), named("not/a name")]);
            for topics in [all, Some(some), Some(with_unknown)] {
                let request = MetadataRequest { topics, ..base.clone() };
                let (bytes, pieces) = in_pieces(&request, version, &ctx);
                assert_eq!(bytes, usual(&request, version, &ctx), "version {version}");
                assert!(pieces >= 3, "{pieces} pieces");
            }
        }
        let by_id = MetadataRequestTopic { name: None, topic_id: Uuid([2; 16]), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![by_id]), ..Default::default() };
        assert_eq!(in_pieces(&request, 13, &ctx).0, usual(&request, 13, &ctx));
        let unknown = MetadataRequestTopic { name: None, topic_id: Uuid([3; 16]), ..Default::default() };
        let topics = request.topics.into_iter().flatten().chain([unknown]).collect();
        let request = MetadataRequest {
            topics: Some(topics),
            include_topic_authorized_operations: true,
            ..Default::default()
        };
        assert_eq!(in_pieces(&request, 13, &ctx).0, usual(&request, 13, &ctx));
    }

    /// One unknown name among many sent the whole answer through memory once.
    #[test]
    fn one_unknown_topic_leaves_the_answer_in_pieces() {
        let fixture = crowd();
        let named = |name: &str| MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
        let request =
            MetadataRequest { topics: Some(vec![named("unknown"), named("large")]), ..Default::default() };
        let (bytes, pieces) = in_pieces(&request, 12, &fixture.ctx());
        assert!(pieces >= 3, "{pieces} pieces");
        assert_eq!(bytes, usual(&request, 12, &fixture.ctx()));
    }

    #[test]
    fn what_is_small_goes_the_usual_way() {
        let fixture = crowd();
        let named = |name: &str| MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
        for topics in [vec![], vec![named("many-1")], vec![named("many-1"), named("unknown")]] {
            let request = MetadataRequest { topics: Some(topics), ..Default::default() };
            assert!(large(&request, 12, &fixture.ctx()).unwrap().is_none());
        }
        let all = MetadataRequest { topics: None, ..Default::default() };
        assert!(large(&all, 12, &Fixture::new().ctx()).unwrap().is_none());
    }
}
