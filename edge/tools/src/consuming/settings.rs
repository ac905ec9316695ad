//! A consumer's settings, by Kafka's names.
//!
//! A name that no consumer knows changes nothing and is warned of, as in Kafka. What cannot be done here is refused.
//! One name is ours: `max.decompressed.batch.bytes` (default: 1073741824), what a batch may inflate to. A tool that
//! meets a larger one ends with an error.
//!
//! Source: Kafka 4.3 `ConsumerConfig`.

use crate::ToolError;
use crate::command_line::properties::Properties;
use crate::tell;
use barnabas_client::{ClusterConfig, ConsumerConfig, GroupConfig, Security, ShareConfig, StartAt};
use std::time::Duration;

const WITH_EFFECT: &[&str] = &[
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "client.id",
    "default.api.timeout.ms",
    "enable.auto.commit",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "heartbeat.interval.ms",
    "isolation.level",
    "max.decompressed.batch.bytes",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "receive.buffer.bytes",
    "request.timeout.ms",
    "retry.backoff.ms",
    "session.timeout.ms",
];
/// Names of Kafka's that mean nothing here, or nothing but their default.
const WITHOUT_EFFECT: &[&str] = &[
    "auto.include.jmx.reporter",
    "bootstrap.servers",
    "check.crcs",
    "client.dns.lookup",
    "client.rack",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "exclude.internal.topics",
    "group.remote.assignor",
    "interceptor.classes",
    "key.deserializer",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partition.assignment.strategy",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retry.backoff.max.ms",
    "security.providers",
    "send.buffer.bytes",
    "share.acknowledgement.mode",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "value.deserializer",
];

/// Where a partition without a committed offset, or with one outside the log, is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    Earliest,
    Latest,
    /// That is an error.
    None,
}

impl Reset {
    pub fn start(self) -> Option<StartAt> {
        match self {
            Self::Earliest => Some(StartAt::Earliest),
            Self::Latest => Some(StartAt::Latest),
            Self::None => None,
        }
    }
}

/// What was set. `None`: nothing was.
#[derive(Debug)]
pub struct Settings {
    pub client_id: Option<String>,
    pub group: Option<String>,
    instance: Option<String>,
    pub reset: Option<Reset>,
    pub auto_create: bool,
    pub auto_commit: bool,
    pub commit_interval: Duration,
    pub consumer: ConsumerConfig,
    security: Security,
    poll_records_max: Option<i32>,
    request_timeout: Option<Duration>,
    deadline: Option<Duration>,
    retry_backoff: Option<Duration>,
    session_timeout: Option<Duration>,
    heartbeat_interval: Option<Duration>,
    rebalance_timeout: Option<Duration>,
}

impl Settings {
    /// # Errors
    /// A value that is no value of its name, and what is not served.
    pub fn read(properties: &Properties) -> Result<Self, ToolError> {
        let security = Security::parse(properties.iter())?;
        properties.warn_of_unknown("consumer", |key| {
            WITH_EFFECT.contains(&key) || WITHOUT_EFFECT.contains(&key) || Security::has_key(key)
        });
        if properties.get("group.protocol").is_some_and(|word| !word.eq_ignore_ascii_case("classic")) {
            tell("WARN group.protocol: this tool joins groups as a classic member");
        }
        let time = |key| Ok::<_, ToolError>(properties.number(key)?.map(Duration::from_millis));
        let text = |key| properties.get(key).filter(|word| !word.is_empty()).map(str::to_owned);
        Ok(Self {
            client_id: text("client.id"),
            group: text("group.id"),
            instance: text("group.instance.id"),
            reset: reset(properties)?,
            auto_create: properties.is_true("allow.auto.create.topics", true),
            auto_commit: properties.is_true("enable.auto.commit", true),
            commit_interval: time("auto.commit.interval.ms")?.unwrap_or(Duration::from_secs(5)),
            consumer: consumer(properties)?,
            security,
            poll_records_max: properties.number("max.poll.records")?,
            request_timeout: time("request.timeout.ms")?,
            deadline: time("default.api.timeout.ms")?,
            retry_backoff: time("retry.backoff.ms")?,
            session_timeout: time("session.timeout.ms")?,
            heartbeat_interval: time("heartbeat.interval.ms")?,
            rebalance_timeout: time("max.poll.interval.ms")?,
        })
    }

    /// `client_id`: where none is set.
    pub fn cluster(&self, bootstrap: &str, client_id: &str) -> ClusterConfig {
        let mut config = ClusterConfig::new(bootstrap, self.client_id.as_deref().unwrap_or(client_id));
        config.security = self.security.clone();
        config.request_timeout = self.request_timeout.unwrap_or(config.request_timeout);
        config.deadline = self.deadline.unwrap_or(config.deadline);
        config.retry_backoff = self.retry_backoff.unwrap_or(config.retry_backoff);
        config
    }

    pub fn group(&self, id: &str) -> GroupConfig {
        let mut config = GroupConfig::new(id);
        config.instance.clone_from(&self.instance);
        config.session_timeout = self.session_timeout.unwrap_or(config.session_timeout);
        config.heartbeat_interval = self.heartbeat_interval.unwrap_or(config.heartbeat_interval);
        config.rebalance_timeout = self.rebalance_timeout.unwrap_or(config.rebalance_timeout);
        config
    }
}

impl Settings {
    /// For a member of a share group.
    pub fn share(&self, group: &str) -> ShareConfig {
        let mut config = ShareConfig::new(group);
        config.bytes_max = self.consumer.bytes_max;
        config.bytes_min = self.consumer.bytes_min;
        config.wait_max = self.consumer.wait_max;
        config.inflated_bytes_max = self.consumer.inflated_bytes_max;
        config.records_max = self.poll_records_max.unwrap_or(config.records_max);
        config
    }
}

fn reset(properties: &Properties) -> Result<Option<Reset>, ToolError> {
    let Some(word) = properties.get("auto.offset.reset").map(str::trim) else { return Ok(None) };
    match word.to_ascii_lowercase().as_str() {
        "earliest" => Ok(Some(Reset::Earliest)),
        "latest" => Ok(Some(Reset::Latest)),
        "none" => Ok(Some(Reset::None)),
        _ => Err(ToolError::Usage(format!("auto.offset.reset takes earliest, latest or none, not '{word}'"))),
    }
}

fn consumer(properties: &Properties) -> Result<ConsumerConfig, ToolError> {
    let mut config = ConsumerConfig::default();
    for (key, field) in [
        ("fetch.min.bytes", &mut config.bytes_min),
        ("fetch.max.bytes", &mut config.bytes_max),
        ("max.partition.fetch.bytes", &mut config.partition_bytes_max),
        ("receive.buffer.bytes", &mut config.receive_buffer_bytes),
    ] {
        *field = properties.number(key)?.unwrap_or(*field);
    }
    if let Some(bytes) = properties.number("max.decompressed.batch.bytes")? {
        config.inflated_bytes_max = bytes;
    }
    if let Some(ms) = properties.number::<u32>("fetch.max.wait.ms")? {
        config.wait_max = Duration::from_millis(ms.into());
    }
    if let Some(level) = properties.get("isolation.level") {
        config.read_committed = is_read_committed(level)?;
    }
    Ok(config)
}

/// # Errors
/// No level is called so.
pub fn is_read_committed(level: &str) -> Result<bool, ToolError> {
    match level.trim() {
        "read_committed" => Ok(true),
        "read_uncommitted" => Ok(false),
        other => Err(ToolError::Usage(format!(
            "the isolation level is read_committed or read_uncommitted, not '{other}'"
        ))),
    }
}
