//! `GET /metrics` over HTTP, on `metrics.listener`: what Prometheus asks for every quarter of a minute.
//!
//! Off unless `metrics.listener` names an address, as Kafka opens no JMX port by default: the page
//! names client ids and paths, and has no access control. The address decides who can reach it:
//! 127.0.0.1:9404 for an agent on the machine, a private address for a central Prometheus. A query
//! adds to the page or takes from it; docs/METRICS.md lists what it may say.
//!
//! HTTP by hand: hyper with what it needs is ten crates for one path, one method and one answer that ends the
//! connection. What is needed of HTTP/1.1 (RFC 9112) is a request line, the header Accept, and an answer with its
//! length.
//!
//! Bounded: [`CONNECTIONS_MAX`] at a time, [`HEAD_BYTES_MAX`] of a request within [`READ_WITHIN`], an answer within
//! [`WRITE_WITHIN`]. Further connections wait in the listener's backlog.

use crate::reader::{Detail, Handle};
use barnabas_base::Text;
use barnabas_exposition::names::Names;
use barnabas_exposition::text::Form;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub const KEY: &str = "metrics.listener";
pub const EXAMPLE: &str = "metrics.listener=127.0.0.1:9404";
/// Connections at a time: descriptors for them are set aside (descriptors.rs).
pub const CONNECTIONS_MAX: usize = 8;
const HEAD_BYTES_MAX: usize = 8 * 1024;
const READ_WITHIN: Duration = Duration::from_secs(5);
const WRITE_WITHIN: Duration = Duration::from_secs(10);
const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Why there is no listener: for the operator, beside the key.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct BindError {
    problem: String,
}

/// Opens the listener that the operator named, if one is named.
///
/// # Errors
/// It is no address, or cannot be listened on.
pub fn bind(address: Option<&str>) -> Result<Option<std::net::TcpListener>, BindError> {
    let Some(address) = address.filter(|address| !address.is_empty()) else { return Ok(None) };
    let refused = |problem: String| BindError { problem };
    let resolved = address.to_socket_addrs().map_err(|error| refused(format!("'{address}': {error}")))?;
    let mut addresses: Vec<SocketAddr> = resolved.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let Some(first) = addresses.first() else { return Err(refused(format!("'{address}' has no address"))) };
    let listener = std::net::TcpListener::bind(first)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| refused(format!("cannot listen on {first}: {error}")))?;
    Ok(Some(listener))
}

/// Serves until dropped.
pub async fn serve(reader: Arc<Handle>, listener: std::net::TcpListener) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the metrics endpoint could not be started"),
    };
    if let Ok(address) = listener.local_addr() {
        tracing::info!("metrics on http://{address}/metrics");
    }
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let reader = reader.clone();
                tokio::spawn(async move {
                    converse(&reader, stream).await;
                    drop(place);
                });
            }
            // Mostly a want of descriptors: trying at once would spin.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// One request, one answer.
async fn converse(reader: &Handle, mut stream: TcpStream) {
    let mut head = Vec::with_capacity(1024);
    let asked = match timeout(READ_WITHIN, read_head(&mut stream, &mut head)).await {
        Ok(Ok(true)) => parse(&head),
        // A request head that is too large or too slow gets an answer with the reason; a closed
        // connection gets none.
        Ok(Ok(false)) => Err(Refused { status: "431 Request Header Fields Too Large", hint: "" }),
        Err(_) => Err(Refused { status: "408 Request Timeout", hint: "" }),
        Ok(Err(_)) => return,
    };
    let answer = match asked {
        Ok(Asked { detail, wants_body }) => {
            let shape = if detail.form.is_open_metrics { OPEN_METRICS_TYPE } else { TYPE };
            match reader.ask(detail).await {
                Some(page) => answer("200 OK", shape, &page, wants_body),
                None => {
                    let why = "too many ask, or the node is stopping\n";
                    answer("503 Service Unavailable", TYPE, why, wants_body)
                }
            }
        }
        Err(Refused { status, hint }) => answer(status, TYPE, &format!("{status}\n{hint}"), true),
    };
    // A client that does not take its answer goes without.
    let _ = timeout(WRITE_WITHIN, async {
        stream.write_all(&answer).await?;
        stream.shutdown().await?;
        // What it still sends is taken, a little of it: closing over unread bytes would reset the connection before the
        // answer is read.
        let mut rest = [0; 1024];
        for _ in 0..64 {
            if stream.read(&mut rest).await? == 0 {
                break;
            }
        }
        std::io::Result::Ok(())
    })
    .await;
}

