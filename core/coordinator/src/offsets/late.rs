//! Commits within transactions that come too late: over a connection that their producer has given up.
//!
//! As with the ends of transactions (transactions/shard/late.rs): before version 2 all transactions of a producer have
//! one epoch, and offsets of the last one that come late would be committed with the next, in place of its own. So who
//! was heard over a connection is not heard over an older one any more.
//!
//! What is not known here: that the next transaction has begun, as only its coordinator hears. Offsets that come late
//! are taken as long as none of the next transaction have come over the new connection.
//!
//! Bounded: the newest [`PRODUCERS_MAX`] producers are remembered, and at most as many again.

use barnabas_base::{ConnectionNumber, Map, ProducerEpoch, ProducerId};

/// A late request comes within minutes, as long as a kernel tries to send it. Shards are dozens, so that this is a few
/// MB in all.
const PRODUCERS_MAX: usize = 1_000;

/// Who was last heard over which connection.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    young: Map<ProducerId, (ProducerEpoch, ConnectionNumber)>,
    /// What was `young` when that was full last.
    old: Map<ProducerId, (ProducerEpoch, ConnectionNumber)>,
}

impl Heard {
    /// Whether the producer has used a newer connection. Under another epoch the partition refuses it, or its
    /// history starts over.
    pub fn is_late(&self, (id, epoch): (ProducerId, ProducerEpoch), connection: ConnectionNumber) -> bool {
        let heard = self.young.get(&id).or_else(|| self.old.get(&id));
        heard.is_some_and(|&(known, newest)| epoch == known && connection < newest)
    }

    /// The producer has been heard, and was not late.
    pub fn hear(&mut self, (id, epoch): (ProducerId, ProducerEpoch), connection: ConnectionNumber) {
        let before = self.young.get(&id).or_else(|| self.old.get(&id));
        if before.is_some_and(|&(known, _)| epoch < known) {
            return;
        }
        if self.young.len() >= PRODUCERS_MAX && !self.young.contains_key(&id) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, (epoch, connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: ProducerEpoch = ProducerEpoch(3);

    fn producer(id: i64) -> (ProducerId, ProducerEpoch) {
        (ProducerId(id), EPOCH)
    }

    #[test]
    fn an_older_connection_is_late_under_the_same_epoch_only() {
        let mut heard = Heard::default();
        assert!(!heard.is_late(producer(1), ConnectionNumber(7)));
        heard.hear(producer(1), ConnectionNumber(7));
        assert!(heard.is_late(producer(1), ConnectionNumber(6)));
        assert!(!heard.is_late(producer(1), ConnectionNumber(7)));
        assert!(!heard.is_late(producer(1), ConnectionNumber(8)));
        assert!(!heard.is_late(producer(2), ConnectionNumber(6)));
        let next = (ProducerId(1), ProducerEpoch(4));
        assert!(!heard.is_late(next, ConnectionNumber(6)));
        heard.hear(next, ConnectionNumber(6));
        heard.hear(producer(1), ConnectionNumber(9));
        assert!(!heard.is_late(next, ConnectionNumber(6)), "who is fenced is not heard");
        assert!(heard.is_late(next, ConnectionNumber(5)));
    }

    #[test]
    fn the_newest_are_remembered_and_the_others_are_forgotten() {
        let mut heard = Heard::default();
        let many = 10 * PRODUCERS_MAX as i64;
        (0..many).for_each(|id| heard.hear(producer(id), ConnectionNumber(7)));
        assert!(heard.young.len() + heard.old.len() <= 2 * PRODUCERS_MAX);
        let newest = many - PRODUCERS_MAX as i64..many;
        assert!(newest.into_iter().all(|id| heard.is_late(producer(id), ConnectionNumber(6))));
        assert!(!heard.is_late(producer(0), ConnectionNumber(6)));
    }
}
