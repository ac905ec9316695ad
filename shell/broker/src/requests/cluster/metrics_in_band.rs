//! The metrics through the Kafka protocol, for `barnabas hotspots --bootstrap-server`: DescribeConfigs of a resource
//! type of our own.
//!
//! Why not the metrics endpoint: it is off by default, has another address, and does not share the access control of
//! the Kafka listeners; a client that may read a broker's configuration reaches this one. Why not a request of our
//! own: Kafka may assign the API key one day, and Apache Kafka closes the connection for an unknown API key, so that
//! the tool could not report the reason. Apache Kafka refuses an unknown resource type with INVALID_REQUEST. Kafka's
//! types are powers of two, so [`RESOURCE`] stays free; it is not advertised, and only clients that request it see
//! it.
//!
//! The answer is the page of the endpoint with all buckets ([`Detail::is_fine`]) or, for the resource named [`SERIES`],
//! with the series of topics and groups instead (`barnabas top`). It is cut into configs of some lines each,
//! since a value is at most 32 KiB long; their order is the page's. It needs DESCRIBE_CONFIGS on the cluster
//! ([`metrics_refusal`]).

use crate::requests::call::{Answer, Call, Started};
use barnabas_api::k32_describe_configs::metrics_refusal;
use barnabas_base::ErrorCode;
use barnabas_metrics::Detail;
use barnabas_wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use barnabas_wire::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

/// The resource type. edge/doctor/src/metrics_page.rs knows the number too.
pub const RESOURCE: i8 = 98;
/// The resource's name that asks for topics and groups.
const SERIES: &str = "series";
/// A piece of the page: below what a string may hold.
const PIECE_BYTES: usize = 32_000;

/// Answers a request that asks for the metrics and nothing else; `None`: it is Kafka's.
pub fn describe(call: &Call, request: &DescribeConfigsRequest) -> Option<Started> {
    let [resource] = &request.resources[..] else { return None };
    if resource.resource_type != RESOURCE {
        return None;
    }
    let mut result = DescribeConfigsResult {
        resource_type: RESOURCE,
        resource_name: resource.resource_name.clone(),
        ..Default::default()
    };
    let has_series = *resource.resource_name == *SERIES;
    let moment = call.moment();
    if let Some(refusal) = metrics_refusal(&call.context(&moment)) {
        result.error_code = refusal.code.code();
        result.error_message = refusal.text();
        return Some(Started::reply(answer(result)));
    }
    let call = call.clone();
    Some(Started::wait(async move {
        let detail = Detail { is_fine: !has_series, ..Detail::default() };
        // Its share of the memory budget, as a Fetch's answer has one: who does not take it gets no second one.
        let mut claim = call.session.claim();
        match call.session.node.workers.metering.reader().ask(detail).await {
            Some(page) => {
                if !claim.try_grow_to(page.len() as u64) {
                    call.session.is_scarce.set(true);
                }
                let configs = pieces(&page).into_iter().enumerate().map(|(place, piece)| {
                    DescribeConfigsResourceResult {
                        name: format!("metrics.{place}").into(),
                        value: Some(piece.into()),
                        read_only: true,
                        ..Default::default()
                    }
                });
                result.configs = configs.collect();
            }
            None => {
                result.error_code = ErrorCode::RequestTimedOut.code();
                result.error_message = Some("too many ask for the metrics, or the node is stopping".into());
            }
        }
        Answer::Held(answer(result).into(), claim)
    }))
}

fn answer(result: DescribeConfigsResult) -> DescribeConfigsResponse {
    DescribeConfigsResponse { results: vec![result], ..Default::default() }
}

/// Whole lines, as many as fit. A line is never as long as a piece: names are ours, and labels are bounded.
fn pieces(page: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = page;
    while rest.len() > PIECE_BYTES {
        let cut = rest.as_bytes()[..PIECE_BYTES].iter().rposition(|byte| *byte == b'\n');
        let (piece, after) = rest.split_at(cut.map_or(rest.floor_char_boundary(PIECE_BYTES), |cut| cut + 1));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_lines_and_make_up_the_page() {
        for (line, lines) in [("a 1\n", 20_000), ("", 1), ("b{x=\"é\"} 2\n", 5000)] {
            let page = line.repeat(lines);
            let pieces = pieces(&page);
            assert_eq!(pieces.concat(), page);
            assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES));
            assert!(pieces.iter().all(|piece| piece.is_empty() || piece.ends_with('\n')));
        }
        // What cannot be is cut between letters.
        assert_eq!(pieces(&"é".repeat(40_000)).concat().len(), 80_000);
    }
}
