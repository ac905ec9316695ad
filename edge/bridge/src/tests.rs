//! Connectors between a cluster and a peer that the tests play (`tests/kafka.rs`, `tests/peer.rs`).

mod kafka;
mod mq;
mod mq_peer;
mod peer;
mod sink;
mod source;
mod start;
mod tls;

use crate::config::Config;
use crate::stop::Stop;
use crate::watch::counters::{Counters, page};
use crate::{BridgeError, sink as sink_of, source as source_of};
use kafka::Kafka;
use std::sync::Arc;
use tokio::sync::watch;

/// A connector on its way.
struct Running {
    stopper: watch::Sender<bool>,
    counters: Arc<Counters>,
    task: tokio::task::JoinHandle<Result<(), BridgeError>>,
}

impl Running {
    /// `topic`: of a sink.
    fn start(text: &str, topic: Option<&'static str>) -> Self {
        let config = Arc::new(Config::parse(text).expect("a connector"));
        let counters = Arc::new(Counters::new("n", "test"));
        let (stopper, mut stop) = Stop::new();
        let (running, counted) = (config, counters.clone());
        let task = tokio::spawn(async move {
            let ended = match topic {
                None => source_of::run(&running, &counted, &mut stop).await,
                Some(topic) => sink_of::run(&running, topic, &counted, &mut stop).await,
            };
            ended.inspect_err(|error| eprintln!("the run ended: {error}"))
        });
        Self { stopper, counters, task }
    }

    /// Waits until it has a link: a stop before that ends it without a word to the peer.
    async fn is_there(&self) {
        while !page(std::slice::from_ref(&self.counters)).contains("state=\"running\"") {
            tokio::task::yield_now().await;
        }
    }

    fn stop(&self) {
        self.stopper.send(true).expect("it runs");
    }

    async fn ended(self) -> Result<(), BridgeError> {
        self.task.await.expect("no panic")
    }

    /// A counter, by its name on the page.
    fn counted(&self, metric: &str) -> i64 {
        let page = page(std::slice::from_ref(&self.counters));
        let start = format!("barnabas_bridge_{metric}{{");
        let line = page.lines().find(|line| line.starts_with(&start)).expect("a metric");
        line.rsplit_once(' ').and_then(|(_, value)| value.parse().ok()).expect("a number")
    }
}

fn source_file(kafka: &Kafka, port: u16, more: &str) -> String {
    format!(
        "name=n\nconnector.class=source\ntopic=t\nbootstrap.servers={}\namqp.url=amqp://127.0.0.1:{port}\n\
         mq.queue=q\nmq.record.builder=JsonRecordBuilder\n{more}\n",
        kafka.address
    )
}

fn sink_file(kafka: &Kafka, port: u16, more: &str) -> String {
    format!(
        "name=n\nconnector.class=sink\ntopics=t\nbootstrap.servers={}\namqp.url=amqp://127.0.0.1:{port}\n\
         mq.queue=q\n{more}\n",
        kafka.address
    )
}
