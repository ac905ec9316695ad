//! Conversations of a client with a server's exchange: `tests/talks/*.txt`. A line that begins with `> ` is what the
//! client does, the lines after it are what the exchange answers. `UPDATE_TALKS=1` writes the answers that it gives
//! now; the diff is the review.
//!
//! Users: alice and bob by PLAIN, alice by SCRAM. Sessions by PLAIN last an hour. The token "good" is accepted.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

use barnabas_base::TimestampMs;
use barnabas_sasl::Secret;
use barnabas_sasl::client::{ClientExchange, ClientLogin};
use barnabas_sasl::exchange::{
    Authenticated, Exchange, Offer, Reply, SaslMechanism, Step, Surroundings, TokenCredential,
};
use barnabas_sasl::kerberos;
use barnabas_sasl::oauth::Bearer;
use barnabas_sasl::plain::PlainUsers;
use barnabas_sasl::scram::{Decoy, Mechanism, ScramCredential};
use barnabas_wire::messages::*;
use barnabas_wire::{ApiKey, RequestBody, decode_response, encode_request};
use bytes::Bytes;
use std::path::Path;

struct Around {
    offers: Vec<Offer>,
    plain: PlainUsers,
    alice: ScramCredential,
}

impl Around {
    fn new() -> Self {
        let of = |mechanism, session_max_ms| Offer { mechanism, session_max_ms };
        let offers = vec![
            of(SaslMechanism::Plain, 3_600_000),
            of(SaslMechanism::Scram(Mechanism::Sha256), 0),
            of(SaslMechanism::OAuthBearer, 60_000),
        ];
        let (alice, bob) = (Secret::from("alice-secret"), Secret::from("bob-secret"));
        let plain = PlainUsers::new([("alice", &alice), ("bob", &bob)]);
        let salt = b"a salt of the test".to_vec();
        let alice = ScramCredential::from_password(Mechanism::Sha256, &alice, salt, 4096).expect("sound");
        Self { offers, plain, alice }
    }
}

impl Surroundings for Around {
    fn offers(&self) -> &[Offer] {
        &self.offers
    }

    fn api_versions(&self, _: i16, request: Option<&ApiVersionsRequest>) -> ApiVersionsResponse {
        let error_code = match request {
            None => 35,
            Some(request) if &*request.client_software_name == "-" => 42,
            Some(_) => 0,
        };
        ApiVersionsResponse { error_code, ..Default::default() }
    }

    fn plain_users(&self) -> &PlainUsers {
        &self.plain
    }

    fn scram(&self, mechanism: Mechanism, user: &str) -> Option<ScramCredential> {
        (mechanism == Mechanism::Sha256 && user == "alice").then(|| self.alice.clone())
    }

    fn token(&self, _: Mechanism, id: &str) -> Option<TokenCredential> {
        let (credential, owner) = (self.alice.clone(), "owner".to_owned());
        (id == "token-id").then_some(TokenCredential { credential, owner, expires: TimestampMs(5_000) })
    }

    fn decoy(&self) -> Decoy {
        Decoy::new(Secret::from("a secret of 32 bytes and longer.."), 4096)
    }

    fn bearer(&self, token: &str, _: TimestampMs) -> Result<Bearer, String> {
        let bearer = Bearer { principal: "carol".to_owned(), expires: TimestampMs(30_000) };
        if token == "good" { Ok(bearer) } else { Err("the signature is wrong".to_owned()) }
    }

    fn kerberos(&self) -> Option<&kerberos::Acceptor> {
        None
    }

    fn kerberos_renewed(&self) -> Option<std::sync::Arc<kerberos::Acceptor>> {
        None
    }

    fn note(&self, _: [u8; 16], _: TimestampMs, _: TimestampMs) -> kerberos::Seen {
        kerberos::Seen::New
    }

    fn secrets(&self) -> kerberos::Secrets {
        kerberos::Secrets([7; kerberos::Secrets::BYTES])
    }

    fn nonce(&self) -> String {
        "server-nonce".to_owned()
    }
}

struct Speaker {
    around: Around,
    exchange: Exchange,
    now: TimestampMs,
    known: Option<Authenticated>,
    scram: Option<ClientExchange>,
    challenge: Bytes,
}

impl Speaker {
    fn new() -> Self {
        let (around, exchange) = (Around::new(), Exchange::new());
        Self { around, exchange, now: TimestampMs(0), known: None, scram: None, challenge: Bytes::new() }
    }

