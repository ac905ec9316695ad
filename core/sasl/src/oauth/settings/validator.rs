//! A listener's keys of `sasl.oauthbearer.*`, and the judgement of a token by them.
//!
//! Source: Kafka 4.4 `OAuthBearerValidatorCallbackHandler`, `BrokerJwtValidator`, `ConfigurationUtils`.

use super::{Allowed, OAuthError, Url, Values, tls};
use crate::Secret;
use crate::oauth::{Bearer, Fault, Jwks, Pauses, Rules, Signatures, UnsecuredRules};
use barnabas_base::TimestampMs;
use barnabas_certificates::TlsSettings;
use std::time::Duration;

const HANDLER: &str = "sasl.server.callback.handler.class";
const SECURED: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler";
/// The first as of Kafka 4, then its name before that.
const HANDLERS: [&str; 4] = [
    SECURED,
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerUnsecuredValidatorCallbackHandler",
];
const VALIDATORS: [&str; 2] = [
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator",
];
const JWKS: &str = "sasl.oauthbearer.jwks.endpoint.url";
const JWKS_EXAMPLE: &str = "https://id.example.com/oauth2/keys";

/// How often a file of keys is read again.
const FILE_MS: u64 = 10_000;

/// Where keys come from. Equal settings share their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySettings {
    /// As it was set, for the log.
    pub text: String,
    pub url: Url,
    /// For https.
    pub tls: Option<TlsSettings>,
    pub pauses: Pauses,
    pub connect: Duration,
    pub read: Duration,
}

impl KeySettings {
    /// When the keys are fetched again. A file is read every 10 s at least.
    pub fn refresh_pauses(&self) -> Pauses {
        let mut pauses = self.pauses;
        if matches!(self.url, Url::File(_)) {
            pauses.refresh_ms = pauses.refresh_ms.min(FILE_MS);
        }
        pauses
    }

    fn is_open(&self) -> bool {
        matches!(&self.url, Url::Http(url) if !url.has_tls)
    }
}

/// How a listener judges tokens. Data: shell/oauth/src/issuer_keys.rs fetches the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Validator {
    Signed {
        rules: Rules,
        keys: Box<KeySettings>,
    },
    /// Tokens without a signature: who asks for them lets everyone in as anyone.
    Unsecured(UnsecuredRules),
}

impl Validator {
    /// `get`: the value of a key as it holds for this listener and mechanism. `options`: of the login module.
    ///
    /// # Errors
    /// The first value that cannot be, or that is missing. The stores of TLS are the shell's to read.
    pub fn read(
        get: &dyn Fn(&str) -> Option<String>,
        options: &[(String, Secret)],
        allowed: &Allowed,
    ) -> Result<Self, OAuthError> {
        let values = Values::new(get);
        let Some(handler) = values.class(HANDLER, &HANDLERS)? else {
            let problem = "is not set, and Kafka's default takes tokens without a signature from everyone. Name the class \
                           that checks tokens, or OAuthBearerUnsecuredValidatorCallbackHandler for tests";
            return Err(OAuthError::new(HANDLER, problem, SECURED));
        };
        if handler == "OAuthBearerUnsecuredValidatorCallbackHandler" {
            return unsecured(options).map(Self::Unsecured);
        }
        values.class("sasl.oauthbearer.jwt.validator.class", &VALIDATORS)?;
        let (text, url) = values.url(JWKS, allowed, JWKS_EXAMPLE)?.ok_or_else(|| {
            OAuthError::new(JWKS, "is not set: no signature could be checked", JWKS_EXAMPLE)
        })?;
        let rules = rules(&values)?;
        let pauses = Pauses {
            refresh_ms: values.number("sasl.oauthbearer.jwks.endpoint.refresh.ms", 3_600_000)?,
            retry_ms: values.number("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100)?,
            retry_max_ms: values.number("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 10_000)?,
        };
        let (connect, read) = values.timeouts()?;
        let tls = tls(&url, options)?;
        let keys = Box::new(KeySettings { text, url, tls, pauses, connect, read });
        Ok(Self::Signed { rules, keys })
    }

    /// Judges a token. `keys`: of [`Self::Signed`]'s settings, as they are now, and what checks signatures.
    ///
    /// # Errors
    /// What is wrong with the token.
    pub fn check(
        &self,
        token: &str,
        now: TimestampMs,
        keys: Option<(&Jwks, &dyn Signatures)>,
    ) -> Result<Bearer, Fault> {
        match (self, keys) {
            (Self::Unsecured(rules), _) => rules.check(token, now),
            (Self::Signed { .. }, None) => Err(Fault::NoKeys),
            (Self::Signed { rules, .. }, Some((keys, signatures))) => {
                rules.check(token, now, keys, signatures)
            }
        }
    }

    /// What is worth a line in the log.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Unsecured(_) => Some(
                "tokens without a signature are taken: every client may log in as any user. For tests only"
                    .to_owned(),
            ),
            Self::Signed { keys, .. } if keys.is_open() => Some(format!(
                "the issuer's keys come without TLS from {}: who is on the way may put in keys of his own",
                keys.text
            )),
            Self::Signed { .. } => None,
        }
    }
}

