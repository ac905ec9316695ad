//! Connections to the cluster, each as the caller it is for: the broker's authorizer decides what it may do.
//!
//! A connection is kept for the next request of the same user with the same password: at most [`IDLE_MAX`] of them,
//! none idle for more than [`IDLE_FOR`] or older than [`AGE_MAX`], so that a changed password holds after that time.

use crate::http::gate::{Caller, no_login};
use crate::http::problem::Problem;
use barnabas_client::{ClientError, Cluster, ClusterConfig};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const IDLE_MAX: usize = 32;
const IDLE_FOR: Duration = Duration::from_secs(60);
const AGE_MAX: Duration = Duration::from_secs(300);

/// Opens and keeps connections.
#[derive(Debug)]
pub struct Callers {
    /// Without a login.
    config: ClusterConfig,
    /// SASL mechanisms in the order in which they are tried with a caller's password.
    mechanisms: Vec<String>,
    idle: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    caller: Option<Caller>,
    cluster: Cluster,
    cluster_id: String,
    opened: Instant,
    last_used: Instant,
}

/// A connection for one request. It is closed when this is dropped, since an answer may be outstanding, unless
/// [`Lease::keep`] gives it back.
#[derive(Debug)]
pub struct Lease {
    kept: Kept,
    callers: Arc<Callers>,
}

impl Callers {
    pub fn new(config: ClusterConfig, mechanisms: Vec<String>) -> Self {
        Self { config, mechanisms, idle: Mutex::default() }
    }

    pub fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// A connection as `caller`. Where the broker's listener has no logins, everyone is anonymous.
    ///
    /// # Errors
    /// 401: a login is needed, or the broker refuses it. 503: no broker can be reached.
    pub async fn lease(self: &Arc<Self>, caller: Option<Caller>) -> Result<Lease, Problem> {
        let caller = caller.filter(|_| self.config.security.protocol().has_sasl());
        let kept = match self.take(caller.as_ref()) {
            Some(kept) => kept,
            None => self.open(caller).await?,
        };
        Ok(Lease { kept, callers: self.clone() })
    }

    /// Closes what has been idle for too long.
    pub fn sweep(&self) {
        let mut idle = self.idle();
        idle.retain(|kept| kept.last_used.elapsed() < IDLE_FOR && kept.opened.elapsed() < AGE_MAX);
    }

    fn take(&self, caller: Option<&Caller>) -> Option<Kept> {
        self.sweep();
        let mut idle = self.idle();
        let at = idle.iter().rposition(|kept| kept.caller.as_ref() == caller)?;
        Some(idle.swap_remove(at))
    }

    fn put(&self, mut kept: Kept) {
        kept.last_used = Instant::now();
        let mut idle = self.idle();
        if idle.len() >= IDLE_MAX {
            let oldest = (0..idle.len()).min_by_key(|at| idle[*at].last_used);
            oldest.map(|at| idle.swap_remove(at));
        }
        idle.push(kept);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self, caller: Option<Caller>) -> Result<Kept, Problem> {
        let Some(who) = &caller else {
            if self.config.security.protocol().has_sasl() {
                return Err(no_login(
                    "this cluster has logins: use HTTP basic with a user of Kafka's listener",
                ));
            }
            return Ok(opened(self.config.clone(), None).await?);
        };
        let mut last = None;
        for mechanism in &self.mechanisms {
            let security = self.config.security.with_login(mechanism, &who.user, &who.password)?;
            let config = ClusterConfig { security, ..self.config.clone() };
            match opened(config, caller.clone()).await {
                Err(error @ ClientError::Login { .. }) => last = Some(error),
                opened => return Ok(opened?),
            }
        }
        // The broker's own words name a mechanism and an address, which are nothing for a stranger.
        match last {
            Some(error) => {
                tracing::debug!(%error, "a login was refused");
                Err(no_login("the broker refuses this user and password"))
            }
            None => Err(Problem::bad("no SASL mechanism is set for the console")),
        }
    }
}

/// Also learns the addresses of all nodes.
async fn opened(config: ClusterConfig, caller: Option<Caller>) -> Result<Kept, ClientError> {
    let mut cluster = Cluster::new(config);
    let answer = cluster.refresh(Some(&[]), false).await?;
    let cluster_id = answer.cluster_id.map(|id| id.to_string()).unwrap_or_default();
    let now = Instant::now();
    Ok(Kept { caller, cluster, cluster_id, opened: now, last_used: now })
}

impl Lease {
    /// The cluster's id.
    pub fn id(&self) -> &str {
        &self.kept.cluster_id
    }

    /// Who is logged in; `None`: anonymous.
    pub fn user(&self) -> Option<&str> {
        self.kept.caller.as_ref().map(|caller| caller.user.as_str())
    }

    /// Keeps the connection for the next request of this caller. No answer is outstanding.
    pub fn keep(self) {
        self.callers.put(self.kept);
    }
}

impl std::ops::Deref for Lease {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.kept.cluster
    }
}

impl std::ops::DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Cluster {
        &mut self.kept.cluster
    }
}
