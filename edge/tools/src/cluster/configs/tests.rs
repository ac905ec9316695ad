//! What the flags mean and which do not go together, what is sent, and what is printed.

use super::change::Change;
use super::entities::{Entities, KINDS, Kind};
use super::resources;
use super::{alter, altered, describe, flags};
use crate::asking::alter_configs::{DELETE, SET};
use crate::fake_broker::{fake_broker, nodes};
use barnabas_client::{Cluster, ClusterConfig};
use barnabas_sasl::Secret;
use barnabas_sasl::scram::Mechanism;
use barnabas_wire::messages::alter_client_quotas_response::EntryData as Altered;
use barnabas_wire::messages::describe_client_quotas_response::{EntityData, EntryData, ValueData};
use barnabas_wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult, DescribeConfigsSynonym,
};
use barnabas_wire::messages::describe_user_scram_credentials_response::{
    CredentialInfo, DescribeUserScramCredentialsResult,
};
use barnabas_wire::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use barnabas_wire::messages::{
    AlterClientQuotasResponse, AlterUserScramCredentialsResponse, DescribeClientQuotasResponse,
    DescribeUserScramCredentialsResponse, IncrementalAlterConfigsResponse,
};
use barnabas_wire::{RequestBody, ResponseBody};
use clap::ArgMatches;
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;

fn kind(words: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.words == words).expect("a kind")
}

/// The flags of a command line.
fn matches(words: &str) -> ArgMatches {
    let words = ["configs", "--bootstrap-server", "h:1"].into_iter().chain(words.split_whitespace());
    clap::Command::new("configs").args(flags()).try_get_matches_from(words).expect("flags")
}

/// Everything that is checked before a broker is asked.
fn checked(words: &str) -> Result<(Entities, Change), String> {
    let matches = matches(words);
    let read = || {
        let entities = Entities::read(&matches)?;
        if matches.get_flag("describe") {
            entities.check_described(&matches)?;
            return Ok((entities, Change::default()));
        }
        entities.check_altered()?;
        let change = Change::read(&matches)?;
        if entities.first().resource.is_none() {
            change.of_credentials(&entities)?;
        }
        Ok((entities, change))
    };
    read().map_err(|error: crate::ToolError| error.to_string())
}

#[test]
fn entities_are_named_by_either_kind_of_flags() {
    for (words, expected) in [
        ("--entity-type topics --entity-name t", "topics=t"),
        ("--topic t", "topics=t"),
        ("--entity-type brokers --entity-default", "brokers="),
        ("--broker-defaults", "brokers="),
        ("--broker 1", "brokers=1"),
        ("--broker-logger 1", "broker-loggers=1"),
        ("--group g", "groups=g"),
        ("--client-metrics m", "client-metrics=m"),
        ("--ip 127.0.0.1", "ips=127.0.0.1"),
        ("--ip-defaults", "ips="),
        ("--entity-type users --entity-name u --entity-type clients --entity-default", "users=u clients="),
        ("--entity-type users --entity-default --entity-type clients --entity-name c", "users= clients=c"),
        ("--user u --client c", "clients=c users=u"),
        ("--user u --client-defaults", "users=u clients="),
        ("--entity-type groups", "groups"),
    ] {
        let (entities, _) = checked(&format!("--describe {words}")).expect(words);
        let pairs = entities.pairs().map(|(kind, name)| match name {
            Some(name) => format!("{}={name}", kind.words),
            None => kind.words.to_owned(),
        });
        assert_eq!(pairs.collect::<Vec<_>>().join(" "), expected, "{words}");
    }
}

