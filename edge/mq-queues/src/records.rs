//! Which record is this message, and back.
//!
//! | record | message |
//! |---|---|
//! | value | the data behind an MQRFH2 |
//! | headers | properties of the folder `usr`, as text; `JMSMessageID` and the like |
//! | key | the group's name of JMS (`JMSXGroupID`) |
//! | header [`DESCRIPTOR`] | `1`, the MQMD as it was put (version 2, little-endian), the MQRFH2 |
//!
//! A record of another producer has no such header: its descriptor is made of it, and its headers become properties. A
//! header that cannot be read is ignored: anyone who may write to the topic can write one.

use crate::dates;
use barnabas_client::{Outgoing, Received};
use barnabas_mq::{
    Descriptor, FORMAT_NONE, FORMAT_RFH2, FORMAT_STRING, Order, Property, Rfh2, jms, read_rfh2, write_rfh2,
};
use bytes::{BufMut, Bytes, BytesMut};

pub const DESCRIPTOR: &str = "barnabas.mq";
const VERSION: u8 = b'1';
/// Bytes of [`DESCRIPTOR`] without an MQRFH2: what is allocated at once.
const KEPT_BYTES: usize = 365;
/// Of ids that are made of a record's place.
const PLACE: &[u8; 4] = b"BNBS";

/// A message as it is got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Of the data behind the properties.
    pub md: Descriptor,
    pub properties: Option<Bytes>,
    /// Whether the properties were put as an MQRFH2, and not made of a record's headers.
    pub was_put: bool,
    pub body: Bytes,
}

/// The record of a message that was put at `now_ms`. `md` is complete.
pub fn record(md: &Descriptor, data: &Bytes, now_ms: i64) -> Outgoing {
    let rfh2 = (md.format == FORMAT_RFH2).then(|| read_rfh2(data, md.encoding)).flatten();
    let body = rfh2.as_ref().map_or(0, |rfh2| rfh2.raw.len());
    let body = data.slice(body..);
    let mut headers = jms::headers(md, rfh2.as_ref(), now_ms);
    let group = jms::property(rfh2.as_ref(), "jms", "Gid").map(str::to_owned);
    let mut kept = BytesMut::with_capacity(KEPT_BYTES + rfh2.as_ref().map_or(0, |rfh2| rfh2.raw.len()));
    kept.put_u8(VERSION);
    kept.put_slice(&Descriptor { version: 2, ..md.clone() }.encode(Order::Little));
    kept.put_slice(rfh2.as_ref().map_or(&[][..], |rfh2| &rfh2.raw));
    headers.push((Bytes::from_static(DESCRIPTOR.as_bytes()), Some(kept.freeze())));
    let (key, value) = (group.map(Bytes::from), Some(body));
    Outgoing { partition: None, key, value, headers, timestamp_ms: Some(now_ms) }
}

/// The message of a record that is delivered for the `delivery`th time (from 1).
pub fn message(topic: &str, record: &Received, delivery: i16) -> Message {
    let mut message = kept(record).unwrap_or_else(|| of_another_producer(topic, record));
    message.md.backout_count = u32::try_from(delivery.max(1) - 1).unwrap_or(0);
    message
}

fn kept(record: &Received) -> Option<Message> {
    let header = record.headers.iter().rev().find(|(name, _)| &name[..] == DESCRIPTOR.as_bytes());
    let bytes = header?.1.as_ref()?;
    if bytes.first() != Some(&VERSION) {
        return None;
    }
    let (mut md, left) = Descriptor::read(&bytes[1..], Order::Little).ok()?;
    let body = record.value.clone().unwrap_or_default();
    let properties = bytes.slice_ref(left);
    if properties.is_empty() {
        return Some(Message { md, properties: None, was_put: true, body });
    }
    let Rfh2 { encoding, ccsid, format, raw, .. } = read_rfh2(&properties, md.encoding)?;
    // The descriptor says of the properties what they say of the body.
    (md.format, md.encoding) = (format, encoding);
    md.ccsid = if ccsid == -2 { md.ccsid } else { ccsid };
    Some(Message { md, properties: Some(raw), was_put: true, body })
}

fn of_another_producer(topic: &str, record: &Received) -> Message {
    let body = record.value.clone().unwrap_or_default();
    let is_text = std::str::from_utf8(&body).is_ok();
    let format = if is_text { FORMAT_STRING } else { FORMAT_NONE };
    let (put_date, put_time) = dates::of(record.timestamp_ms);
    let mut md =
        Descriptor { format, msg_id: place_id(topic, record), put_date, put_time, ..Descriptor::default() };
    let kind = if is_text { "jms_text" } else { "jms_bytes" };
    let mut properties = vec![Property::text("mcd", "Msd", kind)];
    jms::set_headers(&record.headers, &mut md, &mut properties);
    let has_group = properties.iter().any(|property| property.name == "Gid");
    if let Some(Ok(key)) = record.key.as_deref().map(std::str::from_utf8)
        && !has_group
    {
        properties.push(Property::text("jms", "Gid", key));
    }
    let rfh2 = write_rfh2(&properties, md.format, md.ccsid, md.encoding);
    Message { md, properties: Some(rfh2), was_put: false, body }
}

