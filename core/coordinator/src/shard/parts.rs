//! Whether a long answer has room, and its parts if it has none.
//!
//! No answer is built here: lengths are added up, and names are shared.

use barnabas_base::Text;
use barnabas_wire::Str;
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, DescribeGroupsRequest, ListGroupsRequest, ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
};

use super::{Group, GroupShard};
use crate::Request;
use crate::framework::part::{self, cut, sum_beyond};
use crate::framework::{Caller, Part};
use crate::groups::{classic, consumer, share, streams, table_order};
use crate::offsets;

/// What one group takes while a list is cut into parts: its name, and a request if the part has no other group.
const PART_OF_LIST_BYTES: usize = 512;
/// The refusal of a group, which names it twice.
const REFUSED_BYTES: usize = 128;

impl GroupShard {
    /// What is to be asked instead of a request whose answer would take more than there is room for.
    pub(super) fn parts(&self, caller: &Caller<'_>, request: &Request) -> Option<Vec<Part<Request>>> {
        let room = caller.room?;
        match request {
            Request::ListGroups(list) => {
                let bytes = sum_beyond(room, self.groups.values().map(listed_bytes));
                let request = || Request::ListGroupsParts(list.clone());
                (bytes > room)
                    .then(|| vec![Part { request: request(), bytes: PART_OF_LIST_BYTES * self.groups.len() }])
            }
            Request::ListGroupsParts(list) => Some(self.parts_of_list(list, room)),
            Request::ListSomeGroups { list, ids } => {
                let bytes = |id: &Text| self.groups.get(id).map_or(0, listed_bytes);
                let request = |ids| Request::ListSomeGroups { list: list.clone(), ids };
                split(room, ids, bytes, request)
            }
            Request::OffsetFetch { group, require_stable } => {
                let bytes = offsets::fetched_bytes(&self.offsets, group, *require_stable);
                (bytes > room).then(|| vec![Part { request: request.clone(), bytes }])
            }
            describe => self.parts_of_descriptions(describe, room),
        }
    }

    /// The parts of a list, however short it is.
    fn parts_of_list(&self, list: &ListGroupsRequest, room: usize) -> Vec<Part<Request>> {
        let bytes = PART_OF_LIST_BYTES * self.groups.len();
        if bytes > room {
            // Groups were added.
            return vec![Part { request: Request::ListGroupsParts(list.clone()), bytes }];
        }
        let mut ids: Vec<Text> = self.groups.keys().cloned().collect();
        let count = ids.len();
        table_order::arrange(&mut ids, count, |id| id);
        let sized = ids.into_iter().map(|id| {
            let bytes = self.groups.get(&id).map_or(0, listed_bytes);
            (id, bytes)
        });
        cut(sized, |ids| Request::ListSomeGroups { list: list.clone(), ids })
    }

    fn parts_of_descriptions(&self, request: &Request, room: usize) -> Option<Vec<Part<Request>>> {
        let image = &self.world.image;
        let refused = |id: &Str| part::taken(REFUSED_BYTES + 2 * id.len());
        match request {
            Request::DescribeGroups(describe) => {
                let bytes = |id: &Str| match self.groups.get(id.as_str()) {
                    Some(Group::Classic(group)) => classic::described_bytes(group),
                    _ => refused(id),
                };
                split(room, &describe.groups, bytes, |groups| {
                    Request::DescribeGroups(DescribeGroupsRequest { groups, ..Default::default() })
                })
            }
            Request::ConsumerGroupDescribe(describe) => {
                let bytes = |id: &Str| match self.groups.get(id.as_str()) {
                    Some(Group::Consumer(group)) => consumer::described_bytes(group, image),
                    _ => refused(id),
                };
                split(room, &describe.group_ids, bytes, |group_ids| {
                    Request::ConsumerGroupDescribe(ConsumerGroupDescribeRequest {
                        group_ids,
                        ..Default::default()
                    })
                })
            }
            Request::ShareGroupDescribe(describe) => {
                let bytes = |id: &Str| match self.groups.get(id.as_str()) {
                    Some(Group::Share(group)) => share::described_bytes(group, image),
                    _ => refused(id),
                };
                split(room, &describe.group_ids, bytes, |group_ids| {
                    Request::ShareGroupDescribe(ShareGroupDescribeRequest { group_ids, ..Default::default() })
                })
            }
            Request::StreamsGroupDescribe(describe) => {
                let bytes = |id: &Str| match self.groups.get(id.as_str()) {
                    Some(Group::Streams(group)) => {
                        streams::described_bytes(group, describe.include_topology_description)
                    }
                    _ => refused(id),
                };
                split(room, &describe.group_ids, bytes, |group_ids| {
                    Request::StreamsGroupDescribe(StreamsGroupDescribeRequest {
                        group_ids,
                        include_topology_description: describe.include_topology_description,
                        ..Default::default()
                    })
                })
            }
            _ => None,
        }
    }
}

/// The parts of a request whose entries together take more than `room`.
fn split<T: Clone>(
    room: usize,
    entries: &[T],
    bytes: impl Fn(&T) -> usize,
    request: impl Fn(Vec<T>) -> Request,
) -> Option<Vec<Part<Request>>> {
    if sum_beyond(room, entries.iter().map(&bytes)) <= room {
        return None;
    }
    Some(cut(entries.iter().map(|entry| (entry.clone(), bytes(entry))), request))
}

/// What a group takes in a list, at most.
fn listed_bytes(group: &Group) -> usize {
    let protocol = match group {
        Group::Classic(group) => part::text_if(group.protocol_type.as_ref()),
        _ => 16,
    };
    part::taken(48 + part::text(group.id()) + protocol)
}
