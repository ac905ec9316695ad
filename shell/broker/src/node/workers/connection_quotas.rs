//! Quotas on new connections of this node: acceptors of listeners ask here. Limits come from the settings and the
//! image. core/security computes them behind one lock, which each new connection takes once.

use barnabas_base::MonotonicMs;
use barnabas_clock::Clock;
use barnabas_config::Listener;
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::{CreationQuotas, OverQuota};
use barnabas_security::quotas::connections::{ListenerFigures, OfAddresses};
use barnabas_security::quotas::{Connections, Windows};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const RATE: &str = "max.connection.creation.rate";
/// So many addresses are named in the metrics.
const BUSIEST: usize = 100;

/// See the file's header.
#[derive(Debug)]
pub struct ConnectionQuotas {
    /// The listeners' names.
    names: Vec<String>,
    connections: Mutex<Connections>,
}

/// What the metrics say.
#[derive(Debug)]
pub struct ConnectionFigures {
    pub per_second: f64,
    pub listeners: Vec<(String, ListenerFigures)>,
    pub addresses: Vec<(IpAddr, f64)>,
}

impl ConnectionQuotas {
    pub fn new(config: &BrokerConfig, listeners: &[(Listener, SocketAddr)]) -> Self {
        let windows = Windows::new(config.int("quota.window.num"), config.int("quota.window.size.seconds"));
        let is_protected = |(listener, _): &(Listener, _)| listener.is_inter_broker && listeners.len() > 1;
        let protected: Vec<bool> = listeners.iter().map(is_protected).collect();
        let names = listeners.iter().map(|(listener, _)| listener.endpoint.listener.as_str().to_owned());
        let connections = Mutex::new(Connections::new(windows, &protected));
        let quotas = Self { names: names.collect(), connections };
        quotas.reconfigure(config);
        quotas
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the rates of the settings. A listener without its own has the broker's (Kafka `valuesWithPrefixOverride`).
    pub fn reconfigure(&self, config: &BrokerConfig) {
        let broker = finite(i32::try_from(config.long(RATE)).ok());
        let of = |name: &String| {
            let key = format!("listener.name.{}.{RATE}", name.to_lowercase());
            config.value(&key).and_then(|value| value.trim().parse().ok())
        };
        let listeners: Vec<f64> =
            self.names.iter().map(|name| of(name).map_or(broker, |own| finite(Some(own)))).collect();
        self.connections().limit(broker, &listeners);
    }

    /// The quotas of an image in which some changed.
    pub fn publish(&self, image: &Image) {
        self.connections().limit_addresses(OfAddresses::new(&image.quotas));
    }

    pub fn figures(&self, now: MonotonicMs) -> ConnectionFigures {
        let mut connections = self.connections();
        let named = self.names.iter().enumerate();
        let listeners =
            named.filter_map(|(place, name)| Some((name.clone(), connections.figures(place, now)?)));
        ConnectionFigures {
            listeners: listeners.collect(),
            per_second: connections.per_second(now),
            addresses: connections.busiest(BUSIEST, now),
        }
    }

    /// For the acceptor of a listener.
    pub fn of_listener(&self, listener: usize, clock: Clock) -> OfListener<'_> {
        OfListener { quotas: self, listener, clock }
    }
}

/// Kafka's default of the largest number is no limit.
fn finite(rate: Option<i32>) -> f64 {
    rate.filter(|&rate| rate < i32::MAX).map_or(f64::INFINITY, |rate| f64::from(rate.max(0)))
}

/// The quotas that one listener's connections meet.
#[derive(Debug)]
pub struct OfListener<'a> {
    quotas: &'a ConnectionQuotas,
    listener: usize,
    clock: Clock,
}

impl CreationQuotas for OfListener<'_> {
    fn arrive(&mut self) -> Duration {
        let wait = self.quotas.connections().arrive(self.listener, self.clock.monotonic());
        Duration::from_millis(wait.0.unsigned_abs())
    }

    fn admit(&mut self, ip: IpAddr) -> Result<bool, OverQuota> {
        let mut connections = self.quotas.connections();
        match connections.admit(self.listener, ip, self.clock.monotonic()) {
            Ok(()) => Ok(connections.has_quota(ip)),
            Err(over) => Err(OverQuota { per_second_max: over.per_second_max, wait_ms: over.wait.0 }),
        }
    }
}
