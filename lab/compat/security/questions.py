"""One question or more for each API that asks the authorizer. A question changes nothing, or the same on every server: so each user asks all of them.

`t-one`, `u-other` are topics, `t-missing` is none; `g-one` is a group with offsets, `x-one` a transactional id. ACLs of literal names are for the ones
with `-one` (matrix.py); prefixes are `t-`, `g-`, `x-`. `w-any` has ACLs for `User:*`.
"""

import base64
import struct
import time

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAKg"
TOPICS = ("t-one", "u-other")
# A producer that no coordinator knows.
STRANGER = {"producerId": 12345, "producerEpoch": 0}
TOPIC, METRICS, GROUP, CLUSTER, BROKER, LOGGER = 2, 16, 32, 4, 4, 8
ANYBODYS = "w-any"


def stage(asking):
    """What the questions are about; by the super user."""
    made = asking.ask("CreateTopics", 7, timeoutMs=30_000, validateOnly=False, topics=[
        {"name": name, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []} for name in TOPICS])
    asking.ids.update({topic["topicId"]: f"<{topic['name']}>" for topic in made["topics"]})
    asking.settled("CreateTopics", 7, timeoutMs=30_000, validateOnly=False, topics=[{"name": ANYBODYS, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}])
    id = next(iter(asking.ids))
    asking.settled("FindCoordinator", 6, keyType=2, coordinatorKeys=[f"g-share:{id}:0"])
    # It loads the partition: what is asked of it later is answered.
    asking.settled("ReadShareGroupStateSummary", 0, groupId="g-share", topics=[{"topicId": id, "partitions": [{"partition": 0, "leaderEpoch": 0}]}])
    for kind, key in ((0, "g-one"), (1, "x-one")):
        asking.settled("FindCoordinator", 4, keyType=kind, coordinatorKeys=[key])
    for group in ("g-one", "h-other"):
        asking.settled("OffsetCommit", 8, **commit(group))
    for transactional_id in ("x-one", "y-other"):
        asking.settled("InitProducerId", 4, transactionalId=transactional_id, transactionTimeoutMs=60_000)
    return {name: id for id, name in asking.ids.items()}


def commit(group, topics=TOPICS):
    partition = {"partitionIndex": 0, "committedOffset": 0, "committedLeaderEpoch": -1, "committedMetadata": ""}
    return {"groupId": group, "memberId": "", "generationIdOrMemberEpoch": -1, "topics": [{"name": name, "partitions": [partition]} for name in topics]}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def batch(producer=-1, attributes=0):
    """One record, of now: retention leaves it."""
    now = int(time.time() * 1000)
    body = struct.pack(">hiqqqhii", attributes, 0, now, now, producer, 0 if producer >= 0 else -1, 0 if producer >= 0 else -1, 1) + bytes([12, 0, 0, 0, 1, 0, 0])
    return base64.b64encode(struct.pack(">qiibI", 0, len(body) + 9, 0, 2, crc32c(body)) + body).decode()


def questions(ids):
    """[(label, API, version, body)]; a body may be a function of the user's name."""
    return [*_topics(ids), *_groups(ids), *_share(ids), *_transactions(), *_administration(), *_tokens()]


def produce(transactional_id, topics, records):
    return {"transactionalId": transactional_id, "acks": 1, "timeoutMs": 9000, "topicData": [{"name": name, "partitionData": [{"index": 0, "records": records}]} for name in topics]}


