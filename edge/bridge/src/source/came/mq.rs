//! A message of MQ as a record. Headers are those that the listener gives its records (core/mq's `jms`).
//!
//! | message | record's value |
//! |---|---|
//! | format `MQSTR` | its text, in UTF-8 where the queue manager or core/mq can convert it |
//! | JMS's message without a body | null |
//! | others | the bytes behind the properties |

use crate::state::Id;
use barnabas_amqp_records::{KeyHeader, RecordRules};
use barnabas_client::Outgoing;
use barnabas_mq::{
    Descriptor, FORMAT_RFH2, FORMAT_STRING, Got, Rfh2, convert, dates, jms, read_rfh2, trimmed,
};
use bytes::Bytes;

const UTF_8: i32 = 1208;
/// MQCCSI_INHERIT: the properties say of the data what the descriptor says of the properties.
const INHERITED: i32 = -2;

#[derive(Debug)]
pub(in crate::source) struct Message {
    pub md: Descriptor,
    pub id: Option<Id>,
    pub put_ms: Option<i64>,
    rfh2: Option<Rfh2>,
    body: Option<Bytes>,
    queue: Option<String>,
}

impl Message {
    /// # Errors
    /// Its properties cannot be read.
    pub fn read(got: &Got) -> Result<Self, String> {
        let (md, data) = (&got.md, &got.data);
        let rfh2 = match md.format == FORMAT_RFH2 {
            true => Some(read_rfh2(data, md.encoding).ok_or("its MQRFH2 cannot be read")?),
            false => None,
        };
        let (format, ccsid) = rfh2.as_ref().map_or((md.format, md.ccsid), |rfh2| {
            (rfh2.format, if rfh2.ccsid == INHERITED { md.ccsid } else { rfh2.ccsid })
        });
        let body = data.slice(rfh2.as_ref().map_or(0, |rfh2| rfh2.raw.len())..);
        let converted = if format == FORMAT_STRING { convert(&body, ccsid, UTF_8) } else { None };
        let is_none = jms::property(rfh2.as_ref(), "mcd", "Msd") == Some("jms_none");
        Ok(Self {
            id: Id::of_mq(md, data),
            put_ms: dates::ms_of(&md.put_date, &md.put_time),
            body: (!is_none).then(|| converted.map_or(body, Bytes::from)),
            queue: jms::property(rfh2.as_ref(), "jms", "Dst").map(str::to_owned),
            rfh2,
            md: md.clone(),
        })
    }

    /// # Errors
    /// The body is not JSON, where it must be.
    pub fn record(&self, rules: &RecordRules) -> Result<Outgoing, String> {
        if rules.is_json {
            let text = self.body.as_deref().unwrap_or_default();
            let parsed: Result<serde_json::Value, _> = serde_json::from_slice(text);
            parsed.map_err(|error| format!("the body is not JSON: {error}"))?;
        }
        let headers = if rules.copies_headers { self.headers() } else { Vec::new() };
        Ok(Outgoing {
            partition: None,
            key: rules.key.and_then(|key| self.key(key)),
            value: self.body.clone(),
            headers,
            timestamp_ms: self.put_ms,
        })
    }

    pub fn letter(&self) -> Outgoing {
        Outgoing { value: self.body.clone(), headers: self.headers(), ..Outgoing::default() }
    }

    fn headers(&self) -> Vec<(Bytes, Option<Bytes>)> {
        let mut headers = jms::headers(&self.md, self.rfh2.as_ref(), self.put_ms.unwrap_or(0));
        let count = (u64::from(self.md.backout_count) + 1).to_string();
        let mut add = |name: &'static str, value: String| {
            headers.push((Bytes::from_static(name.as_bytes()), Some(value.into())));
        };
        add("JMSXDeliveryCount", count);
        add("JMSXUserID", trimmed(&self.md.user));
        add("JMSXAppID", trimmed(&self.md.put_appl_name));
        headers
    }

    fn key(&self, key: KeyHeader) -> Option<Bytes> {
        let of =
            |folder: &str, name: &str| jms::property(self.rfh2.as_ref(), folder, name).map(str::to_owned);
        let text = match key {
            KeyHeader::MessageId => Some(jms::id_text(&self.md.msg_id)),
            KeyHeader::CorrelationId => of("jms", "Cid")
                .or_else(|| (self.md.correl_id != [0; 24]).then(|| jms::id_text(&self.md.correl_id))),
            KeyHeader::Destination => self.queue.clone(),
            KeyHeader::GroupId => of("jms", "Gid"),
        };
        text.map(Bytes::from)
    }
}
