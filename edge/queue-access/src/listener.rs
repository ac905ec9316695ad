//! The listener: a thread with a runtime of its own and a bounded number of connections.
//!
//! | limit | value |
//! |---|---|
//! | connections | [`CONNECTIONS_MAX`]; others wait in the listener's backlog |
//! | TLS handshake and login | [`LOGIN_WITHIN`] |
//! | what one connection may take | its protocol's crate |
//!
//! After: edge/queues/src/connection.rs, edge/mq-queues/src/connection.rs.

use crate::login::{LOGIN_WITHIN, Logins};
use crate::puts::Producers;
use barnabas_client::{ClientError, ClusterConfig, Security};
use barnabas_net::Stream;
use barnabas_tls::ServerTls;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

/// Connections of clients at a time.
pub const CONNECTIONS_MAX: usize = 10_000;
/// For one request to a broker, and for what a link needs before it is there.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// What the listener needs to know.
#[derive(Debug)]
pub struct Settings {
    /// Without a login: each caller has its own.
    pub cluster: ClusterConfig,
    /// SASL mechanisms of the broker's listener, in the order in which they are tried.
    pub mechanisms: Vec<String>,
    /// The caller of [`start`] reloads its stores.
    pub tls: Option<Arc<ServerTls>>,
}

/// Why there is no listener: for the operator, beside the key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BindError(String);

/// Which protocol a listener speaks: for its thread, its log and its clients' names.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// Of the thread: `amqp`.
    pub short: &'static str,
    /// For readers: `AMQP 1.0`.
    pub protocol: &'static str,
    /// The setting that turns TLS on.
    pub security: &'static str,
}

/// A listener that runs until this is dropped.
#[derive(Debug)]
pub struct Queues {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Queues {
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its own thread.
            let _ = thread.join();
        }
    }
}

/// How the listener reaches its node: `protocol` is PLAINTEXT or SASL_PLAINTEXT.
///
/// # Errors
/// Another protocol.
pub fn cluster(bootstrap: &str, protocol: &str, client_id: &str) -> Result<ClusterConfig, ClientError> {
    Ok(ClusterConfig {
        request_timeout: REQUEST_WITHIN,
        deadline: OPEN_WITHIN,
        security: Security::without_login([("security.protocol", protocol)])?,
        ..ClusterConfig::new(bootstrap, client_id)
    })
}

/// Listens on `address` (`host:port`).
///
/// # Errors
/// It is no address, or cannot be listened on.
pub fn bind(address: &str) -> Result<std::net::TcpListener, BindError> {
    let resolved = address.to_socket_addrs().map_err(|error| BindError(format!("'{address}': {error}")))?;
    let mut addresses: Vec<SocketAddr> = resolved.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let Some(first) = addresses.first() else { return Err(BindError(format!("'{address}' has no address"))) };
    std::net::TcpListener::bind(first)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| BindError(format!("cannot listen on {first}: {error}")))
}

/// Starts the listener's thread. `converse` serves one connection until it ends; all of them share the producers.
///
/// # Errors
/// The system gives no thread, or no event queue.
pub fn start<F, C>(
    listener: std::net::TcpListener,
    settings: Settings,
    names: Names,
    converse: F,
) -> std::io::Result<Queues>
where
    F: Fn(Stream, Logins, Producers) -> C + Send + 'static,
    C: Future<Output = ()> + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        TcpListener::from_std(listener)?
    };
    let address = listener.local_addr()?;
    let logins = Logins::new(settings.cluster, settings.mechanisms);
    if !address.ip().is_loopback() && settings.tls.is_none() && logins.needs_login() {
        tracing::warn!(
            "the listener for {} is on {address} without TLS: passwords travel readable. Set {}=SSL, or listen on \
             127.0.0.1",
            names.protocol,
            names.security,
        );
    }
    tracing::info!("{} on {address}", names.protocol);
    let (stop, stopped) = oneshot::channel();
    let tls = settings.tls;
    let work = move || {
        // A producer does not leave its thread.
        let local = LocalSet::new();
        local.block_on(&runtime, async {
            tokio::select! {
                () = serve(listener, logins, tls, names, converse) => {}
                _ = stopped => {}
            }
        });
        drop(local);
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name(names.short.to_owned()).spawn(work)?;
    Ok(Queues { address, stop: Some(stop), thread: Some(thread) })
}

async fn serve<F, C>(
    listener: TcpListener,
    logins: Logins,
    tls: Option<Arc<ServerTls>>,
    names: Names,
    converse: F,
) where
    F: Fn(Stream, Logins, Producers) -> C + 'static,
    C: Future<Output = ()> + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (converse, producers) = (Rc::new(converse), Producers::default());
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (logins, producers) = (logins.clone(), producers.clone());
                let (tls, converse) = (tls.clone(), converse.clone());
                spawn_local(async move {
                    if let Some(stream) = greeted(stream, tls, names).await {
                        converse(stream, logins, producers).await;
                    }
                    drop(place);
                });
            }
            // Mostly a want of descriptors: trying at once would spin.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn greeted(stream: TcpStream, tls: Option<Arc<ServerTls>>, names: Names) -> Option<Stream> {
    // Without it answers are slower and right.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return Some(Stream::plain(stream)) };
    match timeout(LOGIN_WITHIN, Stream::welcome(stream, &tls)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, protocol = names.protocol, "no TLS with a client");
            None
        }
        Err(_) => {
            tracing::debug!(
                protocol = names.protocol,
                "no TLS with a client: it did not shake hands in time"
            );
            None
        }
    }
}
