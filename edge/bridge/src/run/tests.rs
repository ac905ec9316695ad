//! What the log says of a Kafka cluster that is away and of a queue that the peer refuses.

use super::*;
use crate::session::Session;
use barnabas_amqp::Peer;

fn config() -> Config {
    Config::parse(
        "name=n\nconnector.class=source\ntopic=t\nbootstrap.servers=127.0.0.1:1\namqp.url=amqp://127.0.0.1:1\n\
         mq.queue=q\n",
    )
    .expect("a connector")
}

#[tokio::test]
async fn absent_kafka_is_reported_while_it_is_tried() {
    let (config, mut silence) = (config(), Silence::default());
    let (_stopper, mut stop) = Stop::new();
    let counters = Counters::new("n", "source");
    let (sender, mut lines) = tokio::sync::mpsc::channel(1);
    let running = source::run(&config, &counters, &mut stop);
    let telling = telling(&config, &mut silence, running, |text| {
        sender.try_send(text.to_owned()).expect("one line");
    });
    let said = tokio::select! {
        ended = telling => panic!("{ended:?}"),
        said = lines.recv() => said.expect("a line"),
    };
    assert!(said.starts_with("Kafka at 127.0.0.1:1: no broker answers at 127.0.0.1:1: "), "{said}");
    assert!(said.ends_with("; it tries again"), "{said}");
}

#[test]
fn refused_queue_is_an_error_that_names_what_to_change() {
    let link = |why: &str| BridgeError::Link { queue: "a b".to_owned(), why: why.to_owned() };
    let said = |error: &BridgeError, pause: u64| {
        report(error, Duration::from_millis(pause), Duration::from_millis(8192))
    };
    let refused = link("amqp:invalid-field: topic a b: a letter that no topic has");
    let (level, text) = said(&refused, 64);
    assert!(matches!(level, Level::Error));
    let wanted = "the peer ended the link to a b: amqp:invalid-field: topic a b: a letter that no topic has. Change \
                  mq.queue: the peer takes no queue of this name. It goes on trying, up to \
                  8192 ms apart; this line is not repeated";
    assert_eq!(text, wanted);
    assert_eq!(said(&refused, 128).1, wanted, "the next try has the same line, which is left out");
    let (level, text) = said(&link("amqp:link:detach-forced: bye"), 64);
    assert!(matches!(level, Level::Warn));
    assert!(text.ends_with("; it tries again in 64 ms"), "{text}");
}

#[test]
fn peer_is_named_by_what_it_says_of_itself() {
    let name = |product: &str, version: &str| {
        Session::name_of(&Peer {
            product: product.to_owned(),
            version: version.to_owned(),
            ..Peer::default()
        })
    };
    assert_eq!(name("barnabas", ""), "barnabas");
    assert_eq!(name("artemis", "2.40"), "artemis 2.40");
    assert_eq!(name("", ""), "a peer without a name");
}
