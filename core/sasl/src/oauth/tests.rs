//! Every way in which a token is refused, and those that are taken.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

const NOW: TimestampMs = TimestampMs(1_000_000_000);
const RIGHT: &[u8] = b"the right signature";

/// Takes one signature, of whatever key fits.
struct OneSignature;

impl Signatures for OneSignature {
    fn is_right(&self, _: Algorithm, _: &PublicKey, _: &[u8], signature: &[u8]) -> bool {
        signature == RIGHT
    }
}

fn rules() -> Rules {
    Rules {
        audiences: vec!["kafka".to_owned(), "other".to_owned()],
        issuer: Some("https://issuer".to_owned()),
        scope_claim: "scope".to_owned(),
        sub_claim: "sub".to_owned(),
        clock_skew_ms: 30_000,
    }
}

fn keys() -> Jwks {
    let (x, y) = (URL_SAFE_NO_PAD.encode([1; 32]), URL_SAFE_NO_PAD.encode([2; 32]));
    let text = json!({"keys": [
        {"kty": "oct", "kid": "symmetric", "k": "AQAB"},
        {"kty": "RSA", "kid": "for encryption", "use": "enc", "n": "AQAB", "e": "AQAB"},
        {"kty": "RSA", "kid": "rsa", "use": "sig", "n": "AAEC", "e": "AQAB"},
        {"kty": "RSA", "kid": "only-ps", "alg": "PS256", "n": "AQAB", "e": "AQAB"},
        {"kty": "EC", "kid": "ec", "crv": "P-256", "x": x, "y": y},
    ]});
    Jwks::parse(text.to_string().as_bytes()).expect("a set")
}

fn claims() -> Value {
    json!({"sub": "alice", "aud": "kafka", "iss": "https://issuer", "iat": 999_000, "exp": 1_000_060,
           "scope": ["read", "write"]})
}

fn with(change: Value) -> Value {
    let mut claims = claims();
    for (key, value) in change.as_object().expect("an object") {
        claims[key] = value.clone();
    }
    claims
}

fn token(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let (header, claims) = (header.to_string(), claims.to_string());
    format!("{}.{}.{}", part(header.as_bytes()), part(claims.as_bytes()), part(signature))
}

fn signed(claims: &Value) -> String {
    token(&json!({"alg": "RS256", "kid": "rsa"}), claims, RIGHT)
}

fn check(token: &str) -> Result<Bearer, Fault> {
    rules().check(token, NOW, &keys(), &OneSignature)
}

fn refused(token: &str) -> String {
    check(token).expect_err("refused").to_string()
}

fn without(claim: &str) -> String {
    let mut claims = claims();
    claims.as_object_mut().expect("an object").remove(claim);
    refused(&signed(&claims))
}

#[test]
fn good_token_names_its_principal_and_its_end() {
    let bearer = Bearer { principal: "alice".to_owned(), expires: TimestampMs(1_000_060_000) };
    assert_eq!(check(&signed(&claims())), Ok(bearer.clone()));
    // Audiences as a list, a scope as text, a subject with blanks, a time with a fraction.
    let change = json!({"aud": ["x", "other"], "scope": "read", "sub": " alice ", "exp": 1_000_060.9});
    assert_eq!(check(&signed(&with(change))), Ok(bearer));
    let mut named = rules();
    named.sub_claim = "client_id".to_owned();
    let token = signed(&with(json!({"client_id": "app"})));
    assert_eq!(
        named.check(&token, NOW, &keys(), &OneSignature).map(|bearer| bearer.principal),
        Ok("app".to_owned())
    );
}

