//! The first error code of an answer, for spans: of the answer itself, else of its first topic or partition with one.
//!
//! Left out: administration, describing and the quorum's own requests. Their spans have no error code.

use barnabas_wire::ResponseBody;

/// 0: the answer has none. `None`: this API's answers are not read.
pub(super) fn first_error(body: &ResponseBody) -> Option<i16> {
    use ResponseBody as Of;
    Some(match body {
        Of::Produce(answer) => first(
            0,
            answer.responses.iter().flat_map(|topic| &topic.partition_responses).map(|one| one.error_code),
        ),
        Of::Fetch(answer) => first(
            answer.error_code,
            answer.responses.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code),
        ),
        Of::ListOffsets(answer) => {
            first(0, answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code))
        }
        Of::Metadata(answer) => first(answer.error_code, answer.topics.iter().map(|topic| topic.error_code)),
        Of::OffsetCommit(answer) => {
            first(0, answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code))
        }
        Of::OffsetFetch(answer) => {
            first(answer.error_code, answer.groups.iter().map(|group| group.error_code))
        }
        Of::FindCoordinator(answer) => {
            first(answer.error_code, answer.coordinators.iter().map(|one| one.error_code))
        }
        Of::ShareFetch(answer) => first(
            answer.error_code,
            answer.responses.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code),
        ),
        Of::ShareAcknowledge(answer) => first(
            answer.error_code,
            answer.responses.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code),
        ),
        Of::CreateTopics(answer) => first(0, answer.topics.iter().map(|topic| topic.error_code)),
        Of::DeleteTopics(answer) => first(0, answer.responses.iter().map(|topic| topic.error_code)),
        Of::JoinGroup(answer) => answer.error_code,
        Of::SyncGroup(answer) => answer.error_code,
        Of::Heartbeat(answer) => answer.error_code,
        Of::LeaveGroup(answer) => answer.error_code,
        Of::ConsumerGroupHeartbeat(answer) => answer.error_code,
        Of::ShareGroupHeartbeat(answer) => answer.error_code,
        Of::InitProducerId(answer) => answer.error_code,
        Of::EndTxn(answer) => answer.error_code,
        Of::ApiVersions(answer) => answer.error_code,
        _ => return None,
    })
}

fn first(whole: i16, mut parts: impl Iterator<Item = i16>) -> i16 {
    if whole != 0 { whole } else { parts.find(|code| *code != 0).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_wire::messages::fetch_response::{FetchableTopicResponse, PartitionData};
    use barnabas_wire::messages::{DescribeClusterResponse, FetchResponse};

    #[test]
    fn first_error_is_that_of_the_answer_or_of_a_partition() {
        let partition = |error_code| PartitionData { error_code, ..Default::default() };
        let answer = |error_code, codes: &[i16]| {
            let partitions = codes.iter().map(|code| partition(*code)).collect();
            let responses = vec![FetchableTopicResponse { partitions, ..Default::default() }];
            ResponseBody::from(FetchResponse { error_code, responses, ..Default::default() })
        };
        assert_eq!(first_error(&answer(0, &[0, 6, 3])), Some(6));
        assert_eq!(first_error(&answer(70, &[0, 6])), Some(70));
        assert_eq!(first_error(&answer(0, &[0])), Some(0));
        assert_eq!(first_error(&ResponseBody::from(DescribeClusterResponse::default())), None);
    }
}
