//! What the broker knows of a client that asks for its subscription. Texts are bounded: a client chooses them.

use barnabas_base::{Text, Uuid};

/// Longer names of clients and of their software are cut.
const NAME_BYTES_MAX: usize = 256;
/// How Kafka calls software that has not named itself.
const UNKNOWN: &str = "unknown";

/// The client's software, as its ApiVersions request named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Software {
    pub name: Text,
    pub version: Text,
}

impl Default for Software {
    fn default() -> Self {
        Self { name: Text::from(UNKNOWN), version: Text::from(UNKNOWN) }
    }
}

impl Software {
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: Text::from(cut(name, NAME_BYTES_MAX)),
            version: Text::from(cut(version, NAME_BYTES_MAX)),
        }
    }

    /// Whether it aborts its process when none of the metrics that it is asked for is one of its own (librdkafka#4833,
    /// mended in 2.5.3).
    pub(crate) fn aborts_on_unknown_metrics(&self) -> bool {
        // Bindings name librdkafka in their own version: 2.5.0-rdkafka-2.5.0, 2.5.0-librdkafka-2.5.0.
        let own = if &*self.name == "librdkafka" { Some(&*self.version) } else { None };
        let version = own.or_else(|| self.version.split_once("rdkafka-").map(|(_, version)| version));
        let rest = version.and_then(|version| version.trim_start_matches('v').strip_prefix("2.5."));
        rest.is_some_and(|patch| {
            matches!(patch.as_bytes(), [b'0'..=b'2'] | [b'0'..=b'2', b'.' | b'-' | b'+', ..])
        })
    }
}

/// A client, at its first request for a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub instance_id: Uuid,
    /// `None`: it names none.
    pub client_id: Option<Text>,
    pub software: Software,
    /// As Java prints it, without a name: `127.0.0.1`.
    pub address: Text,
    pub port: u16,
}

impl Client {
    pub fn new(
        instance_id: Uuid,
        client_id: Option<&str>,
        software: Software,
        address: Text,
        port: u16,
    ) -> Self {
        let client_id = client_id.map(|id| Text::from(cut(id, NAME_BYTES_MAX)));
        Self { instance_id, client_id, software, address, port }
    }
}

/// The longest beginning of `text` that has at most so many bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn librdkafka_2_5_0_is_known_by_its_versions() {
        let aborts = |name, version| Software::new(name, version).aborts_on_unknown_metrics();
        for (name, version) in [
            ("librdkafka", "2.5.0"),
            ("librdkafka", "v2.5.0"),
            ("librdkafka", "2.5.0-RC1"),
            ("librdkafka", "2.5.2"),
            ("confluent-kafka-python", "2.5.0-rdkafka-2.5.0"),
            ("confluent-kafka-go", "2.5.0-librdkafka-2.5.0"),
        ] {
            assert!(aborts(name, version), "{name} {version}");
        }
        for (name, version) in [
            ("librdkafka", "2.5.3"),
            ("librdkafka", "2.50.0"),
            ("librdkafka", "12.5.0"),
            ("librdkafka", "2.4.0"),
            ("librdkafka", "2.5.01"),
            ("apache-kafka-java", "2.5.0"),
            ("confluent-kafka-python", "2.5.0-rdkafka-2.6.0"),
            ("unknown", "unknown"),
        ] {
            assert!(!aborts(name, version), "{name} {version}");
        }
    }

    #[test]
    fn client_id_too_long_is_cut_between_letters() {
        let long = format!("x{}", "é".repeat(200));
        let client = Client::new(Uuid::ZERO, Some(&long), Software::default(), Text::from("127.0.0.1"), 1);
        assert_eq!(client.client_id.map(|id| id.len()), Some(255));
    }
}
