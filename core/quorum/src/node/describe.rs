//! DescribeQuorum: see [`crate::raft::requests::k55_describe_quorum`].

use barnabas_wire::messages::{DescribeQuorumRequest, DescribeQuorumResponse};

use super::{Node, Now};
use crate::raft::requests::k55_describe_quorum;

impl Node {
    pub(super) fn describe_quorum(
        &self,
        request: &DescribeQuorumRequest,
        now: Now,
    ) -> DescribeQuorumResponse {
        k55_describe_quorum::respond(request, &self.raft, now)
    }
}