#[test]
fn entities_that_do_not_go_together_are_refused() {
    for (words, refusal) in [
        ("--describe", "an entity type is missing. Example: --entity-type topics, or --topic orders"),
        ("--describe --entity-type users --entity-type users", "--entity-type users is given twice"),
        ("--describe --topic t --broker 1", "only users and clients go together, not topics, brokers"),
        (
            "--describe --topic t --entity-name u",
            "--topic cannot be used together with --entity-type, --entity-name or --entity-default",
        ),
        (
            "--describe --entity-type topics --user-defaults",
            "--user-defaults cannot be used together with --entity-type, --entity-name or --entity-default",
        ),
        ("--describe --entity-type topics --entity-default", "--entity-default: topics have no default"),
        (
            "--describe --entity-type broker-loggers",
            "--describe of broker-loggers needs a broker: --broker-logger 1",
        ),
        (
            "--describe --entity-type topics --entity-name a --entity-name b",
            "more entity names are given than entity types",
        ),
        ("--describe --broker one", "a broker's id is a number, not 'one'"),
        ("--describe --broker-logger one", "a broker's id is a number, not 'one'"),
        ("--describe --ip 1.2.3.4.5.6", "'1.2.3.4.5.6' is no address, and no name that has one"),
        (
            "--alter --entity-type topics --add-config a=1",
            "--alter of topics needs an entity's name. Example: --topic NAME",
        ),
        (
            "--alter --entity-type brokers --add-config a=1",
            "--alter of brokers needs an entity's name or its default. Example: --broker NAME",
        ),
        (
            "--alter --entity-type users --entity-name u --entity-type clients --add-config a=1",
            "--alter needs a name or the default of both users and clients",
        ),
    ] {
        assert_eq!(checked(words).expect_err(words), refusal, "{words}");
    }
    let refused = checked("--describe --entity-type topic").expect_err("no such type");
    assert!(refused.starts_with("--entity-type takes one of topics, clients, users, "), "{refused}");
    assert!(refused.ends_with(", not 'topic'"), "{refused}");
}

#[test]
fn changes_are_read_as_kafka_reads_them() {
    let (_, change) =
        checked("--alter --topic t --add-config a=1,b=[2,3],c= --delete-config d,e --delete-config f")
            .expect("a change");
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(change.set, [pair("a", "1"), pair("b", "2,3"), pair("c", "")]);
    assert_eq!(change.delete, ["d", "e", "f"]);
    let file = std::env::temp_dir().join(format!("barnabas-configs-{}", std::process::id()));
    std::fs::write(&file, "a=1\nb=2\na=3\n").expect("written");
    let (_, change) =
        checked(&format!("--alter --topic t --add-config-file {}", file.display())).expect("a change");
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(change.set, [pair("b", "2"), pair("a", "3")]);
}

#[test]
fn changes_that_are_none_are_refused() {
    const NOTHING: &str = "--alter needs --add-config, --add-config-file or --delete-config. Example: --add-config retention.ms=3600000";
    for (words, refusal) in [
        ("--alter --topic t", NOTHING),
        ("--alter --topic t --add-config ,", NOTHING),
        (
            "--alter --topic t --add-config a",
            "--add-config: 'a' is not in the format key=val. Example: --add-config retention.ms=3600000",
        ),
        ("--alter --topic t --add-config a/b=1", "no config has a key such as 'a/b'"),
        (
            "--alter --topic t --add-config a=1 --add-config-file /nowhere",
            "--add-config cannot be used together with --add-config-file",
        ),
        (
            "--alter --user u --add-config retention.ms=1",
            "users have no retention.ms; they have producer_byte_rate, consumer_byte_rate, request_percentage, \
             controller_mutation_rate, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            "--alter --client c --delete-config SCRAM-SHA-256",
            "clients have no SCRAM-SHA-256; they have producer_byte_rate, consumer_byte_rate, request_percentage, \
             controller_mutation_rate",
        ),
        (
            "--alter --ip-defaults --add-config producer_byte_rate=1",
            "ips have no producer_byte_rate; they have connection_creation_rate",
        ),
        (
            "--alter --user-defaults --add-config SCRAM-SHA-256=[password=x]",
            "a SCRAM credential is a user's own: give the user's name",
        ),
        (
            "--alter --user u --add-config SCRAM-SHA-256=[password=x],producer_byte_rate=1",
            "quotas and SCRAM credentials cannot be changed at once: call the tool twice",
        ),
    ] {
        assert_eq!(checked(words).expect_err(words), refusal, "{words}");
    }
}

#[test]
fn entities_are_printed_as_kafka_prints_them() {
    assert_eq!(altered(kind("topics"), "t"), "Completed updating config for topic t.");
    assert_eq!(altered(kind("brokers"), ""), "Completed updating default config for brokers in the cluster.");
    assert_eq!(altered(kind("broker-loggers"), "1"), "Completed updating config for broker-logger 1.");
    assert_eq!(altered(kind("client-metrics"), "m"), "Completed updating config for client-metric m.");
}

fn config(name: &str, value: Option<&str>, source: i8) -> DescribeConfigsResourceResult {
    let value = value.map(Into::into);
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
    let about = |words, entity, is_all| super::describe::about(kind(words), entity, &told, is_all);
    assert_eq!(about("topics", "t", false), ["Dynamic configs for topic t are:", a, b]);
    assert_eq!(about("topics", "t", true), ["All configs for topic t are:", a, b, c]);
    assert_eq!(about("brokers", "", false), ["Default configs for brokers in the cluster are:"]);
    assert_eq!(about("broker-loggers", "1", false), ["Dynamic configs for broker-logger 1 are:", a, b, c]);
}

