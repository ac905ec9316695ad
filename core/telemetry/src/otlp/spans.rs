//! Spans as the body of an OTLP export request (opentelemetry.proto.collector.trace.v1), written; and read, by tests.
//!
//! ```text
//! ExportTraceServiceRequest  1 resource_spans*
//! ResourceSpans   1 resource { 1 attributes* }   2 scope_spans*
//! ScopeSpans      1 scope { 1 name  2 version }   2 spans*
//! Span            1 trace_id  2 span_id  4 parent_span_id  5 name  6 kind  7 start  8 end  9 attributes*  15 status
//! Status          3 code (2: error)
//! ```
//!
//! Ids are 16 and 8 random bytes (W3C Trace Context), times nanoseconds since 1970.

use super::protobuf::{Field, Malformed, fields, text};
use super::write::{attribute, fixed, message, origin, varint_field, whole_attribute};

const ERROR: u64 = 2;

/// Of a span.
pub type Id = [u8; 8];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal = 1,
    Server = 2,
}

/// One span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span<'a> {
    pub trace: [u8; 16],
    pub id: Id,
    pub parent: Option<Id>,
    pub name: &'a str,
    pub kind: SpanKind,
    /// In nanoseconds since 1970.
    pub start_ns: u64,
    pub end_ns: u64,
    pub texts: Vec<(&'a str, &'a str)>,
    pub numbers: Vec<(&'a str, i64)>,
    pub is_error: bool,
}

/// The request for `spans`, of a resource with these attributes.
pub fn export_spans(spans: &[Span<'_>], resource: &[(&str, &str)], version: &str) -> Vec<u8> {
    let (resource, scope) = origin(resource, version);
    let mut scoped = Vec::new();
    message(&mut scoped, 1, &scope);
    for span in spans {
        message(&mut scoped, 2, &encode(span));
    }
    let (mut of_resource, mut request) = (Vec::new(), Vec::new());
    message(&mut of_resource, 1, &resource);
    message(&mut of_resource, 2, &scoped);
    message(&mut request, 1, &of_resource);
    request
}

fn encode(span: &Span<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message(&mut bytes, 1, &span.trace);
    message(&mut bytes, 2, &span.id);
    if let Some(parent) = &span.parent {
        message(&mut bytes, 4, parent);
    }
    message(&mut bytes, 5, span.name.as_bytes());
    varint_field(&mut bytes, 6, span.kind as u64);
    fixed(&mut bytes, 7, span.start_ns);
    fixed(&mut bytes, 8, span.end_ns);
    for (name, value) in &span.texts {
        message(&mut bytes, 9, &attribute(name, value));
    }
    for (name, value) in &span.numbers {
        message(&mut bytes, 9, &whole_attribute(name, *value));
    }
    if span.is_error {
        let mut status = Vec::new();
        varint_field(&mut status, 3, ERROR);
        message(&mut bytes, 15, &status);
    }
    bytes
}

/// A span that was read: attributes as `name=value`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ReadSpan {
    pub trace: Vec<u8>,
    pub id: Vec<u8>,
    pub parent: Vec<u8>,
    pub name: String,
    pub kind: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: Vec<String>,
    pub is_error: bool,
}

/// The spans of a request.
///
/// # Errors
/// The bytes are no such message.
pub fn read_spans(request: &[u8]) -> Result<Vec<ReadSpan>, Malformed> {
    let mut spans = Vec::new();
    for of_resource in messages(request, 1)? {
        for scoped in messages(of_resource, 2)? {
            for span in messages(scoped, 2)? {
                spans.push(read_span(span)?);
            }
        }
    }
    Ok(spans)
}

/// The fields of this number that are bytes.
fn messages(bytes: &[u8], wanted: u32) -> Result<Vec<&[u8]>, Malformed> {
    let mut found = Vec::new();
    for field in fields(bytes) {
        if let (number, Field::Bytes(inner)) = field?
            && number == wanted
        {
            found.push(inner);
        }
    }
    Ok(found)
}

