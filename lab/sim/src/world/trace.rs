//! What of a day is in its trace.

use barnabas_base::{BrokerId, Offset};

use super::World;
use crate::broker::Event;

impl World {
    pub(super) fn trace(&mut self, id: BrokerId, event: &Event) {
        let (kind, value) = match event {
            Event::Acked { base, .. } => (1, *base),
            Event::HighWatermark { to, .. } => (2, *to),
            Event::Cut { to, .. } => {
                self.day.cuts += 1;
                (3, *to)
            }
            Event::Leads { .. } => (4, Offset::ZERO),
            Event::LastStable { to, .. } => (5, *to),
            Event::GaveUp { to, .. } => {
                self.day.repairs += 1;
                (6, *to)
            }
            Event::Mended { .. } => {
                self.day.repairs += 1;
                (0, Offset::ZERO)
            }
            Event::Opened { start, .. } => (7, *start),
            Event::Started { start, .. } => (8, *start),
            Event::Compacted { bound, .. } => {
                self.day.compactions += 1;
                (9, *bound)
            }
            Event::Moved { after, .. } => (10, after.end),
            Event::Failed(_)
            | Event::Assigned { .. }
            | Event::Served { .. }
            | Event::Took { .. }
            | Event::AsksFor { .. }
            | Event::Deleted { .. }
            | Event::Left { .. }
            | Event::Durable { .. }
            | Event::WillCut { .. }
            | Event::LookedUp { .. }
            | Event::Offline { .. } => return,
        };
        self.note((self.now.0 * 16 + id.get() as u64) * 16 + kind);
        self.note(value.get() as u64);
    }
}
