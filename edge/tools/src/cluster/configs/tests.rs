//! What is asked, and what is printed.

use super::*;
use crate::fake_broker::{fake_broker, nodes};
use barnabas_client::ClusterConfig;
use barnabas_wire::RequestBody;
use barnabas_wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsSynonym,
};
use barnabas_wire::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use barnabas_wire::messages::{DescribeConfigsResponse, IncrementalAlterConfigsResponse};
use std::sync::{Arc, OnceLock};

fn kind(words: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.words == words).expect("a kind")
}

fn parsed(words: &str) -> Result<Change, String> {
    let command = clap::Command::new("configs").args(flags());
    let always = ["configs", "--bootstrap-server", "h:1", "--entity-type", "topics", "--alter"];
    let words = always.into_iter().chain(words.split_whitespace());
    let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
    change(&matches).map_err(|error| error.to_string())
}

#[test]
fn add_config_is_split_at_commas_outside_brackets() {
    let set = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
    };
    let both =
        parsed("--add-config retention.ms=1,cleanup.policy=[compact,delete],a=b=c --delete-config x,y");
    let expected = Change {
        set: set(&[("retention.ms", "1"), ("cleanup.policy", "compact,delete"), ("a", "b=c")]),
        delete: vec!["x".to_owned(), "y".to_owned()],
    };
    assert_eq!(both, Ok(expected));
    assert_eq!(parsed("--add-config a= ").map(|change| change.set), Ok(set(&[("a", "")])));
    assert!(parsed("--add-config a").unwrap_err().contains("key=val"));
    assert!(parsed("").unwrap_err().contains("--add-config or --delete-config"));
}

fn config(name: &str, value: Option<&str>, source: i8) -> DescribeConfigsResourceResult {
    let value = value.map(barnabas_wire::Str::from);
    let synonym = DescribeConfigsSynonym {
        name: format!("log.{name}").as_str().into(),
        value: value.clone(),
        source: 5,
        ..Default::default()
    };
    DescribeConfigsResourceResult {
        name: name.into(),
        is_sensitive: value.is_none(),
        value,
        config_source: source,
        synonyms: vec![synonym],
        ..Default::default()
    }
}

#[test]
fn lines_are_kafkas() {
    let configs = vec![config("b", None, 1), config("a", Some("1"), 1), config("c", Some("2"), 5)];
    let told = DescribeConfigsResult { configs, ..Default::default() };
    let a = "  a=1 sensitive=false synonyms={DEFAULT_CONFIG:log.a=1}";
    let b = "  b=null sensitive=true synonyms={DEFAULT_CONFIG:log.b=null}";
    let c = "  c=2 sensitive=false synonyms={DEFAULT_CONFIG:log.c=2}";
    let about = |words, entity, is_all| describe::about(kind(words), entity, &told, is_all);
    assert_eq!(about("topics", "t", false), ["Dynamic configs for topic t are:", a, b]);
    assert_eq!(about("topics", "t", true), ["All configs for topic t are:", a, b, c]);
    assert_eq!(about("brokers", "", false), ["Default configs for brokers in the cluster are:"]);
    assert_eq!(about("broker-loggers", "1", false), ["Dynamic configs for broker-logger 1 are:", a, b, c]);
}

/// A key that is not set for the entity cannot be removed, as with Kafka's tool.
#[tokio::test]
async fn keys_are_set_and_removed_in_one_request() {
    let address = Arc::new(OnceLock::<String>::new());
    let (known, (sent, mut received)) = (address.clone(), tokio::sync::mpsc::channel(4));
    let says = move |request| match request {
        RequestBody::Metadata(_) => Some(nodes(&[(1, known.get().expect("known"))]).into()),
        RequestBody::DescribeConfigs(_) => {
            let configs = vec![config("a", Some("1"), 1), config("c", Some("2"), 5)];
            let told = DescribeConfigsResult { configs, ..Default::default() };
            Some(DescribeConfigsResponse { results: vec![told], ..Default::default() }.into())
        }
        RequestBody::IncrementalAlterConfigs(request) => {
            sent.try_send(*request).expect("received");
            let told = AlterConfigsResourceResponse {
                error_code: 40,
                error_message: Some("No.".into()),
                ..Default::default()
            };
            Some(IncrementalAlterConfigsResponse { responses: vec![told], ..Default::default() }.into())
        }
        other => panic!("{other:?}"),
    };
    address.set(fake_broker(&[(3, 12), (32, 4), (44, 1)], says).await).expect("once");
    let mut cluster = Cluster::new(ClusterConfig::new(address.get().expect("set"), "test"));
    let delete =
        |key: &str| Change { set: vec![("b".to_owned(), "2".to_owned())], delete: vec![key.to_owned()] };
    let refused = alter(&mut cluster, kind("topics"), "t", &delete("a")).await.expect_err("refused");
    assert_eq!(refused.to_string(), "topic t: INVALID_CONFIG: No.");
    let request = received.recv().await.expect("a request");
    let configs: Vec<_> = request.resources[0]
        .configs
        .iter()
        .map(|config| (&*config.name, config.config_operation, config.value.as_deref()))
        .collect();
    assert_eq!(configs, [("b", SET, Some("2")), ("a", DELETE, None)]);
    let unset = alter(&mut cluster, kind("topics"), "t", &delete("c")).await.expect_err("not set");
    assert_eq!(unset.to_string(), "Invalid config(s): c");
    assert!(received.try_recv().is_err(), "nothing is asked for");
}

#[test]
fn entities_are_named_as_by_kafka() {
    assert_eq!(altered(kind("topics"), "t"), "Completed updating config for topic t.");
    assert_eq!(altered(kind("brokers"), ""), "Completed updating default config for brokers in the cluster.");
    assert_eq!(altered(kind("broker-loggers"), "1"), "Completed updating config for broker-logger 1.");
}
