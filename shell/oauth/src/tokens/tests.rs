use super::*;
use barnabas_harness::TempDir;
use barnabas_issuer::{CLIENT_ID, CLIENT_SECRET, Issuer, SigningKey};
use barnabas_sasl::jaas::{LoginModule, OAuthBearerLogin, parse_one};
use barnabas_sasl::oauth::Jwt;
use serde_json::json;

const MODULE: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required";
const ENDPOINT: &str = "sasl.oauthbearer.token.endpoint.url";
const ID: (&str, &str) = ("sasl.oauthbearer.client.credentials.client.id", CLIENT_ID);
const SECRET: (&str, &str) = ("sasl.oauthbearer.client.credentials.client.secret", CLIENT_SECRET);

fn module(options: &str) -> OAuthBearerLogin {
    let entry = parse_one(&format!("{MODULE} {options};")).expect("JAAS");
    match LoginModule::try_from(&entry).expect("a module") {
        LoginModule::OAuthBearer(login) => login,
        other => panic!("{other:?}"),
    }
}

fn read(pairs: &[(&str, &str)], options: &str) -> Result<TokenSettings, OAuthError> {
    let get = |key: &str| pairs.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.to_owned());
    read_tokens(&get, &module(options), &Allowed::All)
}

fn source(pairs: &[(&str, &str)], options: &str) -> TokenSource {
    TokenSource::new(read(pairs, options).expect("sound"))
}

fn text(login: Result<ClientLogin, String>) -> Result<String, String> {
    match login? {
        ClientLogin::Bearer { token, .. } => Ok(token.text().expect("text").to_owned()),
        other => panic!("{other:?}"),
    }
}

/// A token that lasts so many seconds.
fn lasting(key: &SigningKey, seconds: i64) -> String {
    let now_s = Clock::start().wall().0 / 1000;
    key.token(&json!({"sub": "node", "iat": now_s, "exp": now_s + seconds}))
}

#[test]
fn client_with_its_secret_is_handed_a_token_over_https() {
    let (dir, issuer, key) = (TempDir::new(), Issuer::start(true), SigningKey::generate("1", "ES256"));
    let trust = dir.path().join("ca.pem");
    std::fs::write(&trust, &issuer.authority).expect("written");
    let token = lasting(&key, 3600);
    issuer.hand_out(std::slice::from_ref(&token));
    let options = format!(
        "clientId=\"{CLIENT_ID}\" clientSecret=\"{CLIENT_SECRET}\" scope=\"a b&c\" ssl.truststore.location=\"{}\"",
        trust.display()
    );
    let source = source(&[(ENDPOINT, &issuer.url("token"))], &options);
    assert_eq!(text(source.login()), Ok(token.clone()));
    // It is kept.
    assert_eq!(text(source.login()), Ok(token));
    assert_eq!(issuer.forms(), ["grant_type=client_credentials&scope=a+b%26c"]);
}

#[test]
fn wrong_secret_is_refused_at_once_and_not_shown() {
    let issuer = Issuer::start(false);
    let source = source(&[(ENDPOINT, &issuer.url("token")), ID, (SECRET.0, "wr0ng")], "");
    let said = text(source.login()).expect_err("refused");
    assert!(said.contains("localhost answers with status 401: invalid_client: unknown client"), "{said}");
    assert_eq!(issuer.forms().len(), 1);
    assert!(!said.contains("wr0ng") && !format!("{source:?}").contains("wr0ng"), "{said} {source:?}");
}

#[test]
fn old_token_serves_while_the_issuer_is_down() {
    let (issuer, key) = (Issuer::start(false), SigningKey::generate("1", "ES256"));
    let url = issuer.url("token");
    let pairs = [
        (ENDPOINT, url.as_str()),
        ID,
        SECRET,
        ("sasl.login.refresh.window.factor", "0"),
        ("sasl.login.refresh.window.jitter", "0"),
        ("sasl.login.refresh.min.period.seconds", "0"),
        ("sasl.login.retry.backoff.max.ms", "100"),
    ];
    let (one, two) = (lasting(&key, 3600), lasting(&key, 7200));
    issuer.hand_out(&[one.clone(), two.clone()]);
    let source = source(&pairs, "");
    assert_eq!(text(source.login()), Ok(one.clone()));
    issuer.break_down(true);
    assert_eq!(text(source.login()), Ok(one));
    issuer.break_down(false);
    assert_eq!(text(source.login()), Ok(two));
}

