//! Quotas on new connections: of an address, of a listener, of the broker.
//!
//! A connection over the rate of its listener or of the broker waits, for one window at most, and is taken then. One
//! over the quota of its address is not taken: it is closed after the wait, and does not count into the address's rate.
//!
//! Where a listener has no rate of its own, the broker's applies to it as well. The inter-broker listener does not
//! count into the broker's rate if the node has others.
//!
//! Always true: at most [`ADDRESSES_MAX`] addresses have an account of their own. Further ones share one, so that no
//! address with a quota is without a limit. Kafka keeps an account for each, without a bound.
//!
//! Source: KIP-612; Kafka `ConnectionQuotas`.

use std::net::IpAddr;

use barnabas_base::{DurationMs, Map, MonotonicMs};
use barnabas_metadata::access::{ClientQuotas, entity, quota};

use super::{Rate, Windows};

/// About 0.4 KiB each.
pub const ADDRESSES_MAX: usize = 20_000;
/// Between two looks at all accounts for idle ones.
const SWEEP_MS: i64 = 1000;
/// Kafka's default of `metrics.num.samples` and `metrics.sample.window.ms`, for averages of waits.
const AVERAGED: (i32, i32) = (2, 30);

/// Connections per second from an address.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfAddresses {
    named: Map<IpAddr, f64>,
    default: Option<f64>,
}

impl OfAddresses {
    pub fn new(quotas: &ClientQuotas) -> Self {
        let mut found = Self::default();
        for (of, values) in quotas {
            let value = values.get(quota::CONNECTION_CREATION_RATE).copied();
            let (Some(name), Some(per_second)) = (of.get(entity::IP), value) else { continue };
            match name {
                None => found.default = Some(per_second),
                // Apache's controllers also store names of hosts. A name that is no address matches no connection.
                Some(name) => {
                    if let Ok(address) = name.parse::<IpAddr>() {
                        found.named.insert(address.to_canonical(), per_second);
                    }
                }
            }
        }
        found
    }

    pub fn of(&self, address: IpAddr) -> Option<f64> {
        self.named.get(&address.to_canonical()).copied().or(self.default)
    }
}

/// Waits of a listener's connections, for their average.
#[derive(Debug, Default)]
struct Waits {
    sum: Rate,
    count: Rate,
}

impl Waits {
    fn note(&mut self, wait: DurationMs, now: MonotonicMs) {
        self.sum.record(wait.0 as f64, now, Self::windows());
        self.count.record(1.0, now, Self::windows());
    }

    /// Of those that were not zero. 0 without any, where Kafka's `Avg` is NaN: pages of metrics hold finite numbers.
    fn average_ms(&mut self, now: MonotonicMs) -> f64 {
        let count = self.count.used(now, Self::windows());
        if count > 0.0 { self.sum.used(now, Self::windows()) / count } else { 0.0 }
    }

    fn windows() -> Windows {
        Windows::new(AVERAGED.0, AVERAGED.1)
    }
}

#[derive(Debug)]
struct Listener {
    /// Does not count into the broker's rate.
    is_protected: bool,
    per_second_max: f64,
    rate: Rate,
    waits: Waits,
    address_waits: Waits,
}

/// Figures of a listener: connections per second, and the averages of waits in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListenerFigures {
    pub per_second: f64,
    pub wait_ms: f64,
    pub address_wait_ms: f64,
}

/// New connections of one node.
#[derive(Debug)]
pub struct Connections {
    windows: Windows,
    per_second_max: f64,
    rate: Rate,
    listeners: Vec<Listener>,
    of_addresses: OfAddresses,
    addresses: Map<IpAddr, Rate>,
    /// Of addresses that have no account of their own.
    others: Rate,
    swept_at: Option<MonotonicMs>,
}

/// An address has made more connections than its quota allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverQuota {
    pub per_second_max: f64,
    /// Until the connection is closed.
    pub wait: DurationMs,
}

impl Connections {
    /// `protected`: for each listener, whether it is the brokers' own, beside others.
    pub fn new(windows: Windows, protected: &[bool]) -> Self {
        let listener = |&is_protected: &bool| Listener {
            is_protected,
            per_second_max: f64::INFINITY,
            rate: Rate::default(),
            waits: Waits::default(),
            address_waits: Waits::default(),
        };
        Self {
            windows,
            per_second_max: f64::INFINITY,
            rate: Rate::default(),
            listeners: protected.iter().map(listener).collect(),
            of_addresses: OfAddresses::default(),
            addresses: Map::default(),
            others: Rate::default(),
            swept_at: None,
        }
    }

