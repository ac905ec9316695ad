use super::*;
use crate::jaas::{LoginModule, OAuthBearerLogin, parse_one};
use crate::oauth::Jwt;
use crate::oauth::settings::{Allowed, OAuthError};
use barnabas_base::TimestampMs;

const MODULE: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required";
const ENDPOINT: &str = "sasl.oauthbearer.token.endpoint.url";
const ID: (&str, &str) = ("sasl.oauthbearer.client.credentials.client.id", "node");
const SECRET: (&str, &str) = ("sasl.oauthbearer.client.credentials.client.secret", "geheim");

fn module(options: &str) -> OAuthBearerLogin {
    let entry = parse_one(&format!("{MODULE} {options};")).expect("JAAS");
    match LoginModule::try_from(&entry).expect("a module") {
        LoginModule::OAuthBearer(login) => login,
        other => panic!("{other:?}"),
    }
}

fn read(pairs: &[(&str, &str)], options: &str) -> Result<TokenSettings, OAuthError> {
    let get = |key: &str| pairs.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.to_owned());
    TokenSettings::read(&get, &module(options), &Allowed::All)
}

#[test]
fn unsecured_token_has_the_claims_of_its_options() {
    let options = "unsecuredLoginStringClaim_sub=\"alice\" unsecuredLoginListClaim_scope=\",a,b\" \
                   unsecuredLoginNumberClaim_level=\"3\" unsecuredLoginLifetimeSeconds=\"60\"";
    let Way::Unsecured(made) = read(&[], options).expect("sound").way else { panic!("unsecured") };
    let token = made.token(1_000);
    let jwt = Jwt::parse(&token).expect("a token");
    assert_eq!((jwt.algorithm.as_str(), jwt.signature.len()), ("none", 0));
    assert_eq!(jwt.claims.text("sub"), Ok(Some("alice")));
    assert_eq!(jwt.claims.texts("scope"), Ok(Some(vec!["a", "b"])));
    let (made, ends) = (jwt.claims.time_ms("iat"), jwt.claims.time_ms("exp"));
    assert_eq!(ends.expect("a time").expect("an end") - made.expect("a time").expect("a begin"), 60_000);
    for wrong in [
        "unsecuredLoginLifetimeSeconds=\"60\"",
        "unsecuredLoginStringClaim_sub=\"a\" unsecuredLoginOther=\"1\"",
    ] {
        assert!(read(&[], wrong).is_err(), "{wrong}");
    }
}

#[test]
fn settings_that_cannot_be_name_their_key() {
    let refused = |pairs: &[(&str, &str)], options: &str| read(pairs, options).expect_err("refused").key;
    let url = (ENDPOINT, "https://localhost/token");
    assert_eq!(refused(&[], ""), ENDPOINT);
    assert_eq!(refused(&[url], ""), ID.0);
    assert_eq!(refused(&[url, ID], ""), SECRET.0);
    assert_eq!(refused(&[(ENDPOINT, "token"), ID, SECRET], ""), ENDPOINT);
    let handler = "sasl.login.callback.handler.class";
    assert_eq!(refused(&[url, ID, SECRET, (handler, "com.example.Mine")], ""), handler);
    let retriever = "sasl.oauthbearer.jwt.retriever.class";
    assert_eq!(refused(&[url, ID, SECRET, (retriever, "com.example.Mine")], ""), retriever);
    let bearer = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever";
    assert_eq!(refused(&[url, (retriever, bearer)], ""), "sasl.oauthbearer.assertion.private.key.file");
    assert_eq!(refused(&[(ENDPOINT, "file:/t"), (retriever, bearer)], ""), ENDPOINT);
    assert_eq!(refused(&[(ENDPOINT, "file:/t")], "extension_auth=\"x\""), "sasl.jaas.config");
    assert_eq!(refused(&[(ENDPOINT, "file:/t")], "extension_a1=\"x\""), "sasl.jaas.config");
    assert_eq!(refused(&[url, ID, SECRET], "ssl.keystore.type=\"BKS\""), "sasl.jaas.config");
    let get = |key: &str| (key == ENDPOINT).then(|| "file:/t".to_owned());
    let error = TokenSettings::read(&get, &module(""), &Allowed::only("", "")).expect_err("refused");
    assert_eq!(error.key, Allowed::URLS);
}

#[test]
fn token_is_replaced_in_the_last_part_of_its_life() {
    let window = Window { factor: 0.8, jitter: 0.05, min_period_ms: 60_000, buffer_ms: 300_000 };
    let at = |life_ms, drawn| window.end(TimestampMs(0), TimestampMs(life_ms), drawn).0;
    assert_eq!(at(3_600_000, 0.0), 2_880_000);
    assert_eq!(at(3_600_000, 1.0), 3_060_000);
    // The buffer, the least period, and a life that has room for neither.
    assert_eq!(at(1_000_000, 0.0), 700_000);
    assert_eq!(at(361_000, 0.0), 61_000);
    assert_eq!(at(10_000, 0.0), 8_000);
    assert_eq!(window.end(TimestampMs(5), TimestampMs(0), 0.0), TimestampMs(5));
}

