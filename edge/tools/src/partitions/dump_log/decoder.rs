//! Keys and values of records: as text, or as JSON by the record's type (core/decoders).

use barnabas_decoders::{Internal, Unreadable};

/// What the records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoder {
    Text,
    Of(Internal),
}

impl Decoder {
    /// What is printed of a key and a value; `None`: nothing.
    pub fn decode(
        self,
        offset: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> (Option<String>, Option<String>) {
        let internal = match self {
            Self::Text => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                return (key.map(text), value.map(text));
            }
            Self::Of(internal) => internal,
        };
        let is_metadata = internal == Internal::Metadata;
        // A record of the metadata log has a value, if an empty one.
        let value = if is_metadata { Some(value.unwrap_or_default()) } else { value };
        match internal.decode(key, value, usize::MAX) {
            (Ok(key), Ok(value)) if is_metadata => (key, value),
            (Ok(key), Ok(value)) => (key, Some(value.unwrap_or_else(|| "<DELETE>".to_owned()))),
            (_, Err(why)) if is_metadata => (None, Some(format!("Error at {offset}, skipping. {why}"))),
            (Err(why), _) | (Ok(_), Err(why)) => (Some(refusal(offset, &why)), None),
        }
    }
}

fn refusal(offset: i64, why: &Unreadable) -> String {
    match why {
        Unreadable::UnknownType(_) => format!("{why} at offset {offset}, skipping."),
        Unreadable::NoKey | Unreadable::Bytes(_) => format!("Error at offset {offset}, skipping. {why}"),
    }
}
