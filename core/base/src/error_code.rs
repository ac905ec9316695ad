//! Kafka's error codes: the number on the wire, Kafka's name, and whether a client may simply try again.
//!
//! The sentence that goes with an error is written where the error arises; this table holds none.
//! Source: Kafka 4.4 `Errors`, `RetriableException`.

/// A Kafka error code. `None` is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(i16)]
pub enum ErrorCode {
    UnknownServerError = -1,
    #[default]
    None = 0,
    OffsetOutOfRange = 1,
    CorruptMessage = 2,
    UnknownTopicOrPartition = 3,
    InvalidFetchSize = 4,
    LeaderNotAvailable = 5,
    NotLeaderOrFollower = 6,
    RequestTimedOut = 7,
    BrokerNotAvailable = 8,
    ReplicaNotAvailable = 9,
    MessageTooLarge = 10,
    StaleControllerEpoch = 11,
    OffsetMetadataTooLarge = 12,
    NetworkException = 13,
    CoordinatorLoadInProgress = 14,
    CoordinatorNotAvailable = 15,
    NotCoordinator = 16,
    InvalidTopicException = 17,
    RecordListTooLarge = 18,
    NotEnoughReplicas = 19,
    NotEnoughReplicasAfterAppend = 20,
    InvalidRequiredAcks = 21,
    IllegalGeneration = 22,
    InconsistentGroupProtocol = 23,
    InvalidGroupId = 24,
    UnknownMemberId = 25,
    InvalidSessionTimeout = 26,
    RebalanceInProgress = 27,
    InvalidCommitOffsetSize = 28,
    TopicAuthorizationFailed = 29,
    GroupAuthorizationFailed = 30,
    ClusterAuthorizationFailed = 31,
    InvalidTimestamp = 32,
    UnsupportedSaslMechanism = 33,
    IllegalSaslState = 34,
    UnsupportedVersion = 35,
    TopicAlreadyExists = 36,
    InvalidPartitions = 37,
    InvalidReplicationFactor = 38,
    InvalidReplicaAssignment = 39,
    InvalidConfig = 40,
    NotController = 41,
    InvalidRequest = 42,
    UnsupportedForMessageFormat = 43,
    PolicyViolation = 44,
    OutOfOrderSequenceNumber = 45,
    DuplicateSequenceNumber = 46,
    InvalidProducerEpoch = 47,
    InvalidTxnState = 48,
    InvalidProducerIdMapping = 49,
    InvalidTransactionTimeout = 50,
    ConcurrentTransactions = 51,
    TransactionCoordinatorFenced = 52,
    TransactionalIdAuthorizationFailed = 53,
    SecurityDisabled = 54,
    OperationNotAttempted = 55,
    KafkaStorageError = 56,
    LogDirNotFound = 57,
    SaslAuthenticationFailed = 58,
    UnknownProducerId = 59,
    ReassignmentInProgress = 60,
    DelegationTokenAuthDisabled = 61,
    DelegationTokenNotFound = 62,
    DelegationTokenOwnerMismatch = 63,
    DelegationTokenRequestNotAllowed = 64,
    DelegationTokenAuthorizationFailed = 65,
    DelegationTokenExpired = 66,
    InvalidPrincipalType = 67,
    NonEmptyGroup = 68,
    GroupIdNotFound = 69,
    FetchSessionIdNotFound = 70,
    InvalidFetchSessionEpoch = 71,
    ListenerNotFound = 72,
    TopicDeletionDisabled = 73,
    FencedLeaderEpoch = 74,
    UnknownLeaderEpoch = 75,
    UnsupportedCompressionType = 76,
    StaleBrokerEpoch = 77,
    OffsetNotAvailable = 78,
    MemberIdRequired = 79,
    PreferredLeaderNotAvailable = 80,
    GroupMaxSizeReached = 81,
    FencedInstanceId = 82,
    EligibleLeadersNotAvailable = 83,
    ElectionNotNeeded = 84,
    NoReassignmentInProgress = 85,
    GroupSubscribedToTopic = 86,
    InvalidRecord = 87,
    UnstableOffsetCommit = 88,
    ThrottlingQuotaExceeded = 89,
    ProducerFenced = 90,
    ResourceNotFound = 91,
    DuplicateResource = 92,
    UnacceptableCredential = 93,
    InconsistentVoterSet = 94,
    InvalidUpdateVersion = 95,
    FeatureUpdateFailed = 96,
    PrincipalDeserializationFailure = 97,
    SnapshotNotFound = 98,
    PositionOutOfRange = 99,
    UnknownTopicId = 100,
    DuplicateBrokerRegistration = 101,
    BrokerIdNotRegistered = 102,
    InconsistentTopicId = 103,
    InconsistentClusterId = 104,
    TransactionalIdNotFound = 105,
    FetchSessionTopicIdError = 106,
    IneligibleReplica = 107,
    NewLeaderElected = 108,
    OffsetMovedToTieredStorage = 109,
    FencedMemberEpoch = 110,
    UnreleasedInstanceId = 111,
    UnsupportedAssignor = 112,
    StaleMemberEpoch = 113,
    MismatchedEndpointType = 114,
    UnsupportedEndpointType = 115,
    UnknownControllerId = 116,
    UnknownSubscriptionId = 117,
    TelemetryTooLarge = 118,
    InvalidRegistration = 119,
    TransactionAbortable = 120,
    InvalidRecordState = 121,
    ShareSessionNotFound = 122,
    InvalidShareSessionEpoch = 123,
    FencedStateEpoch = 124,
    InvalidVoterKey = 125,
    DuplicateVoter = 126,
    VoterNotFound = 127,
    InvalidRegularExpression = 128,
    RebootstrapRequired = 129,
    StreamsInvalidTopology = 130,
    StreamsInvalidTopologyEpoch = 131,
    StreamsTopologyFenced = 132,
    ShareSessionLimitReached = 133,
    GroupDeletionFailed = 134,
    StreamsTopologyDescriptionUpdateFailed = 135,
    ControllerIdNotRegistered = 136,
}

