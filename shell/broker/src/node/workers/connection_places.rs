//! Hands the gate of all listeners its limits, at the start and whenever they change.
//!
//! Decided by core/security/src/quotas/places.rs, from the settings and the room that the process has. Counted by
//! shell/net/src/gate.rs.

use barnabas_metadata::config::BrokerConfig;
use barnabas_net::{ConnectionLimits, Gate};
use barnabas_security::quotas::places::{Places, Room};
use std::sync::{Mutex, PoisonError};

/// See the file's header.
#[derive(Debug)]
pub struct ConnectionPlaces {
    gate: Gate,
    /// The listeners' names.
    names: Vec<String>,
    room: Room,
    in_force: Mutex<Places>,
}

impl ConnectionPlaces {
    /// # Errors
    /// An entry of the overrides that names no address.
    pub fn open(config: &BrokerConfig, names: Vec<String>, room: Room) -> Result<Self, String> {
        let places = Places::read(config, names.iter().map(String::as_str), room);
        if let Some(problem) = places.problem() {
            return Err(problem);
        }
        let gate = Gate::new(limits(&places, room));
        Ok(Self { gate, names, room, in_force: Mutex::new(places) })
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The open connections of each listener.
    pub fn connections(&self) -> impl Iterator<Item = (&str, usize)> {
        let counts = self.gate.on_listeners();
        let count = move |place: usize| counts.get(place).copied().unwrap_or(0);
        self.names.iter().enumerate().map(move |(place, name)| (name.as_str(), count(place)))
    }

    /// Takes the numbers of the settings. Entries of overrides that name no address have no effect: Apache's
    /// controllers take them.
    pub fn reconfigure(&self, config: &BrokerConfig) {
        let places = Places::read(config, self.names.iter().map(String::as_str), self.room);
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        if *in_force == places {
            return;
        }
        if places.unusable != in_force.unusable
            && let Some(problem) = places.problem()
        {
            tracing::warn!("{problem}. This broker applies the other entries");
        }
        self.gate.set_limits(limits(&places, self.room));
        *in_force = places;
    }
}

fn limits(places: &Places, room: Room) -> ConnectionLimits {
    ConnectionLimits {
        connections_max: places.all_max,
        listeners_max: places.listeners_max.clone(),
        reserved_max: room.reserved,
        connections_per_ip_max: places.per_ip_max,
        connections_per_ip_overrides: places.per_ip_overrides.clone(),
        per_ip_second_max: places.per_ip_second_max,
    }
}
