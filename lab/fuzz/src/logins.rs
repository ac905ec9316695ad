//! What strangers say before they have authenticated, and what operators write in JAAS texts.

use std::sync::Arc;

use barnabas_base::TimestampMs;
use barnabas_sasl::Secret;
use barnabas_sasl::client::{ClientExchange, ClientLogin};
use barnabas_sasl::exchange::{Exchange, Offer, SaslMechanism, Step, Surroundings, TokenCredential};
use barnabas_sasl::jaas;
use barnabas_sasl::kerberos;
use barnabas_sasl::oauth::{
    Algorithm, Bearer, FirstMessage, Jwks, PublicKey, Rules, Signatures, UnsecuredRules, end_of,
};
use barnabas_sasl::plain::{self, PlainUsers};
use barnabas_sasl::scram::{Decoy, Mechanism, Received, ScramCredential};
use barnabas_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use bytes::Bytes;

/// A listener without users: whatever is said, no one is let in.
struct NoUsers {
    offers: Vec<Offer>,
    plain: PlainUsers,
}

impl NoUsers {
    fn new() -> Self {
        let offers = SaslMechanism::ALL.map(|mechanism| Offer { mechanism, session_max_ms: 1000 });
        Self { offers: offers.to_vec(), plain: PlainUsers::default() }
    }
}

impl Surroundings for NoUsers {
    fn offers(&self) -> &[Offer] {
        &self.offers
    }

    fn api_versions(&self, _: i16, _: Option<&ApiVersionsRequest>) -> ApiVersionsResponse {
        ApiVersionsResponse::default()
    }

    fn plain_users(&self) -> &PlainUsers {
        &self.plain
    }

    fn scram(&self, _: Mechanism, _: &str) -> Option<ScramCredential> {
        None
    }

    fn token(&self, _: Mechanism, _: &str) -> Option<TokenCredential> {
        None
    }

    fn decoy(&self) -> Decoy {
        Decoy::new(Secret::from("of the fuzzer"), 4096)
    }

    fn bearer(&self, _: &str, _: TimestampMs) -> Result<Bearer, String> {
        Err("none is known".to_owned())
    }

    fn kerberos(&self) -> Option<&kerberos::Acceptor> {
        None
    }

    fn kerberos_renewed(&self) -> Option<Arc<kerberos::Acceptor>> {
        None
    }

    fn note(&self, _: [u8; 16], _: TimestampMs, _: TimestampMs) -> kerberos::Seen {
        kerberos::Seen::New
    }

    fn secrets(&self) -> kerberos::Secrets {
        kerberos::Secrets([7; kerberos::Secrets::BYTES])
    }

    fn nonce(&self) -> String {
        "nonce".to_owned()
    }
}