fn rules(values: &Values<'_>) -> Result<Rules, OAuthError> {
    let audiences = values.list("sasl.oauthbearer.expected.audience");
    let issuer = values.text("sasl.oauthbearer.expected.issuer");
    let unset = |key: &str, permit: &str| {
        let problem = format!(
            "is not set: tokens that the issuer made for other services would be taken ({permit}=true permits it)"
        );
        OAuthError::new(
            key,
            problem,
            if key.ends_with("issuer") { "https://id.example.com" } else { "kafka" },
        )
    };
    let of_audience = "sasl.oauthbearer.allow.unverified.audience";
    if audiences.is_empty() && !values.flag(of_audience)? {
        return Err(unset("sasl.oauthbearer.expected.audience", of_audience));
    }
    let of_issuer = "sasl.oauthbearer.allow.unverified.issuer";
    if issuer.is_none() && !values.flag(of_issuer)? {
        return Err(unset("sasl.oauthbearer.expected.issuer", of_issuer));
    }
    let skew_s = values.number("sasl.oauthbearer.clock.skew.seconds", 30)?.min(u64::from(u32::MAX));
    let claim = |key: &str, default: &str| values.text(key).unwrap_or_else(|| default.to_owned());
    Ok(Rules {
        audiences,
        issuer,
        scope_claim: claim("sasl.oauthbearer.scope.claim.name", "scope"),
        sub_claim: claim("sasl.oauthbearer.sub.claim.name", "sub"),
        clock_skew_ms: skew_s as i64 * 1000,
    })
}

fn unsecured(options: &[(String, Secret)]) -> Result<UnsecuredRules, OAuthError> {
    let option = |name: &str| {
        let found = options.iter().find(|(known, _)| known == name)?;
        found.1.text().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let skew = option("unsecuredValidatorAllowableClockSkewMs");
    let clock_skew_ms = match skew.as_deref().map(|text| text.parse().ok().filter(|&skew: &i64| skew >= 0)) {
        None => 0,
        Some(Some(skew)) => skew,
        Some(None) => {
            let problem = "option unsecuredValidatorAllowableClockSkewMs is no number of milliseconds";
            let example = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
                           unsecuredValidatorAllowableClockSkewMs=\"3000\";";
            return Err(OAuthError::new("sasl.jaas.config", problem, example));
        }
    };
    let required = option("unsecuredValidatorRequiredScope").unwrap_or_default();
    Ok(UnsecuredRules {
        principal_claim: option("unsecuredValidatorPrincipalClaimName").unwrap_or_else(|| "sub".to_owned()),
        scope_claim: option("unsecuredValidatorScopeClaimName").unwrap_or_else(|| "scope".to_owned()),
        required_scopes: required.split_whitespace().map(str::to_owned).collect(),
        clock_skew_ms,
    })
}

#[cfg(test)]
mod tests;
