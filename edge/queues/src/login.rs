//! A peer's login: SASL PLAIN and ANONYMOUS in AMQP's frames become the login of its connections to the broker.
//!
//! Where the broker's listener has no logins, every peer is anonymous, one with a password too: some clients that
//! have a password know no other way in than PLAIN. Such a password is not looked at.
//!
//! The broker judges: a user and password are right if it lets a connection in. The listener keeps the password for as
//! long as the connection lasts, since each link has connections of its own. SCRAM gives a listener no password, and
//! one connection at most, so it is not offered to peers; the broker's users may be of SCRAM all the same.

use barnabas_client::{ClientError, Cluster, ClusterConfig};
use barnabas_sasl::Secret;
use bytes::Bytes;
use std::time::Duration;

/// For the TLS handshake, and for the login with its connection's opening.
pub const LOGIN_WITHIN: Duration = Duration::from_secs(10);
/// SASL outcomes that end a login without success: the user or password is wrong; try again later.
pub const WRONG: u8 = 1;
pub const LATER: u8 = 4;

/// The ways in.
#[derive(Debug, Clone)]
pub struct Logins {
    /// Without a login.
    cluster: ClusterConfig,
    /// The broker's SASL mechanisms, in the order in which they are tried with a peer's password.
    mechanisms: Vec<String>,
}

/// What a peer has said of itself.
#[derive(Debug)]
pub enum Claim {
    Anonymous,
    User(String, Secret),
}

impl Logins {
    pub fn new(cluster: ClusterConfig, mechanisms: Vec<String>) -> Self {
        Self { cluster, mechanisms }
    }

    pub fn needs_login(&self) -> bool {
        self.cluster.security.protocol().has_sasl()
    }

    /// The SASL mechanisms that peers are offered.
    pub fn offered(&self) -> Vec<String> {
        let offered: &[&str] = if self.needs_login() { &["PLAIN"] } else { &["ANONYMOUS", "PLAIN"] };
        offered.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Of a peer that begins without SASL.
    pub fn anonymous(&self) -> ClusterConfig {
        self.cluster.clone()
    }

    /// What the first frame of a login says. `None`: nothing that is taken here.
    pub fn claim(&self, mechanism: &str, response: Option<&Bytes>) -> Option<Claim> {
        match (mechanism, self.needs_login()) {
            ("ANONYMOUS" | "PLAIN", false) => Some(Claim::Anonymous),
            ("PLAIN", true) => plain(response?),
            _ => None,
        }
    }

    /// Asks the broker. The answer is how this peer's connections are opened.
    ///
    /// # Errors
    /// The SASL outcome's code.
    pub async fn check(self, claim: Claim) -> Result<ClusterConfig, u8> {
        let Claim::User(user, password) = claim else { return Ok(self.cluster) };
        for mechanism in &self.mechanisms {
            let Ok(security) = self.cluster.security.with_login(mechanism, &user, &password) else {
                continue;
            };
            let config = ClusterConfig { security, ..self.cluster.clone() };
            match enter(config.clone()).await {
                Ok(()) => return Ok(config),
                Err(ClientError::Login { .. }) => {}
                Err(error) => {
                    tracing::debug!(%error, "a login of an AMQP client could not be checked");
                    return Err(LATER);
                }
            }
        }
        Err(WRONG)
    }
}

async fn enter(config: ClusterConfig) -> Result<(), ClientError> {
    Cluster::new(config).metadata(Some(&[]), false).await.map(drop)
}

/// RFC 4616: `authzid NUL authcid NUL passwd`. Acting for another user is not taken, as by Kafka.
fn plain(response: &Bytes) -> Option<Claim> {
    let text = std::str::from_utf8(response).ok()?;
    let mut parts = text.split('\0');
    let (acting_for, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    let is_whole = parts.next().is_none() && !user.is_empty() && !password.is_empty();
    let is_own = acting_for.is_empty() || acting_for == user;
    (is_whole && is_own).then(|| Claim::User(user.to_owned(), Secret::from(password)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_client::Security;

    fn logins(protocol: &str) -> Logins {
        let security = Security::without_login([("security.protocol", protocol)]).expect("sound");
        let config = ClusterConfig { security, ..ClusterConfig::new("127.0.0.1:1", "test") };
        Logins::new(config, vec!["PLAIN".to_owned()])
    }

    #[test]
    fn plain_names_a_user_and_its_password() {
        let open = logins("SASL_PLAINTEXT");
        let user = |bytes: &'static [u8]| match open.claim("PLAIN", Some(&Bytes::from_static(bytes))) {
            Some(Claim::User(user, _)) => Some(user),
            _ => None,
        };
        assert_eq!(user(b"\0anna\0secret").as_deref(), Some("anna"));
        assert_eq!(user(b"anna\0anna\0secret").as_deref(), Some("anna"));
        for wrong in
            [&b"bert\0anna\0secret"[..], b"\0anna\0", b"\0\0secret", b"anna", b"\0a\0b\0c", b"\0\xff\0b"]
        {
            assert_eq!(user(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn anonymous_enters_only_where_the_broker_has_no_logins() {
        for mechanism in ["ANONYMOUS", "PLAIN"] {
            assert!(matches!(logins("PLAINTEXT").claim(mechanism, None), Some(Claim::Anonymous)));
        }
        assert!(logins("SASL_PLAINTEXT").claim("ANONYMOUS", None).is_none());
        assert_eq!(logins("SASL_PLAINTEXT").offered(), ["PLAIN"]);
    }
}
