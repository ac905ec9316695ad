//! One connector's settings, from a file of IBM's connectors or of our own keys.
//!
//! The keys are those of IBM's MQ connectors (`mq.*`), Connect's (`name`, `topic`, `topics`, `errors.*`, converters),
//! Kafka's client (`bootstrap.servers`, `security.protocol`, `sasl.*`, `ssl.*`) and AMQP's own (`amqp.*`). What means
//! nothing here is named with a reason (`config/keys.rs`); an unknown key is a warning.

pub mod keys;
mod mq;
mod properties;
#[cfg(test)]
mod tests;

use crate::error::BridgeError;
use barnabas_amqp::Login;
use barnabas_amqp_records::{Durability, KeyHeader, MessageRules, RecordRules};
use barnabas_client::{ClusterConfig, Security};
use barnabas_tls::{ClientTls, TlsSettings};
use keys::Fate;
pub use mq::MqConfig;
use properties::Properties;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How the other end is reached.
#[derive(Debug, Clone)]
pub struct PeerConfig {
    /// `host:port`, in the order in which they are tried.
    pub addresses: Vec<String>,
    pub hostname: Option<String>,
    pub login: Login,
    pub tls: Option<Arc<ClientTls>>,
    pub idle_timeout_ms: u32,
    pub message_bytes_max: usize,
    pub queue: String,
    /// Of source and target: `queue`, unless the file says otherwise.
    pub capabilities: Vec<String>,
    pub selector: Option<String>,
    pub reconnect_min: Duration,
    pub reconnect_max: Duration,
    /// Client channels of IBM MQ, and not AMQP: `login`, `hostname`, `capabilities` and `selector` mean nothing then.
    pub mq: Option<MqConfig>,
}

impl PeerConfig {
    pub fn protocol(&self) -> &'static str {
        if self.mq.is_some() { "IBM MQ's client channels" } else { "AMQP 1.0" }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// By what the peer says it is.
    Auto,
    Artemis,
    /// By message-id: Azure Service Bus, with duplicate detection on the queue.
    MessageId,
    None,
}

#[derive(Debug, Clone)]
pub struct SourceConfig {
    pub topic: String,
    pub rules: RecordRules,
    pub batch_max: usize,
    pub state_topic: String,
}

#[derive(Debug, Clone)]
pub struct SinkConfig {
    pub topics: Vec<String>,
    pub group: String,
    pub rules: MessageRules,
    pub duplicates: Duplicates,
    pub in_flight_max: usize,
    pub retry_backoff: Duration,
    /// What a batch of the topic may inflate to.
    pub inflated_bytes_max: usize,
}

#[derive(Debug, Clone)]
pub enum Direction {
    Source(SourceConfig),
    Sink(SinkConfig),
}

#[derive(Debug, Clone)]
pub struct Config {
    pub name: String,
    pub kafka: ClusterConfig,
    pub peer: PeerConfig,
    pub direction: Direction,
    pub commit_interval: Duration,
    /// Whether bodies are JMS messages: text stays text.
    pub is_jms: bool,
    pub dead_letters: Option<String>,
    pub dead_letter_reasons: bool,
    pub metrics_listener: Option<String>,
    /// Sentences about keys, for the log.
    pub remarks: Vec<String>,
}

/// The file, and which of its keys were read.
struct Given {
    properties: Properties,
    read: RefCell<BTreeSet<String>>,
}

