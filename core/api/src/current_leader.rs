//! Who leads, in the words of the answers that tell a client who came to the wrong broker (KIP-951): the leader beside
//! the partition's error, and its address once for all partitions.

use barnabas_wire::messages::{
    fetch_response, produce_response, share_acknowledge_response, share_fetch_response,
};

use crate::{Leader, Node};

/// An address as one API's answer has it.
pub(crate) trait NodeEndpoint {
    fn of(node: Node) -> Self;
    fn node_id(&self) -> i32;
}

macro_rules! told_in {
    ($($response:ident),*) => {
        $(impl From<&Leader> for $response::LeaderIdAndEpoch {
            fn from(leader: &Leader) -> Self {
                Self { leader_id: leader.id.get(), leader_epoch: leader.epoch.get(), ..Self::default() }
            }
        }

        impl NodeEndpoint for $response::NodeEndpoint {
            fn of(node: Node) -> Self {
                let Node { id, host, port, rack } = node;
                Self { node_id: id.get(), host, port, rack, ..Self::default() }
            }

            fn node_id(&self) -> i32 {
                self.node_id
            }
        })*
    };
}

told_in!(fetch_response, produce_response, share_acknowledge_response, share_fetch_response);

impl Leader {
    /// Tells where it is, if that is known and not told yet.
    pub(crate) fn tell_address<E: NodeEndpoint>(self, endpoints: &mut Vec<E>) {
        let Some(node) = self.node else { return };
        if endpoints.iter().all(|endpoint| endpoint.node_id() != node.id.get()) {
            endpoints.push(E::of(node));
        }
    }
}
