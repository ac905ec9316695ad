//! A consumer's Fetch of a broker that repairs its replica while it has to stay in the ISR: a tagged field that no
//! schema of Kafka's names.
//!
//! A follower's Fetch would acknowledge only what lies below the damage (core/replica's `repair`). So the broker reads
//! as consumers do, and names itself, for two reasons: with CLUSTER_ACTION it needs no READ on the topic, as a follower
//! does not; and a leader that is damaged at the same place counts who else lacks the batch.
//!
//! Apache Kafka's brokers ignore tagged fields that they do not know (KIP-482). There the broker's principal needs
//! READ.
//!
//! ```text
//! tag 10001 of a Fetch request (version 12 and later), left out by all others
//! └─ broker  int32, not negative
//! ```
//!
//! Always true: without CLUSTER_ACTION, or with any other bytes, the field changes nothing.

use barnabas_base::BrokerId;
use barnabas_wire::{TaggedFields, Writer};

/// The field's tag. Known to no Kafka.
const TAG: u32 = 10_001;

/// Adds the field. To be called before any field of a higher tag is added.
pub(crate) fn write(fields: &mut TaggedFields, broker: BrokerId) {
    let mut w = Writer::new();
    w.int32(broker.get());
    fields.push(TAG, w.finish().into_bytes());
}

/// The broker that a request names.
pub(super) fn read(fields: &TaggedFields) -> Option<BrokerId> {
    let field = fields.as_slice().iter().find(|field| field.tag == TAG)?;
    let bytes: [u8; 4] = field.data.as_ref().try_into().ok()?;
    Some(BrokerId(i32::from_be_bytes(bytes))).filter(|broker| broker.get() >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn broker_is_read_and_other_bytes_are_not() {
        let mut fields = TaggedFields::default();
        assert_eq!(read(&fields), None);
        write(&mut fields, BrokerId(7));
        assert_eq!(read(&fields), Some(BrokerId(7)));
        for other in [&[][..], &[0, 0, 7], &[0, 0, 0, 0, 7], &[0xff, 0xff, 0xff, 0xff]] {
            let mut fields = TaggedFields::default();
            fields.push(TAG, Bytes::from_static(other));
            assert_eq!(read(&fields), None, "{other:?}");
        }
    }
}