fn issuer(pairs: &[(&str, &str)]) -> Issuer {
    let mut all = vec![(ENDPOINT, "https://id/token"), ID, SECRET];
    all.extend(pairs);
    match read(&all, "").expect("sound").way {
        Way::Issuer(issuer) => *issuer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn request_carries_id_secret_and_scope_encoded() {
    let asked = issuer(&[("sasl.oauthbearer.scope", "a b&c")]);
    assert_eq!(*asked.form(None), "grant_type=client_credentials&scope=a+b%26c");
    assert_eq!(asked.header().as_deref().map(String::as_str), Some("Basic bm9kZTpnZWhlaW0="));
    let encoded = issuer(&[(SECRET.0, "a:b"), ("sasl.oauthbearer.header.urlencode", "true")]);
    // node:a%3Ab
    assert_eq!(encoded.header().as_deref().map(String::as_str), Some("Basic bm9kZTphJTNBYg=="));
}

#[test]
fn answer_says_whether_asking_again_may_help() {
    let refused = |status, body: &str| {
        let refused = outcome("id", status, body.as_bytes()).expect_err("refused");
        (refused.is_final, refused.why)
    };
    assert!(
        refused(401, r#"{"error":"invalid_client"}"#)
            == (true, "id answers with status 401: invalid_client".to_owned())
    );
    assert!([408, 429, 500, 503].into_iter().all(|status| !refused(status, "").0));
    assert_eq!(refused(200, "{}"), (true, "id answers without access_token or id_token".to_owned()));
    let token = |body: &str| outcome("id", 201, body.as_bytes()).expect("a token").to_string();
    assert_eq!(token(r#"{"access_token":" ","id_token":"i"}"#), "i");
    assert_eq!(token(r#"{"access_token":"a","id_token":"i"}"#), "a");
}

#[test]
fn retries_double_until_their_time_is_spent() {
    let mut retries = Retries::new(100, 1_000);
    let (mut spent, mut pauses) = (Duration::ZERO, Vec::new());
    while let Some(pause) = retries.pause(spent) {
        spent += pause;
        pauses.push(pause.as_millis());
    }
    assert_eq!(pauses, [100, 200, 400]);
    assert!(Retries::new(100, 50).pause(Duration::ZERO).is_none());
}

#[test]
fn held_token_serves_until_its_end_and_bad_one_keeps_it() {
    let made = UnsecuredToken { claims: Map::new(), life_s: 100 };
    let window = Window { factor: 0.5, jitter: 0.0, min_period_ms: 0, buffer_ms: 0 };
    let (mut held, at) = (HeldToken::default(), |s: i64| TimestampMs(s * 1000));
    assert!(held.is_due(at(0)) && !held.serves(at(0)));
    held.replace(&made.token(0), window, at(0), 0.0).expect("a token");
    assert!(!held.is_due(at(49)) && held.is_due(at(50)));
    assert!(held.serves(at(99)) && !held.serves(at(100)));
    held.replace("none", window, at(50), 0.0).expect_err("no token");
    assert!(held.serves(at(99)) && held.token().is_some());
}

#[test]
fn assertion_has_the_claims_of_template_and_settings() {
    let made = issuer(&[
        ("sasl.oauthbearer.client.credentials.client.secret", ""),
        ("sasl.oauthbearer.assertion.private.key.file", "/k"),
        ("sasl.oauthbearer.assertion.claim.aud", "https://issuer"),
        ("sasl.oauthbearer.assertion.claim.exp.seconds", "7"),
    ]);
    let Some(Assertion::Made(made)) = made.assertion() else { panic!("{made:?}") };
    let template = r#"{"header":{"kid":"k"},"payload":{"role":"broker"}}"#;
    let unsigned = made.unsigned(Some(template), 100, Some([0; 16])).expect("made");
    let token = Made::signed(&unsigned, &[1]);
    let jwt = Jwt::parse(&token).expect("a token");
    assert_eq!((jwt.algorithm.as_str(), jwt.key_id.as_deref()), ("RS256", Some("k")));
    assert_eq!(
        (jwt.claims.text("role"), jwt.claims.text("aud")),
        (Ok(Some("broker")), Ok(Some("https://issuer")))
    );
    assert_eq!((jwt.claims.time_ms("exp"), jwt.claims.time_ms("nbf")), (Ok(Some(107_000)), Ok(Some(40_000))));
    assert!(jwt.claims.text("jti").expect("a text").is_some());
    made.unsigned(Some("[]"), 100, None).expect_err("no template");
}
