//! Which brokers or controllers are meant, and how they are reached.

use super::args::{excludes, text, value};
use super::properties::Properties;
use crate::ToolError;
use barnabas_client::{ClusterConfig, Security};
use clap::{Arg, ArgMatches};
use std::net::Ipv6Addr;
use std::time::Duration;

const BROKERS: &str = "bootstrap-server";
const CONTROLLERS: &str = "bootstrap-controller";
const FILE: &str = "command-config";

/// Names that Kafka's admin client knows, and that mean nothing here or nothing but their default.
const WITHOUT_EFFECT: &[&str] = &[
    "auto.include.jmx.reporter",
    "bootstrap.controllers",
    "bootstrap.servers",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retries",
    "retry.backoff.max.ms",
    "security.providers",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
];

pub fn bootstrap_server() -> Arg {
    value(BROKERS, "host:port", "A broker to begin with; several with commas")
}

pub fn bootstrap_controller() -> Arg {
    value(CONTROLLERS, "host:port", "Instead of a broker: a controller to begin with; several with commas")
}

pub fn command_config() -> Arg {
    value(
        FILE,
        "path",
        "A file with configs of the client: client.id, request.timeout.ms, default.api.timeout.ms …",
    )
}

/// How to reach what `--bootstrap-server` or, where the tool has it, `--bootstrap-controller` names.
///
/// # Errors
/// Neither flag, or both; an address that is none; a file that cannot be read, or a value that no client takes.
pub fn cluster_config(matches: &ArgMatches, client_id: &str) -> Result<ClusterConfig, ToolError> {
    cluster_config_of(matches, client_id, FILE)
}

/// [`cluster_config`] with the file that flag `file` names.
///
/// # Errors
/// As [`cluster_config`].
pub fn cluster_config_of(
    matches: &ArgMatches,
    client_id: &str,
    file: &str,
) -> Result<ClusterConfig, ToolError> {
    let mut config = cluster_config_without_file(matches, client_id)?;
    if let Some(path) = text(matches, file) {
        apply(&Properties::load(path)?, &mut config)?;
    }
    Ok(config)
}

/// [`cluster_config`] without what `--command-config` says.
///
/// # Errors
/// As [`cluster_config`].
pub fn cluster_config_without_file(
    matches: &ArgMatches,
    client_id: &str,
) -> Result<ClusterConfig, ToolError> {
    let has_controllers = matches.try_contains_id(CONTROLLERS).is_ok();
    let mut config = ClusterConfig::new("", client_id);
    let controllers = if has_controllers {
        excludes(matches, BROKERS, &[CONTROLLERS])?;
        text(matches, CONTROLLERS)
    } else {
        None
    };
    config.bootstrap = match (text(matches, BROKERS), controllers) {
        (Some(brokers), _) => addresses(BROKERS, brokers)?,
        (None, Some(controllers)) => addresses(CONTROLLERS, controllers)?,
        (None, None) => return Err(ToolError::Usage(missing(has_controllers))),
    };
    config.is_of_controllers = controllers.is_some();
    Ok(config)
}

fn missing(has_controllers: bool) -> String {
    let flags = if has_controllers {
        format!("--{BROKERS} or --{CONTROLLERS} is missing")
    } else {
        format!("--{BROKERS} is missing")
    };
    format!("{flags}. Example: --{BROKERS} 127.0.0.1:9092")
}

fn apply(properties: &Properties, config: &mut ClusterConfig) -> Result<(), ToolError> {
    if let Some(id) = properties.get("client.id").filter(|id| !id.is_empty()) {
        id.clone_into(&mut config.client_id);
    }
    for (key, time) in [
        ("request.timeout.ms", &mut config.request_timeout),
        ("default.api.timeout.ms", &mut config.deadline),
        ("retry.backoff.ms", &mut config.retry_backoff),
    ] {
        if let Some(ms) = properties.number(key)? {
            *time = Duration::from_millis(ms);
        }
    }
    config.security = Security::parse(properties.iter())?;
    properties.warn_of_unknown("admin client", |key| {
        let with_effect = ["client.id", "request.timeout.ms", "default.api.timeout.ms", "retry.backoff.ms"];
        with_effect.contains(&key) || WITHOUT_EFFECT.contains(&key) || Security::has_key(key)
    });
    Ok(())
}

/// `host:port` each, with commas between. As in Kafka, a protocol in front is dropped.
///
/// # Errors
/// Something else.
///
/// # Source
/// Kafka `Utils.getHost`, `Utils.getPort`, `ClientUtils.parseAndValidateAddresses`.
pub fn addresses(flag: &str, list: &str) -> Result<String, ToolError> {
    let words: Vec<&str> = list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let wanted = "host:port. Example: 127.0.0.1:9092, or host1:9092,host2:9092";
    if words.is_empty() {
        return Err(ToolError::Usage(format!("--{flag} names no {wanted}")));
    }
    for word in &words {
        if address(word).is_none() {
            let port = word.rsplit_once(':').map_or("", |(_, port)| port);
            if port.len() > 4 && port.bytes().all(|digit| digit.is_ascii_digit()) {
                return Err(ToolError::Usage(format!(
                    "--{flag}: '{word}' has the port {port}. Ports end at 65535"
                )));
            }
            return Err(ToolError::Usage(format!("--{flag}: '{word}' is not {wanted}")));
        }
    }
    Ok(words.into_iter().filter_map(address).collect::<Vec<_>>().join(","))
}

fn address(word: &str) -> Option<String> {
    let word = word.split_once("://").map_or(word, |(_, address)| address);
    let (host, port) = word.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if bare.parse::<Ipv6Addr>().is_ok() {
        return Some(format!("[{bare}]:{port}"));
    }
    let is_host = |letter: char| letter.is_alphanumeric() || "-._".contains(letter);
    (!host.is_empty() && host.chars().all(is_host)).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_that_is_too_large_is_named() {
        let refused = addresses("bootstrap-server", "h:1,127.0.0.1:99999").expect_err("no port").to_string();
        assert_eq!(refused, "--bootstrap-server: '127.0.0.1:99999' has the port 99999. Ports end at 65535");
    }

    #[test]
    fn addresses_are_taken_as_kafka_takes_them() {
        let taken = |list| addresses("bootstrap-server", list).expect("addresses");
        assert_eq!(taken("localhost:9092"), "localhost:9092");
        assert_eq!(taken(" a.b-c_d:1 ,, [::1]:65535,::1:1"), "a.b-c_d:1,[::1]:65535,[::1]:1");
        assert_eq!(taken("PLAINTEXT://host:9092"), "host:9092");
    }

    #[test]
    fn addresses_without_host_and_port_are_refused() {
        for (list, given) in [
            ("nonsense", "'nonsense'"),
            ("localhost:x", "'localhost:x'"),
            ("localhost:9092,other", "'other'"),
            (":9092", "':9092'"),
            ("[host]:9092", "'[host]:9092'"),
            ("host:-1", "'host:-1'"),
            ("two words:9092", "'two words:9092'"),
        ] {
            let refused = addresses("bootstrap-server", list).expect_err(list).to_string();
            let expected = format!(
                "--bootstrap-server: {given} is not host:port. Example: 127.0.0.1:9092, or host1:9092,host2:9092"
            );
            assert_eq!(refused, expected);
        }
        let refused = addresses("bootstrap-server", " , ").expect_err("nothing").to_string();
        assert!(refused.starts_with("--bootstrap-server names no host:port."), "{refused}");
    }
}
