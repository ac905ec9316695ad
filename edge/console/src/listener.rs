//! The HTTP listener: a thread with a runtime of its own, a bounded number of connections, and the way of each request
//! to its route.
//!
//! | limit | value |
//! |---|---|
//! | connections | [`CONNECTIONS_MAX`]; others wait in the listener's backlog |
//! | a request's head | 16 KiB, 100 headers, 10 s; also how long a connection may be idle |
//! | a request's body | 1 MiB, 30 s; produced records: 2 MiB each, 60 s between two pieces |
//! | a TLS handshake | 10 s |
//! | an answer | [`ANSWER_WITHIN`] until it begins; a client that takes nothing for 30 s is closed |

use crate::api;
use crate::http::body::{self, Outgoing};
use crate::http::call::{Answer, Call, Fields, Place};
use crate::http::callers::Callers;
use crate::http::gate::{self, Hosts};
use crate::http::idempotency::{self, Changes};
use crate::http::problem::{Dialect, Problem};
use crate::http::routes::{self, Found, Handler, Route, Run};
use crate::http::slow::Timed;
use crate::logs::OwnLogs;
use crate::page;
use crate::probes::{Probes, Standing};
use crate::proxy::instances::Instances;
use crate::proxy::{self, media};
use crate::schemas::{Places, Schemas};
use crate::v3;
use barnabas_client::ClusterConfig;
use barnabas_net::Stream;
use barnabas_tls::ServerTls;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::Extensions;
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hasher};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// Connections of clients at a time.
pub const CONNECTIONS_MAX: usize = 128;
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 100;
const HEAD_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// What a console needs to know.
pub struct Settings {
    /// Names by which it is reached, besides addresses and `localhost`.
    pub hosts: Vec<String>,
    /// How this listener alone is reached, where a balancer stands before several: `https://node1.example:8080`.
    pub advertised: Option<String>,
    /// Without a login: each caller has its own.
    pub cluster: ClusterConfig,
    /// SASL mechanisms in the order in which they are tried.
    pub mechanisms: Vec<String>,
    /// Refuse every request that could change something.
    pub is_read_only: bool,
    /// HTTPS with it. The caller of [`start`] reloads its stores.
    pub tls: Option<Arc<ServerTls>>,
    /// What the node says of itself, where the console is in one.
    pub standing: Option<Standing>,
    /// The node's logs, where the console is in one.
    pub logs: Option<Arc<dyn OwnLogs>>,
    /// Where schemas are had from.
    pub schemas: Places,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// Why there is no listener: for the operator, beside the key or the flag.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BindError(String);

/// A console that runs until this is dropped.
#[derive(Debug)]
pub struct Console {
    address: SocketAddr,
    scheme: &'static str,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Console {
    /// `http://127.0.0.1:8080`
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Waits for the end of the thread, which does not come by itself.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its own thread.
            let _ = thread.join();
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Everything that requests share.
#[derive(Debug)]
struct Shared {
    hosts: Hosts,
    is_read_only: bool,
    callers: Arc<Callers>,
    instances: Arc<Instances>,
    changes: Arc<Changes>,
    advertised: Option<String>,
    probes: Probes,
    logs: Option<Arc<dyn OwnLogs>>,
    schemas: Option<Arc<Schemas>>,
    tls: Option<Arc<ServerTls>>,
}

impl Shared {
    fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Listens on `address` (`host:port`).
///
/// # Errors
/// It is no address, or cannot be listened on.
pub fn bind(address: &str) -> Result<std::net::TcpListener, BindError> {
    let refused = |problem: String| BindError(problem);
    let resolved = address.to_socket_addrs().map_err(|error| refused(format!("'{address}': {error}")))?;
    let mut addresses: Vec<SocketAddr> = resolved.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let Some(first) = addresses.first() else { return Err(refused(format!("'{address}' has no address"))) };
    std::net::TcpListener::bind(first)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| refused(format!("cannot listen on {first}: {error}")))
}

/// Starts the console's thread.
///
/// # Errors
/// The system gives no thread, or no event queue.
pub fn start(listener: std::net::TcpListener, settings: Settings) -> std::io::Result<Console> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        TcpListener::from_std(listener)?
    };
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() && settings.tls.is_none() {
        tracing::warn!(
            "the console listens on {address} without TLS: passwords travel readable. \
             Set console.security.protocol=SSL (--tls-config), put a proxy with TLS in front, or listen on 127.0.0.1"
        );
    }
    let own = settings.advertised.as_deref().and_then(advertised_host);
    let shared = Arc::new(Shared {
        hosts: Hosts::new(settings.hosts.iter().map(String::as_str).chain(own)),
        is_read_only: settings.is_read_only,
        instances: Arc::default(),
        changes: Arc::default(),
        advertised: settings.advertised.as_deref().map(|url| url.trim_end_matches('/').to_owned()),
        callers: Arc::new(Callers::new(settings.cluster, settings.mechanisms)),
        probes: Probes::new(settings.standing),
        logs: settings.logs,
        schemas: Schemas::new(settings.schemas),
        tls: settings.tls,
    });
    let scheme = shared.scheme();
    tracing::info!("console on {scheme}://{address}");
    let (stop, stopped) = oneshot::channel();
    let work = move || {
        runtime.block_on(async {
            tokio::select! {
                () = serve(listener, &shared) => {}
                _ = stopped => {}
            }
        });
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name("console".to_owned()).spawn(work)?;
    Ok(Console { address, scheme, stop: Some(stop), thread: Some(thread) })
}

/// Whether this can be [`Settings::advertised`].
///
/// # Errors
/// It is no URL of HTTP with a host.
pub fn check_advertised(url: &str) -> Result<(), BindError> {
    let wrong = || {
        BindError(format!("expected a URL such as https://node1.example:8080, not '{}'", url.escape_debug()))
    };
    advertised_host(url).map(drop).ok_or_else(wrong)
}

/// The name in `https://node1.example:8080`; `None`: it is no such URL.
fn advertised_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split('/').next().unwrap_or_default();
    let (name, port) = authority.rsplit_once(':').unwrap_or((authority, "0"));
    let name = if authority.ends_with(']') { authority } else { name };
    (!name.is_empty() && (authority.ends_with(']') || port.parse::<u16>().is_ok())).then_some(name)
}

