//! Where records come from: one topic's consumer, or a task for each of several topics, so that one that is silent
//! holds up no other. What keeps a partition from being read goes to standard error, once for each partition and
//! reason.

use crate::{say_trouble, tell};
use barnabas_client::{ClientError, Cluster, Consumer, FetchedBatch, Received, Trouble};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Items of several topics that wait to be used.
const AHEAD: usize = 16;
/// One poll of a topic's task.
const POLL: Duration = Duration::from_millis(100);

/// What a consumer gives.
pub trait Item: Sized + Send + 'static {
    fn poll(
        consumer: &mut Consumer,
        cluster: &mut Cluster,
        wait: Duration,
    ) -> impl Future<Output = Result<Option<Self>, ClientError>> + Send;
}

impl Item for Received {
    async fn poll(
        consumer: &mut Consumer,
        cluster: &mut Cluster,
        wait: Duration,
    ) -> Result<Option<Self>, ClientError> {
        consumer.poll(cluster, wait).await
    }
}

impl Item for FetchedBatch {
    async fn poll(
        consumer: &mut Consumer,
        cluster: &mut Cluster,
        wait: Duration,
    ) -> Result<Option<Self>, ClientError> {
        consumer.poll_batch(cluster, wait).await
    }
}

enum Kind<T> {
    One(Box<Consumer>),
    Many(mpsc::Receiver<Result<T, ClientError>>),
}

/// What cannot be read now, by topic.
type Standing = Arc<Mutex<Vec<(String, Vec<Trouble>)>>>;

pub struct Source<T> {
    tool: &'static str,
    kind: Kind<T>,
    standing: Standing,
    /// A broker's refusal, behind the item that came with it.
    refusal: Option<ClientError>,
}

impl<T: Item> Source<T> {
    /// Reads with these consumers, one for each topic.
    pub fn new(tool: &'static str, mut consumers: Vec<Consumer>, cluster: &Cluster) -> Self {
        let standing = Standing::default();
        if consumers.len() == 1 {
            return Self { tool, kind: Kind::One(Box::new(consumers.remove(0))), standing, refusal: None };
        }
        let (sender, items) = mpsc::channel(AHEAD);
        for consumer in consumers {
            let (sender, cluster) = (sender.clone(), cluster.with_new_connections());
            tokio::spawn(read_topic(tool, consumer, cluster, sender, standing.clone()));
        }
        Self { tool, kind: Kind::Many(items), standing, refusal: None }
    }

    /// The next item, or `None` when `wait` has passed without one.
    ///
    /// # Errors
    /// What no later try can cure.
    pub async fn next(&mut self, cluster: &mut Cluster, wait: Duration) -> Result<Option<T>, ClientError> {
        match &mut self.kind {
            Kind::One(consumer) => {
                if let Some(refusal) = self.refusal.take() {
                    return Err(refusal);
                }
                let item = T::poll(consumer, cluster, wait).await;
                match (item, report(self.tool, consumer)) {
                    (Ok(Some(item)), refused) => {
                        self.refusal = refused.err();
                        Ok(Some(item))
                    }
                    (Ok(None), Err(refusal)) => Err(refusal),
                    (item, _) => item,
                }
            }
            Kind::Many(items) => match tokio::time::timeout(wait, items.recv()).await {
                Ok(Some(item)) => item.map(Some),
                // All tasks have ended, each after its error was used.
                Ok(None) => Err(ClientError::Invalid("no topic can be read any more".to_owned())),
                Err(_) => Ok(None),
            },
        }
    }

    /// Whether the next item has to be waited for.
    pub fn is_drained(&self) -> bool {
        match &self.kind {
            Kind::One(consumer) => consumer.is_drained(),
            Kind::Many(items) => items.is_empty(),
        }
    }

    /// The consumer, where there is one topic.
    pub fn consumer(&mut self) -> Option<&mut Consumer> {
        match &mut self.kind {
            Kind::One(consumer) => Some(consumer),
            Kind::Many(_) => None,
        }
    }

    /// Reports what cannot be read now, reported before or not.
    pub fn report_standing(&self) {
        let others = self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let own = match &self.kind {
            Kind::One(consumer) => vec![(consumer.topic().to_owned(), consumer.standing_troubles())],
            Kind::Many(_) => Vec::new(),
        };
        for (topic, troubles) in own.into_iter().chain(others) {
            for trouble in troubles {
                tell(&format!("{}: at the end: {}", self.tool, trouble.words(&topic, "read")));
            }
        }
    }
}

fn report(tool: &str, consumer: &mut Consumer) -> Result<(), ClientError> {
    while let Some(trouble) = consumer.next_trouble() {
        say_trouble(tool, &trouble, consumer.topic(), "read")?;
    }
    Ok(())
}

async fn read_topic<T: Item>(
    tool: &'static str,
    mut consumer: Consumer,
    mut cluster: Cluster,
    sender: mpsc::Sender<Result<T, ClientError>>,
    standing: Standing,
) {
    while !sender.is_closed() {
        let item = T::poll(&mut consumer, &mut cluster, POLL).await.transpose();
        let refused = report(tool, &mut consumer).err();
        let now = (consumer.topic().to_owned(), consumer.standing_troubles());
        {
            let mut standing = standing.lock().unwrap_or_else(PoisonError::into_inner);
            standing.retain(|known| known.0 != now.0);
            if !now.1.is_empty() {
                standing.push(now);
            }
        }
        for item in item.into_iter().chain(refused.map(Err)) {
            let is_last = item.is_err();
            if sender.send(item).await.is_err() || is_last {
                return;
            }
        }
    }
}