#[test]
fn token_is_read_from_a_file_again_when_its_time_is_over() {
    let (dir, key) = (TempDir::new(), SigningKey::generate("1", "ES256"));
    let path = dir.path().join("token");
    let url = format!("file:{}", path.display());
    let source = source(&[(ENDPOINT, &url)], "extension_traceId=\"7\"");
    assert!(text(source.login()).expect_err("no file").contains("No such file"));
    let (over, fresh) = (lasting(&key, 0), lasting(&key, 3600));
    std::fs::write(&path, format!("{over}\n")).expect("written");
    assert_eq!(text(source.login()), Ok(over));
    std::fs::write(&path, &fresh).expect("written");
    let login = source.login().expect("a token");
    let ClientLogin::Bearer { extensions, .. } = &login else { panic!("{login:?}") };
    assert_eq!(extensions, &[("traceId".to_owned(), "7".to_owned())]);
    assert_eq!(text(Ok(login)), Ok(fresh));
    std::fs::write(&path, "no token").expect("written");
    let other = super::TokenSource::new(source.settings().clone());
    assert!(text(other.login()).expect_err("no token").contains("no signed JWT"));
}

#[test]
fn assertion_is_signed_with_the_key_of_its_file() {
    let (dir, issuer, key) = (TempDir::new(), Issuer::start(false), SigningKey::generate("1", "ES256"));
    issuer.hand_out(&[lasting(&key, 3600)]);
    let (key_file, template) = (dir.path().join("key.pem"), dir.path().join("template.json"));
    std::fs::write(&key_file, key.pem()).expect("written");
    std::fs::write(&template, r#"{"header":{"kid":"k7"},"payload":{"role":"broker"}}"#).expect("written");
    let (url, key_file, template) =
        (issuer.url("token"), key_file.display().to_string(), template.display().to_string());
    let mut pairs = vec![
        (ENDPOINT, url.as_str()),
        ("sasl.oauthbearer.assertion.algorithm", "ES256"),
        ("sasl.oauthbearer.assertion.private.key.file", key_file.as_str()),
        ("sasl.oauthbearer.assertion.template.file", template.as_str()),
        ("sasl.oauthbearer.assertion.claim.aud", "https://issuer"),
        ("sasl.oauthbearer.assertion.claim.iss", "node"),
        ("sasl.oauthbearer.assertion.claim.sub", "node"),
        ("sasl.oauthbearer.assertion.claim.jti.include", "true"),
        ID,
    ];
    text(source(&pairs, "").login()).expect("a token");
    pairs.push((
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever",
    ));
    text(source(&pairs, "").login()).expect("a token");
    let forms = issuer.forms();
    let value = |form: &str, name: &str| {
        let found = form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        found.map(str::to_owned)
    };
    assert_eq!(value(&forms[0], "client_id").as_deref(), Some("kafka+node"));
    assert_eq!(value(&forms[0], "grant_type").as_deref(), Some("client_credentials"));
    assert!(forms[1].starts_with("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"));
    for assertion in [value(&forms[0], "client_assertion"), value(&forms[1], "assertion")] {
        let assertion = assertion.expect("an assertion");
        let jwt = Jwt::parse(&assertion).expect("a token");
        assert_eq!((jwt.algorithm.as_str(), jwt.key_id.as_deref()), ("ES256", Some("k7")));
        assert_eq!(jwt.claims.text("role"), Ok(Some("broker")));
        assert_eq!(jwt.claims.text("aud"), Ok(Some("https://issuer")));
        assert!(jwt.claims.text("jti").expect("a text").is_some() && jwt.claims.time_ms("nbf").is_ok());
        assert!(key.is_right(jwt.signed.as_bytes(), &jwt.signature));
    }
}

#[test]
fn store_of_the_login_module_is_read_at_once() {
    let pairs = [(ENDPOINT, "https://localhost/token"), ID, SECRET];
    let error = read(&pairs, "ssl.truststore.location=\"/nowhere\"").expect_err("refused");
    assert_eq!(error.key, "sasl.jaas.config");
}
