//! When records were written, remembered by where they stand: a group that stands still is looked up once.

use crate::mailbox::{AskItem, PartitionKey, Question, Said};
use crate::node::Node;
use crate::routing::owners;
use barnabas_base::{Map, Offset, TimestampMs};

/// Records looked up for one look at all groups: each costs its partition's owner a read of some kilobytes.
const LOOK_UPS_MAX: usize = 1_000;
/// Asked of the owners at once, so that none is kept from its work for more than some milliseconds.
const AT_ONCE: usize = 64;

type Place = (PartitionKey, Offset);

/// See the file's header.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// `None`: the record has no timestamp, or is not there.
    known: Map<Place, Option<TimestampMs>>,
}

impl Times {
    /// Finds out what is not known of these places, some of it if that is too much. What is not among them is
    /// forgotten.
    pub async fn learn(&mut self, node: &Node, places: impl Iterator<Item = Place>) {
        let mut old = std::mem::take(&mut self.known);
        let mut unknown = Vec::new();
        for place in places {
            match old.remove(&place) {
                Some(known) => {
                    self.known.insert(place, known);
                }
                None if unknown.len() < LOOK_UPS_MAX && !self.known.contains_key(&place) => {
                    unknown.push(place);
                }
                None => {}
            }
        }
        for some in unknown.chunks(AT_ONCE) {
            let items = some.iter().enumerate().map(|(slot, &(partition, at))| AskItem {
                slot: slot as u32,
                partition,
                leader_epoch: None,
                question: Question::TimeAt(at),
            });
            for outcome in owners::ask(node, items.collect()).await.all().await {
                let Some(place) = some.get(outcome.slot as usize) else { continue };
                let time = match outcome.result {
                    Ok(Said::TimeAt(time)) => time,
                    Ok(_) | Err(_) => None,
                };
                self.known.insert(*place, time);
            }
        }
    }

    /// When the record at this place was written.
    pub fn get(&self, place: Place) -> Option<TimestampMs> {
        self.known.get(&place).copied().flatten()
    }
}
