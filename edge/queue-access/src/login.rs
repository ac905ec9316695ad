//! A peer's user and password become the login of its connections to the broker.
//!
//! Where the broker's listener has no logins, every peer is anonymous, one with a password too: some clients that
//! have a password know no other way in. Such a password is not looked at.
//!
//! The broker judges: a user and password are right if it lets a connection in. The listener keeps the password for as
//! long as the connection lasts, since links and handles have connections of their own.

use barnabas_client::{ClientError, Cluster, ClusterConfig};
use barnabas_sasl::Secret;
use std::time::Duration;

/// For the TLS handshake, and for the login with its connection's opening.
pub const LOGIN_WITHIN: Duration = Duration::from_secs(10);

/// Why a peer is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The user or password is wrong.
    Wrong,
    /// The broker could not be asked: a later try may go well.
    Later,
}

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

    /// Of a peer that does not log in.
    pub fn anonymous(&self) -> ClusterConfig {
        self.cluster.clone()
    }

    /// Asks the broker. The answer is how this peer's connections are opened.
    ///
    /// # Errors
    /// Why the peer is not let in.
    pub async fn check(self, claim: Claim) -> Result<ClusterConfig, Denied> {
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
                    tracing::debug!(%error, "a login of a queue client could not be checked");
                    return Err(Denied::Later);
                }
            }
        }
        Err(Denied::Wrong)
    }
}

async fn enter(config: ClusterConfig) -> Result<(), ClientError> {
    Cluster::new(config).metadata(Some(&[]), false).await.map(drop)
}
