//! What the keys mean, and logins at a broker that has core/sasl's server side.

use super::*;
use crate::fake_broker::{fake_broker, nodes};
use crate::{Connection, Dial, Progress};
use barnabas_base::ErrorCode;
use barnabas_issuer::{CLIENT_ID, CLIENT_SECRET, Issuer, SigningKey, lasting};
use barnabas_sasl::oauth;
use barnabas_sasl::plain::{PlainUsers, log_in};
use barnabas_sasl::scram::{Challenged, Decoy, Received, ScramCredential};
use barnabas_wire::messages::{
    MetadataRequest, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeResponse,
};
use barnabas_wire::{RequestBody, ResponseBody};
use bytes::Bytes;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const APIS: &[(i16, i16)] = &[(3, 12), (17, 1), (36, 2)];
const SCRAM: &str = "org.apache.kafka.common.security.scram.ScramLoginModule required";
const OAUTHBEARER: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required";
const PLAIN: &str = "org.apache.kafka.common.security.plain.PlainLoginModule required";

fn jaas(module: &str, password: &str) -> String {
    format!("{module} username=\"alice\" password=\"{password}\";")
}

fn security(mechanism: &str, password: &str) -> Security {
    let jaas = jaas(if mechanism == "PLAIN" { PLAIN } else { SCRAM }, password);
    let keys =
        [("security.protocol", "sasl_plaintext"), ("sasl.mechanism", mechanism), ("sasl.jaas.config", &jaas)];
    Security::parse(keys).expect("complete")
}

fn dial(security: Security) -> Dial {
    let (client_id, timeout) = ("test".to_owned(), Duration::from_secs(10));
    Dial { client_id, timeout, buffers: (-1, -1), security, progress: Progress::default() }
}

fn refusal(keys: &[(&str, &str)]) -> String {
    Security::parse(keys.iter().copied()).expect_err("refused").to_string()
}

/// A broker that knows alice with her password `right`, by PLAIN and SCRAM-SHA-256. Counts logins.
async fn guarded_broker(lifetime_ms: i64, logins: Arc<AtomicU32>) -> String {
    let exchange: Mutex<Option<(String, Option<Challenged>)>> = Mutex::new(None);
    fake_broker(APIS, move |request| {
        let mut exchange = exchange.lock().expect("no test panics inside");
        Some(match request {
            RequestBody::SaslHandshake(asked) => {
                let is_known = ["PLAIN", "SCRAM-SHA-256"].contains(&&*asked.mechanism);
                let code = if is_known { 0 } else { ErrorCode::UnsupportedSaslMechanism.code() };
                *exchange = Some((asked.mechanism.to_string(), None));
                let mechanisms = vec!["PLAIN".into(), "SCRAM-SHA-256".into()];
                SaslHandshakeResponse { error_code: code, mechanisms, ..Default::default() }.into()
            }
            RequestBody::SaslAuthenticate(asked) => {
                let (answer, is_over) = judged(&mut exchange, &asked);
                logins.fetch_add(u32::from(is_over), Ordering::Relaxed);
                let lifetime = if is_over { lifetime_ms } else { 0 };
                with_lifetime(answer, lifetime)
            }
            RequestBody::Metadata(_) => nodes(&[(1, "127.0.0.1:1")]).into(),
            other => panic!("{other:?}"),
        })
    })
    .await
}

fn with_lifetime(mut answer: SaslAuthenticateResponse, lifetime_ms: i64) -> ResponseBody {
    answer.session_lifetime_ms = lifetime_ms;
    answer.into()
}