def _topics(ids):
    fetched = {"partition": 0, "currentLeaderEpoch": -1, "fetchOffset": 0, "lastFetchedEpoch": -1, "logStartOffset": -1, "partitionMaxBytes": 1024}
    fetch = {"maxWaitMs": 0, "minBytes": 0, "maxBytes": 4096, "isolationLevel": 0, "sessionId": 0, "sessionEpoch": -1}
    named = [{"topicId": NO_ID, "name": name} for name in (*TOPICS, "t-missing")]
    by_id = [{"topicId": id, "name": None} for id in (*ids.values(), UNKNOWN_ID)]
    each = lambda **partition: [{"name": name, "partitions": [{"partitionIndex": 0, **partition}]} for name in TOPICS]  # noqa: E731
    return [
        ("by name", "Metadata", 9, {"topics": [{"name": name} for name in (*TOPICS, "t-missing")], "allowAutoTopicCreation": False, "includeClusterAuthorizedOperations": True, "includeTopicAuthorizedOperations": True}),
        ("all", "Metadata", 9, {"topics": None, "allowAutoTopicCreation": False, "includeClusterAuthorizedOperations": False, "includeTopicAuthorizedOperations": False}),
        ("by name", "Metadata", 12, {"topics": named, "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": False}),
        ("by id", "Metadata", 12, {"topics": by_id, "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": True}),
        ("by name", "DescribeTopicPartitions", 0, {"topics": [{"name": name} for name in (*TOPICS, "t-missing")], "responsePartitionLimit": 100, "cursor": None}),
        ("all", "DescribeTopicPartitions", 0, {"topics": [], "responsePartitionLimit": 100, "cursor": None}),
        ("", "DescribeCluster", 1, {"includeClusterAuthorizedOperations": True, "endpointType": 1}),
        ("consumer", "Fetch", 12, {"replicaId": -1, **fetch, "topics": [{"topic": name, "partitions": [fetched]} for name in TOPICS]}),
        ("consumer by id", "Fetch", 13, {"replicaId": -1, **fetch, "topics": [{"topicId": id, "partitions": [fetched]} for id in ids.values()]}),
        ("follower", "Fetch", 12, {"replicaId": 99, **fetch, "topics": [{"topic": name, "partitions": [fetched]} for name in TOPICS]}),
        ("of anybody", "Metadata", 12, {"topics": [{"topicId": NO_ID, "name": ANYBODYS}], "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": True}),
        ("of anybody", "Fetch", 12, {"replicaId": -1, **fetch, "topics": [{"topic": ANYBODYS, "partitions": [fetched]}]}),
        ("", "Produce", 9, produce(None, TOPICS, batch())),
        ("of anybody", "Produce", 9, produce(None, [ANYBODYS], batch())),
        ("transactional", "Produce", 9, produce("x-one", TOPICS, batch(12345, 16))),
        ("", "ListOffsets", 7, {"replicaId": -1, "isolationLevel": 0, "topics": each(currentLeaderEpoch=-1, timestamp=-2)}),
        ("", "OffsetForLeaderEpoch", 4, {"replicaId": -2, "topics": [{"topic": name, "partitions": [{"partition": 0, "currentLeaderEpoch": -1, "leaderEpoch": 0}]} for name in TOPICS]}),
        ("dry", "CreateTopics", 7, {"timeoutMs": 9000, "validateOnly": True, "topics": [
            {"name": name, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []} for name in ("t-new", "u-new", "t-one")]}),
        ("missing", "DeleteTopics", 6, {"timeoutMs": 9000, "topics": [{"name": name, "topicId": NO_ID} for name in ("t-missing", "u-missing")] + [{"name": None, "topicId": UNKNOWN_ID}]}),
        ("", "DeleteRecords", 2, {"timeoutMs": 9000, "topics": each(offset=0)}),
        ("dry", "CreatePartitions", 3, {"timeoutMs": 9000, "validateOnly": True, "topics": [{"name": name, "count": 2, "assignments": None} for name in TOPICS]}),
        ("", "DescribeProducers", 0, {"topics": [{"name": name, "partitionIndexes": [0]} for name in TOPICS]}),
        ("", "ElectLeaders", 2, {"electionType": 0, "timeoutMs": 9000, "topicPartitions": [{"topic": name, "partitions": [0]} for name in TOPICS]}),
        ("none", "AlterPartitionReassignments", 0, {"timeoutMs": 9000, "topics": [{"name": "t-one", "partitions": [{"partitionIndex": 0, "replicas": None}]}]}),
        ("", "ListPartitionReassignments", 0, {"timeoutMs": 9000, "topics": None}),
        ("no such directory", "AlterReplicaLogDirs", 2, {"dirs": [{"path": "/nowhere", "topics": [{"name": "t-one", "partitions": [0]}]}]}),
        ("", "DescribeLogDirs", 4, {"topics": [{"topic": "t-one", "partitions": [0]}]}),
    ]


