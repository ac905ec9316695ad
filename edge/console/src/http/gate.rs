//! What a request needs to come in: a host that is this listener's, for changes an origin that is this listener's too,
//! and the caller's login.
//!
//! A page of another site can make a browser on this machine send requests here. It cannot read answers (no CORS
//! header is ever sent), unless its name resolves to this address (DNS rebinding): then the Host header has that name,
//! which is refused. It could make changes with what a form can send: those need a JSON content type here, and an
//! Origin that is this host. An address as Host is allowed: rebinding needs a name.
//!
//! Source: RFC 9110 (7.2, 15.5.20), RFC 7617, Fetch Metadata (Sec-Fetch-Site).

use super::problem::Problem;
use barnabas_base::ErrorCode;
use barnabas_sasl::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, StatusCode};
use std::net::{Ipv4Addr, Ipv6Addr};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// A user's name and password together.
const LOGIN_BYTES_MAX: usize = 4096;

/// Who calls: a user and a password, to be handed to the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub user: String,
    pub password: Secret,
}

/// The names by which this listener may be addressed, besides addresses and `localhost`.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let named = names.into_iter().map(|name| name.trim().to_ascii_lowercase());
        Self(named.filter(|name| !name.is_empty()).collect())
    }

    /// The request's host, as the client wrote it.
    ///
    /// # Errors
    /// None, several, or one that is not this listener's.
    pub fn check(&self, headers: &HeaderMap) -> Result<String, Problem> {
        let mut given = headers.get_all(HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else {
            return Err(Problem::bad("expected one Host header"));
        };
        let host = host.to_str().unwrap_or_default();
        if self.allows(host) {
            return Ok(host.to_owned());
        }
        let detail = "this listener has another name: expected an address, localhost or one of console.hosts (--hosts)";
        Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail))
    }

    fn allows(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        let name = name.to_ascii_lowercase();
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        name == "localhost"
            || bare.is_some_and(|bare| bare.parse::<Ipv6Addr>().is_ok())
            || name.parse::<Ipv4Addr>().is_ok()
            || self.0.contains(&name)
    }
}

/// `None`: what follows the name is no port.
fn without_port(host: &str) -> Option<&str> {
    if host.starts_with('[') {
        let (name, rest) = host.split_at(host.find(']')? + 1);
        let is_port =
            rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        return is_port.then_some(name);
    }
    match host.split_once(':') {
        None => Some(host),
        Some((name, port)) => port.parse::<u16>().is_ok().then_some(name),
    }
}

/// Whether a request that changes something may come at all, and from where it comes from.
///
/// # Errors
/// This listener only reads; the request comes from another site, or has a content type that a form can have.
pub fn check_change(
    method: &Method,
    headers: &HeaderMap,
    host: &str,
    is_read_only: bool,
) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    if is_read_only {
        let detail = "this console only reads (console.read.only, --read-only)";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    check_origin(headers, host)?;
    if *method == Method::DELETE {
        return Ok(());
    }
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json") {
        return Ok(());
    }
    let detail = format!("expected content type application/json, not '{}'", kind.escape_debug());
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

/// Whether the request comes from this listener's own page, or from no page: for those that change something.
///
/// # Errors
/// It comes from another site.
pub fn check_origin(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    let foreign = |what: &str| {
        Err(Problem::new(StatusCode::FORBIDDEN, format!("changes from another site are refused: {what}")))
    };
    if let Some(origin) = headers.get(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
        if !authority.eq_ignore_ascii_case(host) {
            return foreign("Origin is not this host");
        }
    }
    if headers.get(SITE).is_some_and(|site| site != "same-origin" && site != "none") {
        return foreign("Sec-Fetch-Site is not same-origin");
    }
    Ok(())
}

/// The login that the request brings, if any.
///
/// # Errors
/// A login that is not HTTP basic, or cannot be read.
pub fn caller(headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
    let Some(given) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let given = given.to_str().unwrap_or_default();
    let (scheme, encoded) = given.split_once(' ').unwrap_or((given, ""));
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(no_login("expected HTTP basic authentication"));
    }
    if encoded.len() > LOGIN_BYTES_MAX {
        return Err(no_login("the login is too long"));
    }
    let decoded = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some((user, password)) = decoded.as_deref().and_then(|text| text.split_once(':')) else {
        return Err(no_login("the Authorization header is not user:password in base64"));
    };
    Ok(Some(Caller { user: user.to_owned(), password: Secret::from(password) }))
}

