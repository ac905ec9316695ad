//! How Kafka's tools print a broker's error: the class of Java's exception and its message.
//!
//! Scripts look for these names in the output of Kafka's tools. The default messages are those of codes that brokers
//! send to these tools without a message.
//!
//! Source: Kafka 4.4 `Errors`.

use barnabas_base::ErrorCode;
use barnabas_client::ClientError;

const PACKAGE: &str = "org.apache.kafka.common.errors.";

/// Exceptions that are not called as their error is: NAME → NameException.
const IRREGULAR: &[(ErrorCode, &str)] = &[
    (ErrorCode::UnknownServerError, "UnknownServerException"),
    (ErrorCode::CorruptMessage, "CorruptRecordException"),
    (ErrorCode::RequestTimedOut, "TimeoutException"),
    (ErrorCode::MessageTooLarge, "RecordTooLargeException"),
    (ErrorCode::StaleControllerEpoch, "ControllerMovedException"),
    (ErrorCode::OffsetMetadataTooLarge, "OffsetMetadataTooLarge"),
    (ErrorCode::NetworkException, "NetworkException"),
    (ErrorCode::InvalidTopicException, "InvalidTopicException"),
    (ErrorCode::RecordListTooLarge, "RecordBatchTooLargeException"),
    (ErrorCode::TopicAuthorizationFailed, "TopicAuthorizationException"),
    (ErrorCode::GroupAuthorizationFailed, "GroupAuthorizationException"),
    (ErrorCode::ClusterAuthorizationFailed, "ClusterAuthorizationException"),
    (ErrorCode::TopicAlreadyExists, "TopicExistsException"),
    (ErrorCode::InvalidConfig, "InvalidConfigurationException"),
    (ErrorCode::OutOfOrderSequenceNumber, "OutOfOrderSequenceException"),
    (ErrorCode::DuplicateSequenceNumber, "DuplicateSequenceException"),
    (ErrorCode::InvalidProducerIdMapping, "InvalidPidMappingException"),
    (ErrorCode::InvalidTransactionTimeout, "InvalidTxnTimeoutException"),
    (ErrorCode::TransactionalIdAuthorizationFailed, "TransactionalIdAuthorizationException"),
    (ErrorCode::KafkaStorageError, "KafkaStorageException"),
    (ErrorCode::NonEmptyGroup, "GroupNotEmptyException"),
    (ErrorCode::InvalidRegularExpression, "InvalidRegularExpression"),
];

const MESSAGES: &[(ErrorCode, &str)] = &[
    (
        ErrorCode::UnknownServerError,
        "The server experienced an unexpected error when processing the request.",
    ),
    (
        ErrorCode::OffsetOutOfRange,
        "The requested offset is not within the range of offsets maintained by the server.",
    ),
    (ErrorCode::UnknownTopicOrPartition, "This server does not host this topic-partition."),
    (
        ErrorCode::LeaderNotAvailable,
        "There is no leader for this topic-partition as we are in the middle of a leadership election.",
    ),
    (ErrorCode::RequestTimedOut, "The request timed out."),
    (ErrorCode::BrokerNotAvailable, "The broker is not available."),
    (ErrorCode::CoordinatorNotAvailable, "The coordinator is not available."),
    (ErrorCode::InvalidTopicException, "The request attempted to perform an operation on an invalid topic."),
    (ErrorCode::InvalidGroupId, "The group id is invalid."),
    (ErrorCode::TopicAuthorizationFailed, "Topic authorization failed."),
    (ErrorCode::GroupAuthorizationFailed, "Group authorization failed."),
    (ErrorCode::ClusterAuthorizationFailed, "Cluster authorization failed."),
    (ErrorCode::TransactionalIdAuthorizationFailed, "Transactional Id authorization failed."),
    (ErrorCode::UnsupportedVersion, "The version of API is not supported."),
    (ErrorCode::InvalidReplicaAssignment, "Replica assignment is invalid."),
    (ErrorCode::InvalidConfig, "Configuration is invalid."),
    (ErrorCode::InvalidRequest, "The request is malformed, or the broker does not serve it."),
    (ErrorCode::PolicyViolation, "Request parameters do not satisfy the configured policy."),
    (ErrorCode::InvalidProducerEpoch, "Producer attempted to produce with an old epoch."),
    (ErrorCode::InvalidTxnState, "The producer attempted a transactional operation in an invalid state."),
    (ErrorCode::NonEmptyGroup, "The group is not empty."),
    (ErrorCode::GroupIdNotFound, "The group id does not exist."),
    (ErrorCode::KafkaStorageError, "Disk error when trying to access log file on the disk."),
    (ErrorCode::NoReassignmentInProgress, "No partition reassignment is in progress."),
    (
        ErrorCode::GroupSubscribedToTopic,
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
    ),
    (ErrorCode::BrokerIdNotRegistered, "The given broker ID was not registered."),
    (ErrorCode::TransactionalIdNotFound, "The transactionalId could not be found."),
];

/// The exception's class without its package.
fn class(code: ErrorCode) -> String {
    if let Some((_, class)) = IRREGULAR.iter().find(|(irregular, _)| *irregular == code) {
        return (*class).to_owned();
    }
    let words = code.name().split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{first}{}", rest.to_lowercase())
    });
    words.collect::<String>() + "Exception"
}

/// The broker's message or, where it sent none, Kafka's for the code.
pub fn message(code: ErrorCode, told: Option<&str>) -> String {
    if let Some(told) = told.filter(|told| !told.is_empty()) {
        return told.to_owned();
    }
    let known = MESSAGES.iter().find(|(known, _)| *known == code);
    known.map_or_else(|| code.name().to_owned(), |(_, message)| (*message).to_owned())
}

/// `org.apache.kafka.common.errors.GroupNotEmptyException: The group is not empty.`
pub fn thrown(code: ErrorCode, told: Option<&str>) -> String {
    format!("{PACKAGE}{}: {}", class(code), message(code, told))
}

/// [`thrown`] for a broker's refusal; other errors in their own words.
pub fn of(error: &ClientError) -> String {
    match error {
        ClientError::Refused { code, message, .. } => thrown(*code, Some(message)),
        other => other.to_string(),
    }
}

/// The class of Java's exception and its message, as callbacks of Kafka's clients get them.
pub fn class_and_message(error: &ClientError) -> (String, String) {
    match error {
        ClientError::Refused { code, message: told, .. } => {
            (format!("{PACKAGE}{}", class(*code)), message(*code, Some(told)))
        }
        ClientError::TimedOut { .. } => (format!("{PACKAGE}TimeoutException"), error.to_string()),
        ClientError::Unreachable { .. } | ClientError::Lost { .. } => {
            (format!("{PACKAGE}NetworkException"), error.to_string())
        }
        _ => ("org.apache.kafka.common.KafkaException".to_owned(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_worded_as_in_kafkas_tools() {
        for (code, told, words) in [
            (
                ErrorCode::GroupIdNotFound,
                Some("Group g not found."),
                "GroupIdNotFoundException: Group g not found.",
            ),
            (ErrorCode::NonEmptyGroup, None, "GroupNotEmptyException: The group is not empty."),
            (ErrorCode::NonEmptyGroup, Some(""), "GroupNotEmptyException: The group is not empty."),
            (
                ErrorCode::UnknownTopicOrPartition,
                None,
                "UnknownTopicOrPartitionException: This server does not host this topic-partition.",
            ),
        ] {
            assert_eq!(thrown(code, told), format!("{PACKAGE}{words}"));
        }
    }
}
