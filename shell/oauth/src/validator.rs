//! A listener's judgement of tokens: core/sasl/src/oauth/settings/validator.rs decides, by the keys that are here now.

use crate::issuer_keys::IssuerKeys;
use crate::signatures::AwsSignatures;
use barnabas_base::TimestampMs;
use barnabas_sasl::oauth::settings::{OAuthError, Validator, of_login_module};
use barnabas_sasl::oauth::{Bearer, Fault};
use barnabas_tls::{ClientTls, TlsSettings};

/// Judges a token. `keys`: those of [`Validator::Signed`]'s settings. Does not wait: where the key is unknown, the
/// token is refused and the keys are fetched meanwhile, as in Kafka.
///
/// # Errors
/// What is wrong with the token.
pub fn check_token(
    validator: &Validator,
    token: &str,
    now: TimestampMs,
    keys: Option<&IssuerKeys>,
) -> Result<Bearer, Fault> {
    let Some(issuer) = keys else { return validator.check(token, now, None) };
    let checked = validator.check(token, now, Some((&issuer.keys(), &AwsSignatures)));
    if let Err(Fault::UnknownKey { .. }) = checked {
        issuer.unknown_key();
    }
    checked
}

/// Checks the stores of TLS by reading them.
///
/// # Errors
/// One cannot be read, or holds no certificates.
pub fn check_stores(settings: &TlsSettings) -> Result<(), OAuthError> {
    ClientTls::load(settings.clone()).map(drop).map_err(of_login_module)
}

#[cfg(test)]
mod tests;
