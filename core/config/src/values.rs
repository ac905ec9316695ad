//! Every value that is set, against its key and against the others: at a start, and before a directory is formatted.

use crate::otlp::OtlpSettings;
use crate::settings::{ConfigError, Settings};

use barnabas_base::Text;
use barnabas_metadata::config::{BrokerConfig, Contradiction, Properties, StaticConfig, contradictions};

/// With the values, a warning for each key that is unknown or has no effect, and for values that fit together badly.
///
/// # Errors
/// All values that cannot be, one a line.
pub fn check(settings: &Settings) -> Result<(BrokerConfig, Vec<String>), String> {
    let given: Properties =
        settings.iter().map(|(key, value)| (Text::from(key), Text::from(value))).collect();
    if let Some(refusal) = unresolved(settings) {
        return Err(refusal.to_string());
    }
    let (given, warnings) = StaticConfig::check(given).map_err(|refusals| {
        let lines: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        lines.join("\nbarnabas: ")
    })?;
    let config = BrokerConfig::new(given);
    OtlpSettings::read(&|key| config.value(key).map(str::to_owned)).map_err(|refusal| refusal.to_string())?;
    let (bearable, refused): (Vec<_>, Vec<_>) =
        contradictions(&config).into_iter().partition(|contradiction| contradiction.is_bearable);
    let line = |one: Contradiction| ConfigError::value(one.key, one.problem, one.example).to_string();
    if !refused.is_empty() {
        return Err(refused.into_iter().map(line).collect::<Vec<_>>().join("\nbarnabas: "));
    }
    let warnings = warnings.iter().map(ToString::to_string);
    Ok((
        config,
        warnings
            .chain(bearable.into_iter().map(line))
            .chain(repeated(settings))
            .chain(settings.repeated().map(|(key, lines)| stands_again(key, lines)))
            .chain(unprefixed(settings))
            .collect(),
    ))
}

/// A value that a config provider is to resolve. None runs here, and a secret would be the placeholder's text.
///
/// # Source
/// KIP-297, KIP-421; Kafka `ConfigTransformer`.
fn unresolved(settings: &Settings) -> Option<ConfigError> {
    const KEY: &str = "config.providers";
    let providers: Vec<&str> = settings.get(KEY)?.split(',').map(str::trim).collect();
    settings.iter().find_map(|(key, value)| {
        let mut placeholders = value.split("${").skip(1).filter_map(|rest| rest.split_once(':'));
        let is_one = |(name, rest): &(&str, &str)| providers.contains(name) && rest.contains('}');
        let (provider, _) = placeholders.find(is_one)?;
        let problem = format!(
            "has a placeholder for the config provider {provider}, and no provider runs here: it would be taken as it \
             stands. Put the value there; a file that has secrets is best readable for the node's user alone"
        );
        Some(ConfigError::value(key, problem, format!("{key}=VALUE")))
    })
}

/// A login module counts for one mechanism of one listener.
///
/// # Source
/// Kafka `JaasContext.loadServerContext`.
fn unprefixed(settings: &Settings) -> impl Iterator<Item = String> {
    const KEY: &str = "sasl.jaas.config";
    let is_unprefixed = |key: &&str| {
        let of_a_listener = |rest: &str| rest.split_once('.').is_some_and(|(_, key)| key == KEY);
        *key == KEY || key.strip_prefix("listener.name.").is_some_and(of_a_listener)
    };
    settings.iter().map(|(key, _)| key).filter(is_unprefixed).map(|key| {
        format!(
            "{key} is ignored: a login module needs the prefix of its listener and mechanism, such as \
             listener.name.sasl_plaintext.scram-sha-512.{KEY}"
        )
    })
}

/// Of a key that stands more than once in the file. Its values are not named: one may be a password.
fn stands_again(key: &str, lines: &[usize]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    format!("{key} stands more than once in the file, in lines {}: the last one holds", lines.join(", "))
}

