//! `jmx`, by the name of Kafka's `kafka-jmx`: a node has no JMX, so it says where the figures are.
//!
//! Kafka's tool polls a JVM. Its flags are taken, so that a script gets this answer and not a complaint of flags; the
//! exit code is 1, since nothing is read.

use crate::ToolError;
use crate::command_line::args::{switch, texts, value, values};
use clap::{Arg, ArgMatches};

pub fn flags() -> Vec<Arg> {
    vec![
        values("object-name", "name", "The JMX object that is asked for"),
        value("attributes", "names", "Its attributes"),
        value("reporting-interval", "ms", "How often"),
        value("one-time", "true|false", "Only once").num_args(0..=1).default_missing_value("true"),
        value("date-format", "pattern", "How times are written"),
        value("jmx-url", "url", "The JVM"),
        value("report-format", "format", "original, properties, csv or tsv"),
        value("jmx-auth-prop", "user=password", "How to log in to the JVM"),
        value("jmx-ssl-enable", "true|false", "With TLS"),
        switch("wait", "Wait for the object"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    Err(ToolError::Plain(answer(&texts(matches, "object-name").collect::<Vec<_>>())))
}

fn answer(objects: &[&str]) -> String {
    let mut lines = vec![
        "jmx: a Barnabas node has no JMX. Its figures are read with:".to_owned(),
        "  curl http://HOST:PORT/metrics                    the address that metrics.listener sets; docs/METRICS.md lists them".to_owned(),
        "  barnabas hotspots --bootstrap-server HOST:PORT   where the time goes".to_owned(),
        "  barnabas doctor --bootstrap-server HOST:PORT     what is wrong".to_owned(),
    ];
    let named: Vec<String> = objects.iter().filter_map(|object| metric(object)).collect();
    if !named.is_empty() {
        lines.push(format!("  On that page the objects' figures begin with: {}", named.join(", ")));
    }
    lines.join("\n")
}

/// What the names of the figures of `kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec` begin with: those that
/// the JMX exporter's sample configuration for Kafka gives them. `None`: it is none of Kafka's names.
fn metric(object: &str) -> Option<String> {
    let (domain, properties) = object.split_once(':')?;
    let property = |key: &str| {
        let mut pairs = properties.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|pair| pair.0 == key).map(|pair| pair.1.to_owned())
    };
    let kind = property("type")?;
    let name = property("name").map(|name| name.trim_end_matches("PerSec").to_owned());
    let parts = [Some(domain.replace('.', "_")), Some(kind), name];
    let name = parts.into_iter().flatten().collect::<Vec<_>>().join("_").to_lowercase();
    let is_name = name.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
    (domain.starts_with("kafka.") && is_name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_on_the_metrics_page() {
        for (object, named) in [
            (
                "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec",
                "kafka_server_brokertopicmetrics_messagesin",
            ),
            (
                "kafka.controller:type=KafkaController,name=ActiveControllerCount",
                "kafka_controller_kafkacontroller_activecontrollercount",
            ),
        ] {
            assert_eq!(metric(object).as_deref(), Some(named));
            assert!(answer(&[object]).ends_with(&format!("begin with: {named}")));
        }
        for object in ["java.lang:type=Memory", "kafka.server:type=*", "nothing"] {
            assert_eq!(metric(object), None, "{object}");
        }
    }

    #[test]
    fn kafkas_flags_are_taken() {
        let command = clap::Command::new("jmx").args(flags());
        let words = "jmx --object-name a:type=b --one-time true --jmx-url service:jmx:rmi:///jndi/rmi://:9999/jmxrmi --wait";
        let matches = command.try_get_matches_from(words.split(' ')).expect("flags");
        let told = run(&matches).expect_err("nothing is read").to_string();
        assert!(told.starts_with("jmx: a Barnabas node has no JMX."), "{told}");
    }
}
