//! A client's keys of `sasl.oauthbearer.*` and `sasl.login.*`.
//!
//! Of the values that may stand in a key and in the login module (client id, secret, scope), the key counts.

use super::assertion::{Assertion, KEY_FILE};
use super::{Grant, Issuer, TokenSettings, UnsecuredToken, Way, Window};
use crate::Secret;
use crate::jaas::OAuthBearerLogin;
use crate::oauth::settings::{Allowed, OAuthError, Url, Values, tls};
use serde_json::{Map, Value};

const HANDLER: &str = "sasl.login.callback.handler.class";
const HANDLERS: [&str; 4] = [
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerUnsecuredLoginCallbackHandler",
];
const RETRIEVERS: [&str; 4] = [
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    "org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever",
    "org.apache.kafka.common.security.oauthbearer.FileJwtRetriever",
    "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever",
];
const JWT_BEARER: &str = "JwtBearerJwtRetriever";
const VALIDATORS: [&str; 2] = [
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    "org.apache.kafka.common.security.oauthbearer.ClientJwtValidator",
];
const ENDPOINT: &str = "sasl.oauthbearer.token.endpoint.url";
const ENDPOINT_EXAMPLE: &str = "https://id.example.com/oauth2/token";
const JAAS: &str = "sasl.jaas.config";
const ID: &str = "sasl.oauthbearer.client.credentials.client.id";
const SECRET: &str = "sasl.oauthbearer.client.credentials.client.secret";
/// An unsecured token's life where none is set.
const UNSECURED_S: i64 = 3600;

impl TokenSettings {
    /// `get`: the value of a key as it holds for this client.
    ///
    /// # Errors
    /// The first value that cannot be, or that is missing. The stores of TLS are the shell's to read.
    pub fn read(
        get: &dyn Fn(&str) -> Option<String>,
        module: &OAuthBearerLogin,
        allowed: &Allowed,
    ) -> Result<Self, OAuthError> {
        let values = Values::new(get);
        let handler = values.class(HANDLER, &HANDLERS)?;
        values.class("sasl.oauthbearer.jwt.validator.class", &VALIDATORS)?;
        let url = values.url(ENDPOINT, allowed, ENDPOINT_EXAMPLE)?;
        let is_unsecured = match handler.as_deref() {
            Some("OAuthBearerUnsecuredLoginCallbackHandler") => true,
            // Kafka's default. Where a URL is set, a token of that issuer is meant.
            None => {
                url.is_none() && module.options.iter().any(|(name, _)| name.starts_with("unsecuredLogin"))
            }
            Some(_) => false,
        };
        let way = match url {
            _ if is_unsecured => unsecured(module)?,
            None => {
                return Err(OAuthError::new(
                    ENDPOINT,
                    "is not set: there is no token to log in with",
                    ENDPOINT_EXAMPLE,
                ));
            }
            Some((_, url)) => from(url, &values, module, allowed)?,
        };
        let seconds = |key: &str, default| Ok(values.number(key, default)?.min(86_400) as i64 * 1000);
        let refresh = Window {
            factor: values.fraction("sasl.login.refresh.window.factor", 0.8)?,
            jitter: values.fraction("sasl.login.refresh.window.jitter", 0.05)?,
            min_period_ms: seconds("sasl.login.refresh.min.period.seconds", 60)?,
            buffer_ms: seconds("sasl.login.refresh.buffer.seconds", 300)?,
        };
        Ok(Self { way, extensions: extensions(module)?, refresh })
    }
}

fn from(
    url: Url,
    values: &Values<'_>,
    module: &OAuthBearerLogin,
    allowed: &Allowed,
) -> Result<Way, OAuthError> {
    const RETRIEVER: &str = "sasl.oauthbearer.jwt.retriever.class";
    let retriever = values.class(RETRIEVER, &RETRIEVERS)?;
    let tls = tls(&url, &module.options)?;
    let url = match (url, retriever.as_deref()) {
        (Url::File(path), None | Some("DefaultJwtRetriever" | "FileJwtRetriever")) => {
            return Ok(Way::File(path));
        }
        (Url::File(_), Some(class)) => {
            return Err(OAuthError::new(
                ENDPOINT,
                format!("is a file, and {class} asks an issuer"),
                ENDPOINT_EXAMPLE,
            ));
        }
        (Url::Http(_), Some("FileJwtRetriever")) => {
            return Err(OAuthError::new(
                ENDPOINT,
                "is no file, which FileJwtRetriever reads",
                "file:/run/token",
            ));
        }
        (Url::Http(url), _) => url,
    };
    let (connect, read) = values.timeouts()?;
    Ok(Way::Issuer(Box::new(Issuer {
        url,
        tls,
        grant: grant(retriever.as_deref(), values, module, allowed)?,
        scope: values.text("sasl.oauthbearer.scope").or_else(|| {
            // Kafka's JwtBearerJwtRetriever reads no option.
            module.scope.as_deref().filter(|_| retriever.as_deref() != Some(JWT_BEARER)).and_then(trimmed)
        }),
        is_header_encoded: values.flag("sasl.oauthbearer.header.urlencode")?,
        connect,
        read,
        retry_ms: values.number("sasl.login.retry.backoff.ms", 100)?,
        retry_max_ms: values.number("sasl.login.retry.backoff.max.ms", 10_000)?.min(60_000),
    })))
}

