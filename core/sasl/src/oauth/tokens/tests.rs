use super::*;
use crate::jaas::{LoginModule, OAuthBearerLogin, parse_one};
use crate::oauth::Jwt;
use crate::oauth::settings::{Allowed, OAuthError};
use barnabas_base::TimestampMs;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

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
    assert!([202, 204, 408, 416, 429, 500, 503].into_iter().all(|status| !refused(status, "").0));
    assert!([302, 307, 400, 404, 415, 501, 505].into_iter().all(|status| refused(status, "").0));
    assert_eq!(refused(200, ""), (false, "id answers with nothing".to_owned()));
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
        ("sasl.oauthbearer.assertion.private.key.file", "/k"),
        ("sasl.oauthbearer.assertion.claim.iss", "client"),
        ("sasl.oauthbearer.assertion.claim.sub", "of-settings"),
        ("sasl.oauthbearer.assertion.claim.aud", "https://issuer"),
        ("sasl.oauthbearer.assertion.claim.exp.seconds", "7"),
    ]);
    let Some(Assertion::Made(made)) = made.assertion() else { panic!("{made:?}") };
    let template =
        r#"{"header":{"kid":"k","typ":"at+jwt"},"payload":{"role":"broker","sub":"of-template","exp":1}}"#;
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
    let of_claim = |name: &str| jwt.claims.text(name).expect("a text").map(str::to_owned);
    assert_eq!(["iss", "sub"].map(of_claim), [Some("client".to_owned()), Some("of-template".to_owned())]);
    let header = unsigned.split('.').next().and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let header: serde_json::Value = serde_json::from_slice(&header.expect("base64")).expect("JSON");
    assert_eq!(header, serde_json::json!({"alg": "RS256", "kid": "k", "typ": "JWT"}));
    let empty = r#"{"header":null,"payload":null}"#;
    assert_eq!(made.unsigned(Some(empty), 100, None), made.unsigned(None, 100, None));
    made.unsigned(Some("[]"), 100, None).expect_err("no template");
}

const KEY_FILE: (&str, &str) = ("sasl.oauthbearer.assertion.private.key.file", "/k");
const ISS: (&str, &str) = ("sasl.oauthbearer.assertion.claim.iss", "client");

/// As `ConfigurationUtils` and `ClientCredentialsJwtRetriever` choose: the file, then the claim, then the secret.
#[test]
fn assertion_is_chosen_before_the_secret() {
    let url = (ENDPOINT, "https://id/token");
    let file = ("sasl.oauthbearer.assertion.file", "/a");
    let grant = |pairs: &[(&str, &str)], options: &str| {
        let pairs: Vec<_> = [&[url], pairs].concat();
        read(&pairs, options).map(|settings| match settings.way {
            Way::Issuer(issuer) => issuer.grant,
            other => panic!("{other:?}"),
        })
    };
    let is_secret = |pairs: &[(&str, &str)], options: &str| {
        matches!(grant(pairs, options).expect("sound"), Grant::Secret { .. })
    };
    assert!(is_secret(&[ID, SECRET, KEY_FILE], ""), "a key alone does not choose");
    assert!(!is_secret(&[ID, SECRET, KEY_FILE, ISS], ""));
    assert!(!is_secret(&[ID, SECRET, file], ""));
    let refused = |pairs: &[(&str, &str)]| grant(pairs, "").expect_err("refused");
    assert_eq!(refused(&[ID, SECRET, ISS]).key, KEY_FILE.0);
    let of_key_alone = refused(&[ID, KEY_FILE]);
    assert_eq!(of_key_alone.key, SECRET.0);
    assert!(of_key_alone.problem.contains("set assertion.claim.iss"), "{}", of_key_alone.problem);
    // Each of the two may stand in a key or in an option, without the blanks around it.
    assert!(is_secret(&[ID], "clientSecret=\" x \""));
    assert!(is_secret(&[SECRET], "clientId=\"a\""));
    let Ok(Grant::ClientAssertion { id: Some(id), .. }) = grant(&[KEY_FILE, ISS], "clientId=\" b \"") else {
        panic!("an assertion with an id");
    };
    assert_eq!(id, "b");
}

#[test]
fn values_that_kafka_refuses_are_refused() {
    let url = (ENDPOINT, "https://id/token");
    for (key, value) in [
        ("sasl.oauthbearer.header.urlencode", "yes"),
        ("sasl.oauthbearer.assertion.claim.jti.include", "yes"),
        ("sasl.oauthbearer.assertion.claim.exp.seconds", "86401"),
        ("sasl.oauthbearer.assertion.claim.nbf.seconds", "3601"),
        ("sasl.oauthbearer.assertion.claim.sub", " "),
        ("sasl.oauthbearer.assertion.claim.iss", " "),
    ] {
        let refused = read(&[url, KEY_FILE, ISS, (key, value)], "").expect_err(key);
        assert_eq!(refused.key, key);
    }
}

#[test]
fn scope_of_the_module_is_trimmed_and_not_for_jwt_bearer() {
    let scope = |pairs: &[(&str, &str)]| {
        let all = [&[(ENDPOINT, "https://id/token"), KEY_FILE, ISS], pairs].concat();
        match read(&all, "scope=\" read \"").expect("sound").way {
            Way::Issuer(issuer) => issuer.scope,
            other => panic!("{other:?}"),
        }
    };
    let bearer = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever";
    assert_eq!(scope(&[]).as_deref(), Some("read"));
    assert_eq!(scope(&[("sasl.oauthbearer.jwt.retriever.class", bearer)]), None);
}

#[test]
fn file_without_a_token_is_no_assertion() {
    assert!(Made::is_token("a.b.c"));
    for wrong in ["", "password", "a.b", "a.b.", ".b.c", "a. .c", "a.b.c.d"] {
        assert!(!Made::is_token(wrong), "{wrong}");
    }
}
