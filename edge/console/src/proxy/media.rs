//! Media types of API v2: `application/vnd.kafka`, an embedded format or none, a version or none, `+json`.
//!
//! | embedded | keys and values in the JSON document |
//! |---|---|
//! | `.binary`, none | base64 |
//! | `.json` | JSON as it is stored |
//! | `.text` | text (Strimzi's bridge) |
//! | `.avro`, `.jsonschema`, `.protobuf` | need a schema registry |

use crate::http::call::Answer;
use crate::http::problem::Problem;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use serde_json::Value;

const PLAIN: &str = "application/json";
const V2: &str = "application/vnd.kafka.v2+json";

/// How keys and values stand in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Binary,
    Json,
    Text,
    Avro,
    JsonSchema,
    Protobuf,
}

impl Format {
    const ALL: [Self; 6] =
        [Self::Binary, Self::Json, Self::Text, Self::Avro, Self::JsonSchema, Self::Protobuf];

    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Json => "json",
            Self::Text => "text",
            Self::Avro => "avro",
            Self::JsonSchema => "jsonschema",
            Self::Protobuf => "protobuf",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(word))
    }

    pub fn needs_schemas(self) -> bool {
        matches!(self, Self::Avro | Self::JsonSchema | Self::Protobuf)
    }

    /// Of an answer with records.
    fn kind(self) -> &'static str {
        match self {
            Self::Binary => "application/vnd.kafka.binary.v2+json",
            Self::Json => "application/vnd.kafka.json.v2+json",
            Self::Text => "application/vnd.kafka.text.v2+json",
            Self::Avro => "application/vnd.kafka.avro.v2+json",
            Self::JsonSchema => "application/vnd.kafka.jsonschema.v2+json",
            Self::Protobuf => "application/vnd.kafka.protobuf.v2+json",
        }
    }
}

/// What a media type is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    /// `application/json`
    Plain,
    /// Of Kafka's, with or without an embedded format.
    Kafka(Option<Format>),
}

/// `None`: another's.
fn parse(kind: &str) -> Option<Media> {
    if kind == PLAIN {
        return Some(Media::Plain);
    }
    let words = kind.strip_prefix("application/vnd.kafka")?.strip_suffix("+json")?;
    let words = words.strip_suffix(".v2").or_else(|| words.strip_suffix(".v1")).unwrap_or(words);
    match words.strip_prefix('.') {
        Some(word) => Some(Media::Kafka(Some(Format::of_word(word)?))),
        None => words.is_empty().then_some(Media::Kafka(None)),
    }
}

/// Without parameters, in small letters.
fn bare(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The format of the records in a request's body.
///
/// # Errors
/// 415: another media type.
pub fn given(headers: &HeaderMap) -> Result<Format, Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(bare);
    match kind.as_deref().map(parse) {
        None | Some(Some(Media::Plain)) => Ok(Format::Binary),
        Some(Some(Media::Kafka(format))) => Ok(format.unwrap_or(Format::Binary)),
        Some(None) => {
            let kind = kind.unwrap_or_default();
            let detail = format!(
                "expected a content type such as application/vnd.kafka.json.v2+json, not '{}'",
                kind.escape_debug()
            );
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// What the caller takes, in its order.
#[derive(Debug, PartialEq, Eq)]
pub struct Accepted {
    kinds: Vec<Media>,
    is_anything: bool,
}

impl Accepted {
    /// # Errors
    /// 406: nothing that API v2 gives.
    pub fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut accepted = Self { kinds: Vec::new(), is_anything: false };
        let mut given = headers.get_all(ACCEPT).iter().peekable();
        accepted.is_anything = given.peek().is_none();
        for kind in given.flat_map(|kinds| kinds.to_str().unwrap_or_default().split(',')) {
            match bare(kind).as_str() {
                "*/*" | "application/*" | "*/json" => accepted.is_anything = true,
                kind => accepted.kinds.extend(parse(kind)),
            }
        }
        if accepted.is_anything || !accepted.kinds.is_empty() {
            return Ok(accepted);
        }
        let detail = format!("this path answers {V2} and {PLAIN}");
        Err(Problem::new(StatusCode::NOT_ACCEPTABLE, detail))
    }

    /// The media type of a document without records.
    fn kind(&self) -> &'static str {
        match self.kinds.first() {
            Some(Media::Plain) => PLAIN,
            _ => V2,
        }
    }

    /// The media type of records in this format.
    ///
    /// # Errors
    /// 40601: the caller wants another format.
    pub fn kind_of(&self, format: Format) -> Result<&'static str, Problem> {
        let embedded: Vec<Format> = self
            .kinds
            .iter()
            .filter_map(|kind| match kind {
                Media::Kafka(format) => *format,
                Media::Plain => None,
            })
            .collect();
        if embedded.is_empty() {
            return Ok(if self.kinds.first() == Some(&Media::Plain) { PLAIN } else { format.kind() });
        }
        if embedded.contains(&format) {
            return Ok(format.kind());
        }
        let detail = format!(
            "Consumer format does not match the embedded format requested by the Accept header: the consumer's is {}",
            format.name()
        );
        Err(Problem::coded(40_601, detail))
    }
}

