//! The pipelined producer's settings, by Kafka's names, with Kafka's defaults and Kafka's rules between them.
//!
//! As in Kafka, unknown names are not refused: they come back in [`Parsed::unknown`] and the caller
//! warns. Known settings that this producer cannot do (transactions) are refused with a
//! message.
//!
//! Source: Kafka 4.3 `ProducerConfig`.

use crate::{ClientError, Security};
use barnabas_wire::records::{Codec, Compression};
use std::time::Duration;

/// How to send.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineConfig {
    pub bootstrap: String,
    pub client_id: String,
    /// 0, 1 or −1 (all).
    pub acks: i16,
    pub is_idempotent: bool,
    pub linger: Duration,
    pub batch_bytes: usize,
    /// What batches may take in memory, from their first record to their acknowledgement.
    pub buffer_bytes: usize,
    pub request_bytes_max: usize,
    /// Requests under way on each connection.
    pub in_flight_max: usize,
    pub compression: Compression,
    pub retries: u32,
    pub delivery_timeout: Duration,
    pub request_timeout: Duration,
    pub retry_backoff: Duration,
    pub retry_backoff_max: Duration,
    pub reconnect_backoff: Duration,
    pub reconnect_backoff_max: Duration,
    pub connect_timeout: Duration,
    pub metadata_age_max: Duration,
    /// How long to look for the topic.
    pub block_max: Duration,
    /// How long a partition may be without a leader before it is reported.
    pub patience: Duration,
    /// −1: what the system gives.
    pub send_buffer_bytes: i32,
    pub receive_buffer_bytes: i32,
    /// Whether keys choose no partition (`partitioner.ignore.keys`).
    pub ignores_keys: bool,
    pub security: Security,
    /// Whether busy partitions get less (`partitioner.adaptive.partitioning.enable`).
    pub is_adaptive: bool,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            bootstrap: String::new(),
            client_id: String::new(),
            acks: -1,
            is_idempotent: true,
            linger: ms(5),
            batch_bytes: 16 * 1024,
            buffer_bytes: 32 * 1024 * 1024,
            request_bytes_max: 1024 * 1024,
            in_flight_max: 5,
            compression: Compression::NONE,
            retries: i32::MAX as u32,
            delivery_timeout: ms(120_000),
            request_timeout: ms(30_000),
            retry_backoff: ms(100),
            retry_backoff_max: ms(1_000),
            reconnect_backoff: ms(50),
            reconnect_backoff_max: ms(1_000),
            connect_timeout: ms(10_000),
            metadata_age_max: ms(300_000),
            block_max: ms(60_000),
            patience: ms(2_000),
            send_buffer_bytes: -1,
            receive_buffer_bytes: -1,
            ignores_keys: false,
            security: Security::default(),
            is_adaptive: true,
        }
    }
}

/// What was understood of a list of properties.
#[derive(Debug)]
pub struct Parsed {
    pub config: PipelineConfig,
    /// Names that no producer knows.
    pub unknown: Vec<String>,
}

/// Names of Kafka's that mean nothing here, or nothing but their default: taken without a word.
const WITHOUT_EFFECT: &[&str] = &[
    "auto.include.jmx.reporter",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "key.serializer",
    "metadata.max.idle.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partitioner.availability.timeout.ms",
    "transaction.timeout.ms",
    "value.serializer",
];

/// What was set, where that makes a difference to what was not.
#[derive(Debug, Default)]
struct Given {
    idempotence: bool,
    delivery_timeout: bool,
    codec: Option<Codec>,
    levels: [Option<i32>; 3],
    security: Vec<(String, String)>,
}

impl PipelineConfig {
    /// Reads properties by Kafka's names; of a name that stands twice, the last value holds.
    ///
    /// # Errors
    /// An invalid value, contradictory settings, or a feature that is not supported.
    pub fn parse<'a>(
        properties: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Parsed, ClientError> {
        let (mut config, mut given, mut unknown) = (Self::default(), Given::default(), Vec::new());
        for (name, value) in properties {
            let value = value.trim();
            let is_known = config.set(name, value, &mut given)?
                || config.set_time(name, value, &mut given)?
                || WITHOUT_EFFECT.contains(&name);
            if !is_known && !unknown.iter().any(|known| known == name) {
                unknown.push(name.to_owned());
            }
        }
        config.settle(&given)?;
        Ok(Parsed { config, unknown })
    }

