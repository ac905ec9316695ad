//! Who this node is: to its cluster, and to clients.

use barnabas_base::{BrokerEpoch, BrokerId, Text, Uuid};
use barnabas_config::Listener;
use barnabas_metadata::Image;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};

/// See the file's header. Immutable but for the broker epoch.
#[derive(Debug)]
pub struct Identity {
    pub broker_id: BrokerId,
    /// Each process draws its own.
    pub incarnation: Uuid,
    pub cluster_id: Text,
    /// Whether it serves clients, or is a controller alone.
    pub is_broker: bool,
    pub listeners: Vec<(Listener, SocketAddr)>,
    broker_epoch: AtomicI64,
}

impl Identity {
    pub fn new(
        broker_id: BrokerId,
        incarnation: Uuid,
        cluster_id: Text,
        is_broker: bool,
        listeners: Vec<(Listener, SocketAddr)>,
    ) -> Self {
        let broker_epoch = AtomicI64::new(BrokerEpoch::NONE.get());
        Self { broker_id, incarnation, cluster_id, is_broker, listeners, broker_epoch }
    }

    pub fn broker_epoch(&self) -> BrokerEpoch {
        BrokerEpoch(self.broker_epoch.load(Ordering::Acquire))
    }

    pub fn set_broker_epoch(&self, epoch: BrokerEpoch) {
        self.broker_epoch.store(epoch.get(), Ordering::Release);
    }

    /// Takes the epoch that the cluster knows this process under. The epoch of a former process is not its own.
    pub fn follow_broker_epoch(&self, image: &Image) {
        if let Some(broker) = image.cluster.broker(self.broker_id)
            && broker.incarnation == self.incarnation
        {
            self.set_broker_epoch(broker.epoch);
        }
    }
}
