//! Whether a broker whose connection to the active controller has closed is gone.
//!
//! A process that exits closes its connections at once, long before its session expires; but so does a mere reset. So
//! the controller probes the broker's own listener. A refused connect says that no process listens there any more, and
//! the broker is fenced.
//!
//! A connect that succeeds says less: the system closes the files of a process that exits one after the other, and on a
//! machine without idle processors or with many open files that takes a while, in which the listener still accepts.
//! Such a connection is closed when the listener goes. So the probe holds its connection: if it is closed, the probe is
//! repeated; if it stays open, heartbeats decide.
//!
//! Neighbours: shell/broker/src/controller/broker_probe.rs, which connects.

use barnabas_base::BrokerEpoch;
use barnabas_metadata::Broker;
use std::time::Duration;

/// Before the first probes. Later ones wait as long as the last of these.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(0),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
];
/// How long a connect is waited for.
pub const TIMEOUT: Duration = Duration::from_millis(1000);
/// How long a connection is held, and after which no probe follows. Longer than Kafka's default for a broker's session.
pub const PATIENCE: Duration = Duration::from_millis(10_000);

/// How long to wait before the probe of this number, from 0 on.
#[must_use]
pub fn pause(probe: usize) -> Duration {
    PAUSES[probe.min(PAUSES.len() - 1)]
}

/// What a connect came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// It was accepted, and the connection stayed open.
    Open,
    /// It was accepted, and then the other end closed the connection.
    Closed,
    /// The machine answers that no process listens.
    Refused,
    /// Another error, or no answer in time.
    Failed,
}

/// What follows from a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Fence it.
    Gone,
    /// Probe again.
    Again,
    /// Heartbeats decide.
    Unknown,
}

/// Whether a probe says anything of the registration that was lost: it is the broker's current one, and the broker
/// serves.
pub fn concerns(registered: Option<&Broker>, epoch: BrokerEpoch) -> bool {
    registered.is_some_and(|broker| broker.epoch == epoch && !broker.fenced)
}

/// `elapsed`: since the broker's connection closed.
#[must_use]
pub fn verdict(probe: Probe, elapsed: Duration) -> Verdict {
    match probe {
        Probe::Refused => Verdict::Gone,
        Probe::Closed | Probe::Failed if elapsed < PATIENCE => Verdict::Again,
        Probe::Open | Probe::Closed | Probe::Failed => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use barnabas_base::{BrokerId, Uuid};

    use super::*;

    #[test]
    fn refused_connect_alone_says_that_a_broker_is_gone() {
        for elapsed in [Duration::from_millis(0), PATIENCE, Duration::MAX] {
            assert_eq!(verdict(Probe::Refused, elapsed), Verdict::Gone);
            assert_eq!(verdict(Probe::Open, elapsed), Verdict::Unknown);
        }
        for probe in [Probe::Closed, Probe::Failed] {
            assert_eq!(verdict(probe, PATIENCE - Duration::from_millis(1)), Verdict::Again);
            assert_eq!(verdict(probe, PATIENCE), Verdict::Unknown);
        }
    }

    #[test]
    fn probes_become_rarer() {
        assert_eq!([0, 1, 2, 3, 4, 400].map(|probe| pause(probe).as_millis()), [0, 10, 50, 200, 200, 200]);
    }

    #[test]
    fn probe_says_nothing_of_another_registration() {
        let broker = Broker {
            id: BrokerId(1),
            epoch: BrokerEpoch(7),
            incarnation: Uuid::ZERO,
            endpoints: Vec::new(),
            features: Vec::new(),
            rack: None,
            fenced: false,
            in_controlled_shutdown: false,
            is_migrating_zk: false,
            log_dirs: Vec::new(),
            cordoned_log_dirs: None,
        };
        assert!(concerns(Some(&broker), BrokerEpoch(7)));
        assert!(!concerns(Some(&broker), BrokerEpoch(6)), "it has registered again since");
        assert!(!concerns(Some(&Broker { fenced: true, ..broker }), BrokerEpoch(7)));
        assert!(!concerns(None, BrokerEpoch(7)));
    }
}
