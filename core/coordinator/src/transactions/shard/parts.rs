//! Whether a long answer has room, and its parts if it has none. As for groups: crate::shard's parts.rs.

use barnabas_base::Text;
use barnabas_wire::Str;
use barnabas_wire::messages::{DescribeTransactionsRequest, ListTransactionsRequest};

use super::{Entry, TransactionShard};
use crate::framework::Part;
use crate::framework::part::{self, cut, sum_beyond};
use crate::transactions::{TransactionCaller, TransactionRequest};

/// What one id takes while a list is cut into parts: its name, and a request if the part has no other id.
const PART_OF_LIST_BYTES: usize = 512;

type Parts = Vec<Part<TransactionRequest>>;

impl TransactionShard {
    /// What is to be asked instead of a request whose answer would take more than there is room for.
    pub(super) fn parts(&self, caller: TransactionCaller, request: &TransactionRequest) -> Option<Parts> {
        let room = caller.room?;
        match request {
            TransactionRequest::List(list) => {
                let bytes = sum_beyond(room, self.entries.keys().map(listed_bytes));
                (bytes > room).then(|| {
                    let request = TransactionRequest::ListParts(list.clone());
                    vec![Part { request, bytes: PART_OF_LIST_BYTES * self.entries.len() }]
                })
            }
            TransactionRequest::ListParts(list) => Some(self.parts_of_list(list, room)),
            TransactionRequest::ListSome { list, ids } => {
                let request = |ids| TransactionRequest::ListSome { list: list.clone(), ids };
                let is_long = sum_beyond(room, ids.iter().map(listed_bytes)) > room;
                is_long.then(|| cut(ids.iter().map(|id| (id.clone(), listed_bytes(id))), request))
            }
            TransactionRequest::Describe(describe) => {
                let bytes = |id: &Str| {
                    let known = self.entries.get(id.as_str()).map_or(0, described_bytes);
                    known + part::taken(64 + part::text(id))
                };
                let ids = &describe.transactional_ids;
                let request = |transactional_ids| {
                    TransactionRequest::Describe(DescribeTransactionsRequest {
                        transactional_ids,
                        ..Default::default()
                    })
                };
                let is_long = sum_beyond(room, ids.iter().map(bytes)) > room;
                is_long.then(|| cut(ids.iter().map(|id| (id.clone(), bytes(id))), request))
            }
            _ => None,
        }
    }

    /// The parts of a list, however short it is.
    fn parts_of_list(&self, list: &ListTransactionsRequest, room: usize) -> Parts {
        let bytes = PART_OF_LIST_BYTES * self.entries.len();
        if bytes > room {
            // Ids were added.
            return vec![Part { request: TransactionRequest::ListParts(list.clone()), bytes }];
        }
        let sized = self.entries.keys().map(|id| (id.clone(), listed_bytes(id)));
        cut(sized, |ids| TransactionRequest::ListSome { list: list.clone(), ids })
    }
}

/// What an id takes in a list, at most.
fn listed_bytes(id: &Text) -> usize {
    part::taken(40 + part::text(id))
}

/// What a description takes beside its id, at most.
fn described_bytes(entry: &Entry) -> usize {
    let known = entry.transaction.committed().map(|known| &known.partitions);
    let partitions = match &entry.markers {
        Some(markers) => Some(&markers.awaited),
        None => known,
    };
    let mut last = None;
    let bytes = partitions.into_iter().flatten().map(|partition| {
        let is_new = last.replace(&partition.topic) != Some(&partition.topic);
        4 + if is_new { 8 + part::text(&partition.topic) } else { 0 }
    });
    part::taken(bytes.sum())
}
