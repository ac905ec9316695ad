//! Whether a broker whose connection to the active controller has closed is gone.
//!
//! A process that exits closes its connections at once, long before its session expires; but so does a mere reset. So
//! the controller probes the broker's own listener. A refused connect says that no process listens there any more, and
//! the broker is fenced. A connect that succeeds, or is not answered, says nothing: heartbeats decide then.
//!
//! A process that is exiting may still accept a connection for a moment, as its listener closes with the last of its
//! files. So the probe is repeated ([`PAUSES_MS`]).
//!
//! Neighbours: shell/broker/src/controller/broker_probe.rs, which connects.

use barnabas_base::BrokerEpoch;
use barnabas_metadata::Broker;

/// Before each probe.
pub const PAUSES_MS: [u64; 4] = [0, 10, 50, 200];
/// How long a connect is waited for.
pub const TIMEOUT_MS: u64 = 1000;

/// What a connect came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    Connected,
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

/// `is_last`: no probe follows.
pub fn verdict(probe: Probe, is_last: bool) -> Verdict {
    match probe {
        Probe::Refused => Verdict::Gone,
        Probe::Connected | Probe::Failed if is_last => Verdict::Unknown,
        Probe::Connected | Probe::Failed => Verdict::Again,
    }
}

#[cfg(test)]
mod tests {
    use barnabas_base::{BrokerId, Uuid};

    use super::*;

    #[test]
    fn refused_connect_alone_says_that_a_broker_is_gone() {
        for is_last in [false, true] {
            assert_eq!(verdict(Probe::Refused, is_last), Verdict::Gone);
        }
        for probe in [Probe::Connected, Probe::Failed] {
            assert_eq!(verdict(probe, false), Verdict::Again);
            assert_eq!(verdict(probe, true), Verdict::Unknown);
        }
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
