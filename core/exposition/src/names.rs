//! By which names a page calls its metrics: those that public dashboards look for differ, since Kafka itself has none
//! for Prometheus.
//!
//! | set | whose names they are | BytesInPerSec; current-leader of raft-metrics |
//! |---|---|---|
//! | `jmx` | the JMX exporter's sample configuration | `…_bytesin_total`; `…_raft_metrics_current_leader` |
//! | `strimzi` | Strimzi's configuration of that | `…_bytesin_total`; `…_raftmetrics_current_leader` |
//! | `reporter` | Strimzi Metrics Reporter | `…_bytesinpersec_total`; `…_raft_metrics_current_leader` |
//! | `confluent` | jmx-monitoring-stacks | `…_bytesinpersec`; `…_raft_metrics_current_leader` |
//! | `exporter` | kafka_exporter: offsets of topics and groups alone | – |
//! | `lag-exporter` | Kafka Lag Exporter: lag of groups alone | – |
//!
//! Sources: the configurations and dashboards in strimzi-kafka-operator (`examples/metrics`) and jmx-monitoring-stacks.

use crate::families::{Family, Kind};

/// A set of names. See the file's header.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    #[default]
    Jmx,
    Strimzi,
    Reporter,
    Confluent,
    Exporter,
    LagExporter,
}

impl Names {
    pub const ALL: [Self; 6] =
        [Self::Jmx, Self::Strimzi, Self::Reporter, Self::Confluent, Self::Exporter, Self::LagExporter];

    /// As `?names=` has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Jmx => "jmx",
            Self::Strimzi => "strimzi",
            Self::Reporter => "reporter",
            Self::Confluent => "confluent",
            Self::Exporter => "exporter",
            Self::LagExporter => "lag-exporter",
        }
    }

    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|names| names.word() == word)
    }

    /// Whether the page has the node's own metrics, and not those of another program alone.
    pub const fn has_node(self) -> bool {
        !matches!(self, Self::Exporter | Self::LagExporter)
    }

    /// Whether the page has series by partition without that a topic is named.
    pub const fn has_partitions(self) -> bool {
        matches!(self, Self::Strimzi | Self::Reporter | Self::Confluent)
    }

    /// What a metric is called.
    pub fn shown(self, family: &Family) -> String {
        let name = family.name;
        let per_second = family.kafka.ends_with("PerSec").then(|| name.strip_suffix("_total")).flatten();
        let percent = family.kafka.ends_with("Percent").then(|| name.strip_suffix("_percent")).flatten();
        match self {
            Self::Jmx | Self::Exporter | Self::LagExporter => name.to_owned(),
            Self::Strimzi => name
                .replace("kafka_server_raft_metrics_", "kafka_server_raftmetrics_")
                .replace("kafka_server_raft_channel_metrics_", "kafka_server_raftchannelmetrics_"),
            Self::Reporter => match (per_second, percent) {
                (Some(stem), _) => format!("{stem}persec_total"),
                (_, Some(stem)) => format!("{stem}percent"),
                _ if name == "kafka_server_raft_metrics_current_state" => format!("{name}_info"),
                _ if name.starts_with("kafka_server_raft_channel_metrics_") => {
                    name.trim_end_matches("_total").to_owned()
                }
                _ => name.to_owned(),
            },
            Self::Confluent => match (per_second, percent) {
                (Some(stem), _) => format!("{stem}persec"),
                // It configures an average over a minute of this one.
                (_, Some(stem)) if stem.ends_with("requesthandleravgidle") => {
                    format!("{stem}percent_oneminuterate")
                }
                (_, Some(stem)) => format!("{stem}percent"),
                _ => name.replace("kafka_server_socket_server_metrics_", "kafka_server_socketservermetrics_"),
            },
        }
    }

    /// A counter whose name does not say so has no type.
    pub fn word_of(self, kind: Kind, shown: &str) -> &'static str {
        match kind {
            Kind::Counter if !shown.ends_with("_total") => "untyped",
            kind => kind.word(),
        }
    }

    /// What a label is called.
    pub fn label(self, label: &str) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Confluent => label.to_ascii_lowercase().into(),
            _ => label.to_owned().into(),
        }
    }
}

#[cfg(test)]
mod tests;