def _groups(ids):
    member = {"groupId": "g-one", "memberId": "stranger", "generationId": 1}
    protocols = [{"name": "range", "metadata": base64.b64encode(b"\0\1\0\0\0\0\xff\xff\xff\xff").decode()}]
    beat = {"rebalanceTimeoutMs": 30_000, "subscribedTopicNames": ["t-one"], "topicPartitions": []}
    offsets = [{"name": name, "partitionIndexes": [0]} for name in TOPICS]

    def joins(user):
        return {"groupId": "g-modern", "memberId": user, "memberEpoch": 0, **beat}

    def leaves(user):
        return {"groupId": "g-modern", "memberId": user, "memberEpoch": -1, "rebalanceTimeoutMs": -1, "subscribedTopicNames": None, "topicPartitions": None}

    def streams(user):
        plain = {"subtopologyId": "0", "sourceTopics": ["t-one"], "sourceTopicRegex": [], "stateChangelogTopics": [], "repartitionSinkTopics": [], "repartitionSourceTopics": [],
                 "copartitionGroups": []}
        return {"groupId": "g-streams", "memberId": user, "memberEpoch": 0, "endpointInformationEpoch": 0, "rebalanceTimeoutMs": 60_000, "activeTasks": [], "standbyTasks": [],
                "warmupTasks": [], "processId": "p", "clientTags": [], "topology": {"epoch": 0, "subtopologies": [plain]}}

    return [
        ("groups", "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g-one", "h-other"]}),
        ("transactions", "FindCoordinator", 4, {"keyType": 1, "coordinatorKeys": ["x-one", "y-other"]}),
        ("", "OffsetCommit", 8, commit("g-one")),
        ("another group", "OffsetCommit", 8, commit("h-other")),
        ("by id", "OffsetCommit", 10, {"groupId": "g-one", "memberId": "", "generationIdOrMemberEpoch": -1, "topics": [
            {"topicId": id, "partitions": [{"partitionIndex": 0, "committedOffset": 0, "committedLeaderEpoch": -1, "committedMetadata": ""}]} for id in (*ids.values(), UNKNOWN_ID)]}),
        ("by id", "OffsetFetch", 10, {"requireStable": False, "groups": [{"groupId": "g-one", "memberId": None, "memberEpoch": -1, "topics": [
            {"topicId": id, "partitionIndexes": [0]} for id in (*ids.values(), UNKNOWN_ID)]}]}),
        ("named", "OffsetFetch", 8, {"requireStable": False, "groups": [{"groupId": group, "topics": offsets} for group in ("g-one", "h-other")]}),
        ("all", "OffsetFetch", 8, {"requireStable": False, "groups": [{"groupId": group, "topics": None} for group in ("g-one", "h-other")]}),
        ("", "JoinGroup", 9, {"groupId": "g-classic", "sessionTimeoutMs": 30_000, "rebalanceTimeoutMs": 30_000, "memberId": "stranger", "protocolType": "consumer", "protocols": protocols}),
        ("", "Heartbeat", 4, member),
        ("", "SyncGroup", 5, {**member, "protocolType": "consumer", "protocolName": "range", "assignments": []}),
        ("", "LeaveGroup", 5, {"groupId": "g-one", "members": [{"memberId": "stranger", "groupInstanceId": None, "reason": None}]}),
        ("", "DescribeGroups", 5, {"groups": ["g-one", "h-other"], "includeAuthorizedOperations": True}),
        ("", "ListGroups", 4, {"statesFilter": []}),
        ("missing", "DeleteGroups", 2, {"groupsNames": ["g-missing", "h-missing"]}),
        ("missing", "OffsetDelete", 0, {"groupId": "g-one", "topics": [{"name": name, "partitions": [{"partitionIndex": 7}]} for name in TOPICS]}),
        ("joins", "ConsumerGroupHeartbeat", 1, joins),
        ("joins with another topic", "ConsumerGroupHeartbeat", 1, lambda user: {**joins(f"{user}+"), "subscribedTopicNames": list(TOPICS)}),
        ("", "ConsumerGroupDescribe", 1, {"groupIds": ["g-modern", "g-one", "h-other"], "includeAuthorizedOperations": True}),
        ("leaves", "ConsumerGroupHeartbeat", 1, leaves),
        ("leaves again", "ConsumerGroupHeartbeat", 1, lambda user: leaves(f"{user}+")),
        ("missing", "ShareGroupDescribe", 1, {"groupIds": ["g-missing", "h-missing"], "includeAuthorizedOperations": True}),
        ("missing", "ShareGroupHeartbeat", 1, {"groupId": "g-missing", "memberId": "stranger", "memberEpoch": 5, "rackId": None, "subscribedTopicNames": None}),
        ("", "DescribeShareGroupOffsets", 0, {"groups": [{"groupId": group, "topics": [{"topicName": name, "partitions": [0]} for name in TOPICS]} for group in ("g-missing", "h-missing")]}),
        ("joins", "StreamsGroupHeartbeat", 0, streams),
        ("", "StreamsGroupDescribe", 0, {"groupIds": ["g-streams"], "includeAuthorizedOperations": True}),
        ("leaves", "StreamsGroupHeartbeat", 0, lambda user: {"groupId": "g-streams", "memberId": user, "memberEpoch": -1, "endpointInformationEpoch": 0, "rebalanceTimeoutMs": -1,
                                                            "activeTasks": None, "standbyTasks": None, "warmupTasks": None, "processId": None, "clientTags": None, "topology": None}),
        ("missing", "StreamsGroupDescribe", 0, {"groupIds": ["g-missing", "h-missing"], "includeAuthorizedOperations": True}),
    ]