    fn say(&mut self, command: &str) -> Vec<String> {
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        let (rest, version) = match rest.rsplit_once(" v") {
            Some((rest, version)) if version.parse::<i16>().is_ok() => (rest, version.parse().ok()),
            _ => (rest, None),
        };
        match word {
            "new" => *self = Self::new(),
            "at" => self.now = TimestampMs(rest.parse().expect("milliseconds")),
            "again" => self.exchange = Exchange::again(self.known.clone().expect("known")),
            "bytes" => return self.frame(Bytes::from(unescaped(rest)), None),
            "token" => return self.token(unescaped(rest), version.unwrap_or(2)),
            "raw" => return self.frame(Bytes::from(unescaped(rest)), None),
            "versions" => {
                let name = if rest.is_empty() { "test" } else { rest };
                let request = ApiVersionsRequest {
                    client_software_name: name.into(),
                    client_software_version: "1".into(),
                    ..Default::default()
                };
                return self.request(request.into(), version.unwrap_or(3));
            }
            "handshake" => {
                let request = SaslHandshakeRequest { mechanism: rest.into(), ..Default::default() };
                return self.request(request.into(), version.unwrap_or(1));
            }
            "metadata" => return self.request(MetadataRequest::default().into(), 12),
            "scram" => {
                let mut words = rest.split(' ').map(str::to_owned);
                let (user, password) = (words.next().expect("a user"), words.next().expect("a password"));
                let login = ClientLogin::Scram {
                    mechanism: Mechanism::Sha256,
                    user,
                    password: Secret::from(password),
                    is_token: words.next().is_some(),
                };
                let (token, exchange) = ClientExchange::begin(&login, "client-nonce");
                self.scram = Some(exchange);
                return self.token(token.to_vec(), 2);
            }
            "proof" => {
                let exchange = self.scram.take().expect("begun");
                let next = exchange.challenged(&self.challenge).expect("a challenge").expect("a proof");
                return self.token(next.0.to_vec(), 2);
            }
            other => panic!("{other}"),
        }
        Vec::new()
    }

    fn token(&mut self, token: Vec<u8>, version: i16) -> Vec<String> {
        let request = SaslAuthenticateRequest { auth_bytes: token.into(), ..Default::default() };
        self.request(request.into(), version)
    }

    fn request(&mut self, body: RequestBody, version: i16) -> Vec<String> {
        let api = body.key();
        let header = RequestHeader {
            request_api_key: api.number(),
            request_api_version: version,
            correlation_id: 7,
            ..Default::default()
        };
        let frame = encode_request(&header, &body).expect("a request").into_bytes();
        self.frame(frame, Some((api, version)))
    }

    fn frame(&mut self, frame: Bytes, asked: Option<(ApiKey, i16)>) -> Vec<String> {
        let step = self.exchange.take(frame, self.now, &self.around);
        let mut lines = Vec::new();
        match step {
            Step::Answer(reply) => lines.push(self.shown(&reply, asked)),
            Step::Done(reply, known) => {
                lines.extend(reply.map(|reply| self.shown(&reply, asked)));
                lines.push(format!(
                    "done user={} mechanism={} lifetime={:?} token={}",
                    known.login.name,
                    known.mechanism.name(),
                    known.lifetime_ms,
                    known.login.token.is_some()
                ));
                self.known = Some(known);
            }
            Step::Failed(failure) => {
                lines.extend(failure.answer.map(|reply| self.shown(&reply, asked)));
                lines.push(format!("failed user={:?}: {}", failure.user.unwrap_or_default(), failure.why));
            }
            Step::Broken(why) => lines.push(format!("broken: {why}")),
        }
        lines
    }

    fn shown(&mut self, Reply(frame): &Reply, asked: Option<(ApiKey, i16)>) -> String {
        let bytes = Bytes::from(frame.segments.concat()).slice(4..);
        let Some((api, version)) = asked else { return format!("raw {:?}", bytes) };
        let (header, body) = decode_response(bytes, api, version).expect("an answer");
        assert_eq!(header.correlation_id, 7);
        match body {
            ResponseBody::ApiVersions(answer) => format!("versions error={}", answer.error_code),
            ResponseBody::SaslHandshake(answer) => {
                format!("handshake error={} {:?}", answer.error_code, answer.mechanisms)
            }
            ResponseBody::SaslAuthenticate(answer) => {
                self.challenge = answer.auth_bytes.clone();
                let text = answer.error_message.unwrap_or_default();
                let (code, lifetime) = (answer.error_code, answer.session_lifetime_ms);
                format!("token error={code} lifetime={lifetime} {:?} {:?}", answer.auth_bytes, &*text)
            }
            other => panic!("{other:?}"),
        }
    }
}

/// `\0`, `\1` and `\x60`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = match part.strip_prefix('x') {
            Some(hex) => (u8::from_str_radix(&hex[..2], 16).expect("hexadecimal"), &hex[2..]),
            None => (part.as_bytes()[0] - b'0', &part[1..]),
        };
        bytes.push(code);
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

#[test]
fn every_talk_goes_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/talks");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("the talks").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= 5, "talks are missing");
    for path in paths {
        let written = std::fs::read_to_string(&path).expect("a talk");
        let (mut now, mut speaker) = (String::new(), Speaker::new());
        for line in written.lines() {
            let command = line.strip_prefix("> ");
            if command.is_some() || line.starts_with("# ") || line.is_empty() {
                now.push_str(line);
                now.push('\n');
            }
            for answer in command.into_iter().flat_map(|command| speaker.say(command)) {
                now.push_str(&answer);
                now.push('\n');
            }
        }
        if now != written && std::env::var_os("UPDATE_TALKS").is_some() {
            std::fs::write(&path, now).expect("written");
        } else {
            assert_eq!(now, written, "{}", path.display());
        }
    }
}