#[test]
fn every_algorithm_goes_with_its_own_type_of_key() {
    for algorithm in Algorithm::ALL {
        assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        let header = json!({"alg": algorithm.name(), "kid": "ec"});
        let is_taken = check(&token(&header, &claims(), RIGHT)).is_ok();
        assert_eq!(is_taken, algorithm == Algorithm::Es256, "{algorithm:?}");
        let header = json!({"alg": algorithm.name(), "kid": "only-ps"});
        assert_eq!(
            check(&token(&header, &claims(), RIGHT)).is_ok(),
            algorithm == Algorithm::Ps256,
            "{algorithm:?}"
        );
    }
    // Without a kid: the first key that fits.
    let bare = token(&json!({"alg": "RS512"}), &claims(), RIGHT);
    assert!(check(&bare).is_ok());
}

#[test]
fn token_without_a_signature_is_refused() {
    for none in ["none", "None", "NONE"] {
        assert!(refused(&token(&json!({"alg": none}), &claims(), b"")).contains("alg none"));
    }
    for foreign in ["HS256", "RS1", "rs256", ""] {
        let said = refused(&token(&json!({"alg": foreign, "kid": "symmetric"}), &claims(), RIGHT));
        assert!(said.contains("algorithm"), "{said}");
    }
    assert!(refused(&token(&json!({"kid": "rsa"}), &claims(), RIGHT)).contains("no alg"));
}

#[test]
fn key_and_signature_must_be_right() {
    let said = refused(&token(&json!({"alg": "RS256", "kid": "rsa"}), &claims(), b"wrong"));
    assert_eq!(said, "the signature is wrong (alg=RS256 kid=rsa)");
    for kid in ["new", "symmetric", "for encryption"] {
        let fault = check(&token(&json!({"alg": "RS256", "kid": kid}), &claims(), RIGHT));
        assert_eq!(fault, Err(Fault::UnknownKey { algorithm: "RS256", key_id: kid.to_owned() }));
    }
    let fault = rules().check(&signed(&claims()), NOW, &Jwks::default(), &OneSignature);
    assert_eq!(fault, Err(Fault::NoKeys));
    // A token that is bad by itself does not count as one whose key is unknown.
    let late = token(&json!({"alg": "RS256", "kid": "new"}), &with(json!({"exp": 1})), RIGHT);
    assert!(matches!(check(&late), Err(Fault::Expired { .. })));
}

#[test]
fn times_are_judged_with_the_clock_skew() {
    let at = |exp: i64| check(&signed(&with(json!({"exp": exp}))));
    assert!(at(999_971).is_ok());
    assert!(matches!(at(999_970), Err(Fault::Expired { .. })));
    let from = |nbf: i64| check(&signed(&with(json!({"nbf": nbf}))));
    assert!(from(1_000_030).is_ok());
    assert!(matches!(from(1_000_031), Err(Fault::NotYet { .. })));
    for never in [json!("soon"), json!(1e300), json!(i64::MAX), json!([1])] {
        assert!(refused(&signed(&with(json!({"exp": never})))).contains("number of seconds"));
    }
}

#[test]
fn claims_that_are_missing_or_of_others_are_refused() {
    for claim in ["sub", "aud", "iss", "iat", "exp"] {
        assert_eq!(without(claim), format!("the claim {claim} is missing"));
    }
    let said = |change: Value| refused(&signed(&with(change)));
    assert_eq!(said(json!({"aud": "web"})), "the claim aud is web, expected kafka,other");
    assert_eq!(said(json!({"aud": []})), "the claim aud is , expected kafka,other");
    assert_eq!(said(json!({"aud": 5})), "the claim aud is not a text or a list of texts");
    assert_eq!(
        said(json!({"iss": "https://issuer/"})),
        "the claim iss is https://issuer/, expected https://issuer"
    );
    assert_eq!(said(json!({"sub": "  "})), "the claim sub is empty");
    assert_eq!(said(json!({"sub": 7})), "the claim sub is not a text");
    assert_eq!(said(json!({"scope": ["a", "a "]})), "the claim scope has a twice");
    assert_eq!(said(json!({"scope": ["a", ""]})), "the claim scope is empty");
    // What is not asked for is not looked at.
    let (mut open, token) = (rules(), signed(&with(json!({"aud": "web", "iss": "x"}))));
    (open.audiences, open.issuer) = (Vec::new(), None);
    assert!(open.check(&token, NOW, &keys(), &OneSignature).is_ok());
}

