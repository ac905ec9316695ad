//! TLS handshakes, on threads of their own and below the workers in priority: a signature takes as long as a hundred
//! small requests, and a storm of new connections must not be felt by those that are open.
//!
//! The same page reads key stores, revocation lists and keytabs (shell/broker/src/node/logins/keytabs.rs) again, and
//! says when certificates and lists end.
//!
//! Always true: at most [`HANDSHAKES_MAX`] connections are in a handshake or before it; each ends within the deadlines
//! of shell/net.

use crate::config::tls::NodeTls;
use crate::node::Node;
use crate::node::workers::complaints::Cause;
use crate::requests::session::audited::note_failed_handshake;
use barnabas_base::{Map, Text};
use barnabas_net::{ConnectionSlot, Detached, HandshakeError};
use barnabas_tls::{Expiring, Expiry, REVOCATION_LISTS, Reload, ServerTls};
use barnabas_wire::messages::broker_registration_request::Listener as RegisteredListener;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// A connection before its first byte is a socket and a task; one in a handshake has about 20 KiB.
const HANDSHAKES_MAX: usize = 4096;
/// A part of the machine: the workers have the rest.
const CORES_PER_THREAD: usize = 4;
/// Files are read so often. New connections get a new certificate within ten seconds.
const RELOAD_EVERY: Duration = Duration::from_secs(5);

/// The threads that shake hands. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handshakes {
    threads: Arc<[Handle]>,
    next: Arc<AtomicUsize>,
    room: Arc<Semaphore>,
}

/// A connection that was accepted and has not spoken yet.
#[derive(Debug)]
pub struct Opening {
    pub stream: std::net::TcpStream,
    pub peer: SocketAddr,
    pub slot: ConnectionSlot,
}

impl Handshakes {
    /// # Errors
    /// The system gives no thread or no event queue.
    pub fn start() -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut threads = Vec::new();
        for number in 0..cores.div_ceil(CORES_PER_THREAD) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            threads.push(runtime.handle().clone());
            // It ends with the process: nothing on it has to be finished.
            std::thread::Builder::new().name(format!("tls-{number}")).spawn(move || {
                if let Err(error) = rustix::process::setpriority_process(None, 5) {
                    tracing::debug!(%error, "handshakes run at the priority of everything else");
                }
                runtime.block_on(std::future::pending::<()>());
            })?;
        }
        let room = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        Ok(Self { threads: threads.into(), next: Arc::default(), room })
    }

    /// Shakes hands, and hands the connection to `take` with the user whom its certificate names.
    pub fn shake(
        &self,
        node: Arc<Node>,
        tls: Arc<ServerTls>,
        opening: Opening,
        take: impl FnOnce(Detached, Option<Text>, ConnectionSlot) + Send + 'static,
    ) {
        let Opening { stream, peer, slot } = opening;
        let Ok(place) = self.room.clone().try_acquire_owned() else {
            node.workers.meter.connections_refused.one();
            node.workers.complaints.refused(peer, "too many TLS handshakes are under way");
            return;
        };
        let thread = self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len();
        self.threads[thread].spawn(async move {
            let first = slot.first_request();
            match barnabas_net::accept(stream, &tls, &first, wall_s(&node)).await {
                Ok(accepted) => {
                    drop(place);
                    take(accepted.stream, accepted.principal.map(Text::from), slot);
                }
                Err(error @ HandshakeError::Gone) => {
                    tracing::debug!(%peer, %error, "before its TLS handshake")
                }
                Err(error) => {
                    node.workers.meter.bad_frames.one();
                    note_failed_handshake(&node, peer, error.to_string());
                    node.workers.complaints.closed(peer, Cause::from(&error), error);
                }
            }
        });
    }
}

fn wall_s(node: &Node) -> i64 {
    node.clock.wall().0 / 1000
}

/// Reads key stores and keytabs again as long as the node runs, and says what comes of it.
///
/// `advertised`: what the broker registers.
///
/// # Errors
/// The system gives no thread.
pub fn watch(node: &Arc<Node>, tls: NodeTls, advertised: &[RegisteredListener]) -> std::io::Result<()> {
    let node = node.clone();
    let mut watched = Watched::new(&node, tls, advertised);
    watched.say_ends(&node);
    watched.say_wrong_names();
    std::thread::Builder::new().name("tls-reload".to_owned()).spawn(move || {
        while !node.shutdown.is_wanted() {
            std::thread::sleep(RELOAD_EVERY);
            watched.reload(&node);
            node.logins.keytabs.reload();
            watched.say_ends(&node);
            watched.say_wrong_names();
        }
    })?;
    Ok(())
}