/// One step of the server's part, and whether it was the last.
fn judged(
    exchange: &mut Option<(String, Option<Challenged>)>,
    asked: &SaslAuthenticateRequest,
) -> (SaslAuthenticateResponse, bool) {
    let (mechanism, challenged) = exchange.take().expect("a handshake came first");
    let said =
        |bytes: Vec<u8>| SaslAuthenticateResponse { auth_bytes: Bytes::from(bytes), ..Default::default() };
    let judged = match (mechanism.as_str(), challenged) {
        ("PLAIN", _) => {
            let password = Secret::from("right");
            log_in(&asked.auth_bytes, &PlainUsers::new([("alice", &password)])).map(|_| (Vec::new(), true))
        }
        (_, None) => {
            let received = Received::new(Mechanism::Sha256, &asked.auth_bytes).expect("a first message");
            let (salt, decoy) =
                (b"salt".to_vec(), Decoy::new(Secret::from("0123456789abcdef0123456789abcdef"), 4096));
            let known = ScramCredential::from_password(Mechanism::Sha256, &Secret::from("right"), salt, 4096);
            let (challenge, challenged) = received.challenge(known.as_ref().ok(), &decoy, "servernonce");
            *exchange = Some((mechanism.clone(), Some(challenged)));
            Ok((challenge, false))
        }
        (_, Some(challenged)) => challenged.finish(&asked.auth_bytes).map(|(proof, _)| (proof, true)),
    };
    match judged {
        Ok((bytes, is_over)) => (said(bytes), is_over),
        Err(refusal) => {
            let refused = SaslAuthenticateResponse {
                error_code: ErrorCode::SaslAuthenticationFailed.code(),
                error_message: Some(refusal.text_for_client(&mechanism, false).into()),
                ..Default::default()
            };
            (refused, false)
        }
    }
}

async fn opened(mechanism: &str, password: &str) -> Result<Connection, ClientError> {
    let address = guarded_broker(0, Arc::default()).await;
    Connection::open_with(&address, &dial(security(mechanism, password))).await
}

#[tokio::test]
async fn login_with_the_right_password_opens_the_connection() {
    for mechanism in ["PLAIN", "SCRAM-SHA-256"] {
        let mut connection = opened(mechanism, "right").await.expect(mechanism);
        assert_eq!(connection.renew_at(), None);
        connection.call(&MetadataRequest::default()).await.expect("served");
    }
}

#[tokio::test]
async fn login_with_a_wrong_password_names_user_and_mechanism() {
    for mechanism in ["PLAIN", "SCRAM-SHA-256"] {
        let error = opened(mechanism, "wrong").await.expect_err("refused");
        assert!(matches!(error, ClientError::Login { .. }) && !error.is_retriable(), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&format!("authentication failed for user alice by {mechanism}: ")), "{text}");
        assert!(!text.contains("wrong"), "{text}");
    }
}

#[tokio::test]
async fn mechanism_that_is_not_enabled_is_answered_with_those_that_are() {
    let text = opened("SCRAM-SHA-512", "right").await.expect_err("refused").to_string();
    let expected = "mechanism SCRAM-SHA-512 is not enabled there: PLAIN, SCRAM-SHA-256. Set sasl.mechanism to one of these";
    assert!(text.ends_with(expected), "{text}");
}

#[tokio::test]
async fn login_whose_lifetime_ends_is_renewed_before_the_next_request() {
    let logins = Arc::new(AtomicU32::new(0));
    let address = guarded_broker(20, logins.clone()).await;
    let mut connection =
        Connection::open_with(&address, &dial(security("PLAIN", "right"))).await.expect("open");
    assert_eq!(logins.load(Ordering::Relaxed), 1);
    tokio::time::sleep(Duration::from_millis(25)).await;
    connection.call(&MetadataRequest::default()).await.expect("served");
    assert_eq!(logins.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn listener_without_sasl_is_named() {
    let address = fake_broker(&[(3, 12)], |request| panic!("{request:?}")).await;
    let error =
        Connection::open_with(&address, &dial(security("PLAIN", "right"))).await.expect_err("refused");
    assert!(
        error.to_string().contains("its listener has no SASL. Expected security.protocol=PLAINTEXT"),
        "{error}"
    );
}

#[tokio::test]
async fn listener_with_tls_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        stream.read_u32().await.expect("a request");
        // A fatal alert, unexpected_message.
        stream.write_all(&[0x15, 3, 3, 0, 2, 2, 10]).await.expect("taken");
    });
    let error = Connection::open(&address, "test", Duration::from_secs(10)).await.expect_err("refused");
    assert!(
        error.to_string().contains("its listener speaks TLS, and security.protocol is PLAINTEXT"),
        "{error}"
    );
    assert!(!error.is_retriable());
}

#[test]
fn keys_without_security_mean_plaintext() {
    assert_eq!(
        Security::parse([("client.id", "x"), ("ssl.keystore.type", "JKS")]).unwrap(),
        Security::default()
    );
    assert_eq!(Security::parse([("security.protocol", "plaintext")]).unwrap(), Security::default());
}

