//! Connections over the quota of their address: accepted, not served, and closed when their time is over. A client that
//! connects again at once is slowed down by that; one that is closed at once is not.
//!
//! Always true: at most so many are held as the listener may. For one more, that whose time ends first is closed early.
//! Kafka holds any number.
//!
//! Source: KIP-612; Kafka `SocketServer.Acceptor.closeThrottledConnections`.

use std::collections::BTreeMap;
use std::time::Instant;

/// By the time at which they are closed, then in the order in which they came.
#[derive(Debug)]
pub struct Held<T> {
    max: usize,
    came: u64,
    until: BTreeMap<(Instant, u64), T>,
}

impl<T> Held<T> {
    pub fn new(max: usize) -> Self {
        Self { max, came: 0, until: BTreeMap::new() }
    }

    /// Holds `connection`; dropping it closes it.
    pub fn hold(&mut self, connection: T, until: Instant) {
        self.came += 1;
        self.until.insert((until, self.came), connection);
        if self.until.len() > self.max {
            self.until.pop_first();
        }
    }

    pub fn close_due(&mut self, now: Instant) {
        while self.until.first_key_value().is_some_and(|((until, _), _)| *until <= now) {
            self.until.pop_first();
        }
    }

    /// Returns when the next one is to be closed; never, while there is none.
    pub async fn due(&self) {
        match self.until.first_key_value() {
            Some(((until, _), _)) => tokio::time::sleep_until((*until).into()).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn connections_are_closed_in_the_order_of_their_times() {
        let began = barnabas_clock::now();
        let at = |ms| began + Duration::from_millis(ms);
        let connections = [(); 4].map(|()| Arc::new(()));
        let open = || connections.each_ref().map(|one| Arc::strong_count(one) > 1);
        let mut held = Held::new(3);
        for (connection, ms) in connections.iter().zip([300, 100, 100]) {
            held.hold(connection.clone(), at(ms));
        }
        held.close_due(at(99));
        assert_eq!(open(), [true, true, true, false]);
        held.hold(connections[3].clone(), at(200));
        assert_eq!(open(), [true, false, true, true], "one too many: the first to end is closed early");
        held.close_due(at(200));
        assert_eq!(open(), [true, false, false, false]);
        held.close_due(at(300));
        assert_eq!(open(), [false; 4]);
    }
}
