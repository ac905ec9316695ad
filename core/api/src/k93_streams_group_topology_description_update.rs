//! # StreamsGroupTopologyDescriptionUpdate, key 93, version 0
//!
//! Takes the description of its topology that a member of a streams group was asked for by the answer to a heartbeat
//! (KIP-1331). StreamsGroupDescribe shows it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//!
//! ## Left out
//! - Plug-ins but Kafka's own `InMemoryTopologyDescriptionPlugin`, which is built in, with bounds.
//!
//! Source: Kafka 4.4 `KafkaApis.handleStreamsGroupTopologyDescriptionUpdate`,
//! `GroupCoordinatorService.throwIfStreamsGroupTopologyDescriptionUpdateInvalid`.

use barnabas_base::ErrorCode;
use barnabas_metadata::config::keeps_topology_descriptions;
use barnabas_security::Operation;
use barnabas_wire::messages::{
    StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse,
};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan, k88_streams_group_heartbeat};

/// Kafka's sentence for a broker without a plug-in.
const NO_PLUG_IN: &str = "The broker has no streams group topology description plugin configured.";

/// Sends the request to the group's shard. Whether there is a plug-in comes before what the request says.
pub fn plan(
    request: StreamsGroupTopologyDescriptionUpdateRequest,
    ctx: &Context<'_>,
) -> Plan<ToShard<StreamsGroupTopologyDescriptionUpdateRequest>, StreamsGroupTopologyDescriptionUpdateResponse>
{
    if !k88_streams_group_heartbeat::is_enabled(ctx) {
        return refused(ErrorCode::UnsupportedVersion, None);
    }
    if !ctx.access.group(Operation::Read, &request.group_id) {
        return refused(ErrorCode::GroupAuthorizationFailed, None);
    }
    if !keeps_topology_descriptions(ctx.config) {
        return refused(ErrorCode::UnsupportedVersion, Some(NO_PLUG_IN));
    }
    let blank = |text: &str| text.trim().is_empty();
    if blank(&request.member_id) {
        return refused(ErrorCode::InvalidRequest, Some("MemberId can't be empty."));
    }
    if blank(&request.group_id) {
        return refused(ErrorCode::InvalidRequest, Some("GroupId can't be empty."));
    }
    match shard_here(&request.group_id, ctx) {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => refused(code, None),
    }
}

fn refused<W>(
    code: ErrorCode,
    why: Option<&'static str>,
) -> Plan<W, StreamsGroupTopologyDescriptionUpdateResponse> {
    Plan::Answer(StreamsGroupTopologyDescriptionUpdateResponse {
        error_code: code.code(),
        error_message: why.map(Into::into),
        ..Default::default()
    })
}

#[cfg(test)]
mod tests;