impl Given {
    fn get(&self, key: &str) -> Option<&str> {
        self.read.borrow_mut().insert(key.to_owned());
        self.properties.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    fn must(&self, key: &str) -> Result<&str, BridgeError> {
        self.get(key).ok_or_else(|| BridgeError::Config(format!("{key} is missing")))
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, BridgeError> {
        match self.get(key) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(invalid(key, other, "true or false")),
        }
    }

    fn number(&self, key: &str, default: u64, least: u64, most: u64) -> Result<u64, BridgeError> {
        let Some(given) = self.get(key) else { return Ok(default) };
        let found = given.parse().ok().filter(|number| (least..=most).contains(number));
        found.ok_or_else(|| invalid(key, given, &format!("a number from {least} to {most}")))
    }

    fn millis(&self, key: &str, default: u64) -> Result<Duration, BridgeError> {
        self.number(key, default, 1, 3_600_000).map(Duration::from_millis)
    }

    /// The last word of a class name, or the whole where there are no dots.
    fn class(&self, key: &str) -> Option<&str> {
        self.get(key).map(|class| class.rsplit('.').next().unwrap_or(class))
    }
}

fn invalid(key: &str, value: &str, wanted: &str) -> BridgeError {
    BridgeError::Config(format!("{key} takes {wanted}; not '{value}'"))
}

impl Config {
    /// Reads a file's text.
    ///
    /// # Errors
    /// [`BridgeError::Config`]: the key, the value, and what is expected.
    pub fn parse(text: &str) -> Result<Self, BridgeError> {
        let given = Given { properties: properties::parse(text)?, read: RefCell::default() };
        let mut remarks = Vec::new();
        check_fates(&given, &mut remarks)?;
        let name = given.must("name")?.to_owned();
        let is_source = is_source(&given)?;
        let direction = if is_source {
            Direction::Source(source(&given, &name, &mut remarks)?)
        } else {
            Direction::Sink(sink(&given, &name, &mut remarks)?)
        };
        let kafka = kafka(&given, &name)?;
        let peer = peer(&given)?;
        let default_letters = (!is_source).then(|| format!("{name}-dead-letters"));
        let letters = given.get("errors.deadletterqueue.topic.name").map(str::to_owned);
        let config = Self {
            kafka,
            peer,
            direction,
            commit_interval: given.millis("mq.commit.interval.ms", 20)?,
            is_jms: given.flag("mq.message.body.jms")?.unwrap_or(false),
            dead_letters: letters.or(default_letters),
            dead_letter_reasons: given.flag("errors.deadletterqueue.context.headers.enable")?.unwrap_or(true),
            metrics_listener: given.get("metrics.listener").map(str::to_owned),
            name,
            remarks: Vec::new(),
        };
        for key in given.properties.keys() {
            if keys::fate(key, config.peer.mq.is_some()).is_none()
                && !given.read.borrow().contains(key)
                && !Security::has_key(key)
            {
                remarks.push(format!("{key}: this key is not known and has no effect"));
            }
        }
        Ok(Self { remarks, ..config })
    }
}

fn check_fates(given: &Given, remarks: &mut Vec<String>) -> Result<(), BridgeError> {
    let is_mq = mq::is_wanted(given)?;
    for (key, value) in &given.properties {
        match keys::fate(key, is_mq) {
            Some(Fate::Refused(only, why)) if only.is_none_or(|only| value.trim() == only) => {
                return Err(BridgeError::Config(format!("{key}={value}: {why}")));
            }
            Some(Fate::Ignored(why)) => remarks.push(format!("{key}: {why}")),
            _ => {}
        }
    }
    Ok(())
}

fn is_source(given: &Given) -> Result<bool, BridgeError> {
    let class = given.class("connector.class").ok_or_else(|| {
        BridgeError::Config(
            "connector.class is missing: source, sink, or the class of IBM's connector".to_owned(),
        )
    })?;
    match class {
        "source" | "MQSourceConnector" => Ok(true),
        "sink" | "MQSinkConnector" => Ok(false),
        other => Err(invalid("connector.class", other, "source, sink, MQSourceConnector or MQSinkConnector")),
    }
}

fn source(given: &Given, name: &str, remarks: &mut Vec<String>) -> Result<SourceConfig, BridgeError> {
    if given.get("topics").is_some() {
        return Err(BridgeError::Config("topics: the key of a source is topic".to_owned()));
    }
    let key = match given.get("mq.record.builder.key.header") {
        None => None,
        Some("JMSMessageID") => Some(KeyHeader::MessageId),
        Some("JMSCorrelationID" | "JMSCorrelationIDAsBytes") => Some(KeyHeader::CorrelationId),
        Some("JMSDestination") => Some(KeyHeader::Destination),
        Some("JMSXGroupID") => Some(KeyHeader::GroupId),
        Some(other) => {
            let wanted =
                "JMSMessageID, JMSCorrelationID, JMSCorrelationIDAsBytes, JMSDestination or JMSXGroupID";
            return Err(invalid("mq.record.builder.key.header", other, wanted));
        }
    };
    let is_json = match given.class("mq.record.builder") {
        None | Some("DefaultRecordBuilder") => false,
        Some("JsonRecordBuilder") => true,
        Some(other) => {
            return Err(invalid("mq.record.builder", other, "DefaultRecordBuilder or JsonRecordBuilder"));
        }
    };
    match given.class("value.converter") {
        None | Some("ByteArrayConverter" | "StringConverter") => {}
        Some("JsonConverter") if given.get("value.converter.schemas.enable") == Some("false") => {
            remarks.push("value.converter: JSON is written as it came, without schemas".to_owned());
        }
        Some(other) => {
            let wanted = "ByteArrayConverter, StringConverter, or JsonConverter without schemas";
            return Err(invalid("value.converter", other, wanted));
        }
    }
    Ok(SourceConfig {
        topic: given.must("topic")?.to_owned(),
        rules: RecordRules {
            key,
            copies_headers: given.flag("mq.jms.properties.copy.to.kafka.headers")?.unwrap_or(false),
            is_json,
        },
        batch_max: given.number("mq.batch.size", 250, 1, 5000)? as usize,
        state_topic: given
            .get("bridge.state.topic")
            .map_or_else(|| format!("__barnabas_bridge_{name}"), str::to_owned),
    })
}

fn sink(given: &Given, name: &str, remarks: &mut Vec<String>) -> Result<SinkConfig, BridgeError> {
    let is_json = match given.class("mq.message.builder") {
        None | Some("DefaultMessageBuilder") => false,
        Some("JsonMessageBuilder") => true,
        Some(other) => {
            return Err(invalid("mq.message.builder", other, "DefaultMessageBuilder or JsonMessageBuilder"));
        }
    };
    let is_text = match given.class("value.converter") {
        None | Some("ByteArrayConverter") => false,
        Some("StringConverter") => true,
        Some(other) => {
            return Err(invalid("value.converter", other, "ByteArrayConverter or StringConverter"));
        }
    };
    let key_is_correlation = match given.get("mq.message.builder.key.header") {
        None => false,
        Some("JMSCorrelationID") => true,
        Some(other) => return Err(invalid("mq.message.builder.key.header", other, "JMSCorrelationID")),
    };
    let durability = match given.get("mq.persistent") {
        None | Some("true") => Durability::Durable,
        Some("false") => Durability::Volatile,
        Some("as_q_def") => Durability::AsQueue,
        Some("as_source") => Durability::AsSource,
        Some(other) => return Err(invalid("mq.persistent", other, "true, false, as_q_def or as_source")),
    };
    let duplicates = match given.get("amqp.duplicate.detection") {
        None | Some("auto") => Duplicates::Auto,
        Some("artemis") => Duplicates::Artemis,
        Some("message-id") => Duplicates::MessageId,
        Some("none") => Duplicates::None,
        Some(other) => {
            return Err(invalid("amqp.duplicate.detection", other, "auto, artemis, message-id or none"));
        }
    };
    let text = |key: &str| given.get(key).map(str::to_owned);
    let topics = given.must("topics")?;
    let names: BTreeSet<String> = topics.split(',').map(|topic| topic.trim().to_owned()).collect();
    let names: Vec<String> = names.into_iter().filter(|topic| !topic.is_empty()).collect();
    if names.is_empty() {
        return Err(invalid("topics", topics, "names with commas between them"));
    }
    if given.get("consumer.override.isolation.level").is_some() {
        remarks.push("consumer.override.isolation.level: a sink reads committed records only".to_owned());
    }
    Ok(SinkConfig {
        topics: names,
        group: text("group.id").unwrap_or_else(|| format!("connect-{name}")),
        rules: MessageRules {
            key_is_correlation,
            reads_headers: given.flag("mq.kafka.headers.copy.to.jms.properties")?.unwrap_or(false),
            is_json,
            is_text,
            topic_property: text("mq.message.builder.topic.property"),
            partition_property: text("mq.message.builder.partition.property"),
            offset_property: text("mq.message.builder.offset.property"),
            reply_to: text("mq.reply.queue"),
            ttl_ms: given.number("mq.time.to.live", 0, 0, u64::from(u32::MAX))? as u32,
            durability,
        },
        duplicates,
        in_flight_max: given.number("bridge.in.flight.max", 500, 1, 5000)? as usize,
        inflated_bytes_max: given.number("max.decompressed.batch.bytes", 1 << 30, 1, i32::MAX as u64)?
            as usize,
        retry_backoff: given.millis("mq.retry.backoff.ms", 1000)?,
    })
}

fn kafka(given: &Given, name: &str) -> Result<ClusterConfig, BridgeError> {
    let servers = given.must("bootstrap.servers")?;
    let pairs = given.properties.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let security = Security::parse(pairs)?;
    Ok(ClusterConfig { security, ..ClusterConfig::new(servers, &format!("barnabas-bridge-{name}")) })
}

fn peer(given: &Given) -> Result<PeerConfig, BridgeError> {
    if mq::is_wanted(given)? {
        return mq::peer(given);
    }
    let (mut addresses, mut has_tls) = (Vec::new(), given.get("mq.ssl.cipher.suite").is_some());
    match (given.get("amqp.url"), given.get("mq.connection.name.list")) {
        (Some(urls), _) => {
            for url in urls.split(',') {
                let (address, is_safe) = address_of(url.trim())?;
                has_tls |= is_safe;
                addresses.push(address);
            }
        }
        (None, Some(list)) => {
            for entry in list.split(',') {
                addresses.push(mq::address_of(entry.trim(), "an AMQP listener")?);
            }
        }
        (None, None) => {
            return Err(BridgeError::Config(
                "amqp.url is missing: amqp://host:5672 or amqps://host:5671".to_owned(),
            ));
        }
    }
    let capabilities = given.get("amqp.capabilities").unwrap_or("queue").split(',');
    let capabilities = capabilities.map(|name| name.trim().to_owned()).filter(|name| name != "none");
    Ok(PeerConfig {
        addresses,
        hostname: given.get("amqp.hostname").map(str::to_owned),
        login: login(given)?,
        tls: if has_tls { Some(tls(given)?) } else { None },
        idle_timeout_ms: given.number("amqp.idle.timeout.ms", 30_000, 100, 3_600_000)? as u32,
        message_bytes_max: given.number("amqp.message.bytes.max", 900_000, 1, 100 << 20)? as usize,
        queue: given.must("mq.queue")?.to_owned(),
        capabilities: capabilities.collect(),
        selector: given.get("amqp.selector").map(str::to_owned),
        reconnect_min: given.millis("mq.reconnect.delay.min.ms", 64)?,
        reconnect_max: given.millis("mq.reconnect.delay.max.ms", 8192)?,
        mq: None,
    })
}

/// `amqp://host:port`, `amqps://host`: the address, and whether it has TLS.
fn address_of(url: &str) -> Result<(String, bool), BridgeError> {
    let wanted = "amqp://host:port or amqps://host:port";
    let (is_safe, rest) = match (url.strip_prefix("amqp://"), url.strip_prefix("amqps://")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return Err(invalid("amqp.url", url, wanted)),
    };
    let rest = rest.trim_end_matches('/');
    if rest.contains(['@', '/']) || rest.is_empty() {
        return Err(invalid("amqp.url", url, &format!("{wanted}; user and queue have keys of their own")));
    }
    let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if is_safe { 5671 } else { 5672 };
    Ok((if has_port { rest.to_owned() } else { format!("{rest}:{port}") }, is_safe))
}

fn login(given: &Given) -> Result<Login, BridgeError> {
    let (user, password) = (given.get("mq.user.name"), given.get("mq.password"));
    let plain = || Login::Plain {
        user: user.unwrap_or_default().to_owned(),
        password: password.unwrap_or_default().to_owned(),
    };
    match given.get("amqp.sasl.mechanism") {
        None if user.is_some() => Ok(plain()),
        None | Some("ANONYMOUS") => Ok(Login::Anonymous),
        Some("PLAIN") if user.is_some() => Ok(plain()),
        Some("PLAIN") => Err(BridgeError::Config("mq.user.name is missing for PLAIN".to_owned())),
        Some("EXTERNAL") => Ok(Login::External),
        Some("none") => Ok(Login::None),
        Some(other) => Err(invalid("amqp.sasl.mechanism", other, "PLAIN, ANONYMOUS, EXTERNAL or none")),
    }
}

/// The peer's stores are `mq.ssl.*`, or `amqp.ssl.*` with any of Kafka's keys after `amqp.`.
fn tls(given: &Given) -> Result<Arc<ClientTls>, BridgeError> {
    let settings = TlsSettings::read(|key| {
        let of_mq = key.strip_prefix("ssl.").and_then(|key| given.get(&format!("mq.ssl.{key}")));
        given.get(&format!("amqp.{key}")).or(of_mq).map(str::to_owned)
    });
    let tls = settings.and_then(ClientTls::load);
    tls.map(Arc::new).map_err(|error| BridgeError::Config(format!("TLS of the AMQP peer: {error}")))
}