/// The same whenever the record is read.
fn place_id(topic: &str, record: &Received) -> [u8; 24] {
    // FNV-1a: another topic's records have other ids.
    let hash = topic.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mut id = [0; 24];
    id[..4].copy_from_slice(PLACE);
    id[4..12].copy_from_slice(&hash.to_be_bytes());
    id[12..16].copy_from_slice(&record.partition.get().to_be_bytes());
    id[16..].copy_from_slice(&record.offset.get().to_be_bytes());
    id
}

/// What is left of a message's time, in tenths of a second, from 1; −1: it has no end. `None`: it is over.
pub fn time_left(message: &Message, record: &Received, now_ms: i64) -> Option<i32> {
    if message.md.expiry <= 0 {
        return Some(-1);
    }
    let left = jms::expires_at(&message.md, record.timestamp_ms).saturating_sub(now_ms);
    (left > 0).then(|| i32::try_from(left / 100).unwrap_or(i32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{Offset, PartitionIndex};

    fn received(record: Outgoing) -> Received {
        Received {
            partition: PartitionIndex(0),
            offset: Offset(7),
            timestamp_ms: 1000,
            dated_by_broker: false,
            key: record.key,
            value: record.value,
            headers: record.headers,
        }
    }

    fn text_of<'a>(record: &'a Outgoing, name: &str) -> Option<&'a [u8]> {
        let found = record.headers.iter().find(|(key, _)| &key[..] == name.as_bytes());
        found.and_then(|(_, value)| value.as_deref())
    }

    #[test]
    fn message_survives_the_way_through_a_topic() {
        let own = |text: &str| text.to_owned();
        let properties = vec![
            Property { folder: own("jms"), name: own("Gid"), kind: None, value: Some(own("g")) },
            Property { folder: own("usr"), name: own("n"), kind: Some(own("i4")), value: Some(own("5")) },
        ];
        let rfh2 = write_rfh2(&properties, FORMAT_STRING, 1208, 273);
        let md = Descriptor { format: FORMAT_RFH2, msg_id: [9; 24], expiry: 50, ..Descriptor::default() };
        let data = Bytes::from([&rfh2[..], b"hello"].concat());
        let record = record(&md, &data, 1000);
        assert_eq!((record.value.as_deref(), record.key.as_deref()), (Some(&b"hello"[..]), Some(&b"g"[..])));
        assert_eq!(text_of(&record, "n"), Some(&b"5"[..]));
        assert_eq!(text_of(&record, "JMSExpiration"), Some(&b"6000"[..]));
        let record = received(record);
        let back = message("t", &record, 3);
        let wanted = Descriptor { format: FORMAT_STRING, backout_count: 2, ..md };
        assert_eq!(
            (back.md.clone(), back.properties.clone(), &back.body[..]),
            (wanted, Some(rfh2), &b"hello"[..])
        );
        assert_eq!(time_left(&back, &record, 2000), Some(40));
        assert_eq!(time_left(&back, &record, 6000), None);
    }

    #[test]
    fn record_with_any_timestamp_has_a_message_and_a_time() {
        let md = Descriptor { expiry: i32::MAX, ..Descriptor::default() };
        for timestamp_ms in [i64::MIN, -1, i64::MAX] {
            let record = Received { timestamp_ms, ..received(record(&md, &Bytes::new(), 0)) };
            assert_eq!(time_left(&message("t", &record, 1), &record, i64::MAX), None, "{timestamp_ms}");
            message("t", &Received { headers: Vec::new(), ..record }, i16::MIN);
        }
    }

    #[test]
    fn record_of_another_producer_is_a_message() {
        let header = |name: &'static str, value: &'static [u8]| {
            (Bytes::from_static(name.as_bytes()), Some(Bytes::from_static(value)))
        };
        let record = received(Outgoing {
            key: Some(Bytes::from_static(b"k")),
            value: Some(Bytes::from_static(b"v")),
            headers: vec![header("a", b"1"), header("no name", b"1"), header(DESCRIPTOR, b"1\xff")],
            ..Outgoing::default()
        });
        let made = message("t", &record, 1);
        assert_eq!((made.md.format, &made.body[..], made.was_put), (FORMAT_STRING, &b"v"[..], false));
        let read = read_rfh2(&made.properties.clone().expect("made"), 273).expect("whole");
        let all: Vec<_> = read.properties.iter().map(|one| (&one.name[..], one.value.as_deref())).collect();
        assert_eq!(all, [("Msd", Some("jms_text")), ("a", Some("1")), ("Gid", Some("k"))]);
        assert_eq!(made.md.msg_id, message("t", &record, 2).md.msg_id);
        assert_ne!(made.md.msg_id, message("u", &record, 1).md.msg_id);
    }
}