#[test]
fn text_that_is_no_token_is_refused() {
    let good = signed(&claims());
    let (signed_part, signature) = good.rsplit_once('.').expect("three parts");
    let (header, body) = signed_part.split_once('.').expect("three parts");
    for text in [
        String::new(),
        "..".to_owned(),
        "a.b".to_owned(),
        format!("{good}.x"),
        format!("{header}..{signature}"),
        format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode("[1]")),
        format!("{header}.{body}.{signature}="),
        format!("{header}.{body}.*"),
        token(&json!({"alg": "RS256", "crit": ["exp"]}), &claims(), RIGHT),
        token(&json!({"alg": "RS256", "cty": "JWT"}), &claims(), RIGHT),
    ] {
        assert!(matches!(check(&text), Err(Fault::Malformed(_))), "{text}");
    }
    let long = signed(&with(json!({"x": "y".repeat(TOKEN_BYTES_MAX)})));
    assert!(matches!(check(&long), Err(Fault::TooLong(_))));
    let deep = format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode("[".repeat(9000)));
    assert!(matches!(check(&deep), Err(Fault::Malformed(_))));
}

#[test]
fn unsecured_rules_take_unsigned_tokens_alone() {
    let rules = UnsecuredRules {
        principal_claim: "sub".to_owned(),
        scope_claim: "scope".to_owned(),
        required_scopes: vec!["read".to_owned()],
        clock_skew_ms: 0,
    };
    let unsigned = |claims: &Value| rules.check(&token(&json!({"alg": "none"}), claims, b""), NOW);
    assert_eq!(unsigned(&claims()).map(|bearer| bearer.principal), Ok("alice".to_owned()));
    assert!(unsigned(&with(json!({"scope": "write read"}))).is_ok());
    assert_eq!(unsigned(&with(json!({"scope": "readers"}))), Err(Fault::Scope("read".to_owned())));
    assert!(matches!(unsigned(&with(json!({"exp": 1_000_000}))), Err(Fault::Expired { .. })));
    assert!(matches!(unsigned(&with(json!({"iat": 1_000_001}))), Err(Fault::FromTheFuture { .. })));
    assert_eq!(unsigned(&with(json!({"sub": ""}))), Err(Fault::Empty("sub".to_owned())));
    assert!(rules.check(&signed(&claims()), NOW).is_err());
    let both = token(&json!({"alg": "none"}), &claims(), b"x");
    assert!(rules.check(&both, NOW).is_err());
}

#[test]
fn set_of_keys_without_a_usable_one_is_refused() {
    assert_eq!(keys().len(), 3);
    let parse = |text: &str| Jwks::parse(text.as_bytes());
    assert_eq!(parse("<html>"), Err(JwksFault::Malformed));
    assert_eq!(parse(r#"{"keys":{}}"#), Err(JwksFault::Malformed));
    assert_eq!(parse(r#"{"keys":[]}"#), Err(JwksFault::NoneUsable(0)));
    let short = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"AQAB","y":"AQAB"},{"kty":"RSA","n":"AA","e":"AQ"},{"kty":5}]}"#;
    assert_eq!(parse(short), Err(JwksFault::NoneUsable(3)));
    let many = json!({"keys": vec![json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}); KEYS_MAX + 1]});
    assert_eq!(parse(&many.to_string()), Err(JwksFault::TooMany));
}

#[test]
fn end_of_a_clients_own_token_is_read() {
    assert_eq!(end_of(&signed(&claims())), Ok(TimestampMs(1_000_060_000)));
    assert!(end_of("no token").is_err());
}
