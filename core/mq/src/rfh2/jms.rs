//! A message's descriptor and properties as the headers of JMS, and back: what the listener and the bridge make of them
//! is the same.
//!
//! | header | of the message |
//! |---|---|
//! | `JMSMessageID` | MQMD MsgId, as `ID:` and digits |
//! | `JMSCorrelationID` | folder `jms`, `Cid`; else MQMD CorrelId |
//! | `JMSReplyTo`, `JMSPriority`, `JMSDeliveryMode`, `JMSExpiration` | MQMD |
//! | `JMSType` | folder `mcd`, `Type` |
//! | `JMSTimestamp` | when it was put |
//! | `JMSXGroupID` | folder `jms`, `Gid` |
//! | others | folder `usr` |

use super::{Property, Rfh2};
use crate::structures::descriptor::Descriptor;
use crate::text::{fixed, trimmed};
use bytes::Bytes;

/// Before the names of headers that listeners keep for themselves.
pub const OWN: &str = "barnabas.";
/// Headers of a message without properties of its own: what is allocated at once.
const HEADERS: usize = 8;
/// MQPER_PERSISTENT.
const PERSISTENT: u32 = 1;

/// `ID:` and 48 digits.
pub fn id_text(id: &[u8; 24]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(3 + 2 * id.len());
    text.push_str("ID:");
    for byte in id {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 0xf)].into());
    }
    text
}

/// The id of a text that [`id_text`] makes.
pub fn id_of(text: &str) -> Option<[u8; 24]> {
    let digits = text.strip_prefix("ID:")?.as_bytes();
    let mut id = [0; 24];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    (digits.len() == 48).then_some(id)
}

/// A property's text.
pub fn property<'a>(rfh2: Option<&'a Rfh2>, folder: &str, name: &str) -> Option<&'a str> {
    let mut all = rfh2.into_iter().flat_map(|rfh2| &rfh2.properties);
    all.find(|property| property.folder == folder && property.name == name)?.value.as_deref()
}

/// When a message's time is over, in milliseconds since 1970. Only of one whose time is limited.
pub fn expires_at(md: &Descriptor, put_ms: i64) -> i64 {
    put_ms.saturating_add(i64::from(md.expiry) * 100)
}

/// The headers of a message that was put at `put_ms`.
pub fn headers(md: &Descriptor, rfh2: Option<&Rfh2>, put_ms: i64) -> Vec<(Bytes, Option<Bytes>)> {
    let mut headers = Vec::with_capacity(HEADERS);
    let mut add = |name: &'static str, value: Option<String>| {
        if let Some(value) = value {
            headers.push((Bytes::from_static(name.as_bytes()), Some(Bytes::from(value))));
        }
    };
    let of = |folder: &str, name: &str| property(rfh2, folder, name).map(str::to_owned);
    add("JMSMessageID", Some(id_text(&md.msg_id)));
    let correl = (md.correl_id != [0; 24]).then(|| id_text(&md.correl_id));
    add("JMSCorrelationID", of("jms", "Cid").or(correl));
    add("JMSReplyTo", Some(trimmed(&md.reply_to_q)).filter(|name| !name.is_empty()));
    add("JMSType", of("mcd", "Type"));
    add("JMSTimestamp", Some(put_ms.to_string()));
    add("JMSPriority", Some(md.priority.to_string()));
    add("JMSDeliveryMode", Some(if md.persistence == PERSISTENT { "2" } else { "1" }.to_owned()));
    add("JMSExpiration", (md.expiry > 0).then(|| expires_at(md, put_ms).to_string()));
    add("JMSXGroupID", of("jms", "Gid"));
    let usr = rfh2.into_iter().flat_map(|rfh2| &rfh2.properties).filter(|property| property.folder == "usr");
    for property in usr {
        if let (Some(value), false) = (&property.value, property.name.starts_with(OWN)) {
            let name = Bytes::copy_from_slice(property.name.as_bytes());
            headers.push((name, Some(Bytes::copy_from_slice(value.as_bytes()))));
        }
    }
    headers
}

/// Sets what a record's headers say in its descriptor and properties: the way back. Headers that are no text, or whose
/// names are none of a property, are left out.
pub fn set_headers(headers: &[(Bytes, Option<Bytes>)], md: &mut Descriptor, properties: &mut Vec<Property>) {
    for (name, value) in headers {
        let text = value.as_deref().map_or(Some(""), |value| std::str::from_utf8(value).ok());
        let (Ok(name), Some(text)) = (std::str::from_utf8(name), text) else { continue };
        match name {
            "JMSCorrelationID" => properties.push(Property::text("jms", "Cid", text)),
            "JMSType" => properties.push(Property::text("mcd", "Type", text)),
            "JMSReplyTo" if text.len() <= 48 => md.reply_to_q = fixed(text),
            "JMSPriority" => md.priority = text.parse().ok().filter(|at| (0..=9).contains(at)).unwrap_or(4),
            "JMSDeliveryMode" => md.persistence = u32::from(text != "1"),
            "JMSXGroupID" => properties.push(Property::text("jms", "Gid", text)),
            name if name.starts_with("JMS") || name.starts_with(OWN) || !is_identifier(name) => {}
            name => properties.push(Property::text("usr", name, text)),
        }
    }
}

/// Names of properties are those of Java and of XML.
pub fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    first && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_read_as_it_was_written() {
        let mut id = [0xa5; 24];
        id[23] = 0;
        assert_eq!(id_of(&id_text(&id)), Some(id));
        for wrong in ["ID:", "a5", "ID:zz", &id_text(&id)[..50], &format!("{}00", id_text(&id))] {
            assert_eq!(id_of(wrong), None, "{wrong}");
        }
    }
}