/// Of directories that stand twice in their key.
fn repeated(settings: &Settings) -> Option<String> {
    let key = if settings.get("log.dirs").is_some() { "log.dirs" } else { "log.dir" };
    let entries: Vec<&str> = settings.get(key)?.split(',').map(str::trim).collect();
    let is_repeated = |(at, entry): &(usize, &&str)| entries[..*at].contains(*entry);
    let (_, first) = entries.iter().enumerate().find(is_repeated)?;
    Some(format!("{key}: {first} stands there twice and counts once"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeConfig;

    /// Where the verdict is another one on purpose: key, value, whether it is taken here.
    const OURS: [(&str, &str, bool); 9] = [
        // No class can run here, so only Kafka's own authorizer is taken.
        ("authorizer.class.name", "nonsense", false),
        ("authorizer.class.name", "a,,b", false),
        ("authorizer.class.name", ",", false),
        // A directory that was formatted knows its voters.
        ("controller.quorum.voters", "", true),
        // The limit of all requests may be below that of one: the node counts a request's bytes as they arrive.
        ("queued.max.request.bytes", "1", true),
        ("queued.max.request.bytes", "2", true),
        ("queued.max.request.bytes", "10", true),
        ("queued.max.request.bytes", "1000", true),
        ("queued.max.request.bytes", "30000", true),
    ];

    #[test]
    fn placeholder_that_nothing_resolves_is_refused_without_its_value() {
        let jaas = "listener.name.x.plain.sasl.jaas.config";
        let said = |providers: &str, value: &str| {
            let mut settings = Settings::default();
            settings.replace("config.providers", providers.to_owned());
            settings.replace(jaas, value.to_owned());
            unresolved(&settings).map(|refusal| refusal.to_string())
        };
        let module = "org.apache.kafka.common.security.plain.PlainLoginModule required user_a=";
        let refused = said("env, file", &format!("{module}\"${{file:/s.props:secret}}\";")).expect("refused");
        assert!(refused.starts_with(jaas) && refused.contains("the config provider file"), "{refused}");
        assert!(!refused.contains("s.props"), "{refused}");
        assert_eq!(said("env", &format!("{module}\"${{file:/s.props:secret}}\";")), None, "no such provider");
        assert_eq!(said("file", &format!("{module}\"$file:x\";")), None);
        assert_eq!(said("file", &format!("{module}\"${{file:open\";")), None);
    }

    fn is_taken(key: &str, value: &str) -> Result<(), String> {
        let mut settings = Settings::of(
            &[
                ("node.id", "1"),
                ("process.roles", "broker,controller"),
                ("controller.quorum.voters", "1@localhost:9093"),
                ("listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"),
                ("controller.listener.names", "CONTROLLER"),
                ("log.dirs", "/nowhere"),
            ],
            &[],
        );
        settings.set(key, value);
        let node = NodeConfig::read(settings).map_err(|error| error.to_string())?;
        check(&node.settings).map(drop)
    }

    fn recorded() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        let lines = include_str!("verdicts.tsv").lines();
        lines.flat_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [key, taken, refused] = fields[..] else { panic!("{line}") };
            let values = |list: &'static str| list.split(' ').filter(|value| !value.is_empty());
            let taken = values(taken).map(|value| (value, true));
            let all: Vec<_> = taken.chain(values(refused).map(|value| (value, false))).collect();
            all.into_iter().map(move |(value, is_taken)| (key, value.trim_matches('\''), is_taken))
        })
    }

    #[test]
    fn each_value_has_apaches_verdict() {
        let mut others = Vec::new();
        for (key, value, is_apaches) in recorded() {
            let ours = is_taken(key, value);
            let own = OURS.iter().find(|own| (own.0, own.1) == (key, value));
            assert_ne!(own.map(|own| own.2), Some(is_apaches), "{key}={value} is no difference");
            if ours.is_ok() != own.map_or(is_apaches, |own| own.2) {
                others.push(format!("{key}={value}: {ours:?}"));
            }
        }
        assert!(others.is_empty(), "{others:#?}");
        assert!(recorded().count() > 2_000);
    }

    #[test]
    fn key_that_stands_twice_is_warned_of_and_the_last_one_holds() {
        let read = |_: &std::path::Path| Ok(b"num.io.threads=4\nlog.dirs=/d\nnum.io.threads=8\n".to_vec());
        let settings = Settings::load(Some(std::path::Path::new("f")), [], read).expect("settings");
        assert_eq!(settings.get("num.io.threads"), Some("8"));
        let (_, warnings) = check(&settings).expect("taken");
        assert_eq!(
            warnings,
            ["num.io.threads stands more than once in the file, in lines 1, 3: the last one holds"]
        );
    }

    #[test]
    fn login_module_without_a_mechanism_is_warned_of() {
        let warnings = |key: &str| check(&Settings::of(&[(key, "secret")], &[])).expect("taken").1;
        for key in ["sasl.jaas.config", "listener.name.internal.sasl.jaas.config"] {
            let said = warnings(key);
            assert!(said.len() == 1 && said[0].starts_with(&format!("{key} is ignored: ")), "{said:?}");
            assert!(!said[0].contains("secret"));
        }
        assert_eq!(warnings("listener.name.internal.plain.sasl.jaas.config"), [""; 0]);
    }

    #[test]
    fn a_refused_value_is_named_as_kafka_names_it() {
        for (key, value) in
            [("log.roll.ms", "0"), ("offsets.topic.compression.codec", "9"), ("log.dir", "a,,b")]
        {
            let said = is_taken(key, value).expect_err("refused");
            assert!(
                said.starts_with(&format!("Invalid value {value} for configuration {key}: expected ")),
                "{said}"
            );
        }
    }
}
