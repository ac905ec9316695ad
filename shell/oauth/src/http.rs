//! One request and its answer, over HTTP/1.1. Blocking: for threads that may wait.
//!
//! Bounded: 16 KiB of headers, as many bytes of body as the caller allows, a timeout for each read and one for all.
//! Left out: redirects (they would lead past the list of allowed URLs), compression, cookies, connections kept open.
//!
//! # Source
//! RFC 9112; Kafka 4 `HttpJwtRetriever`.

use barnabas_sasl::oauth::settings::HttpUrl;
use barnabas_tls::ClientTls;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Status line and headers, and each line that says how long a chunk is.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// For the whole exchange, whatever the timeouts of its parts.
const TOTAL: Duration = Duration::from_secs(30);

/// How long the parts may take, and how much may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub connect: Duration,
    pub read: Duration,
    pub body_bytes_max: usize,
}

#[derive(Debug)]
pub enum Method<'a> {
    Get,
    /// With its body, a form.
    Post(&'a str),
    /// With its body; the headers say what it is.
    PostBytes(&'a [u8]),
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Zeroizing<Vec<u8>>,
}

/// Sends a request and reads the answer, whatever its status.
///
/// # Errors
/// No connection, no trust, no answer in time, or none that is HTTP. Names the host.
pub fn send(
    url: &HttpUrl,
    tls: Option<&ClientTls>,
    (method, headers): (&Method<'_>, &[(&str, &str)]),
    limits: Limits,
) -> io::Result<Answer> {
    let until = barnabas_clock::now() + TOTAL;
    let socket = connect(url, limits.connect)?;
    let socket = Timed { socket, read: limits.read, until };
    let head = Zeroizing::new(request(url, method, headers));
    match tls {
        Some(tls) if url.has_tls => exchange(tls.over(&url.host, socket)?, &head, limits.body_bytes_max),
        None if url.has_tls => Err(io::Error::other("bug: https without TLS")),
        _ => exchange(socket, &head, limits.body_bytes_max),
    }
}

fn connect(url: &HttpUrl, within: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{} has no address", url.host));
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn request(url: &HttpUrl, method: &Method<'_>, headers: &[(&str, &str)]) -> Vec<u8> {
    let (word, body) = match method {
        Method::Get => ("GET", &[][..]),
        Method::Post(body) => ("POST", body.as_bytes()),
        Method::PostBytes(body) => ("POST", *body),
    };
    let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let mut head = format!(
        "{word} {} HTTP/1.1\r\nHost: {host}:{}\r\nConnection: close\r\nAccept: application/json\r\nCache-Control: no-cache\r\n",
        url.path, url.port
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if matches!(method, Method::Post(_)) {
        head.push_str("Content-Type: application/x-www-form-urlencoded\r\n");
    }
    if !matches!(method, Method::Get) {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    let mut request = head.into_bytes();
    request.extend_from_slice(body);
    request
}

/// A socket whose every read and write ends in time.
#[derive(Debug)]
struct Timed {
    socket: TcpStream,
    read: Duration,
    until: Instant,
}

impl Timed {
    fn rest(&self) -> io::Result<Duration> {
        let rest = self.until.saturating_duration_since(barnabas_clock::now()).min(self.read);
        if rest.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(rest) }
    }
}

/// A socket says "try again" when its timeout is over.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.rest()?))?;
        self.socket.read(buffer).map_err(timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.rest()?))?;
        self.socket.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn exchange(mut stream: impl Read + Write, request: &[u8], body_bytes_max: usize) -> io::Result<Answer> {
    stream.write_all(request)?;
    stream.flush()?;
    read_answer(&mut BufReader::new(stream), body_bytes_max)
}

/// How an answer's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunks,
    Close,
}

fn read_answer(reader: &mut impl BufRead, body_bytes_max: usize) -> io::Result<Answer> {
    let mut head_bytes = HEAD_BYTES_MAX;
    loop {
        let status = status(&line(reader, &mut head_bytes)?)?;
        let mut framing = Framing::Close;
        loop {
            let line = line(reader, &mut head_bytes)?;
            if line.is_empty() {
                break;
            }
            framing = framed(framing, &line)?;
        }
        match status {
            // Another answer follows.
            100..=199 => {}
            204 | 304 => return Ok(Answer { status, body: Zeroizing::default() }),
            _ => return Ok(Answer { status, body: read_body(reader, framing, body_bytes_max)? }),
        }
    }
}

fn status(line: &str) -> io::Result<u16> {
    let rest = line.strip_prefix("HTTP/1.").ok_or_else(|| invalid("the answer is no HTTP/1.1"))?;
    let code = rest.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.filter(|code| (100..600).contains(code)).ok_or_else(|| invalid("the answer has no status"))
}

fn framed(before: Framing, line: &str) -> io::Result<Framing> {
    let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header without a colon"))?;
    let value = value.trim();
    if name.eq_ignore_ascii_case("transfer-encoding") {
        return if value.eq_ignore_ascii_case("chunked") {
            Ok(Framing::Chunks)
        } else {
            Err(invalid("a transfer encoding other than chunked"))
        };
    }
    // With both, chunks count (RFC 9112, 6.3).
    if name.eq_ignore_ascii_case("content-length") && before != Framing::Chunks {
        return value.parse().map(Framing::Length).map_err(|_| invalid("a content length that is none"));
    }
    Ok(before)
}

fn read_body(reader: &mut impl BufRead, framing: Framing, most: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut body = Zeroizing::new(Vec::new());
    let too_long =
        || io::Error::new(io::ErrorKind::FileTooLarge, format!("the answer has more than {most} bytes"));
    match framing {
        Framing::Length(length) if length > most => return Err(too_long()),
        Framing::Length(length) => {
            reader.take(length as u64).read_to_end(&mut body)?;
            if body.len() < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Framing::Close => {
            reader.take(most as u64 + 1).read_to_end(&mut body)?;
        }
        Framing::Chunks => loop {
            let size = line(reader, &mut { HEAD_BYTES_MAX })?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| invalid("a chunk without its length"))?;
            if size == 0 {
                break;
            }
            if size > most.saturating_sub(body.len()) {
                return Err(too_long());
            }
            let end = body.len() + size;
            reader.take(size as u64).read_to_end(&mut body)?;
            if body.len() < end || !line(reader, &mut 2)?.is_empty() {
                return Err(invalid("a chunk that is not whole"));
            }
        },
    }
    if body.len() > most { Err(too_long()) } else { Ok(body) }
}

/// A line without its end. Takes its bytes from `budget`.
fn line(reader: &mut impl BufRead, budget: &mut usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(*budget as u64).read_until(b'\n', &mut bytes)?;
    *budget -= bytes.len();
    if bytes.pop() != Some(b'\n') {
        return Err(if *budget == 0 {
            invalid("the answer's headers are too long")
        } else {
            io::ErrorKind::UnexpectedEof.into()
        });
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| invalid("a header that is no text"))
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(u16, String), String> {
        let answer = read_answer(&mut text.as_bytes(), 10).map_err(|error| error.to_string())?;
        Ok((answer.status, String::from_utf8(answer.body.to_vec()).expect("text")))
    }

    #[test]
    fn bodies_end_by_length_by_chunks_or_with_the_connection() {
        let body = |text: &str| Ok((200, text.to_owned()));
        assert_eq!(read("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabc"), body("ab"));
        assert_eq!(read("HTTP/1.0 200 OK\nX: y\n\nabc"), body("abc"));
        let chunks =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        assert_eq!(read(chunks), body("abcde"));
        assert_eq!(read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 None\r\n\r\n"), Ok((404, String::new())));
        assert_eq!(read("HTTP/1.1 204 None\r\n\r\n"), Ok((204, String::new())));
    }

    #[test]
    fn answer_that_is_too_long_or_torn_is_an_error() {
        for text in [
            "",
            "HTTP/1.1",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n12345678901",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n12345678901",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(HEAD_BYTES_MAX));
        assert_eq!(read(&long), Err("the answer's headers are too long".to_owned()));
    }
}