#[test]
fn scram_takes_either_login_module_and_tokens() {
    let read = |jaas: &str| {
        let keys = [
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "SCRAM-SHA-512"),
            ("sasl.jaas.config", jaas),
        ];
        match Security::parse(keys).unwrap().login.unwrap() {
            Login::Password(credentials) => credentials,
            other => panic!("{other:?}"),
        }
    };
    let scram = |is_token| ByPassword::Scram { mechanism: Mechanism::Sha512, is_token };
    assert_eq!(read(&jaas(PLAIN, "x")).mechanism, scram(false));
    let token = format!("{SCRAM} username=\"id\" password=\"hmac\" tokenauth=\"true\";");
    assert_eq!(read(&token).mechanism, scram(true));
}

#[test]
fn what_cannot_be_done_is_refused_with_what_can() {
    let sasl = ("security.protocol", "SASL_PLAINTEXT");
    assert!(
        refusal(&[("security.protocol", "TLS")])
            .contains("PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; not 'TLS'")
    );
    assert!(refusal(&[sasl]).starts_with("security.protocol has SASL and sasl.jaas.config is missing"));
    assert!(refusal(&[sasl, ("sasl.mechanism", "DIGEST-MD5")]).contains("not 'DIGEST-MD5'"));
    let gssapi = ("sasl.mechanism", "GSSAPI");
    let with = |module: &str| refusal(&[sasl, gssapi, ("sasl.jaas.config", module)]);
    let scram =
        "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"a\" password=\"b\";";
    assert!(
        with(scram)
            .contains("does not log in by GSSAPI: expected com.sun.security.auth.module.Krb5LoginModule")
    );
    let krb5 = "com.sun.security.auth.module.Krb5LoginModule required";
    let keytab = format!("{krb5} useKeyTab=true keyTab=\"/k\" principal=\"alice@NO.REALM\";");
    assert!(with(&keytab).contains("No serviceName defined in either JAAS or Kafka config"));
    let cache = format!("{krb5} useTicketCache=true ticketCache=\"KEYRING:x\" serviceName=\"kafka\";");
    assert!(with(&cache).contains("caches of the kind KEYRING are not read here"));
    let unknown = keytab.replace(';', " serviceName=\"kafka\";");
    assert!(with(&unknown).contains("names no kdc of the realm NO.REALM"));
    let plain = ("sasl.mechanism", "PLAIN");
    assert!(
        refusal(&[sasl, plain]).contains("sasl.jaas.config is missing. Example: sasl.jaas.config=org.apache")
    );
    let foreign =
        refusal(&[sasl, plain, ("sasl.jaas.config", "com.example.Own required password=\"hunter2\";")]);
    assert!(foreign.contains("com.example.Own") && !foreign.contains("hunter2"), "{foreign}");
    let nothing = refusal(&[sasl, plain, ("sasl.jaas.config", &format!("{PLAIN};"))]);
    assert!(nothing.contains("username and password are missing"), "{nothing}");
}

#[test]
fn password_in_debug_output_is_hidden() {
    let shown = format!("{:?}", security("PLAIN", "hunter2"));
    assert!(shown.contains("alice") && !shown.contains("hunter2"), "{shown}");
}

/// A broker that takes the token `good` alone. Counts logins and confirmations of a refusal.
async fn token_broker(good: String, counts: Arc<[AtomicU32; 2]>) -> String {
    fake_broker(APIS, move |request| {
        Some(match request {
            RequestBody::SaslHandshake(asked) => {
                assert_eq!(&*asked.mechanism, "OAUTHBEARER");
                SaslHandshakeResponse { mechanisms: vec![asked.mechanism], ..Default::default() }.into()
            }
            RequestBody::SaslAuthenticate(asked) if asked.auth_bytes == oauth::CONFIRMATION => {
                counts[1].fetch_add(1, Ordering::Relaxed);
                SaslAuthenticateResponse {
                    error_code: ErrorCode::SaslAuthenticationFailed.code(),
                    error_message: Some(oauth::INVALID_TOKEN.into()),
                    ..Default::default()
                }
                .into()
            }
            RequestBody::SaslAuthenticate(asked) => {
                let first = oauth::FirstMessage::parse(&asked.auth_bytes).expect("a first message");
                if first.token == good {
                    counts[0].fetch_add(1, Ordering::Relaxed);
                    return Some(with_lifetime(SaslAuthenticateResponse::default(), 20));
                }
                let auth_bytes = Bytes::from_static(oauth::INVALID_TOKEN.as_bytes());
                SaslAuthenticateResponse { auth_bytes, ..Default::default() }.into()
            }
            RequestBody::Metadata(_) => nodes(&[(1, "127.0.0.1:1")]).into(),
            other => panic!("{other:?}"),
        })
    })
    .await
}

