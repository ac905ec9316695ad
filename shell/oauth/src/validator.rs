//! A listener's judgement of tokens: core/sasl/src/oauth/settings/validator.rs decides, by the keys that are here now.

use crate::issuer_keys::IssuerKeys;
use crate::signatures::AwsSignatures;
use barnabas_base::TimestampMs;
use barnabas_sasl::Secret;
use barnabas_sasl::oauth::settings::{Allowed, OAuthError, Validator, of_login_module};
use barnabas_sasl::oauth::{Bearer, Fault};
use barnabas_tls::{ClientTls, TlsSettings};

/// Reads a listener's keys (see [`Validator::read`]) and the stores that they name.
///
/// # Errors
/// The first value that cannot be, or that is missing.
pub fn read_validator(
    get: &dyn Fn(&str) -> Option<String>,
    options: &[(String, Secret)],
    allowed: &Allowed,
) -> Result<Validator, OAuthError> {
    let validator = Validator::read(get, options, allowed)?;
    if let Validator::Signed { keys, .. } = &validator {
        check_stores(keys.tls.as_ref())?;
    }
    Ok(validator)
}

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

/// The stores of TLS are checked by reading them.
pub(crate) fn check_stores(tls: Option<&TlsSettings>) -> Result<(), OAuthError> {
    let Some(settings) = tls else { return Ok(()) };
    ClientTls::load(settings.clone()).map(drop).map_err(of_login_module)
}

#[cfg(test)]
mod tests;