def _share(ids):
    id = next(iter(ids.values()))
    partition = {"topicId": id, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": []}]}
    state = {"groupId": "g-share", "topics": [{"topicId": id, "partitions": [{"partition": 0, "leaderEpoch": 0}]}]}
    written = {"partition": 0, "leaderEpoch": 0, "stateEpoch": 0, "startOffset": 0, "stateBatches": []}
    return [
        ("share", "FindCoordinator", 6, {"keyType": 2, "coordinatorKeys": [f"g-share:{id}:0"]}),
        ("no session", "ShareFetch", 1, {"groupId": "g-share", "memberId": "stranger", "shareSessionEpoch": 7, "maxWaitMs": 0, "minBytes": 0, "maxBytes": 4096, "maxRecords": 1, "batchSize": 1,
                                         "topics": [partition], "forgottenTopicsData": []}),
        ("no session", "ShareAcknowledge", 1, {"groupId": "g-share", "memberId": "stranger", "shareSessionEpoch": 7, "topics": [partition]}),
        ("missing", "AlterShareGroupOffsets", 0, {"groupId": "g-missing", "topics": [{"topicName": name, "partitions": [{"partitionIndex": 7, "startOffset": 0}]} for name in TOPICS]}),
        ("missing", "DeleteShareGroupOffsets", 0, {"groupId": "g-missing", "topics": [{"topicName": name} for name in TOPICS]}),
        ("none", "ReadShareGroupState", 0, state),
        ("none", "ReadShareGroupStateSummary", 0, state),
        ("none", "WriteShareGroupState", 0, {"groupId": "g-share", "topics": [{"topicId": id, "partitions": [written]}]}),
        ("none", "DeleteShareGroupState", 0, {"groupId": "g-share", "topics": [{"topicId": id, "partitions": [{"partition": 0}]}]}),
    ]


def _transactions():
    partitions = [{"name": name, "partitions": [0]} for name in TOPICS]
    offsets = [{"name": name, "partitions": [{"partitionIndex": 0, "committedOffset": 0, "committedLeaderEpoch": -1, "committedMetadata": ""}]} for name in TOPICS]
    return [
        ("transactional", "InitProducerId", 4, {"transactionalId": "x-one", "transactionTimeoutMs": 60_000, "producerId": -1, "producerEpoch": -1}),
        ("another", "InitProducerId", 4, {"transactionalId": "y-other", "transactionTimeoutMs": 60_000, "producerId": -1, "producerEpoch": -1}),
        ("idempotent", "InitProducerId", 4, {"transactionalId": None, "transactionTimeoutMs": 60_000, "producerId": -1, "producerEpoch": -1}),
        ("", "AddPartitionsToTxn", 3, {"v3AndBelowTransactionalId": "x-one", "v3AndBelowProducerId": 12345, "v3AndBelowProducerEpoch": 0, "v3AndBelowTopics": partitions}),
        ("from a broker", "AddPartitionsToTxn", 4, {"transactions": [{"transactionalId": "x-one", **STRANGER, "verifyOnly": True, "topics": partitions}]}),
        ("", "AddOffsetsToTxn", 3, {"transactionalId": "x-one", **STRANGER, "groupId": "g-one"}),
        ("", "EndTxn", 3, {"transactionalId": "x-one", **STRANGER, "committed": False}),
        ("", "TxnOffsetCommit", 3, {"transactionalId": "x-one", "groupId": "g-one", **STRANGER, "generationId": -1, "memberId": "", "groupInstanceId": None, "topics": offsets}),
        ("", "WriteTxnMarkers", 1, {"markers": [{**STRANGER, "transactionResult": False, "topics": [{"name": "t-one", "partitionIndexes": [0]}], "coordinatorEpoch": 0}]}),
        ("", "DescribeTransactions", 0, {"transactionalIds": ["x-one", "y-other"]}),
        ("", "ListTransactions", 0, {"stateFilters": [], "producerIdFilters": []}),
    ]


def _administration():
    def resources(**more):
        return [{"resourceType": kind, "resourceName": name, **more} for kind, name in ((2, "t-one"), (2, "u-other"), (GROUP, "g-one"), (BROKER, "1"), (LOGGER, "1"), (METRICS, "m"))]

    altered = [{"name": "retention.ms", "configOperation": 0, "value": "3600000"}]
    acl = {"resourceType": 2, "resourceName": "", "resourcePatternType": 3, "principal": "User:x", "host": "*", "operation": 3, "permissionType": 3}
    nothing = {"resourceTypeFilter": 2, "resourceNameFilter": "t-without-acls", "patternTypeFilter": 3, "principalFilter": None, "hostFilter": None, "operation": 1, "permissionType": 1}
    quota = [{"entity": [{"entityType": "user", "entityName": "x"}], "ops": [{"key": "producer_byte_rate", "value": 1024.0, "remove": False}]}]
    return [
        ("", "DescribeConfigs", 4, {"resources": [{**one, "configurationKeys": ["cleanup.policy"]} for one in resources()], "includeSynonyms": False, "includeDocumentation": False}),
        ("dry", "IncrementalAlterConfigs", 1, {"validateOnly": True, "resources": [{**one, "configs": altered if one["resourceType"] == 2 else []} for one in resources()]}),
        ("dry", "AlterConfigs", 2, {"validateOnly": True, "resources": [{"resourceType": 2, "resourceName": name, "configs": [{"name": "retention.ms", "value": "3600000"}]} for name in TOPICS]}),
        ("none", "DescribeAcls", 3, nothing),
        ("invalid", "CreateAcls", 3, {"creations": [acl]}),
        ("none", "DeleteAcls", 3, {"filters": [nothing]}),
        ("", "DescribeClientQuotas", 1, {"components": [{"entityType": "ip", "matchType": 0, "match": "10.9.8.7"}], "strict": False}),
        ("dry", "AlterClientQuotas", 1, {"entries": quota, "validateOnly": True}),
        ("missing", "DescribeUserScramCredentials", 0, {"users": [{"name": "missing"}]}),
        ("missing", "AlterUserScramCredentials", 0, {"deletions": [{"name": "missing", "mechanism": 1}], "upsertions": []}),
        ("", "ListConfigResources", 1, {"resourceTypes": [2]}),
        ("", "DescribeQuorum", 2, {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}),
        ("dry", "UpdateFeatures", 1, {"timeoutMs": 9000, "featureUpdates": [{"feature": "no.such.feature", "maxVersionLevel": 1, "upgradeType": 1}], "validateOnly": True}),
        ("missing", "UnregisterBroker", 0, {"brokerId": 99}),
        ("another cluster", "AddRaftVoter", 0, {"clusterId": "another", "timeoutMs": 9000, "voterId": 99, "voterDirectoryId": UNKNOWN_ID, "listeners": [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}]}),
        ("missing", "RemoveRaftVoter", 0, {"clusterId": None, "voterId": 99, "voterDirectoryId": UNKNOWN_ID}),
    ]


def _tokens():
    hmac = base64.b64encode(b"x" * 64).decode()
    return [
        # Before tokens are made: Apache's brokers learn of those with the next publication.
        ("of another", "DescribeDelegationToken", 3, {"owners": [{"principalType": "User", "principalName": "one"}]}),
        ("own", "CreateDelegationToken", 3, {"ownerPrincipalType": "", "ownerPrincipalName": "", "renewers": [], "maxLifetimeMs": -1}),
        ("for another", "CreateDelegationToken", 3, {"ownerPrincipalType": "User", "ownerPrincipalName": "one", "renewers": [], "maxLifetimeMs": -1}),
        ("renewer of another type", "CreateDelegationToken", 3, {"ownerPrincipalType": "", "ownerPrincipalName": "", "renewers": [{"principalType": "Group", "principalName": "x"}], "maxLifetimeMs": -1}),
        ("missing", "RenewDelegationToken", 2, {"hmac": hmac, "renewPeriodMs": -1}),
        ("missing", "ExpireDelegationToken", 2, {"hmac": hmac, "expiryTimePeriodMs": -1}),
    ]
