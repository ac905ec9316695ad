//! Topics that Metadata requests create: asks the controller for as many as may be created now
//! (node/cluster/topic_creation.rs).

use crate::node::Node;
use crate::node::cluster::topic_creation::TopicCreation;
use barnabas_quorum::controller::AskingClient;
use barnabas_wire::messages::create_topics_request::CreateTopicsRequest;
use std::sync::PoisonError;

impl TopicCreation {
    /// Asks the controller, in the name of the client, for as many of the topics as may be created now.
    pub fn ask(&self, node: &Node, mut create: CreateTopicsRequest, client: AskingClient) {
        let config = node.cluster.config.load();
        let admitted = {
            let mut admission = self.admission.lock().unwrap_or_else(PoisonError::into_inner);
            admission.admit(&mut create, &config, node.clock.monotonic())
        };
        if admitted.left_out > 0
            && let Some(unsaid) = self.limited.happened(&admitted.key, barnabas_clock::now())
        {
            let (left_out, key) = (admitted.left_out, admitted.key);
            tracing::info!(
                left_out,
                key,
                "Metadata requests name more missing topics than may be auto-created at once{unsaid}. \
                 The others are created when clients retry; raise the limit to create more, or set \
                 auto.create.topics.enable=false"
            );
        }
        if !create.topics.is_empty() {
            node.peers.controller.auto_create(create, Some(client));
        }
    }
}
