//! What the tools write to standard error while the cluster has no active controller, and how they
//! end.

use super::*;
use crate::fake_broker::{fake_broker, nodes};
use barnabas_client::{Admin, NewTopic};
use barnabas_wire::messages::create_topics_response::{CreatableTopicResult, CreateTopicsResponse};
use barnabas_wire::messages::describe_quorum_response::{
    DescribeQuorumResponse, PartitionData as Told, TopicData as ToldTopic,
};
use barnabas_wire::{RequestBody, ResponseBody};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const APIS: &[(i16, i16)] = &[(3, 12), (19, 7), (55, 2)];
const AT_ONCE: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);
/// For a question that is not answered. Enough for those before it that are.
const SHORT: Duration = Duration::from_secs(2);

fn refused(code: ErrorCode, message: &str) -> ResponseBody {
    let told = CreatableTopicResult {
        name: "t".into(),
        error_code: code.code(),
        error_message: Some(message.into()),
        ..Default::default()
    };
    CreateTopicsResponse { topics: vec![told], ..Default::default() }.into()
}

/// Creates a topic within `deadline`. Each line that is reported meanwhile goes to `report`.
async fn create(
    address: &str,
    deadline: Duration,
    controller_patience: Duration,
    report: impl FnMut(&str),
) -> Result<(), ClientError> {
    let mut config = ClusterConfig::new(address, "test");
    config.deadline = deadline;
    let mut cluster = Cluster::new(config.clone());
    let topic = NewTopic { name: "t".to_owned(), ..NewTopic::default() };
    let mut admin = Admin::new(&mut cluster);
    watching(&config, AT_ONCE, controller_patience, admin.create_topic(&topic), report).await
}

/// Node 1 leads, or this code.
fn quorum(error_code: i16) -> ResponseBody {
    let partitions = vec![Told { leader_id: 1, error_code, ..Default::default() }];
    let topics = vec![ToldTopic { partitions, ..Default::default() }];
    DescribeQuorumResponse { topics, ..Default::default() }.into()
}

/// A cluster without topics, and a deadline that lets [`telling`] report what it waits for.
pub async fn cluster_without_topics() -> Cluster {
    let address = fake_broker(&[(3, 12)], |asked| match asked {
        RequestBody::Metadata(_) => Some(nodes(&[(1, "h:1")]).into()),
        other => panic!("{other:?}"),
    })
    .await;
    let mut config = ClusterConfig::new(&address, "test");
    config.deadline = PATIENCE + Duration::from_secs(1);
    Cluster::new(config)
}

/// The broker's own address, once it is known.
type Own = Arc<std::sync::OnceLock<String>>;

fn metadata(own: &Own) -> Option<ResponseBody> {
    Some(nodes(&[(1, own.get()?)]).into())
}

#[tokio::test]
async fn failed_attempt_is_reported_once_before_success() {
    let (own, is_led) = (Own::default(), Arc::new(AtomicBool::new(false)));
    let (known, led) = (own.clone(), is_led.clone());
    let address = fake_broker(APIS, move |asked| match asked {
        RequestBody::Metadata(_) => metadata(&known),
        RequestBody::CreateTopics(_) if led.load(Ordering::Relaxed) => Some(refused(ErrorCode::None, "")),
        RequestBody::CreateTopics(_) => {
            Some(refused(ErrorCode::RequestTimedOut, "No active controller could be reached."))
        }
        // The last leader may answer before it knows of its loss.
        RequestBody::DescribeQuorum(_) => Some(quorum(0)),
        other => panic!("{other:?}"),
    })
    .await;
    own.set(address.clone()).expect("once");
    let mut said = Vec::new();
    let done = create(&address, LONG, LONG, |why| {
        said.push(why.to_owned());
        is_led.store(true, Ordering::Relaxed);
    })
    .await;
    done.expect("once there is a controller");
    let wanted =
        "not done yet, and tried again: topic t: REQUEST_TIMED_OUT: No active controller could be reached.";
    assert_eq!(said, [wanted]);
}

#[tokio::test]
async fn a_broker_that_keeps_the_request_is_asked_whether_it_reaches_a_controller() {
    let own = Own::default();
    let known = own.clone();
    let address = fake_broker(APIS, move |asked| match asked {
        RequestBody::Metadata(_) => metadata(&known),
        _ => None,
    })
    .await;
    own.set(address.clone()).expect("once");
    let (sender, mut reports) = tokio::sync::mpsc::channel(1);
    let creating =
        create(&address, LONG, SHORT, |why| sender.try_send(why.to_owned()).expect("room for one"));
    let said = tokio::select! {
        done = creating => panic!("{done:?}"),
        said = reports.recv() => said.expect("said"),
    };
    let wanted = format!(
        "not done yet: {address} reaches no active controller (DescribeQuorum: no answer within 2000 ms). Is half of the metadata quorum \
         gone? Trying for 60 s at most"
    );
    assert_eq!(said, wanted);
}