/// A broker that answers so, and what it was asked, but for Metadata.
async fn cluster(
    apis: &'static [(i16, i16)],
    answer: impl Fn(&RequestBody) -> ResponseBody + Send + Sync + 'static,
) -> (Cluster, mpsc::Receiver<RequestBody>) {
    let address = Arc::new(OnceLock::<String>::new());
    let (known, (sent, received)) = (address.clone(), mpsc::channel(8));
    let says = move |request| match request {
        RequestBody::Metadata(_) => Some(nodes(&[(1, known.get().expect("known"))]).into()),
        request => {
            let answer = answer(&request);
            sent.try_send(request).expect("received");
            Some(answer)
        }
    };
    address.set(fake_broker(apis, says).await).expect("once");
    (Cluster::new(ClusterConfig::new(address.get().expect("set"), "test")), received)
}

#[tokio::test]
async fn keys_are_removed_and_set_in_one_request() {
    let (mut cluster, mut received) = cluster(&[(3, 12), (44, 1)], |_| {
        let told = AlterConfigsResourceResponse {
            error_code: 40,
            error_message: Some("No.".into()),
            ..Default::default()
        };
        IncrementalAlterConfigsResponse { responses: vec![told], ..Default::default() }.into()
    })
    .await;
    let change = Change { set: vec![("b".to_owned(), "2".to_owned())], delete: vec!["a".to_owned()] };
    let refused = resources::alter(&mut cluster, kind("topics"), "t", &change).await.expect_err("refused");
    assert_eq!(refused.to_string(), "topic t: INVALID_CONFIG: No.");
    let Some(RequestBody::IncrementalAlterConfigs(request)) = received.recv().await else {
        panic!("another request")
    };
    let configs: Vec<_> = request.resources[0]
        .configs
        .iter()
        .map(|config| (&*config.name, config.config_operation, config.value.as_deref()))
        .collect();
    assert_eq!(configs, [("a", DELETE, None), ("b", SET, Some("2"))]);
}

#[tokio::test]
async fn loggers_that_are_not_there_are_refused_before_anything_is_altered() {
    let (mut cluster, mut received) = cluster(&[(3, 12), (32, 4)], |_| {
        let told =
            DescribeConfigsResult { configs: vec![config("root", Some("INFO"), 6)], ..Default::default() };
        DescribeConfigsResponse { results: vec![told], ..Default::default() }.into()
    })
    .await;
    let change = Change { set: vec![("rooot".to_owned(), "DEBUG".to_owned())], delete: Vec::new() };
    let refused = resources::alter(&mut cluster, kind("broker-loggers"), "1", &change).await;
    assert_eq!(refused.expect_err("a typo").to_string(), "broker 1 has no such loggers: rooot");
    assert!(matches!(received.try_recv(), Ok(RequestBody::DescribeConfigs(_))));
    assert!(received.try_recv().is_err(), "nothing is altered");
}