fn read_span(bytes: &[u8]) -> Result<ReadSpan, Malformed> {
    let mut span = ReadSpan::default();
    for field in fields(bytes) {
        match field? {
            (1, Field::Bytes(id)) => span.trace = id.to_vec(),
            (2, Field::Bytes(id)) => span.id = id.to_vec(),
            (4, Field::Bytes(id)) => span.parent = id.to_vec(),
            (5, Field::Bytes(name)) => span.name = text(name)?.to_owned(),
            (6, Field::Varint(kind)) => span.kind = kind,
            (7, Field::Fixed64(at)) => span.start_ns = at,
            (8, Field::Fixed64(at)) => span.end_ns = at,
            (9, Field::Bytes(pair)) => span.attributes.push(read_attribute(pair)?),
            (15, Field::Bytes(status)) => {
                for field in fields(status) {
                    span.is_error |= field? == (3, Field::Varint(ERROR));
                }
            }
            _ => {}
        }
    }
    Ok(span)
}

fn read_attribute(pair: &[u8]) -> Result<String, Malformed> {
    let name = messages(pair, 1)?.first().map(|name| text(name)).transpose()?.unwrap_or_default().to_owned();
    let mut value = String::new();
    for any in messages(pair, 2)? {
        for field in fields(any) {
            match field? {
                (1, Field::Bytes(words)) => value = text(words)?.to_owned(),
                (3, Field::Varint(number)) => value = (number as i64).to_string(),
                _ => {}
            }
        }
    }
    Ok(format!("{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(name: &str, parent: Option<Id>) -> Span<'_> {
        Span {
            trace: [7; 16],
            id: [8; 8],
            parent,
            name,
            kind: if parent.is_some() { SpanKind::Internal } else { SpanKind::Server },
            start_ns: 1_700_000_000_000_000_001,
            end_ns: 1_700_000_000_000_000_009,
            texts: vec![("kafka.listener", "PLAINTEXT")],
            numbers: vec![("kafka.correlation_id", -3)],
            is_error: parent.is_none(),
        }
    }

    #[test]
    fn spans_are_read_back_as_they_were() {
        let request = export_spans(
            &[span("Produce", None), span("sync", Some([8; 8]))],
            &[("service.name", "barnabas")],
            "1",
        );
        let read = read_spans(&request).expect("it is OTLP");
        let wanted = |name: &str, parent: &[u8], kind, is_error| ReadSpan {
            trace: vec![7; 16],
            id: vec![8; 8],
            parent: parent.to_vec(),
            name: name.to_owned(),
            kind,
            start_ns: 1_700_000_000_000_000_001,
            end_ns: 1_700_000_000_000_000_009,
            attributes: vec!["kafka.listener=PLAINTEXT".to_owned(), "kafka.correlation_id=-3".to_owned()],
            is_error,
        };
        assert_eq!(read, [wanted("Produce", &[], 2, true), wanted("sync", &[8; 8], 1, false)]);
    }

    /// Written by hand from the protocol's numbers.
    #[test]
    fn span_has_the_bytes_of_the_protocol() {
        let short =
            Span { texts: Vec::new(), numbers: Vec::new(), start_ns: 1, end_ns: 2, ..span("a", None) };
        let mut wanted = vec![0x0a, 16];
        wanted.extend([7; 16]);
        wanted.extend([0x12, 8]);
        wanted.extend([8; 8]);
        wanted.extend([0x2a, 1, b'a', 0x30, 2, 0x39, 1, 0, 0, 0, 0, 0, 0, 0, 0x41, 2, 0, 0, 0, 0, 0, 0, 0]);
        wanted.extend([0x7a, 2, 0x18, 2]);
        assert_eq!(encode(&short), wanted);
    }

    #[test]
    fn torn_request_is_refused() {
        let request = export_spans(&[span("a", None)], &[], "1");
        assert_eq!(read_spans(&request[..request.len() - 1]), Err(Malformed::Short));
    }
}
