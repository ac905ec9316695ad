use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const AUDIENCE: (&str, &str) = ("sasl.oauthbearer.expected.audience", "kafka,other");
const ISSUER: (&str, &str) = ("sasl.oauthbearer.expected.issuer", "https://issuer");
const NOW: TimestampMs = TimestampMs(1_000_000_000);

fn read_with(pairs: &[(&str, &str)], allowed: &Allowed) -> Result<Validator, OAuthError> {
    let get = |key: &str| pairs.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.to_owned());
    Validator::read(&get, &[], allowed)
}

fn read(pairs: &[(&str, &str)]) -> Result<Validator, OAuthError> {
    let mut all = vec![(HANDLER, SECURED), (JWKS, "https://localhost/jwks"), AUDIENCE, ISSUER];
    all.extend(pairs);
    read_with(&all, &Allowed::only("https://localhost/jwks, file:/etc/keys", ""))
}

fn refused(pairs: &[(&str, &str)]) -> String {
    read(pairs).expect_err("refused").key
}

#[test]
fn listener_without_audience_issuer_or_keys_is_refused() {
    read(&[]).expect("sound");
    assert_eq!(refused(&[(AUDIENCE.0, "")]), AUDIENCE.0);
    assert_eq!(refused(&[(ISSUER.0, " ")]), ISSUER.0);
    assert_eq!(refused(&[(JWKS, "")]), JWKS);
    assert_eq!(
        refused(&[(AUDIENCE.0, ""), ("sasl.oauthbearer.allow.unverified.audience", "false")]),
        AUDIENCE.0
    );
    let open = [
        (AUDIENCE.0, ""),
        (ISSUER.0, ""),
        ("sasl.oauthbearer.allow.unverified.audience", "true"),
        ("sasl.oauthbearer.allow.unverified.issuer", "true"),
    ];
    let Validator::Signed { rules, .. } = read(&open).expect("asked for") else { panic!("signed") };
    assert!(rules.audiences.is_empty() && rules.issuer.is_none());
}

#[test]
fn unsigned_tokens_are_taken_only_when_asked_for_by_name() {
    assert_eq!(refused(&[(HANDLER, "")]), HANDLER);
    assert_eq!(refused(&[(HANDLER, "com.example.Mine")]), HANDLER);
    assert_eq!(
        refused(&[("sasl.oauthbearer.jwt.validator.class", "com.example.Mine")]),
        "sasl.oauthbearer.jwt.validator.class"
    );
    for handler in &HANDLERS[..2] {
        assert!(matches!(read(&[(HANDLER, handler)]), Ok(Validator::Signed { .. })));
    }
    let unsecured = read(&[(HANDLER, HANDLERS[2])]).expect("asked for");
    assert!(unsecured.warning().is_some_and(|said| said.contains("any user")));
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let unsigned = format!("{}.{}.", part(r#"{"alg":"none"}"#), part(r#"{"sub":"eve","exp":1000001}"#));
    assert_eq!(unsecured.check(&unsigned, NOW, None).map(|bearer| bearer.principal), Ok("eve".to_owned()));
}

#[test]
fn url_that_is_not_on_the_list_is_refused() {
    for url in ["https://localhost/jwks/", "https://localhost", "file:/etc/shadow", "HTTPS://localhost/jwks"]
    {
        assert_eq!(refused(&[(JWKS, url)]), Allowed::URLS, "{url}");
    }
    assert_eq!(refused(&[(JWKS, "ftp://localhost/jwks")]), JWKS);
    let error =
        read_with(&[(HANDLER, SECURED), (JWKS, "https://id/keys"), AUDIENCE, ISSUER], &Allowed::only("", ""));
    let said = error.expect_err("refused").to_string();
    assert!(
        said.ends_with("Example: org.apache.kafka.sasl.oauthbearer.allowed.urls=https://id/keys"),
        "{said}"
    );
    read(&[(JWKS, "file:/etc/keys")]).expect("on the list");
}
