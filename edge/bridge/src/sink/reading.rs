//! A sink's half on Kafka's side, whatever its peer: a member of the group, its consumer, and which offsets are done.

use super::progress::Progress;
use crate::config::{Config, SinkConfig};
use crate::error::BridgeError;
use crate::session::Alive;
use crate::stop::Stop;
use barnabas_client::{Cluster, Consumer, ConsumerConfig, Group, GroupConfig, StartAt};

/// Of one fetch: what the consumer holds beside the records that are in flight.
const FETCH_BYTES_MAX: i32 = 8 << 20;

pub(super) struct Reading {
    pub cluster: Cluster,
    pub group: Group,
    pub consumer: Consumer,
    pub progress: Progress,
}

impl Reading {
    /// May be dropped at any point: the group was not joined.
    ///
    /// # Errors
    /// The topic is not to be had.
    pub async fn start(config: &Config, sink: &SinkConfig, topic: &str) -> Result<Self, BridgeError> {
        let mut cluster = Cluster::new(config.kafka.clone());
        let tries = cluster.tries(format!("finding topic {topic}"));
        while let Err(error) = cluster.topic(topic, true).await {
            tries.after(error).await?;
        }
        let reading = ConsumerConfig {
            read_committed: true,
            bytes_max: FETCH_BYTES_MAX,
            inflated_bytes_max: sink.inflated_bytes_max,
            ..ConsumerConfig::default()
        };
        Ok(Self {
            cluster,
            group: Group::new(GroupConfig::new(&sink.group), topic),
            consumer: Consumer::new(topic, reading),
            progress: Progress::default(),
        })
    }

    /// Joins the group (again) and reads on at what is committed. Where it is to stop meanwhile, nothing is assigned.
    ///
    /// # Errors
    /// The group's refusal, or the end of the peer's connection.
    pub async fn join(&mut self, stop: &mut Stop, session: &mut impl Alive) -> Result<(), BridgeError> {
        // The positions of what was not done are forgotten: the group's offsets say where to go on.
        self.consumer.assign([]);
        self.progress = Progress::default();
        let joining = async {
            tokio::select! {
                biased;
                () = stop.wait() => None,
                joined = self.group.join(&mut self.cluster) => Some(joined),
            }
        };
        let Some(joined) = session.during(joining).await? else {
            // An answer may be under way on the old connections.
            self.cluster = self.cluster.with_new_connections();
            return Ok(());
        };
        let assigned = joined?;
        self.progress = Progress::new(&assigned);
        let start = |offset| Option::map_or(offset, StartAt::Earliest, StartAt::Offset);
        self.consumer.assign(assigned.into_iter().map(|(partition, offset)| (partition, start(offset))));
        Ok(())
    }

    /// What the consumer has passed without a record counts too.
    pub fn reach(&mut self) {
        for (partition, position) in self.consumer.positions() {
            self.progress.reach(partition, position);
        }
    }
}
