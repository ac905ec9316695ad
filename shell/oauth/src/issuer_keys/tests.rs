use super::*;
use barnabas_harness::TempDir;
use barnabas_issuer::{Issuer, SigningKey};
use barnabas_sasl::oauth::Pauses;
use barnabas_tls::TlsSettings;
use serde_json::json;

fn settings(url: &str, trust: Option<&std::path::Path>) -> KeySettings {
    let tls = trust.map(|path| {
        let path = path.display().to_string();
        TlsSettings::read(|key| (key == "ssl.truststore.location").then(|| path.clone())).expect("sound")
    });
    KeySettings {
        text: url.to_owned(),
        url: Url::parse(url).expect("a URL"),
        tls,
        pauses: Pauses { refresh_ms: 3_600_000, retry_ms: 10, retry_max_ms: 20 },
        connect: Duration::from_secs(5),
        read: Duration::from_secs(5),
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not in 30 s: {what}");
}

#[test]
fn keys_come_by_https_from_an_issuer_that_is_trusted() {
    let (dir, issuer) = (TempDir::new(), Issuer::start(true));
    let (one, two) = (SigningKey::generate("1", "ES256"), SigningKey::generate("2", "RS256"));
    issuer.publish(&[&one]);
    let trust = dir.path().join("ca.pem");
    std::fs::write(&trust, &issuer.authority).expect("written");
    let keys = IssuerKeys::start(settings(&issuer.url("jwks"), Some(&trust))).expect("a thread");
    keys.await_first(Duration::from_secs(20));
    assert_eq!((keys.keys().len(), keys.fetches()), (1, 1));
    // A storm of unknown keys: one more, and no second within ten seconds.
    issuer.publish(&[&one, &two]);
    (0..1000).for_each(|_| keys.unknown_key());
    until("the new key", || keys.keys().len() == 2);
    (0..1000).for_each(|_| keys.unknown_key());
    assert_eq!((keys.fetches(), issuer.key_requests()), (2, 2));
}

#[test]
fn issuer_that_is_not_trusted_gives_no_keys() {
    let (dir, issuer, other) = (TempDir::new(), Issuer::start(true), Issuer::start(true));
    issuer.publish(&[&SigningKey::generate("1", "ES256")]);
    let trust = dir.path().join("ca.pem");
    std::fs::write(&trust, &other.authority).expect("written");
    let keys = IssuerKeys::start(settings(&issuer.url("jwks"), Some(&trust))).expect("a thread");
    until("three attempts", || keys.fetches() >= 3);
    assert!(keys.keys().is_empty());
}

#[test]
fn failed_fetch_is_repeated_and_keeps_the_keys_of_before() {
    let issuer = Issuer::start(false);
    issuer.publish(&[&SigningKey::generate("1", "ES256")]);
    issuer.break_down(true);
    let keys = IssuerKeys::start(settings(&issuer.url("jwks"), None)).expect("a thread");
    keys.await_first(Duration::from_secs(20));
    assert!(keys.keys().is_empty());
    issuer.break_down(false);
    until("keys", || keys.keys().len() == 1);
    issuer.break_down(true);
    keys.unknown_key();
    let before = keys.fetches();
    until("more attempts", || keys.fetches() > before + 2);
    assert_eq!(keys.keys().len(), 1);
}

#[test]
fn file_is_read_again_for_an_unknown_key() {
    let dir = TempDir::new();
    let path = dir.path().join("jwks.json");
    let write = |keys: &[&SigningKey]| {
        let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
        std::fs::write(&path, json!({"keys": keys}).to_string()).expect("written");
    };
    let (one, two) = (SigningKey::generate("1", "ES256"), SigningKey::generate("2", "ES384"));
    write(&[&one]);
    let keys = IssuerKeys::start(settings(&format!("file:{}", path.display()), None)).expect("a thread");
    keys.await_first(Duration::from_secs(20));
    assert_eq!(keys.keys().len(), 1);
    write(&[&one, &two]);
    keys.unknown_key();
    until("the new key", || keys.keys().len() == 2);
}
