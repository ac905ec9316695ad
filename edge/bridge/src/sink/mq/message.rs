//! The message of MQ of a record.
//!
//! | record | message |
//! |---|---|
//! | value | the body: format `MQSTR`, UTF-8, where it is a text by `value.converter`, or JSON; else no format |
//! | headers, with `mq.kafka.headers.copy.to.jms.properties` | JMS's fields, others the folder `usr` |
//! | its place | MQMD MsgId: the same whenever it is sent, so a getter can tell that it came twice |
//!
//! An MQRFH2 stands in front of JMS messages, and of others where there are properties.

use barnabas_amqp_records::{Durability, MessageRules};
use barnabas_client::Received;
use barnabas_mq::{Descriptor, FORMAT_NONE, FORMAT_RFH2, FORMAT_STRING, Property, fixed, jms, write_rfh2};
use bytes::Bytes;
use sha2::{Digest, Sha256};

const PRIORITY: i32 = 4;
/// MQPER: not persistent, persistent, as the queue is defined.
const VOLATILE: u32 = 0;
const PERSISTENT: u32 = 1;
const AS_QUEUE: u32 = 2;
/// MQMT_REQUEST: a reply is wanted.
const REQUEST: u32 = 1;

/// Descriptor and data.
///
/// # Errors
/// Why the record cannot be a message as the rules want it.
pub fn message(
    rules: &MessageRules,
    is_jms: bool,
    connector: &str,
    topic: &str,
    record: &Received,
) -> Result<(Descriptor, Bytes), String> {
    let is_text = rules.is_text || rules.is_json;
    check(rules, is_text, record)?;
    let format = if is_text && record.value.is_some() { FORMAT_STRING } else { FORMAT_NONE };
    let msg_id = identity(connector, topic, record);
    let mut md = Descriptor { format, msg_id, priority: PRIORITY, ..Descriptor::default() };
    let mut properties = Vec::new();
    if is_jms {
        let kind = match (&record.value, is_text) {
            (None, _) => "jms_none",
            (_, true) => "jms_text",
            (_, false) => "jms_bytes",
        };
        properties.push(Property::text("mcd", "Msd", kind));
    }
    if rules.reads_headers {
        let from = properties.len();
        jms::set_headers(&record.headers, &mut md, &mut properties);
        properties[from..].iter_mut().filter(|one| one.folder == "usr").for_each(set_type);
    }
    set_rules(rules, topic, record, &mut md, &mut properties);
    let body = record.value.clone().unwrap_or_default();
    if properties.is_empty() {
        return Ok((md, body));
    }
    let rfh2 = write_rfh2(&properties, md.format, md.ccsid, md.encoding);
    md.format = FORMAT_RFH2;
    Ok((md, Bytes::from([&rfh2[..], &body].concat())))
}

fn check(rules: &MessageRules, is_text: bool, record: &Received) -> Result<(), String> {
    let Some(value) = &record.value else { return Ok(()) };
    if rules.is_json {
        let parsed: Result<serde_json::Value, _> = serde_json::from_slice(value);
        parsed.map_err(|error| format!("the value is not JSON: {error}"))?;
    }
    if is_text {
        std::str::from_utf8(value).map_err(|error| format!("the value is not a text: {error}"))?;
    }
    Ok(())
}

/// What the connector's file says of each message.
fn set_rules(
    rules: &MessageRules,
    topic: &str,
    record: &Received,
    md: &mut Descriptor,
    properties: &mut Vec<Property>,
) {
    if let (true, Some(key)) = (rules.key_is_correlation, &record.key) {
        properties.retain(|one| (&one.folder[..], &one.name[..]) != ("jms", "Cid"));
        correlate(key, md, properties);
    }
    if let Some(reply_to) = &rules.reply_to {
        // JMS's form is queue://MANAGER/NAME.
        let name = reply_to.strip_prefix("queue://").and_then(|rest| rest.split_once('/'));
        md.reply_to_q = fixed(name.map_or(reply_to, |(_, name)| name));
        md.msg_type = REQUEST;
    }
    if rules.ttl_ms > 0 {
        md.expiry = i32::try_from(rules.ttl_ms.div_ceil(100)).unwrap_or(i32::MAX);
    }
    let said = record.headers.iter().rev().find(|(name, _)| &name[..] == b"JMSDeliveryMode");
    md.persistence = match rules.durability {
        Durability::Durable => PERSISTENT,
        Durability::Volatile => VOLATILE,
        Durability::AsQueue => AS_QUEUE,
        Durability::AsSource => match said.and_then(|(_, value)| value.as_deref()) {
            Some(b"1") => VOLATILE,
            _ => PERSISTENT,
        },
    };
    let mut add = |name: &Option<String>, kind: Option<&str>, value: String| {
        if let Some(name) = name {
            properties
                .push(Property { kind: kind.map(str::to_owned), ..Property::text("usr", name, &value) });
        }
    };
    add(&rules.topic_property, None, topic.to_owned());
    add(&rules.partition_property, Some("i4"), record.partition.to_string());
    add(&rules.offset_property, Some("i8"), record.offset.to_string());
}

/// A text that is an id of MQ becomes that id; others are JMS's, and their first bytes MQ's.
fn correlate(key: &[u8], md: &mut Descriptor, properties: &mut Vec<Property>) {
    let text = std::str::from_utf8(key).ok();
    if let Some(id) = text.and_then(jms::id_of) {
        md.correl_id = id;
        return;
    }
    let length = key.len().min(md.correl_id.len());
    md.correl_id = [0; 24];
    md.correl_id[..length].copy_from_slice(&key[..length]);
    if let Some(text) = text {
        properties.push(Property::text("jms", "Cid", text));
    }
}

/// A text that is exactly a number's or boolean's own text becomes that.
fn set_type(property: &mut Property) {
    let Some(text) = &property.value else { return };
    let kind = match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(number), _) if number.to_string() == *text => "i8",
        (Err(_), Ok(number)) if number.is_finite() && number.to_string() == *text => "r8",
        _ if text == "true" || text == "false" => "boolean",
        _ => return,
    };
    property.kind = Some(kind.to_owned());
    if kind == "boolean" {
        property.value = Some(if text == "true" { "1" } else { "0" }.to_owned());
    }
}

fn identity(connector: &str, topic: &str, record: &Received) -> [u8; 24] {
    let text = format!("{connector}:{topic}:{}:{}", record.partition, record.offset);
    let hash = Sha256::digest(text.as_bytes());
    hash.first_chunk::<24>().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