/// A listener, or the connections to brokers or controllers.
type Part = (String, Box<dyn Fn(i64) -> Reload + Send>, Box<dyn Fn() -> Vec<Expiring> + Send>);

struct Watched {
    parts: Vec<Part>,
    /// Listeners, the hosts that they advertise, and whose certificate was last warned of.
    named: Vec<(Arc<ServerTls>, String, String, Option<String>)>,
    /// Why stores that have changed are not in use, by part: said once.
    kept: Map<String, String>,
    ends: Map<(&'static str, String, i64), Expiry>,
}

impl Watched {
    fn new(node: &Node, tls: NodeTls, advertised: &[RegisteredListener]) -> Self {
        let (mut parts, mut named): (Vec<Part>, _) = (Vec::new(), Vec::new());
        for (server, (listener, _)) in tls.listeners.iter().zip(&node.identity.listeners) {
            let Some(server) = server.clone() else { continue };
            let name = format!("listener {}", listener.endpoint.listener);
            server.warnings().iter().for_each(|warning| tracing::warn!("{name}: {warning}"));
            let of = server.clone();
            let host = advertised.iter().find(|one| *one.name == *listener.endpoint.listener.as_str());
            named.extend(host.map(|one| (server.clone(), name.clone(), one.host.to_string(), None)));
            parts.push((name, Box::new(move |now| server.reload(now)), Box::new(move || of.expiring())));
        }
        for (name, server) in tls.beside() {
            let name = format!("the {name} listener");
            server.warnings().iter().for_each(|warning| tracing::warn!("{name}: {warning}"));
            let (server, of) = (server.clone(), server.clone());
            let reload = move |now| server.reload(now);
            parts.push((name, Box::new(reload), Box::new(move || of.expiring())));
        }
        let clients =
            [("connections to brokers", tls.brokers), ("connections to controllers", tls.controllers)];
        for (name, client) in clients {
            let Some(client) = client else { continue };
            let of = client.clone();
            parts.push((
                name.to_owned(),
                Box::new(move |now| client.reload(now)),
                Box::new(move || of.expiring()),
            ));
        }
        Self { parts, named, kept: Map::default(), ends: Map::default() }
    }

    /// Once for each subject.
    fn say_wrong_names(&mut self) {
        for (server, name, host, said) in &mut self.named {
            let subject = server.mismatched_subject(host);
            if let Some(subject) = subject.as_ref().filter(|subject| said.as_ref() != Some(subject)) {
                tracing::warn!(
                    "{name}: the certificate of {subject} is not for the advertised host {host}: clients that check host \
                     names do not connect. Issue it with this name in subjectAltName"
                );
            }
            *said = subject;
        }
    }

    fn reload(&mut self, node: &Node) {
        for (name, reload, _) in &self.parts {
            match reload(wall_s(node)) {
                Reload::Unchanged => {
                    self.kept.remove(name);
                }
                Reload::Loaded => {
                    self.kept.remove(name);
                    tracing::info!(
                        "{name}: new key or trust store in use for new connections, revocation lists included"
                    );
                }
                Reload::Kept(error) => {
                    let error = error.to_string();
                    if self.kept.get(name) != Some(&error) {
                        tracing::warn!(
                            "{name}: the changed key store, trust store or revocation list is not used, the one before stays \
                             in use: {error}"
                        );
                        self.kept.insert(name.clone(), error);
                    }
                }
            }
        }
    }

    fn say_ends(&mut self, node: &Node) {
        let now_s = wall_s(node);
        let all: Vec<Expiring> = self.parts.iter().flat_map(|(_, _, expiring)| expiring()).collect();
        let key = |one: &Expiring| (one.store, one.subject.clone(), one.not_after_s);
        self.ends.retain(|known, _| all.iter().any(|one| key(one) == *known));
        for one in all {
            if one.store == REVOCATION_LISTS {
                if self.ends.entry(key(&one)).or_default().is_over(one.not_after_s, now_s) {
                    tracing::warn!(
                        issuer = one.subject,
                        "a revocation list is past its next update: certificates of its authority are refused, unless \
                         ssl.crl.expired=accept; replace its file"
                    );
                }
                continue;
            }
            let Some(days) = self.ends.entry(key(&one)).or_default().due(one.not_after_s, now_s) else {
                continue;
            };
            let (store, subject) = (one.store, one.subject);
            if days > 0 {
                tracing::warn!(store, subject, days, "a certificate expires soon; replace its file");
            } else {
                tracing::warn!(store, subject, "a certificate has expired; replace its file");
            }
        }
    }
}