fn by_token(issuer: &Issuer, secret: &str) -> Security {
    let (url, module) = (issuer.url("token"), format!("{OAUTHBEARER};"));
    let keys = [
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "OAUTHBEARER"),
        ("sasl.jaas.config", &module),
        ("sasl.oauthbearer.token.endpoint.url", &url),
        ("sasl.oauthbearer.client.credentials.client.id", CLIENT_ID),
        ("sasl.oauthbearer.client.credentials.client.secret", secret),
    ];
    Security::parse(keys).expect("complete")
}

#[tokio::test]
async fn token_of_an_issuer_logs_in_and_is_used_again() {
    let (issuer, key) = (Issuer::start(false), SigningKey::generate("1", "ES256"));
    let token = key.token(&lasting(&serde_json::json!({"sub": "alice"}), 600));
    issuer.hand_out(std::slice::from_ref(&token));
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let address = token_broker(token, counts.clone()).await;
    let mut connection =
        Connection::open_with(&address, &dial(by_token(&issuer, CLIENT_SECRET))).await.expect("open");
    tokio::time::sleep(Duration::from_millis(25)).await;
    connection.call(&MetadataRequest::default()).await.expect("served");
    let counted = |place: usize| counts[place].load(Ordering::Relaxed);
    assert_eq!((counted(0), counted(1), issuer.forms().len()), (2, 0, 1));
}

#[tokio::test]
async fn refused_token_is_confirmed_and_says_why() {
    let (issuer, key) = (Issuer::start(false), SigningKey::generate("1", "ES256"));
    let token = key.token(&lasting(&serde_json::json!({"sub": "alice"}), 600));
    issuer.hand_out(std::slice::from_ref(&token));
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let address = token_broker("another".to_owned(), counts.clone()).await;
    let error = Connection::open_with(&address, &dial(by_token(&issuer, CLIENT_SECRET))).await;
    let text = error.expect_err("refused").to_string();
    let said = "authentication failed for a token by OAUTHBEARER: {\"status\":\"invalid_token\"}";
    assert!(text.contains(said) && !text.contains(&token), "{text}");
    assert_eq!(counts[1].load(Ordering::Relaxed), 1);
    let error = Connection::open_with(&address, &dial(by_token(&issuer, "hunter2"))).await;
    let text = error.expect_err("no token").to_string();
    assert!(text.contains("status 401: invalid_client") && !text.contains("hunter2"), "{text}");
}

#[test]
fn keys_of_oauthbearer_are_read() {
    let module = format!("{OAUTHBEARER};");
    let keys = |more: &[(&str, &str)]| {
        let sasl = [("security.protocol", "SASL_PLAINTEXT"), ("sasl.mechanism", "OAUTHBEARER")];
        Security::parse(sasl.into_iter().chain(more.iter().copied())).map_err(|error| error.to_string())
    };
    let said = keys(&[("sasl.jaas.config", &jaas(SCRAM, "hunter2"))]).expect_err("refused");
    assert!(said.contains("does not log in by OAUTHBEARER") && !said.contains("hunter2"), "{said}");
    let said = keys(&[("sasl.jaas.config", &module)]).expect_err("refused");
    assert!(said.contains("sasl.oauthbearer.token.endpoint.url: is not set"), "{said}");
    let unsecured = format!("{OAUTHBEARER} unsecuredLoginStringClaim_sub=\"alice\";");
    let unsecured = [("sasl.jaas.config", unsecured.as_str())];
    assert_eq!(keys(&unsecured), keys(&unsecured));
    let file =
        [("sasl.jaas.config", module.as_str()), ("sasl.oauthbearer.token.endpoint.url", "file:/run/token")];
    assert_ne!(keys(&unsecured), keys(&file));
}
