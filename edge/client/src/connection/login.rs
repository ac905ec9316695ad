//! Logs in on a connection: SaslHandshake v1, then SaslAuthenticate until both sides are satisfied.
//!
//! SaslHandshake v0 with bare tokens is not spoken: every broker since Kafka 1.0 takes v1.
//!
//! # Source
//! Kafka 4 `SaslClientAuthenticator`; KIP-152, KIP-368.

use super::Connection;
use crate::ClientError;
use crate::security::{Credentials, Login};
use barnabas_base::ErrorCode;
use barnabas_sasl::{plain, scram};
use barnabas_wire::messages::{SaslAuthenticateRequest, SaslHandshakeRequest, SaslHandshakeResponse};
use barnabas_wire::{ApiKey, VersionRange};
use bytes::Bytes;
use std::time::Duration;

const NONCE_BYTES: usize = 20;

impl Connection {
    /// How long the login lasts; `None`: as long as the connection.
    ///
    /// # Errors
    /// [`ClientError::Login`] if the node refuses, or proves not to know the credential; what the connection ends
    /// with.
    pub(super) async fn log_in_as(&mut self, who: &Credentials) -> Result<Option<Duration>, ClientError> {
        self.shake_hands(who.mechanism.name()).await?;
        let lifetime = match who.mechanism {
            Login::Plain => {
                let message = plain::client_message(&who.user, &who.password);
                self.authenticate(who, message.to_vec()).await?.1
            }
            Login::Scram { mechanism, is_token } => {
                let (first, client) = scram::Client::new(mechanism, &who.user, is_token, &nonce()?);
                let challenge = self.authenticate(who, first).await?.0;
                let (proof, client) = client
                    .answer(&challenge, &who.password)
                    .map_err(|fault| self.failed(who, &fault.to_string()))?;
                let (signature, lifetime) = self.authenticate(who, proof).await?;
                client.verify(&signature).map_err(|fault| self.failed(who, &fault.to_string()))?;
                lifetime
            }
        };
        Ok(u64::try_from(lifetime).ok().filter(|ms| *ms > 0).map(Duration::from_millis))
    }

    async fn shake_hands(&mut self, mechanism: &str) -> Result<(), ClientError> {
        let address = self.address().to_owned();
        let without_sasl = || ClientError::Login {
            address: address.clone(),
            why: "its listener has no SASL. Expected security.protocol=PLAINTEXT, or SSL where it encrypts"
                .to_owned(),
        };
        // Version 0 would be followed by tokens without headers.
        if self.version_of(ApiKey::SaslHandshake, VersionRange::new(1, 1)).is_none() {
            return Err(without_sasl());
        }
        let request = SaslHandshakeRequest { mechanism: mechanism.into(), ..Default::default() };
        let answer: SaslHandshakeResponse = self.exchange(&request, 1).await?;
        let refused = |why: String| Err(ClientError::Login { address: address.clone(), why });
        match ErrorCode::from_code(answer.error_code) {
            ErrorCode::None => Ok(()),
            ErrorCode::UnsupportedSaslMechanism => {
                let enabled: Vec<&str> = answer.mechanisms.iter().map(|name| &**name).collect();
                let enabled = if enabled.is_empty() { "none".to_owned() } else { enabled.join(", ") };
                refused(format!(
                    "mechanism {mechanism} is not enabled there: {enabled}. Set sasl.mechanism to one of these"
                ))
            }
            ErrorCode::IllegalSaslState => Err(without_sasl()),
            code => refused(format!("SaslHandshake was answered with {code}")),
        }
    }

    /// Sends one message of the mechanism: the answer, and the session's lifetime in ms.
    async fn authenticate(
        &mut self,
        who: &Credentials,
        message: Vec<u8>,
    ) -> Result<(Bytes, i64), ClientError> {
        let request = SaslAuthenticateRequest { auth_bytes: message.into(), ..Default::default() };
        let version = self.version_for::<SaslAuthenticateRequest>()?;
        let answer = self.exchange(&request, version).await?;
        match ErrorCode::from_code(answer.error_code) {
            ErrorCode::None => Ok((answer.auth_bytes, answer.session_lifetime_ms)),
            ErrorCode::SaslAuthenticationFailed => {
                let told = answer.error_message.as_deref().unwrap_or_default();
                Err(self.failed(who, told))
            }
            code => Err(self.failed(who, &code.to_string())),
        }
    }

    fn failed(&self, who: &Credentials, told: &str) -> ClientError {
        let (user, mechanism) = (&who.user, who.mechanism.name());
        let told = if told.is_empty() { String::new() } else { format!(": {told}") };
        let why = format!("authentication failed for user {user} by {mechanism}{told}");
        ClientError::Login { address: self.address().to_owned(), why }
    }
}

/// Fresh for each exchange; hexadecimal, since a comma would end it (RFC 5802, 5.1).
fn nonce() -> Result<String, ClientError> {
    let mut bytes = [0; NONCE_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| ClientError::Invalid(format!("no random nonce: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