#[tokio::test]
async fn reachable_controller_is_silent_and_a_refusal_has_its_code() {
    let (own, was_asked) = (Own::default(), Arc::new(AtomicBool::new(false)));
    let known = own.clone();
    let asked_of = was_asked.clone();
    let address = fake_broker(APIS, move |asked| match asked {
        RequestBody::Metadata(_) => metadata(&known),
        RequestBody::DescribeQuorum(_) => {
            let before = asked_of.swap(true, Ordering::Relaxed);
            let code = if before { ErrorCode::BrokerNotAvailable.code() } else { 0 };
            Some(quorum(code))
        }
        other => panic!("{other:?}"),
    })
    .await;
    own.set(address.clone()).expect("once");
    let config = ClusterConfig::new(&address, "test");
    assert_eq!(no_controller(&config, LONG).await, None);
    let said = no_controller(&config, LONG).await.expect("it is not");
    assert!(said.contains("(DescribeQuorum: BROKER_NOT_AVAILABLE)"), "{said}");
}

#[tokio::test]
async fn user_who_may_not_ask_for_the_quorum_reads_nothing_of_it() {
    let own = Own::default();
    let known = own.clone();
    let address = fake_broker(APIS, move |asked| match asked {
        RequestBody::Metadata(_) => metadata(&known),
        RequestBody::DescribeQuorum(_) => {
            let error_code = ErrorCode::ClusterAuthorizationFailed.code();
            Some(DescribeQuorumResponse { error_code, ..Default::default() }.into())
        }
        other => panic!("{other:?}"),
    })
    .await;
    own.set(address.clone()).expect("once");
    assert_eq!(no_controller(&ClusterConfig::new(&address, "test"), LONG).await, None);
}

#[tokio::test]
async fn when_the_time_is_over_the_last_answer_is_named() {
    let own = Own::default();
    let known = own.clone();
    let address = fake_broker(APIS, move |asked| match asked {
        RequestBody::Metadata(_) => metadata(&known),
        RequestBody::CreateTopics(_) => Some(refused(ErrorCode::RequestTimedOut, "No active controller.")),
        _ => None,
    })
    .await;
    own.set(address.clone()).expect("once");
    let error = create(&address, Duration::from_millis(500), LONG, |_| ()).await.expect_err("no controller");
    let wanted = "creating topic t was not done within 500 ms; last answer: topic t: REQUEST_TIMED_OUT: No active controller.";
    assert_eq!(error.to_string(), wanted);
}

#[tokio::test]
async fn a_node_that_dies_is_not_asked_for_a_minute() {
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        listener.local_addr().expect("bound").to_string()
    };
    let (own, asked_before) = (Own::default(), AtomicBool::new(false));
    let known = own.clone();
    let address = fake_broker(APIS, move |asked| match asked {
        RequestBody::Metadata(_) => {
            let brokers = [(2, gone.as_str()), (1, known.get()?)];
            let from = usize::from(asked_before.swap(true, Ordering::Relaxed));
            Some(nodes(&brokers[from..]).into())
        }
        RequestBody::CreateTopics(_) => Some(refused(ErrorCode::None, "")),
        other => panic!("{other:?}"),
    })
    .await;
    own.set(address.clone()).expect("once");
    create(&address, LONG, LONG, |_| ()).await.expect("another one passes it on");
}

#[tokio::test]
async fn dead_address_is_reported_at_the_first_try() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let mut config = ClusterConfig::new(&address, "test");
    config.deadline = Duration::from_millis(350);
    let mut said = Vec::new();
    let ended = reaching(&config, LONG, |why| said.push(why.to_owned())).await;
    assert!(matches!(ended, Err(ClientError::TimedOut { .. })), "{ended:?}");
    assert_eq!(said.len(), 1, "an error is reported once: {said:?}");
    assert!(said[0].contains(&address) && said[0].contains("refused"), "{said:?}");
}

#[tokio::test]
async fn silent_address_is_reported_while_the_first_try_waits() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let mut config = ClusterConfig::new(&address, "test");
    config.request_timeout = Duration::from_millis(200);
    config.deadline = Duration::from_millis(250);
    let mut said = Vec::new();
    let ended = reaching(&config, AT_ONCE, |why| said.push(why.to_owned())).await;
    assert!(ended.is_err());
    let asked = format!(
        "{address} took the connection and does not answer the first request. Does its listener expect TLS? That is \
         security.protocol=SSL or SASL_SSL; still waiting"
    );
    assert_eq!(said[0], asked);
}

#[tokio::test]
async fn listener_that_closes_everything_is_named_at_the_third_time() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // As a listener with TLS that reads no record.
            let mut first = [0; 64];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut first).await;
        }
    });
    let mut config = ClusterConfig::new(&address, "test");
    config.deadline = Duration::from_millis(700);
    let mut said = Vec::new();
    let ended = reaching(&config, LONG, |why| said.push(why.to_owned())).await;
    assert!(matches!(ended, Err(ClientError::TimedOut { .. })), "{ended:?}");
    assert_eq!(said.len(), 2, "each reason once: {said:?}");
    assert!(said[0].contains("Does its listener expect TLS? That is security.protocol=SSL"), "{said:?}");
    let third = "closed three connections in a row at the first request: its listener expects TLS or a login";
    assert!(said[1].contains(third), "{said:?}");
}
