use super::*;
use barnabas_issuer::{SigningKey, token};
use barnabas_sasl::oauth::settings::Allowed;
use serde_json::{Value, json};
use std::time::Duration;

const HANDLER: &str = "sasl.server.callback.handler.class";
const SECURED: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler";
const JWKS: &str = "sasl.oauthbearer.jwks.endpoint.url";
const AUDIENCE: (&str, &str) = ("sasl.oauthbearer.expected.audience", "kafka,other");
const ISSUER: (&str, &str) = ("sasl.oauthbearer.expected.issuer", "https://issuer");
const NOW: TimestampMs = TimestampMs(1_000_000_000);

fn read_with(pairs: &[(&str, &str)], allowed: &Allowed) -> Result<Validator, OAuthError> {
    let get = |key: &str| pairs.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.to_owned());
    let validator = Validator::read(&get, &[], allowed)?;
    if let Validator::Signed { keys, .. } = &validator {
        keys.tls.as_ref().map_or(Ok(()), check_stores)?;
    }
    Ok(validator)
}

/// A listener whose keys come from a file with one key of each sort.
struct Listener {
    _dir: barnabas_harness::TempDir,
    validator: Validator,
    keys: IssuerKeys,
    rsa: SigningKey,
    ec: SigningKey,
}

impl Listener {
    fn new() -> Self {
        let dir = barnabas_harness::TempDir::new();
        let (rsa, ec) = (SigningKey::generate("rsa", "RS256"), SigningKey::generate("ec", "ES256"));
        let path = dir.path().join("jwks.json");
        std::fs::write(&path, json!({"keys": [rsa.jwk(), ec.jwk()]}).to_string()).expect("written");
        let url = format!("file:{}", path.display());
        let pairs = [(HANDLER, SECURED), (JWKS, url.as_str()), AUDIENCE, ISSUER];
        let validator = read_with(&pairs, &Allowed::only(&url, "")).expect("sound");
        let Validator::Signed { keys, .. } = &validator else { panic!("signed") };
        let keys = IssuerKeys::start(keys.as_ref().clone()).expect("a thread");
        keys.await_first(Duration::from_secs(20));
        Self { _dir: dir, validator, keys, rsa, ec }
    }

    fn check(&self, token: &str) -> Result<String, String> {
        let checked = check_token(&self.validator, token, NOW, Some(&self.keys));
        checked.map(|bearer| bearer.principal).map_err(|fault| fault.to_string())
    }
}

fn claims() -> Value {
    json!({"sub": "alice", "aud": ["kafka"], "iss": "https://issuer", "iat": 999_000, "exp": 1_000_060})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

#[test]
fn token_of_the_issuer_is_taken_and_all_others_are_refused() {
    let listener = Listener::new();
    assert_eq!(listener.check(&listener.rsa.token(&claims())), Ok("alice".to_owned()));
    assert_eq!(listener.check(&listener.ec.token(&claims())), Ok("alice".to_owned()));
    let refused = |token: &str, why: &str| {
        let said = listener.check(token).expect_err("refused");
        assert!(said.contains(why), "{said} has no {why}");
    };
    refused(&token(&json!({"alg": "none"}), &claims(), b""), "alg none");
    refused(&token(&json!({"alg": "HS256", "kid": "rsa"}), &claims(), &[1; 32]), "algorithm HS256");
    // Another's key under the same id; a key that is not published.
    refused(&SigningKey::generate("rsa", "RS256").token(&claims()), "signature is wrong");
    refused(&SigningKey::generate("new", "RS256").token(&claims()), "no key of the issuer");
    let of = |name: &str, value: Value| listener.ec.token(&with(name, value));
    refused(&of("exp", json!(999_970)), "ended");
    refused(&of("nbf", json!(1_000_100)), "begins");
    refused(&of("aud", json!("web")), "the claim aud is web");
    refused(&of("iss", json!("https://other")), "the claim iss");
    refused(&of("sub", Value::Null), "sub is missing");
    refused(&of("iat", Value::Null), "iat is missing");
    refused(&of("exp", Value::Null), "exp is missing");
    // Claims that were changed after signing; a signature of another length.
    let good = listener.ec.token(&claims());
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let other = listener.ec.token(&with("sub", json!("root")));
    let (changed, _) = other.rsplit_once('.').expect("three parts");
    refused(&format!("{changed}.{signature}"), "signature is wrong");
    refused(&format!("{signed}.{}", &signature[..80]), "signature is wrong");
    refused(&format!("{signed}.{signature}AAAA"), "signature is wrong");
}

#[test]
fn only_a_good_token_of_an_unknown_key_asks_the_issuer() {
    let listener = Listener::new();
    let stranger = SigningKey::generate("new", "RS256");
    let late = stranger.token(&with("exp", json!(1)));
    (0..100).for_each(|_| drop(listener.check(&late)));
    assert_eq!(listener.keys.fetches(), 1);
}