async fn serve(listener: TcpListener, shared: &Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    loop {
        let place = loop {
            tokio::select! {
                place = places.clone().acquire_owned() => break place,
                _ = sweep.tick() => shared.callers.sweep(),
            }
        };
        let Ok(place) = place else { return };
        let accepted = loop {
            tokio::select! {
                accepted = listener.accept() => break accepted,
                _ = sweep.tick() => shared.callers.sweep(),
            }
        };
        match accepted {
            Ok((stream, _)) => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    converse(stream, shared).await;
                    drop(place);
                });
            }
            // Mostly a want of descriptors: trying at once would spin.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    // Without it answers are slower and right.
    let _ = stream.set_nodelay(true);
    let stream = match &shared.tls {
        None => Stream::plain(stream),
        Some(tls) => match timeout(HEAD_WITHIN, Stream::welcome(stream, tls)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "no TLS with a client of the console");
                return;
            }
            Err(_) => {
                tracing::debug!("no TLS with a client of the console: it did not shake hands in time");
                return;
            }
        },
    };
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(&shared, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(Timed::new(stream)), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the console ended");
    }
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Response<Outgoing> {
    let (path, query) =
        (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    if is_read(request.method())
        && let Some((status, text)) = shared.probes.answer(&path, &query, &shared.callers).await
    {
        return guarded(plain(status, text));
    }
    // The files are the same for everyone and say nothing of a cluster; a foreign host gets none all the same.
    if is_read(request.method())
        && shared.hosts.check(request.headers()).is_ok()
        && let Some(file) = own_file(&path, request.headers())
    {
        return guarded(file);
    }
    let dialect = dialect(own_path(&path));
    let (parts, incoming) = request.into_parts();
    let mut body = Some(incoming);
    let answered = match timeout(ANSWER_WITHIN, routed(shared, &parts, &mut body, (&path, dialect))).await {
        Ok(answered) => answered,
        Err(_) => Err(Problem::new(
            StatusCode::GATEWAY_TIMEOUT,
            format!("not answered within {} s", ANSWER_WITHIN.as_secs()),
        )),
    };
    if let (Err(_), Some(body)) = (&answered, &mut body) {
        body::drain(body).await;
    }
    let mut response = guarded(answered.unwrap_or_else(|problem| refuse(&problem, dialect, &parts)));
    if shared.is_read_only {
        // The page shows no change then.
        response.headers_mut().insert("barnabas-read-only", HeaderValue::from_static("true"));
    }
    response
}

/// A file of the page. A client that asks for `/` in JSON alone is one of Strimzi's bridge: it gets the version.
fn own_file(path: &str, headers: &HeaderMap) -> Option<Response<Outgoing>> {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if path == "/" && accept.contains("json") && !accept.contains("text/html") {
        let document = serde_json::json!({ "bridge_version": env!("CARGO_PKG_VERSION") });
        return Some(write(Answer::json(document), None));
    }
    page::answer(path, headers)
}

fn dialect(own: &str) -> Dialect {
    if own.starts_with("/v3") {
        Dialect::V3
    } else if proxy::is_own(own) {
        Dialect::V2
    } else {
        Dialect::Own
    }
}

/// The path behind the prefix that Confluent's API has inside a broker.
fn own_path(path: &str) -> &str {
    path.strip_prefix("/kafka").filter(|rest| rest.starts_with("/v3/")).unwrap_or(path)
}

async fn routed(
    shared: &Shared,
    request: &Parts,
    body: &mut Option<Incoming>,
    (path, dialect): (&str, Dialect),
) -> Result<Response<Outgoing>, Problem> {
    let host = shared.hosts.check(&request.headers)?;
    let own = own_path(path);
    let named = if dialect == Dialect::V2 { proxy::trimmed(own) } else { own };
    let found = routes::find(api::tables(), request.method.as_str(), named)?;
    gate::check_change(&request.method, &request.headers, &host, shared.is_read_only)?;
    if dialect == Dialect::V2 {
        // Reading records is a change too: a consumer goes on behind them.
        gate::check_origin(&request.headers, &host)?;
        media::Accepted::read(&request.headers)?;
    }
    let here = here((request, shared.scheme()), &host);
    let at = Place {
        query: Place::read_query(request.uri.query())?,
        base: format!("{here}{}/v3", &path[..path.len() - own.len()]),
        own: shared.advertised.clone().unwrap_or_else(|| here.clone()),
        params: Vec::new(),
        is_read_only: shared.is_read_only,
        schemas: shared.schemas.clone(),
    };
    let caller = gate::caller(&request.headers)?;
    let cluster = shared.callers.lease(caller).await?;
    let Found { route, params } = found;
    let at = Place { params, ..at };
    match route.run {
        Run::Records => v3::records::stream(cluster, at, body).await,
        Run::Tail => api::tail::stream(cluster, at, &request.headers).await,
        Run::Search => api::search::stream::stream(cluster, at, shared.logs.clone()).await,
        Run::Whole(handler) => {
            let body = match body {
                Some(body) => body::read(body).await?,
                None => Bytes::new(),
            };
            check_names(&route, &body)?;
            let mut together = Extensions::new();
            together.insert(shared.instances.clone());
            let key = repeated(request, path)?.map(|key| {
                let user = cluster.user().map(str::to_owned);
                (idempotency::Id { user, key }, idempotency::print(request, &body))
            });
            let call = Call { cluster, at, headers: request.headers.clone(), body, shared: together };
            let working = run(handler, call);
            let answered = match key {
                Some((id, print)) => shared.changes.once(id, print, working).await,
                None => working.await,
            };
            let known = request.headers.get(header::IF_NONE_MATCH).filter(|_| is_read(&request.method));
            answered.map(|answer| write(answer, known))
        }
    }
}

/// Fields that the description of a body does not have are refused: a typing error would be a default.
fn check_names(route: &Route, body: &[u8]) -> Result<(), Problem> {
    let Some(names) = route.doc.body.and_then(|shape| shape.names()) else { return Ok(()) };
    // What is no object is refused by its handler.
    Fields::read(body).map_or(Ok(()), |fields| fields.only(&names))
}

async fn run(handler: Handler, mut call: Call) -> Result<Answer, Problem> {
    let answered = handler(&mut call).await;
    call.cluster.keep();
    answered
}

/// The key with which a change of `/api/v1` may be repeated.
fn repeated(request: &Parts, path: &str) -> Result<Option<String>, Problem> {
    if is_read(&request.method) || !path.starts_with("/api/v1/") {
        return Ok(None);
    }
    idempotency::key(&request.headers)
}

/// How links begin: as the caller has addressed this listener, through a proxy with TLS or not.
fn here((request, own): (&Parts, &str), host: &str) -> String {
    let is_proxied = request.headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
    let scheme = if is_proxied { "https" } else { own };
    format!("{scheme}://{host}")
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// `known`: the tags of answers that the caller has. An answer with such a tag goes out without its body (RFC 9110,
/// 13.1.2).
fn write(answer: Answer, known: Option<&HeaderValue>) -> Response<Outgoing> {
    let (written, kind) = answer.written.unzip();
    let is_tagged = answer.status == StatusCode::OK && written.is_none();
    let body = written.or_else(|| answer.document.map(|document| Bytes::from(document.to_string())));
    let tag = body.as_deref().filter(|_| is_tagged).map(tag);
    let is_known = tag.as_deref().is_some_and(|tag| known.is_some_and(|known| names(known, tag)));
    let (status, body) = if is_known { (StatusCode::NOT_MODIFIED, None) } else { (answer.status, body) };
    let mut response = Response::new(Outgoing::Whole(body));
    *response.status_mut() = status;
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    let kind = HeaderValue::from_static(kind.unwrap_or("application/json"));
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if let Some(location) = answer.location.and_then(|location| HeaderValue::from_str(&location).ok()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// A name for these bytes. It serves callers who ask again, not proofs: a hash of 64 bits and the length.
fn tag(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    format!("\"{:016x}{:x}\"", hasher.finish(), body.len())
}

/// Whether an `If-None-Match` has this tag.
fn names(known: &HeaderValue, tag: &str) -> bool {
    let mut tags = known.to_str().unwrap_or_default().split(',').map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

fn plain(status: StatusCode, text: String) -> Response<Outgoing> {
    let mut response = Response::new(Outgoing::Whole(Some(Bytes::from(text))));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Clients of Confluent's API v3 decode errors by the content type `application/json` alone.
fn refuse(problem: &Problem, dialect: Dialect, request: &Parts) -> Response<Outgoing> {
    let mut response = plain(problem.status, problem.document(dialect).to_string());
    let kind = match dialect {
        Dialect::Own => "application/problem+json",
        Dialect::V3 => "application/json",
        Dialect::V2 => media::of_errors(&request.headers),
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if problem.status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Basic realm=\"Kafka\", charset=\"UTF-8\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// What every answer says to browsers.
fn guarded(mut response: Response<Outgoing>) -> Response<Outgoing> {
    let headers = response.headers_mut();
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ] {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_with_a_field_that_its_route_lacks_is_refused() {
        let of = |path: &str| {
            let tables = [api::ROUTES, v3::ROUTES];
            routes::find(tables, "POST", path).expect("a route").route
        };
        let body = br#"{"name":"t","partition_count":6}"#;
        let refused = check_names(&of("/api/v1/topics"), body).expect_err("no such field");
        let wanted =
            "unknown field 'partition_count'; this body takes: name, partitions, replication_factor, configs";
        assert_eq!((refused.status.as_u16(), refused.detail.as_str()), (400, wanted));
        assert!(check_names(&of("/api/v1/topics"), br#"{"name":"t","partitions":6}"#).is_ok());
        assert!(check_names(&of("/v3/clusters/c/topics"), body).is_ok(), "its handler knows the fields");
    }

    #[test]
    fn answer_that_is_known_goes_without_its_body() {
        let answer = || Answer::json(serde_json::json!({ "a": 1 }));
        let first = write(answer(), None);
        let tag = first.headers()[header::ETAG].clone();
        let status = |known: &str| {
            let known = HeaderValue::from_str(known).expect("a header");
            write(answer(), Some(&known)).status().as_u16()
        };
        let tag = tag.to_str().expect("a text");
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!([status(tag), status(&format!("\"x\", W/{tag}")), status("*")], [304; 3]);
        assert_eq!([status("\"x\""), status("")], [200; 2]);
        assert!(write(Answer::nothing(), None).headers().get(header::ETAG).is_none());
        let records = Answer::written(Bytes::from_static(b"[]"), "application/vnd.kafka.json.v2+json");
        let given = write(records, None);
        assert!(given.headers().get(header::ETAG).is_none());
        assert_eq!(given.headers()[header::CONTENT_TYPE], "application/vnd.kafka.json.v2+json");
    }

    #[test]
    fn advertised_url_has_a_host() {
        for (url, host) in [
            ("https://node1.example:8080", Some("node1.example")),
            ("http://node1.example/", Some("node1.example")),
            ("http://[::1]:8080", Some("[::1]")),
            ("http://[::1]", Some("[::1]")),
            ("node1.example:8080", None),
            ("http://:8080", None),
            ("http://node1:x", None),
            ("ftp://node1", None),
        ] {
            assert_eq!(advertised_host(url), host, "{url}");
            assert_eq!(check_advertised(url).is_ok(), host.is_some());
        }
    }
}