/// Reads up to the empty line. `false`: it does not come.
async fn read_head(stream: &mut TcpStream, head: &mut Vec<u8>) -> std::io::Result<bool> {
    loop {
        if head.windows(4).any(|end| end == b"\r\n\r\n") || head.windows(2).any(|end| end == b"\n\n") {
            return Ok(true);
        }
        if head.len() >= HEAD_BYTES_MAX {
            return Ok(false);
        }
        let room = (HEAD_BYTES_MAX - head.len()) as u64;
        if (&mut *stream).take(room).read_buf(head).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Asked {
    detail: Detail,
    /// Not for HEAD.
    wants_body: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refused {
    status: &'static str,
    hint: &'static str,
}

/// The request line, and which of the two formats the header Accept prefers.
fn parse(head: &[u8]) -> Result<Asked, Refused> {
    let bad = Refused { status: "400 Bad Request", hint: "" };
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else { return Err(bad) };
    let mut words = line.trim_end_matches('\r').split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad);
    };
    if !version.starts_with("HTTP/1.") {
        return Err(bad);
    }
    if !matches!(method, "GET" | "HEAD") {
        return Err(Refused { status: "405 Method Not Allowed", hint: "" });
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path != "/metrics" {
        return Err(Refused { status: "404 Not Found", hint: "metrics are at /metrics\n" });
    }
    let named = |key: &str| {
        let name = query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        let name = name.filter(|name| !name.is_empty());
        name.map(|name| unescaped(name).ok_or(bad)).transpose()
    };
    let (topic, group) = (named("topic")?, named("group")?);
    let form = Form {
        names: match named("names")? {
            Some(names) => Names::of(&names).ok_or(Refused { hint: NAMES, ..bad })?,
            None => Names::default(),
        },
        families: named("families")?.map_or_else(Vec::new, |families| {
            families.split(',').filter(|family| !family.is_empty()).map(str::to_owned).collect()
        }),
        has_all_bounds: match named("buckets")?.as_deref() {
            None => false,
            Some("all") => true,
            Some(_) => return Err(Refused { hint: "buckets is all, or not there\n", ..bad }),
        },
        is_open_metrics: prefers_open_metrics(accepted(head)),
    };
    Ok(Asked { detail: Detail { is_fine: false, form, topic, group }, wants_body: method == "GET" })
}

const NAMES: &str = "names is one of jmx, strimzi, reporter, confluent, exporter, lag-exporter\n";

/// The header Accept; empty where there is none, or where it is no text.
fn accepted(head: &[u8]) -> &str {
    let header = |line: &&[u8]| line.get(..7).is_some_and(|name| name.eq_ignore_ascii_case(b"accept:"));
    let line = head.split(|byte| *byte == b'\n').find(header).unwrap_or_default();
    std::str::from_utf8(line.get(7..).unwrap_or_default()).unwrap_or_default()
}

/// Whether OpenMetrics in the version that is written here is accepted, and the plain text not before it (RFC 9110,
/// 12.5.1).
fn prefers_open_metrics(accepted: &str) -> bool {
    let (mut open, mut text) = (0.0, 0.0);
    for range in accepted.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let of = |name: &str| {
            let found = parameters.iter().find(|(known, _)| known.trim().eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().trim_matches('"'))
        };
        let weight: f32 = of("q").and_then(|weight| weight.parse().ok()).unwrap_or(1.0);
        match kind.as_str() {
            OPEN_METRICS if of("version").is_none_or(|version| version == "1.0.0") => open = weight.max(open),
            "text/plain" => text = weight.max(text),
            _ => {}
        }
    }
    open > 0.0 && open >= text
}

/// A name out of a query, where anything may stand for itself or as `%` and two hexadecimal digits. `None`: it is no
/// text.
fn unescaped(escaped: &str) -> Option<Text> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let [first, more @ ..] = rest {
        let hexadecimal = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        match (first, more.get(..2)) {
            (b'%', Some(digits)) => {
                bytes.push(hexadecimal(digits)?);
                rest = &more[2..];
            }
            (b'%', None) => return None,
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok().map(Text::from)
}

fn answer(status: &str, shape: &str, body: &str, wants_body: bool) -> Vec<u8> {
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {shape}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    if wants_body {
        answer.extend_from_slice(body.as_bytes());
    }
    answer
}

#[cfg(test)]
mod tests;
