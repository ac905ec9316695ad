//! Logs in on a connection: SaslHandshake v1, then SaslAuthenticate until both sides are satisfied.
//!
//! SaslHandshake v0 with bare tokens is not spoken: every broker since Kafka 1.0 takes v1.
//!
//! # Source
//! Kafka 4 `SaslClientAuthenticator`; KIP-152, KIP-368.

use super::Connection;
use crate::ClientError;
use crate::security::{ByPassword, Credentials, Login};
use barnabas_base::ErrorCode;
use barnabas_net::tickets::TicketSource;
use barnabas_oauth::TokenSource;
use barnabas_sasl::client::{ClientExchange, ClientLogin};
use barnabas_sasl::{oauth, plain, scram};
use barnabas_wire::messages::{SaslAuthenticateRequest, SaslHandshakeRequest, SaslHandshakeResponse};
use barnabas_wire::{ApiKey, VersionRange};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

const NONCE_BYTES: usize = 20;

impl Connection {
    /// How long the login lasts; `None`: as long as the connection.
    ///
    /// # Errors
    /// [`ClientError::Login`] if the node refuses, or proves not to know the credential; what the connection ends
    /// with.
    pub(super) async fn log_in_as(&mut self, login: &Login) -> Result<Option<Duration>, ClientError> {
        let lifetime = match login {
            Login::Password(who) => self.log_in_by_password(who).await?,
            Login::Tokens(source) => self.log_in_by_token(source.clone()).await?,
            Login::Tickets(source) => self.log_in_by_ticket(source.clone()).await?,
        };
        Ok(u64::try_from(lifetime).ok().filter(|ms| *ms > 0).map(Duration::from_millis))
    }

    async fn log_in_by_password(&mut self, who: &Credentials) -> Result<i64, ClientError> {
        let mechanism = who.mechanism.name();
        let as_whom = &format!("user {} by {mechanism}", who.user);
        self.shake_hands(mechanism).await?;
        match who.mechanism {
            ByPassword::Plain => {
                let message = plain::client_message(&who.user, &who.password);
                Ok(self.authenticate(as_whom, message.to_vec()).await?.1)
            }
            ByPassword::Scram { mechanism, is_token } => {
                let (first, client) = scram::Client::new(mechanism, &who.user, is_token, &nonce()?);
                let challenge = self.authenticate(as_whom, first).await?.0;
                let (proof, client) = client
                    .answer(&challenge, &who.password)
                    .map_err(|fault| self.failed(as_whom, &fault.to_string()))?;
                let (signature, lifetime) = self.authenticate(as_whom, proof).await?;
                client.verify(&signature).map_err(|fault| self.failed(as_whom, &fault.to_string()))?;
                Ok(lifetime)
            }
        }
    }

    async fn log_in_by_token(&mut self, source: Arc<TokenSource>) -> Result<i64, ClientError> {
        let as_whom = "a token by OAUTHBEARER";
        // The issuer may be slow: not on the runtime's own thread.
        let login = tokio::task::spawn_blocking(move || source.login()).await;
        let login = login.map_err(|error| error.to_string()).and_then(|login| login);
        let (token, extensions) = match login {
            Ok(ClientLogin::Bearer { token, extensions }) => (token, extensions),
            Ok(other) => return Err(self.failed(as_whom, other.mechanism())),
            Err(why) => return Err(self.failed(as_whom, &why)),
        };
        self.shake_hands("OAUTHBEARER").await?;
        let message = oauth::client_message(&token, &extensions);
        let (challenge, lifetime) = self.authenticate(as_whom, message.to_vec()).await?;
        if challenge.is_empty() {
            return Ok(lifetime);
        }
        // The server refuses, and does so once more when the client has confirmed that it has read why.
        self.authenticate(as_whom, oauth::CONFIRMATION.to_vec()).await?;
        Err(self.failed(as_whom, &String::from_utf8_lossy(&challenge)))
    }

    async fn log_in_by_ticket(&mut self, source: Arc<TicketSource>) -> Result<i64, ClientError> {
        let as_whom = &format!("{} by GSSAPI", source.settings().who());
        let host = host_of(self.address()).to_owned();
        // The KDC may be slow: not on the runtime's own thread.
        let login = tokio::task::spawn_blocking(move || source.login(&host)).await;
        let login = login.map_err(|error| error.to_string()).and_then(|login| login);
        let login = login.map_err(|why| self.failed(as_whom, &why))?;
        self.shake_hands("GSSAPI").await?;
        let (mut token, mut exchange) = ClientExchange::begin(&login, "");
        loop {
            let (challenge, lifetime) = self.authenticate(as_whom, token.to_vec()).await?;
            let next = exchange.challenged(&challenge);
            match next.map_err(|error| self.failed(as_whom, &error.to_string()))? {
                Some((answer, rest)) => (token, exchange) = (answer, rest),
                None => return Ok(lifetime),
            }
        }
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
    async fn authenticate(&mut self, as_whom: &str, message: Vec<u8>) -> Result<(Bytes, i64), ClientError> {
        let request = SaslAuthenticateRequest { auth_bytes: message.into(), ..Default::default() };
        let version = self.version_for::<SaslAuthenticateRequest>()?;
        let answer = self.exchange(&request, version).await?;
        match ErrorCode::from_code(answer.error_code) {
            ErrorCode::None => Ok((answer.auth_bytes, answer.session_lifetime_ms)),
            ErrorCode::SaslAuthenticationFailed => {
                let told = answer.error_message.as_deref().unwrap_or_default();
                Err(self.failed(as_whom, told))
            }
            code => Err(self.failed(as_whom, &code.to_string())),
        }
    }

    fn failed(&self, as_whom: &str, told: &str) -> ClientError {
        let told = if told.is_empty() { String::new() } else { format!(": {told}") };
        let why = format!("authentication failed for {as_whom}{told}");
        ClientError::Login { address: self.address().to_owned(), why }
    }
}

/// Fresh for each exchange; hexadecimal, since a comma would end it (RFC 5802, 5.1).
fn nonce() -> Result<String, ClientError> {
    let mut bytes = [0; NONCE_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| ClientError::Invalid(format!("no random nonce: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// `host:port` without the port, and without the brackets of an IPv6 address.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}
