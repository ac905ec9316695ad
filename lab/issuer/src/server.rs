//! The issuer's two addresses: `/jwks` and `/token`.

use crate::SigningKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Who is handed tokens, by HTTP's Basic.
pub const CLIENT_ID: &str = "kafka node";
pub const CLIENT_SECRET: &str = "issuer:s3cret";

/// Runs until it is dropped.
#[derive(Debug)]
pub struct Issuer {
    port: u16,
    has_tls: bool,
    /// Its authority, as PEM; empty without TLS.
    pub authority: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A key, claims without times, and how many seconds a token lasts.
type Signing = (Arc<SigningKey>, Value, u64);

#[derive(Debug, Default)]
struct Shared {
    published: Mutex<Vec<Value>>,
    tokens: Mutex<Vec<String>>,
    signing: Mutex<Option<Signing>>,
    forms: Mutex<Vec<String>>,
    key_requests: AtomicU64,
    is_broken: AtomicBool,
    is_over: AtomicBool,
}

impl Issuer {
    pub fn start(has_tls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (config, authority) = if has_tls { tls() } else { (None, String::new()) };
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.is_over.load(Ordering::Relaxed) {
                    return;
                }
                // A client that leaves early, or does not trust, is its own test's business.
                let _ = stream.and_then(|stream| serve(&of_thread, stream, config.as_ref()));
            }
        });
        Self { port, has_tls, authority, shared, thread: Some(thread) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}://localhost:{}/{path}", if self.has_tls { "https" } else { "http" }, self.port)
    }

    /// What `/jwks` answers from now on.
    pub fn publish(&self, keys: &[&SigningKey]) {
        *self.shared.published.lock().expect("sound") = keys.iter().map(|key| key.jwk()).collect();
    }

    /// What `/token` answers from now on: one after the other, the last for good.
    pub fn hand_out(&self, tokens: &[String]) {
        *self.shared.tokens.lock().expect("sound") = tokens.to_vec();
    }

    /// `/token` answers with tokens of its own from now on, each with `iat` and `exp` of its moment.
    pub fn sign(&self, key: Arc<SigningKey>, claims: Value, seconds: u64) {
        *self.shared.signing.lock().expect("sound") = Some((key, claims, seconds));
    }

    /// Whether both answer with 503.
    pub fn break_down(&self, is_broken: bool) {
        self.shared.is_broken.store(is_broken, Ordering::Relaxed);
    }

    pub fn key_requests(&self) -> u64 {
        self.shared.key_requests.load(Ordering::Relaxed)
    }

    /// The bodies that came to `/token`.
    pub fn forms(&self) -> Vec<String> {
        self.shared.forms.lock().expect("sound").clone()
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn tls() -> (Option<Arc<ServerConfig>>, String) {
    let mut ca = CertificateParams::new(Vec::new()).expect("parameters");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let certificate =
        CertificateParams::new(names).expect("parameters").signed_by(&key, &ca).expect("signed");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocols")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        )
        .expect("they belong together");
    (Some(Arc::new(config)), ca.pem())
}

fn serve(shared: &Shared, stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    match tls {
        None => answer(shared, stream),
        Some(config) => {
            let connection = ServerConnection::new(config.clone()).expect("a connection");
            answer(shared, StreamOwned::new(connection, stream))
        }
    }
}

fn answer(shared: &Shared, stream: impl Read + Write) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut head, mut length, mut known) = (String::new(), 0, false);
    stream.read_line(&mut head)?;
    let expected = format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}")));
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? <= 2 {
            break;
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
        match name {
            "Content-Length" => length = value.parse().unwrap_or(0),
            "Authorization" => known = value == expected,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let (status, said) = decide(shared, &head, &String::from_utf8_lossy(&body), known);
    let said = said.to_string();
    let stream = stream.get_mut();
    // In chunks, as issuers behind proxies answer.
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{said}\r\n0\r\n\r\n",
        said.len()
    )?;
    stream.flush()
}

fn decide(shared: &Shared, head: &str, body: &str, known: bool) -> (u16, Value) {
    let is_broken = shared.is_broken.load(Ordering::Relaxed);
    if head.starts_with("GET /jwks ") {
        shared.key_requests.fetch_add(1, Ordering::Relaxed);
        if !is_broken {
            return (200, json!({"keys": *shared.published.lock().expect("sound")}));
        }
    }
    if is_broken {
        return (503, json!({}));
    }
    if !head.starts_with("POST /token ") {
        return (404, json!({}));
    }
    shared.forms.lock().expect("sound").push(body.to_owned());
    if !known && !body.contains("assertion=") {
        return (401, json!({"error": "invalid_client", "error_description": "unknown client"}));
    }
    let mut tokens = shared.tokens.lock().expect("sound");
    if let Some((key, claims, seconds)) = &*shared.signing.lock().expect("sound") {
        *tokens = vec![key.token(&lasting(claims, *seconds))];
    }
    let token = if tokens.len() > 1 { tokens.remove(0) } else { tokens.first().cloned().unwrap_or_default() };
    (200, json!({"access_token": token, "token_type": "Bearer", "expires_in": 60}))
}

/// The claims with `iat` and `exp`.
pub fn lasting(claims: &Value, seconds: u64) -> Value {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let mut claims = claims.clone();
    claims["iat"] = now_s.into();
    claims["exp"] = (now_s + seconds).into();
    claims
}