    fn set(&mut self, name: &str, value: &str, given: &mut Given) -> Result<bool, ClientError> {
        match name {
            "bootstrap.servers" => value.clone_into(&mut self.bootstrap),
            "client.id" => value.clone_into(&mut self.client_id),
            "acks" => {
                self.acks = match value {
                    "all" | "-1" => -1,
                    "0" => 0,
                    "1" => 1,
                    _ => return Err(invalid(name, value, "0, 1 or all")),
                }
            }
            "enable.idempotence" => {
                (self.is_idempotent, given.idempotence) = (truth(name, value)?, true);
            }
            "batch.size" => self.batch_bytes = at_least(name, value, 0)?,
            "buffer.memory" => self.buffer_bytes = at_least(name, value, 0)?,
            "max.request.size" => self.request_bytes_max = at_least(name, value, 0)?,
            "max.in.flight.requests.per.connection" => self.in_flight_max = at_least(name, value, 1)?,
            "retries" => self.retries = at_least(name, value, 0)?,
            "send.buffer.bytes" => self.send_buffer_bytes = at_least(name, value, -1)?,
            "receive.buffer.bytes" => self.receive_buffer_bytes = at_least(name, value, -1)?,
            "partitioner.ignore.keys" => self.ignores_keys = truth(name, value)?,
            "partitioner.adaptive.partitioning.enable" => self.is_adaptive = truth(name, value)?,
            "compression.type" => {
                let codec = Codec::from_name(value);
                given.codec =
                    Some(codec.ok_or_else(|| invalid(name, value, "none, gzip, snappy, lz4 or zstd"))?);
            }
            "compression.gzip.level" => given.levels[0] = Some(number(name, value)?),
            "compression.lz4.level" => given.levels[1] = Some(number(name, value)?),
            "compression.zstd.level" => given.levels[2] = Some(number(name, value)?),
            "transactional.id" | "transaction.two.phase.commit.enable" => {
                return Err(ClientError::Invalid(format!(
                    "{name} is set, but this producer has no transactions yet: leave it out"
                )));
            }
            // Read together, at the end.
            _ if Security::has_key(name) => given.security.push((name.to_owned(), value.to_owned())),
            "partitioner.class" | "interceptor.classes" if value.is_empty() => {}
            "partitioner.class" | "interceptor.classes" => {
                return Err(invalid(name, value, "nothing: classes of Java cannot be run here"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_time(&mut self, name: &str, value: &str, given: &mut Given) -> Result<bool, ClientError> {
        let time = match name {
            "linger.ms" => &mut self.linger,
            "delivery.timeout.ms" => {
                given.delivery_timeout = true;
                &mut self.delivery_timeout
            }
            "request.timeout.ms" => &mut self.request_timeout,
            "retry.backoff.ms" => &mut self.retry_backoff,
            "retry.backoff.max.ms" => &mut self.retry_backoff_max,
            "reconnect.backoff.ms" => &mut self.reconnect_backoff,
            "reconnect.backoff.max.ms" => &mut self.reconnect_backoff_max,
            "socket.connection.setup.timeout.ms" | "socket.connection.setup.timeout.max.ms" => {
                &mut self.connect_timeout
            }
            "metadata.max.age.ms" => &mut self.metadata_age_max,
            "max.block.ms" => &mut self.block_max,
            _ => return Ok(false),
        };
        *time = Duration::from_millis(at_least(name, value, 0)?);
        Ok(true)
    }

    /// What follows from what was set for what was not, and what contradicts itself.
    fn settle(&mut self, given: &Given) -> Result<(), ClientError> {
        let security = given.security.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.security = Security::parse(security)?;
        let codec = given.codec.unwrap_or_default();
        let level = match codec {
            Codec::Gzip => given.levels[0],
            Codec::Lz4 => given.levels[1],
            Codec::Zstd => given.levels[2],
            Codec::None | Codec::Snappy => None,
        };
        self.compression = Compression { codec, level };
        let hinders = if self.acks != -1 {
            Some("acks must be all")
        } else if self.retries == 0 {
            Some("retries must be more than 0")
        } else if self.in_flight_max > 5 {
            Some("max.in.flight.requests.per.connection must be 5 at the most")
        } else {
            None
        };
        match hinders {
            Some(rule) if given.idempotence && self.is_idempotent => {
                return Err(ClientError::Invalid(format!("with enable.idempotence=true {rule}")));
            }
            Some(_) => self.is_idempotent = false,
            None => {}
        }
        let least = self.linger.saturating_add(self.request_timeout);
        if self.delivery_timeout < least {
            if given.delivery_timeout {
                return Err(ClientError::Invalid(
                    "delivery.timeout.ms must not be less than linger.ms + request.timeout.ms".to_owned(),
                ));
            }
            self.delivery_timeout = least;
        }
        Ok(())
    }
}

fn invalid(name: &str, value: &str, wanted: &str) -> ClientError {
    ClientError::Invalid(format!("{name} takes {wanted}; not '{value}'"))
}

fn truth(name: &str, value: &str) -> Result<bool, ClientError> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid(name, value, "true or false")),
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, ClientError> {
    value.parse().map_err(|_| invalid(name, value, "a number"))
}

fn at_least<T: TryFrom<i64>>(name: &str, value: &str, least: i64) -> Result<T, ClientError> {
    let wanted = number::<i64>(name, value)?;
    let fits = if wanted < least { None } else { T::try_from(wanted).ok() };
    fits.ok_or_else(|| invalid(name, value, &format!("a number from {least} on")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(properties: &[(&str, &str)]) -> String {
        PipelineConfig::parse(properties.iter().copied()).unwrap_err().to_string()
    }

    fn parsed(properties: &[(&str, &str)]) -> PipelineConfig {
        PipelineConfig::parse(properties.iter().copied()).unwrap().config
    }

    #[test]
    fn kafkas_names_are_read_and_the_last_value_holds() {
        let config = parsed(&[
            ("linger.ms", "7"),
            ("linger.ms", " 0"),
            ("batch.size", "65536"),
            ("acks", "all"),
            ("compression.zstd.level", "9"),
            ("compression.type", "zstd"),
            ("key.serializer", "x"),
        ]);
        assert_eq!((config.linger, config.batch_bytes), (Duration::ZERO, 65_536));
        assert_eq!(config.compression, Compression { codec: Codec::Zstd, level: Some(9) });
        assert!(config.is_idempotent);
    }

    #[test]
    fn unknown_keys_are_reported_and_not_refused() {
        let told = PipelineConfig::parse([("queue.buffering.max.ms", "1"), ("lingerms", "2")]).unwrap();
        assert_eq!(told.unknown, ["queue.buffering.max.ms", "lingerms"]);
    }

    #[test]
    fn idempotence_gives_way_unless_it_was_asked_for() {
        for hindrance in [("acks", "1"), ("retries", "0"), ("max.in.flight.requests.per.connection", "6")] {
            assert!(!parsed(&[hindrance]).is_idempotent);
            assert!(refusal(&[hindrance, ("enable.idempotence", "true")]).contains("must be"));
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_name() {
        assert_eq!(refusal(&[("acks", "2")]), "acks takes 0, 1 or all; not '2'");
        assert_eq!(refusal(&[("linger.ms", "-1")]), "linger.ms takes a number from 0 on; not '-1'");
        assert!(refusal(&[("batch.size", "x")]).starts_with("batch.size takes a number"));
        assert!(refusal(&[("transactional.id", "t")]).contains("this producer has no transactions yet"));
        assert!(refusal(&[("security.protocol", "TLS")]).contains("SASL_SSL"));
        assert!(refusal(&[("delivery.timeout.ms", "1000")]).contains("request.timeout.ms"));
        // Not set, it follows.
        let follows = parsed(&[("request.timeout.ms", "200000")]);
        assert_eq!(follows.delivery_timeout, Duration::from_millis(200_005));
    }
}