/// A document as the caller takes it.
///
/// # Errors
/// As [`Accepted::read`].
pub fn answer(headers: &HeaderMap, document: &Value) -> Result<Answer, Problem> {
    let kind = Accepted::read(headers)?.kind();
    Ok(Answer::written(Bytes::from(document.to_string()), kind))
}

/// The media type of errors: as of documents, and where the caller takes neither, Confluent's.
pub fn of_errors(headers: &HeaderMap) -> &'static str {
    Accepted::read(headers).map_or(V2, |accepted| accepted.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(name: hyper::header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).expect("a value"))])
    }

    #[test]
    fn content_types_name_the_format() {
        let given =
            |kind: &str| given(&headers(CONTENT_TYPE, kind)).map_err(|problem| problem.status.as_u16());
        for (kind, format) in [
            ("application/vnd.kafka.json.v2+json", Format::Json),
            ("application/vnd.kafka.binary.v1+json; charset=utf-8", Format::Binary),
            ("application/vnd.kafka.text.v2+json", Format::Text),
            ("application/vnd.kafka.jsonschema.v2+json", Format::JsonSchema),
            ("application/vnd.kafka.v2+json", Format::Binary),
            ("Application/Vnd.Kafka+Json", Format::Binary),
            ("application/json", Format::Binary),
        ] {
            assert_eq!(given(kind), Ok(format), "{kind}");
        }
        for bad in [
            "application/vnd.kafka.v3+json",
            "application/vnd.kafka.xml.v2+json",
            "application/vnd.kafka",
            "application/vnd.kafkax+json",
            "text/json",
        ] {
            assert_eq!(given(bad), Err(415), "{bad}");
        }
    }

    #[test]
    fn answers_are_of_a_kind_that_the_caller_takes() {
        let kind = |accept: &str| Accepted::read(&headers(ACCEPT, accept)).map(|accepted| accepted.kind());
        for (accept, expected) in [
            ("application/vnd.kafka.v2+json", V2),
            ("application/json", PLAIN),
            ("application/json, */*", PLAIN),
            ("*/*;q=0.5", V2),
            ("text/html, application/*", V2),
            ("application/vnd.kafka.json.v2+json, application/json", V2),
        ] {
            assert_eq!(kind(accept).as_deref(), Ok(expected), "{accept}");
        }
        for bad in ["text/html", "image/png,text/*", "application/octet-stream", "application/vnd.kafka+xml"]
        {
            assert_eq!(kind(bad).expect_err(bad).status, 406);
        }
        assert_eq!(Accepted::read(&HeaderMap::new()).expect("anything").kind(), V2);
    }

    #[test]
    fn records_come_in_the_consumers_format_or_not_at_all() {
        let kind = |accept: &str| {
            let accepted = Accepted::read(&headers(ACCEPT, accept)).expect("acceptable");
            accepted.kind_of(Format::Json).map_err(|problem| problem.confluent_code())
        };
        for (accept, expected) in [
            ("*/*", Ok("application/vnd.kafka.json.v2+json")),
            ("application/vnd.kafka.json.v2+json", Ok("application/vnd.kafka.json.v2+json")),
            (
                "application/vnd.kafka.avro.v2+json, application/vnd.kafka.json.v2+json",
                Ok("application/vnd.kafka.json.v2+json"),
            ),
            ("application/json", Ok(PLAIN)),
            ("application/vnd.kafka.binary.v2+json", Err(40_601)),
            ("application/vnd.kafka.binary.v2+json, */*", Err(40_601)),
        ] {
            assert_eq!(kind(accept), expected, "{accept}");
        }
    }
}