    /// Rates of the broker and of each listener; infinite ones limit nothing.
    pub fn limit(&mut self, broker: f64, listeners: &[f64]) {
        self.per_second_max = broker;
        for (listener, per_second_max) in self.listeners.iter_mut().zip(listeners) {
            listener.per_second_max = *per_second_max;
        }
    }

    pub fn limit_addresses(&mut self, limits: OfAddresses) {
        self.addresses.retain(|address, _| limits.of(*address).is_some());
        self.of_addresses = limits;
    }

    /// Counts a connection to a listener. Returns how long it must wait; those behind it wait as well.
    pub fn arrive(&mut self, listener: usize, now: MonotonicMs) -> DurationMs {
        let windows = self.windows;
        let Some(own) = self.listeners.get_mut(listener) else { return DurationMs(0) };
        let mut wait = DurationMs(0);
        if !own.is_protected {
            self.rate.record(1.0, now, windows);
            wait = bounded(&mut self.rate, self.per_second_max, now, windows);
        }
        own.rate.record(1.0, now, windows);
        wait = wait.max(bounded(&mut own.rate, own.per_second_max, now, windows));
        if wait.0 > 0 {
            own.waits.note(wait, now);
        }
        wait
    }

    /// Whether the address has a quota. Then the quota alone limits its rate.
    pub fn has_quota(&self, address: IpAddr) -> bool {
        self.of_addresses.of(address).is_some()
    }

    /// Counts a connection from an address.
    ///
    /// # Errors
    /// It is one more than the address's quota allows, and is not counted.
    pub fn admit(&mut self, listener: usize, address: IpAddr, now: MonotonicMs) -> Result<(), OverQuota> {
        let address = address.to_canonical();
        let Some(per_second_max) = self.of_addresses.of(address) else { return Ok(()) };
        let windows = self.windows;
        let rate = self.account(address, now);
        rate.record(1.0, now, windows);
        let wait = bounded(rate, per_second_max, now, windows);
        if wait.0 == 0 {
            return Ok(());
        }
        rate.record(-1.0, now, windows);
        if let Some(listener) = self.listeners.get_mut(listener) {
            listener.address_waits.note(wait, now);
        }
        Err(OverQuota { per_second_max, wait })
    }

    fn account(&mut self, address: IpAddr, now: MonotonicMs) -> &mut Rate {
        let is_full = self.addresses.len() >= ADDRESSES_MAX && !self.addresses.contains_key(&address);
        if is_full && self.swept_at.is_none_or(|last| now.since(last).0 >= SWEEP_MS) {
            self.swept_at = Some(now);
            let windows = self.windows;
            self.addresses.retain(|_, rate| !rate.is_idle(now, windows));
        }
        match self.addresses.len() < ADDRESSES_MAX || !is_full {
            true => self.addresses.entry(address).or_default(),
            false => &mut self.others,
        }
    }

    /// Connections per second to the broker, the protected listener left out.
    pub fn per_second(&mut self, now: MonotonicMs) -> f64 {
        self.rate.per_second(now, self.windows)
    }

    pub fn figures(&mut self, listener: usize, now: MonotonicMs) -> Option<ListenerFigures> {
        let windows = self.windows;
        let own = self.listeners.get_mut(listener)?;
        Some(ListenerFigures {
            per_second: own.rate.per_second(now, windows),
            wait_ms: own.waits.average_ms(now),
            address_wait_ms: own.address_waits.average_ms(now),
        })
    }

    /// The `most` addresses with a quota that make the most connections, with their rates.
    pub fn busiest(&mut self, most: usize, now: MonotonicMs) -> Vec<(IpAddr, f64)> {
        let windows = self.windows;
        let rates =
            self.addresses.iter_mut().map(|(address, rate)| (*address, rate.per_second(now, windows)));
        let mut rates: Vec<_> = rates.filter(|(_, rate)| *rate > 0.0).collect();
        rates.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        rates.truncate(most);
        rates
    }
}

/// Source: Kafka `QuotaUtils.boundedThrottleTime`.
fn bounded(rate: &mut Rate, per_second_max: f64, now: MonotonicMs, windows: Windows) -> DurationMs {
    rate.wait(per_second_max, now, windows).min(windows.window())
}

#[cfg(test)]
mod tests;