/// Frames of two bytes of length each, as a client sends them until the verdict.
pub fn sasl_exchange(mut data: &[u8]) {
    let (around, mut exchange) = (NoUsers::new(), Exchange::new());
    while let Some((length, rest)) = data.split_first_chunk::<2>() {
        let (frame, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        match exchange.take(Bytes::copy_from_slice(frame), TimestampMs(0), &around) {
            Step::Answer(_) => data = rest,
            Step::Failed(_) | Step::Broken(_) => return,
            Step::Done(_, login) => panic!("let in: {login:?}"),
        }
    }
}

/// PLAIN's token.
pub fn sasl_plain(data: &[u8]) {
    assert!(plain::log_in(data, &PlainUsers::default()).is_err());
}

/// SCRAM's tokens, the first up to a line's end, the second after it.
pub fn sasl_scram(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let (first, second) = data.split_at(end);
    let around = NoUsers::new();
    if let Ok(received) = Received::new(Mechanism::Sha256, first) {
        let (_, challenged) = received.challenge(None, &around.decoy(), "nonce");
        assert!(challenged.finish(second.get(1..).unwrap_or_default()).is_err());
    }
}

/// The server's challenge, as a link reads it. Bounded iterations: the derivation itself is not what is looked for.
pub fn sasl_challenge(data: &[u8]) {
    let password = Secret::from("p");
    let login =
        ClientLogin::Scram { mechanism: Mechanism::Sha256, user: "u".to_owned(), password, is_token: false };
    let (_, exchange) = ClientExchange::begin(&login, "nonce");
    if let Ok(Some((_, exchange))) = exchange.challenged(data) {
        assert!(exchange.challenged(data).is_err());
    }
}

/// OAUTHBEARER's first message.
pub fn sasl_bearer(data: &[u8]) {
    if let Ok(first) = FirstMessage::parse(data) {
        assert!(!first.token.is_empty());
    }
}

/// No signature is right.
struct NoSignatures;

impl Signatures for NoSignatures {
    fn is_right(&self, _: Algorithm, _: &PublicKey, _: &[u8], _: &[u8]) -> bool {
        false
    }
}

/// A token, up to a line's end, and the set of keys after it. Never taken: no signature is right. One without a
/// signature names its user.
pub fn sasl_jwt(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let (token, set) = data.split_at(end);
    let keys = Jwks::parse(set.get(1..).unwrap_or_default()).unwrap_or_default();
    let Ok(token) = std::str::from_utf8(token) else { return };
    let rules = Rules {
        audiences: Vec::new(),
        issuer: None,
        scope_claim: "scope".to_owned(),
        sub_claim: "sub".to_owned(),
        clock_skew_ms: i64::MAX,
    };
    assert!(rules.check(token, TimestampMs(1_000), &keys, &NoSignatures).is_err());
    let unsecured = UnsecuredRules {
        principal_claim: "sub".to_owned(),
        scope_claim: "scope".to_owned(),
        required_scopes: vec!["a".to_owned()],
        clock_skew_ms: i64::MAX,
    };
    if let Ok(bearer) = unsecured.check(token, TimestampMs(1_000)) {
        assert!(!bearer.principal.is_empty() && end_of(token) == Ok(bearer.expires));
    }
}

/// A JAAS text, in both forms.
pub fn jaas(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(entries) = jaas::parse_config(text) {
        assert!(!entries.is_empty());
    }
    if let Ok(sections) = jaas::parse_file(text) {
        let own = jaas::section_of_listener(&sections, "LISTENER");
        assert!(own.is_none_or(|section| section.name.ends_with("KafkaServer")));
    }
}

/// A token of GSSAPI's client, and what stands within it encrypted. Without the service's key no one is let in.
pub fn kerberos_token(data: &[u8]) {
    let service = kerberos::Principal::parse("kafka/host@R").expect("a principal");
    let key = kerberos::Key::new(kerberos::Enctype::Aes128Sha1, &[7; 16]).expect("a key");
    let keys = vec![kerberos::Entry { principal: service.clone(), version: 1, key }];
    let rules = kerberos::Rules::parse("DEFAULT", "R").expect("rules");
    let acceptor = kerberos::Acceptor { service, keys, rules, clock_skew_ms: i64::MAX };
    let secrets = kerberos::Secrets([7; kerberos::Secrets::BYTES]);
    assert!(acceptor.accept(data, TimestampMs(0), &secrets, |_, _| kerberos::Seen::New).is_err());
    kerberos::read_decrypted(data);
}

/// A ticket cache.
pub fn ticket_cache(data: &[u8]) {
    if let Ok(cache) = kerberos::TicketCache::parse(data) {
        assert!(cache.first.is_none_or(|first| first.client == cache.client));
    }
}

/// A keytab.
pub fn keytab(data: &[u8]) {
    if let Ok(keytab) = kerberos::Keytab::parse(data) {
        let first = keytab.entries.first().map(|entry| entry.principal.clone());
        assert!(first.is_none_or(|first| !keytab.keys_of(&first).is_empty()));
    }
}

/// Rules, up to a line's end, and a principal after it. Few of them: an operator's expression may take megabytes.
pub fn kerberos_rules(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.matches(',').count() > 2 {
        return;
    }
    let (rules, name) = text.split_once('\n').unwrap_or((text, "alice@R"));
    if let (Ok(rules), Some(principal)) =
        (kerberos::Rules::parse(rules, "R"), kerberos::Principal::parse(name))
        && let Ok(user) = rules.user_of(&principal)
    {
        assert!(!user.contains(['/', '@']));
    }
}
