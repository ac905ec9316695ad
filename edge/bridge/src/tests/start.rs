//! Before a connector runs: a stop meanwhile, and a listener that cannot be had.

use super::kafka::Kafka;
use super::peer::listen;
use super::{Running, sink_file, source_file};
use crate::config::Config;
use std::io::ErrorKind;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Where no answer comes: the connections wait.
#[tokio::test]
async fn stop_ends_a_start_that_waits_for_kafka_or_the_peer() {
    let kafka = Kafka::start(&[("t", usize::MAX)]).await;
    let ((silent, port), (silent_too, other)) = (listen().await, listen().await);
    let without_kafka = format!("{}bootstrap.servers=127.0.0.1:{other}\n", source_file(&kafka, port, ""));
    let without_kafka_too = format!("{}bootstrap.servers=127.0.0.1:{other}\n", sink_file(&kafka, port, ""));
    for (file, topic, listener) in [
        (source_file(&kafka, port, ""), None, &silent),
        (sink_file(&kafka, port, ""), Some("t"), &silent),
        (without_kafka, None, &silent_too),
        (without_kafka_too, Some("t"), &silent_too),
    ] {
        let running = Running::start(&file, topic);
        let held = listener.accept().await.expect("it connects");
        running.stop();
        running.ended().await.expect("a stop is no error");
        drop(held);
    }
}

#[tokio::test]
async fn listener_that_is_in_use_refuses_the_start_before_anything_connects() {
    let ((kafka, port), (_taken, in_use)) = (listen().await, listen().await);
    // A name may stand for both; without IPv6 there is nothing to take.
    let _taken_too = TcpListener::bind(format!("[::1]:{in_use}")).await;
    // By its name: finding its address takes a turn of the runtime, in which tasks would run.
    let text = format!(
        "name=n\nconnector.class=source\ntopic=t\nbootstrap.servers=127.0.0.1:{port}\n\
         amqp.url=amqp://127.0.0.1:{port}\nmq.queue=q\nmetrics.listener=localhost:{in_use}\n"
    );
    let config = Arc::new(Config::parse(&text).expect("a connector"));
    let error = crate::run::serve(vec![config]).await.expect_err("the port is in use").to_string();
    assert!(error.starts_with(&format!("metrics.listener=localhost:{in_use}")), "{error}");
    let none = kafka.into_std().expect("a socket").accept().expect_err("something has connected");
    assert_eq!(none.kind(), ErrorKind::WouldBlock);
}