fn quotas(request: &RequestBody) -> ResponseBody {
    let entity = |kind: &str, name: Option<&str>| EntityData {
        entity_type: kind.into(),
        entity_name: name.map(Into::into),
        ..Default::default()
    };
    match request {
        RequestBody::DescribeClientQuotas(_) => {
            let value = ValueData { key: "producer_byte_rate".into(), value: 1024.0, ..Default::default() };
            let entry = EntryData {
                entity: vec![entity("client-id", None), entity("user", Some("u"))],
                values: vec![value],
                ..Default::default()
            };
            DescribeClientQuotasResponse { entries: Some(vec![entry]), ..Default::default() }.into()
        }
        RequestBody::AlterClientQuotas(_) => {
            AlterClientQuotasResponse { entries: vec![Altered::default()], ..Default::default() }.into()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn quotas_are_shown_and_altered() {
    let (mut cluster, mut received) = cluster(&[(3, 12), (48, 1), (49, 1)], quotas).await;
    let words =
        "--user u --client-defaults --add-config consumer_byte_rate=7 --delete-config producer_byte_rate";
    let (entities, change) = checked(&format!("--alter {words}")).expect("a change");
    let lines = describe(&mut cluster, &entities, false).await.expect("shown");
    assert_eq!(
        lines,
        ["Quota configs for user-principal 'u', the default client-id are producer_byte_rate=1024.0"]
    );
    let Some(RequestBody::DescribeClientQuotas(asked)) = received.recv().await else { panic!("another") };
    let components: Vec<_> = asked
        .components
        .iter()
        .map(|one| (&*one.entity_type, one.match_type, one.r#match.as_deref()))
        .collect();
    assert_eq!((components, asked.strict), (vec![("user", 0, Some("u")), ("client-id", 1, None)], true));

    alter(&mut cluster, &entities, &change).await.expect("altered");
    assert!(matches!(received.recv().await, Some(RequestBody::DescribeClientQuotas(_))));
    let Some(RequestBody::AlterClientQuotas(asked)) = received.recv().await else { panic!("another") };
    let entity: Vec<_> =
        asked.entries[0].entity.iter().map(|one| (&*one.entity_type, one.entity_name.as_deref())).collect();
    assert_eq!(entity, [("user", Some("u")), ("client-id", None)]);
    let ops: Vec<_> = asked.entries[0].ops.iter().map(|op| (&*op.key, op.value, op.remove)).collect();
    assert_eq!(ops, [("consumer_byte_rate", 7.0, false), ("producer_byte_rate", 0.0, true)]);

    let unset = Change { set: Vec::new(), delete: vec!["request_percentage".to_owned()] };
    let refused = alter(&mut cluster, &entities, &unset).await.expect_err("not set").to_string();
    assert_eq!(refused, "--delete-config: not set: request_percentage");
}

fn credentials(request: &RequestBody) -> ResponseBody {
    match request {
        RequestBody::DescribeClientQuotas(_) => DescribeClientQuotasResponse::default().into(),
        RequestBody::DescribeUserScramCredentials(_) => {
            let info = |mechanism| CredentialInfo { mechanism, iterations: 8192, ..Default::default() };
            let result = |user: &str, error_code| DescribeUserScramCredentialsResult {
                user: user.into(),
                error_code,
                error_message: Some("Why.".into()),
                credential_infos: vec![info(1), info(2)],
                ..Default::default()
            };
            let not_found = 91;
            let results = vec![result("u", 0), result("none", not_found), result("bad", -1)];
            DescribeUserScramCredentialsResponse { results, ..Default::default() }.into()
        }
        RequestBody::AlterUserScramCredentials(_) => AlterUserScramCredentialsResponse::default().into(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn credentials_are_shown_and_altered() {
    let (mut cluster, mut received) = cluster(&[(3, 12), (48, 1), (50, 0), (51, 0)], credentials).await;
    let words =
        "--user u --add-config SCRAM-SHA-256=[iterations=4096,password=pencil] --delete-config SCRAM-SHA-512";
    let (entities, change) = checked(&format!("--alter {words}")).expect("a change");
    let lines = describe(&mut cluster, &entities, false).await.expect("shown");
    assert_eq!(
        lines,
        [
            "SCRAM credential configs for user-principal 'u' are SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=8192",
            "Error retrieving SCRAM credential configs for user-principal 'bad': UNKNOWN_SERVER_ERROR: Why.",
        ]
    );
    received.recv().await.expect("quotas");
    let Some(RequestBody::DescribeUserScramCredentials(asked)) = received.recv().await else {
        panic!("another")
    };
    assert_eq!(asked.users.as_ref().map(|users| users[0].name.to_string()), Some("u".to_owned()));

    alter(&mut cluster, &entities, &change).await.expect("altered");
    let Some(RequestBody::AlterUserScramCredentials(asked)) = received.recv().await else {
        panic!("another")
    };
    assert_eq!((&*asked.deletions[0].name, asked.deletions[0].mechanism), ("u", 2));
    let upsertion = &asked.upsertions[0];
    assert_eq!((upsertion.mechanism, upsertion.iterations, &*upsertion.name), (1, 4096, "u"));
    let salted = Mechanism::Sha256.salted_password(&Secret::from("pencil"), &upsertion.salt, 4096);
    assert_eq!(upsertion.salted_password, salted.bytes());
}

#[tokio::test]
async fn cluster_without_quotas_says_so_itself() {
    let (mut cluster, _received) = cluster(&[(3, 12)], |request| panic!("{request:?}")).await;
    let (entities, _) = checked("--describe --entity-type users").expect("users");
    let refused = describe(&mut cluster, &entities, false).await.expect_err("not there").to_string();
    assert!(refused.starts_with("UNSUPPORTED_VERSION: 127.0.0.1:"), "{refused}");
    assert!(refused.contains(" does not support DescribeClientQuotas"), "{refused}");
}
