//! Lines that a client can cause as often as it likes, by requests that this node does not refuse: each kind is written
//! once a minute, with a count of the rest. What peers do wrong is in complaints.rs.

use crate::node::log_rate_limit::LogRateLimit;
use crate::node::log_rate_limit::Unsaid;
use barnabas_base::Text;
use barnabas_wire::ApiKey;

/// What happens again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repeated {
    /// An answer could not be encoded, or was cut off.
    BrokenAnswer(Option<ApiKey>),
    /// The controller did not take a request that this broker forwards.
    NotForwarded(ApiKey),
    NoProducerIds,
    /// A coordinator's records, or a transaction marker, make no batch.
    NoBatch,
    LogStartNotWritten,
    NotSetUp,
    /// The broker registers once more in this process.
    RegistersAgain,
    HeartbeatRefused,
    /// By partition.
    NotMoved,
    ReplicaLeft,
    SnapshotNotWritten,
    AbortedNotNoted,
    BatchesNotWritten,
    /// By group.
    ShareState,
    /// By broker.
    BrokerGone,
    /// By what was altered.
    LogLevels,
}

/// What was written. Names have places of their own: many of one kind take none from another.
#[derive(Debug, Default)]
pub struct RepeatedLines {
    kinds: LogRateLimit<Repeated>,
    names: LogRateLimit<(Repeated, Text)>,
}

impl RepeatedLines {
    /// It has happened: whether it is to be written now.
    pub fn happened(&self, what: Repeated) -> Option<Unsaid> {
        self.kinds.happened(&what, barnabas_clock::now())
    }

    /// The same, for each name.
    pub fn happened_to(&self, what: Repeated, name: impl AsRef<str>) -> Option<Unsaid> {
        self.names.happened(&(what, Text::from(name.as_ref())), barnabas_clock::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_of_one_kind_hide_no_other_kind() {
        let lines = RepeatedLines::default();
        let written = (0..10_000)
            .filter(|number| lines.happened_to(Repeated::NotMoved, format!("t-{number}")).is_some())
            .count();
        assert!(written < 100, "{written}");
        assert!(lines.happened(Repeated::LogStartNotWritten).is_some());
        assert!(lines.happened(Repeated::LogStartNotWritten).is_none());
    }
}