/// 401, for a caller who has to log in.
pub fn no_login(detail: &str) -> Problem {
    Problem {
        kafka: Some(ErrorCode::SaslAuthenticationFailed),
        ..Problem::new(StatusCode::UNAUTHORIZED, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_own_hosts_are_answered() {
        let hosts = Hosts::new(["Kafka.example"]);
        for (host, is_own) in [
            ("127.0.0.1:8080", true),
            ("localhost:8080", true),
            ("LOCALHOST", true),
            ("[::1]:8080", true),
            ("10.0.0.7", true),
            ("kafka.example:443", true),
            ("evil.example:8080", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("localhost:8080:1", false),
            ("localhost:x", false),
            ("localhost@evil.example", false),
            ("[evil]:1", false),
            ("", false),
        ] {
            let checked = hosts.check(&headers(&[("host", host)]));
            assert_eq!(checked.is_ok(), is_own, "{host}: {checked:?}");
        }
        assert_eq!(hosts.check(&headers(&[])).expect_err("none").status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn changes_come_from_the_own_page_or_from_no_page() {
        let json = ("content-type", "application/json; charset=utf-8");
        let status = |method: Method, pairs: &[(&'static str, &str)]| {
            check_change(&method, &headers(pairs), "127.0.0.1:8080", false)
                .err()
                .map(|problem| problem.status.as_u16())
        };
        assert_eq!(status(Method::POST, &[json]), None);
        assert_eq!(status(Method::POST, &[json, ("origin", "http://127.0.0.1:8080")]), None);
        assert_eq!(status(Method::POST, &[json, ("origin", "http://evil.example")]), Some(403));
        assert_eq!(status(Method::POST, &[json, ("origin", "null")]), Some(403));
        assert_eq!(status(Method::POST, &[json, ("sec-fetch-site", "cross-site")]), Some(403));
        assert_eq!(status(Method::POST, &[json, ("sec-fetch-site", "same-site")]), Some(403));
        assert_eq!(status(Method::POST, &[json, ("sec-fetch-site", "same-origin")]), None);
        assert_eq!(status(Method::POST, &[]), Some(415));
        assert_eq!(status(Method::POST, &[("content-type", "text/plain")]), Some(415));
        assert_eq!(status(Method::POST, &[("content-type", "application/x-www-form-urlencoded")]), Some(415));
        assert_eq!(status(Method::PUT, &[("content-type", "application/vnd.kafka.json.v2+json")]), None);
        assert_eq!(status(Method::DELETE, &[]), None);
        assert_eq!(status(Method::DELETE, &[("origin", "http://evil.example")]), Some(403));
        assert_eq!(status(Method::GET, &[("origin", "http://evil.example")]), None);
    }

    #[test]
    fn listener_that_only_reads_refuses_every_change() {
        let json = headers(&[("content-type", "application/json")]);
        let check = |method: Method| check_change(&method, &json, "localhost", true).map_err(|it| it.status);
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
            assert_eq!(check(method), Err(StatusCode::FORBIDDEN));
        }
        assert_eq!((check(Method::GET), check(Method::HEAD)), (Ok(()), Ok(())));
    }

    #[test]
    fn basic_logins_are_read() {
        let read = |value: &str| caller(&headers(&[("authorization", value)]));
        let anna = read("Basic YW5uYTphOmI=").expect("sound").expect("a login");
        assert_eq!((anna.user.as_str(), anna.password.text()), ("anna", Some("a:b")));
        assert!(read("basic YW5uYTo=").expect("sound").is_some());
        for bad in ["Bearer x", "Basic", "Basic !", "Basic YW5uYQ==", "Basic /w=="] {
            assert_eq!(read(bad).expect_err(bad).status, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(caller(&headers(&[])), Ok(None));
    }
}