/// Code, Kafka's name, retriable: in the order of the codes, from -1.
const TABLE: [(ErrorCode, &str, bool); 138] = [
    (ErrorCode::UnknownServerError, "UNKNOWN_SERVER_ERROR", false),
    (ErrorCode::None, "NONE", false),
    (ErrorCode::OffsetOutOfRange, "OFFSET_OUT_OF_RANGE", false),
    (ErrorCode::CorruptMessage, "CORRUPT_MESSAGE", true),
    (ErrorCode::UnknownTopicOrPartition, "UNKNOWN_TOPIC_OR_PARTITION", true),
    (ErrorCode::InvalidFetchSize, "INVALID_FETCH_SIZE", false),
    (ErrorCode::LeaderNotAvailable, "LEADER_NOT_AVAILABLE", true),
    (ErrorCode::NotLeaderOrFollower, "NOT_LEADER_OR_FOLLOWER", true),
    (ErrorCode::RequestTimedOut, "REQUEST_TIMED_OUT", true),
    (ErrorCode::BrokerNotAvailable, "BROKER_NOT_AVAILABLE", false),
    (ErrorCode::ReplicaNotAvailable, "REPLICA_NOT_AVAILABLE", true),
    (ErrorCode::MessageTooLarge, "MESSAGE_TOO_LARGE", false),
    (ErrorCode::StaleControllerEpoch, "STALE_CONTROLLER_EPOCH", false),
    (ErrorCode::OffsetMetadataTooLarge, "OFFSET_METADATA_TOO_LARGE", false),
    (ErrorCode::NetworkException, "NETWORK_EXCEPTION", true),
    (ErrorCode::CoordinatorLoadInProgress, "COORDINATOR_LOAD_IN_PROGRESS", true),
    (ErrorCode::CoordinatorNotAvailable, "COORDINATOR_NOT_AVAILABLE", true),
    (ErrorCode::NotCoordinator, "NOT_COORDINATOR", true),
    (ErrorCode::InvalidTopicException, "INVALID_TOPIC_EXCEPTION", false),
    (ErrorCode::RecordListTooLarge, "RECORD_LIST_TOO_LARGE", false),
    (ErrorCode::NotEnoughReplicas, "NOT_ENOUGH_REPLICAS", true),
    (ErrorCode::NotEnoughReplicasAfterAppend, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", true),
    (ErrorCode::InvalidRequiredAcks, "INVALID_REQUIRED_ACKS", false),
    (ErrorCode::IllegalGeneration, "ILLEGAL_GENERATION", false),
    (ErrorCode::InconsistentGroupProtocol, "INCONSISTENT_GROUP_PROTOCOL", false),
    (ErrorCode::InvalidGroupId, "INVALID_GROUP_ID", false),
    (ErrorCode::UnknownMemberId, "UNKNOWN_MEMBER_ID", false),
    (ErrorCode::InvalidSessionTimeout, "INVALID_SESSION_TIMEOUT", false),
    (ErrorCode::RebalanceInProgress, "REBALANCE_IN_PROGRESS", false),
    (ErrorCode::InvalidCommitOffsetSize, "INVALID_COMMIT_OFFSET_SIZE", false),
    (ErrorCode::TopicAuthorizationFailed, "TOPIC_AUTHORIZATION_FAILED", false),
    (ErrorCode::GroupAuthorizationFailed, "GROUP_AUTHORIZATION_FAILED", false),
    (ErrorCode::ClusterAuthorizationFailed, "CLUSTER_AUTHORIZATION_FAILED", false),
    (ErrorCode::InvalidTimestamp, "INVALID_TIMESTAMP", false),
    (ErrorCode::UnsupportedSaslMechanism, "UNSUPPORTED_SASL_MECHANISM", false),
    (ErrorCode::IllegalSaslState, "ILLEGAL_SASL_STATE", false),
    (ErrorCode::UnsupportedVersion, "UNSUPPORTED_VERSION", false),
    (ErrorCode::TopicAlreadyExists, "TOPIC_ALREADY_EXISTS", false),
    (ErrorCode::InvalidPartitions, "INVALID_PARTITIONS", false),
    (ErrorCode::InvalidReplicationFactor, "INVALID_REPLICATION_FACTOR", false),
    (ErrorCode::InvalidReplicaAssignment, "INVALID_REPLICA_ASSIGNMENT", false),
    (ErrorCode::InvalidConfig, "INVALID_CONFIG", false),
    (ErrorCode::NotController, "NOT_CONTROLLER", true),
    (ErrorCode::InvalidRequest, "INVALID_REQUEST", false),
    (ErrorCode::UnsupportedForMessageFormat, "UNSUPPORTED_FOR_MESSAGE_FORMAT", false),
    (ErrorCode::PolicyViolation, "POLICY_VIOLATION", false),
    (ErrorCode::OutOfOrderSequenceNumber, "OUT_OF_ORDER_SEQUENCE_NUMBER", false),
    (ErrorCode::DuplicateSequenceNumber, "DUPLICATE_SEQUENCE_NUMBER", false),
    (ErrorCode::InvalidProducerEpoch, "INVALID_PRODUCER_EPOCH", false),
    (ErrorCode::InvalidTxnState, "INVALID_TXN_STATE", false),
    (ErrorCode::InvalidProducerIdMapping, "INVALID_PRODUCER_ID_MAPPING", false),
    (ErrorCode::InvalidTransactionTimeout, "INVALID_TRANSACTION_TIMEOUT", false),
    (ErrorCode::ConcurrentTransactions, "CONCURRENT_TRANSACTIONS", true),
    (ErrorCode::TransactionCoordinatorFenced, "TRANSACTION_COORDINATOR_FENCED", false),
    (ErrorCode::TransactionalIdAuthorizationFailed, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", false),
    (ErrorCode::SecurityDisabled, "SECURITY_DISABLED", false),
    (ErrorCode::OperationNotAttempted, "OPERATION_NOT_ATTEMPTED", false),
    (ErrorCode::KafkaStorageError, "KAFKA_STORAGE_ERROR", true),
    (ErrorCode::LogDirNotFound, "LOG_DIR_NOT_FOUND", false),
    (ErrorCode::SaslAuthenticationFailed, "SASL_AUTHENTICATION_FAILED", false),
    (ErrorCode::UnknownProducerId, "UNKNOWN_PRODUCER_ID", false),
    (ErrorCode::ReassignmentInProgress, "REASSIGNMENT_IN_PROGRESS", false),
    (ErrorCode::DelegationTokenAuthDisabled, "DELEGATION_TOKEN_AUTH_DISABLED", false),
    (ErrorCode::DelegationTokenNotFound, "DELEGATION_TOKEN_NOT_FOUND", false),
    (ErrorCode::DelegationTokenOwnerMismatch, "DELEGATION_TOKEN_OWNER_MISMATCH", false),
    (ErrorCode::DelegationTokenRequestNotAllowed, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", false),
    (ErrorCode::DelegationTokenAuthorizationFailed, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", false),
    (ErrorCode::DelegationTokenExpired, "DELEGATION_TOKEN_EXPIRED", false),
    (ErrorCode::InvalidPrincipalType, "INVALID_PRINCIPAL_TYPE", false),
    (ErrorCode::NonEmptyGroup, "NON_EMPTY_GROUP", false),
    (ErrorCode::GroupIdNotFound, "GROUP_ID_NOT_FOUND", false),
    (ErrorCode::FetchSessionIdNotFound, "FETCH_SESSION_ID_NOT_FOUND", true),
    (ErrorCode::InvalidFetchSessionEpoch, "INVALID_FETCH_SESSION_EPOCH", true),
    (ErrorCode::ListenerNotFound, "LISTENER_NOT_FOUND", true),
    (ErrorCode::TopicDeletionDisabled, "TOPIC_DELETION_DISABLED", false),
    (ErrorCode::FencedLeaderEpoch, "FENCED_LEADER_EPOCH", true),
    (ErrorCode::UnknownLeaderEpoch, "UNKNOWN_LEADER_EPOCH", true),
    (ErrorCode::UnsupportedCompressionType, "UNSUPPORTED_COMPRESSION_TYPE", false),
    (ErrorCode::StaleBrokerEpoch, "STALE_BROKER_EPOCH", false),
    (ErrorCode::OffsetNotAvailable, "OFFSET_NOT_AVAILABLE", true),
    (ErrorCode::MemberIdRequired, "MEMBER_ID_REQUIRED", false),
    (ErrorCode::PreferredLeaderNotAvailable, "PREFERRED_LEADER_NOT_AVAILABLE", true),
    (ErrorCode::GroupMaxSizeReached, "GROUP_MAX_SIZE_REACHED", false),
    (ErrorCode::FencedInstanceId, "FENCED_INSTANCE_ID", false),
    (ErrorCode::EligibleLeadersNotAvailable, "ELIGIBLE_LEADERS_NOT_AVAILABLE", true),
    (ErrorCode::ElectionNotNeeded, "ELECTION_NOT_NEEDED", true),
    (ErrorCode::NoReassignmentInProgress, "NO_REASSIGNMENT_IN_PROGRESS", false),
    (ErrorCode::GroupSubscribedToTopic, "GROUP_SUBSCRIBED_TO_TOPIC", false),
    (ErrorCode::InvalidRecord, "INVALID_RECORD", false),
    (ErrorCode::UnstableOffsetCommit, "UNSTABLE_OFFSET_COMMIT", true),
    (ErrorCode::ThrottlingQuotaExceeded, "THROTTLING_QUOTA_EXCEEDED", true),
    (ErrorCode::ProducerFenced, "PRODUCER_FENCED", false),
    (ErrorCode::ResourceNotFound, "RESOURCE_NOT_FOUND", false),
    (ErrorCode::DuplicateResource, "DUPLICATE_RESOURCE", false),
    (ErrorCode::UnacceptableCredential, "UNACCEPTABLE_CREDENTIAL", false),
    (ErrorCode::InconsistentVoterSet, "INCONSISTENT_VOTER_SET", false),
    (ErrorCode::InvalidUpdateVersion, "INVALID_UPDATE_VERSION", false),
    (ErrorCode::FeatureUpdateFailed, "FEATURE_UPDATE_FAILED", false),
    (ErrorCode::PrincipalDeserializationFailure, "PRINCIPAL_DESERIALIZATION_FAILURE", false),
    (ErrorCode::SnapshotNotFound, "SNAPSHOT_NOT_FOUND", false),
    (ErrorCode::PositionOutOfRange, "POSITION_OUT_OF_RANGE", false),
    (ErrorCode::UnknownTopicId, "UNKNOWN_TOPIC_ID", true),
    (ErrorCode::DuplicateBrokerRegistration, "DUPLICATE_BROKER_REGISTRATION", false),
    (ErrorCode::BrokerIdNotRegistered, "BROKER_ID_NOT_REGISTERED", false),
    (ErrorCode::InconsistentTopicId, "INCONSISTENT_TOPIC_ID", true),
    (ErrorCode::InconsistentClusterId, "INCONSISTENT_CLUSTER_ID", false),
    (ErrorCode::TransactionalIdNotFound, "TRANSACTIONAL_ID_NOT_FOUND", false),
    (ErrorCode::FetchSessionTopicIdError, "FETCH_SESSION_TOPIC_ID_ERROR", true),
    (ErrorCode::IneligibleReplica, "INELIGIBLE_REPLICA", false),
    (ErrorCode::NewLeaderElected, "NEW_LEADER_ELECTED", false),
    (ErrorCode::OffsetMovedToTieredStorage, "OFFSET_MOVED_TO_TIERED_STORAGE", false),
    (ErrorCode::FencedMemberEpoch, "FENCED_MEMBER_EPOCH", false),
    (ErrorCode::UnreleasedInstanceId, "UNRELEASED_INSTANCE_ID", false),
    (ErrorCode::UnsupportedAssignor, "UNSUPPORTED_ASSIGNOR", false),
    (ErrorCode::StaleMemberEpoch, "STALE_MEMBER_EPOCH", false),
    (ErrorCode::MismatchedEndpointType, "MISMATCHED_ENDPOINT_TYPE", false),
    (ErrorCode::UnsupportedEndpointType, "UNSUPPORTED_ENDPOINT_TYPE", false),
    (ErrorCode::UnknownControllerId, "UNKNOWN_CONTROLLER_ID", false),
    (ErrorCode::UnknownSubscriptionId, "UNKNOWN_SUBSCRIPTION_ID", false),
    (ErrorCode::TelemetryTooLarge, "TELEMETRY_TOO_LARGE", false),
    (ErrorCode::InvalidRegistration, "INVALID_REGISTRATION", false),
    (ErrorCode::TransactionAbortable, "TRANSACTION_ABORTABLE", false),
    (ErrorCode::InvalidRecordState, "INVALID_RECORD_STATE", false),
    (ErrorCode::ShareSessionNotFound, "SHARE_SESSION_NOT_FOUND", true),
    (ErrorCode::InvalidShareSessionEpoch, "INVALID_SHARE_SESSION_EPOCH", true),
    (ErrorCode::FencedStateEpoch, "FENCED_STATE_EPOCH", false),
    (ErrorCode::InvalidVoterKey, "INVALID_VOTER_KEY", false),
    (ErrorCode::DuplicateVoter, "DUPLICATE_VOTER", false),
    (ErrorCode::VoterNotFound, "VOTER_NOT_FOUND", false),
    (ErrorCode::InvalidRegularExpression, "INVALID_REGULAR_EXPRESSION", false),
    (ErrorCode::RebootstrapRequired, "REBOOTSTRAP_REQUIRED", false),
    (ErrorCode::StreamsInvalidTopology, "STREAMS_INVALID_TOPOLOGY", false),
    (ErrorCode::StreamsInvalidTopologyEpoch, "STREAMS_INVALID_TOPOLOGY_EPOCH", false),
    (ErrorCode::StreamsTopologyFenced, "STREAMS_TOPOLOGY_FENCED", false),
    (ErrorCode::ShareSessionLimitReached, "SHARE_SESSION_LIMIT_REACHED", true),
    (ErrorCode::GroupDeletionFailed, "GROUP_DELETION_FAILED", false),
    (ErrorCode::StreamsTopologyDescriptionUpdateFailed, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", false),
    (ErrorCode::ControllerIdNotRegistered, "CONTROLLER_ID_NOT_REGISTERED", false),
];

impl ErrorCode {
    /// The number on the wire.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The error with this number; a number that Kafka 4.4 does not know reads as `UnknownServerError`.
    pub fn from_code(code: i16) -> Self {
        let row = usize::try_from(i32::from(code) + 1).ok().and_then(|index| TABLE.get(index));
        row.map_or(Self::UnknownServerError, |row| row.0)
    }

    /// Kafka's name, as its tools print it: `NOT_LEADER_OR_FOLLOWER`.
    pub fn name(self) -> &'static str {
        TABLE[(i32::from(self.code()) + 1) as usize].1
    }

    /// Whether Kafka's clients send the request again by themselves after this answer.
    pub fn is_retriable(self) -> bool {
        TABLE[(i32::from(self.code()) + 1) as usize].2
    }

    /// Whether this is an error at all.
    pub fn is_error(self) -> bool {
        self != Self::None
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_codes() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(i32::from(row.0.code()), index as i32 - 1, "{}", row.1);
            assert_eq!(ErrorCode::from_code(row.0.code()), row.0);
        }
    }

    #[test]
    fn a_strange_code_is_an_unknown_error() {
        assert_eq!(ErrorCode::from_code(i16::MAX), ErrorCode::UnknownServerError);
        assert_eq!(ErrorCode::from_code(i16::MIN), ErrorCode::UnknownServerError);
    }
}