fn grant(
    retriever: Option<&str>,
    values: &Values<'_>,
    module: &OAuthBearerLogin,
    allowed: &Allowed,
) -> Result<Grant, OAuthError> {
    let assertion = |whose: &str| {
        let problem = || format!("is not set, and no assertion.file either: {whose} needs one");
        let missing = || OAuthError::new(KEY_FILE, problem(), "/etc/kafka/key.pem");
        Assertion::read(values, allowed)?.ok_or_else(missing)
    };
    if retriever == Some(JWT_BEARER) {
        return assertion(JWT_BEARER).map(Grant::JwtBearer);
    }
    let id = values.text(ID).or_else(|| module.client_id.as_deref().and_then(trimmed));
    if Assertion::is_meant(values) {
        return Ok(Grant::ClientAssertion { id, assertion: assertion("assertion.claim.iss")? });
    }
    // A private key alone is not enough, as with Kafka.
    let or_assertion = match values.text(KEY_FILE) {
        Some(_) => "; for an assertion with assertion.private.key.file, set assertion.claim.iss",
        None => "",
    };
    let missing = |key, option: &str, example| {
        OAuthError::new(
            key,
            format!("is not set, and the login module has no {option}{or_assertion}"),
            example,
        )
    };
    let of_module = || module.client_secret.as_ref()?.text().and_then(trimmed);
    let secret = values.text(SECRET).or_else(of_module).map(Secret::from);
    match (id, secret) {
        (Some(id), Some(secret)) => Ok(Grant::Secret { id, secret }),
        (None, _) => Err(missing(ID, "clientId", "kafka-client")),
        (Some(_), None) => Err(missing(SECRET, "clientSecret", "…")),
    }
}

/// An option of the login module without blanks around it. `None`: nothing else is in it.
fn trimmed(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// `unsecuredLogin…`: `StringClaim_NAME`, `NumberClaim_NAME`, `ListClaim_NAME` and the names of claims.
fn unsecured(module: &OAuthBearerLogin) -> Result<Way, OAuthError> {
    let wrong = |problem: String| {
        OAuthError::new(
            JAAS,
            problem,
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"alice\";",
        )
    };
    let (mut claims, mut life_s, mut principal) = (Map::new(), UNSECURED_S, "sub".to_owned());
    for (name, value) in &module.options {
        let Some(name) = name.strip_prefix("unsecuredLogin") else { continue };
        let text = value.text().unwrap_or_default();
        let number = || {
            text.parse::<i64>().map_err(|_| wrong(format!("option unsecuredLogin{name} is no whole number")))
        };
        if let Some(claim) = name.strip_prefix("StringClaim_") {
            claims.insert(claim.to_owned(), text.into());
        } else if let Some(claim) = name.strip_prefix("NumberClaim_") {
            claims.insert(claim.to_owned(), number()?.into());
        } else if let Some(claim) = name.strip_prefix("ListClaim_") {
            // The first character separates the rest.
            let mut rest = text.chars();
            let entries: Vec<Value> = match rest.next() {
                Some(separator) => rest.as_str().split(separator).map(Value::from).collect(),
                None => Vec::new(),
            };
            claims.insert(claim.to_owned(), Value::Array(entries));
        } else {
            match name {
                "LifetimeSeconds" => life_s = number()?,
                "PrincipalClaimName" => principal = text.to_owned(),
                "ScopeClaimName" => {}
                other => return Err(wrong(format!("option unsecuredLogin{other} is not known"))),
            }
        }
    }
    if !matches!(claims.get(&principal), Some(Value::String(name)) if !name.is_empty()) {
        return Err(wrong(format!(
            "option unsecuredLoginStringClaim_{principal} is missing: the user to log in as"
        )));
    }
    Ok(Way::Unsecured(UnsecuredToken { claims, life_s }))
}

/// `extension_NAME` (KIP-342).
fn extensions(module: &OAuthBearerLogin) -> Result<Vec<(String, String)>, OAuthError> {
    let is_printed = |byte: u8| (0x20..=0x7e).contains(&byte) || matches!(byte, b'\t' | b'\r' | b'\n');
    for (name, value) in &module.extensions {
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic()) && name != "auth";
        if !is_name || value.is_empty() || !value.bytes().all(is_printed) {
            return Err(OAuthError::new(
                JAAS,
                format!(
                    "option extension_{name} is no extension: expected letters other than auth, and printed characters"
                ),
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required extension_traceId=\"7\";",
            ));
        }
    }
    Ok(module.extensions.clone())
}
