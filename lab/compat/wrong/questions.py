"""What is asked that no client of good will asks: groups of every kind, their offsets, and transactions, each with the names of its neighbours'.

Each part gets `ask(name, api, version, **fields)`, which gives the answer as Kafka's JSON has it; `on=` names the connection. Of an answer only error
codes are compared, with where they stand (__main__.py). A part sets its own stage by the same means: what fails there shows in the comparison as well.
"""

import base64
import struct

LONG = "x" * 5000
# An unknown topic id.
NOBODYS = "AAAAAAAAAAAAAAAAAAAAKg"


def subscription(*topics):
    """What a consumer of the classic protocol says of itself (version 1)."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return base64.b64encode(struct.pack(">hi", 1, len(topics)) + names + struct.pack(">ii", -1, 0)).decode()


def offsets(topic, *pairs, metadata="", topic_id=None, version=9):
    partitions = [{"partitionIndex": index, "committedOffset": offset, "committedLeaderEpoch": -1, "committedMetadata": metadata} for index, offset in pairs]
    return [{**({"topicId": topic_id} if version >= 10 else {"name": topic}), "partitions": partitions}]


def topics(ask):
    answer = ask("topics are made", "CreateTopics", 7, timeoutMs=30_000, validateOnly=False, topics=[
        {"name": name, "numPartitions": 2, "replicationFactor": 1, "assignments": [], "configs": []} for name in ("t", "u", "gone")])
    ids = {topic["name"]: topic["topicId"] for topic in answer["topics"]}
    for kind, key in ((0, "modern"), (1, "x")):
        ask(f"the coordinators' topics are there, kind {kind}", "FindCoordinator", 4, keyType=kind, coordinatorKeys=[key])
    ask("a topic is deleted", "DeleteTopics", 6, timeoutMs=30_000, topics=[{"name": "gone", "topicId": "AAAAAAAAAAAAAAAAAAAAAA"}])
    return ids


def consumer_groups(ask, ids):
    def beat(name, version=1, **fields):
        said = {"groupId": "modern", "memberId": "one", "memberEpoch": 0, "rebalanceTimeoutMs": 60_000, "subscribedTopicNames": ["t"], "topicPartitions": []}
        return ask(f"ConsumerGroupHeartbeat {version}: {name}", "ConsumerGroupHeartbeat", version, **{**said, **fields})

    whole = {"rebalanceTimeoutMs": -1, "subscribedTopicNames": None, "topicPartitions": None}
    beat("no group", groupId="")
    beat("a blank group", groupId="  ")
    beat("no member", memberId="")
    beat("no group of that name, epoch 5", groupId="nought", memberEpoch=5, **whole)
    beat("an epoch of -3", memberEpoch=-3)
    beat("a leave for a moment without an instance", memberEpoch=-2)
    beat("a leave from a group that is not there", groupId="nought", memberEpoch=-1)
    beat("no topics", subscribedTopicNames=None)
    beat("partitions from the start", topicPartitions=[{"topicId": ids["t"], "partitions": [0]}])
    beat("nothing said of partitions", topicPartitions=None)
    beat("no rebalance timeout", rebalanceTimeoutMs=-1)
    beat("an unknown assignor", serverAssignor="nonsense")
    beat("a blank instance", instanceId=" ")
    beat("a blank rack", rackId="")
    beat("version 0 takes no expression's place", version=0, subscribedTopicNames=None)
    for pattern in ("(", "[", "a)(b", "(?=x)", "(a)\\1", "*", "a**", "a{2}{3}", "a{1001}", "\\8", "[b-a]", "(?x)a", "\\u0041", "[[:nonsense:]]", "a{,2}{3}"):
        beat(f"the expression {pattern}", groupId="patterns", memberId="bad", subscribedTopicNames=None, subscribedTopicRegex=pattern)
    for pattern in ("", "t|u", "a{", "a{,2}", "[a&&b]", "[[a]t]", "[a--]", "\\Qt\\E", "\\x74", "\\164", "(?i)T", "(?s).", "[]t]", "x{2,3}?", "\\pL", "[[:alpha:]]", "\\-t"):
        beat(f"the expression {pattern}", groupId="patterns", memberId="good", subscribedTopicNames=None, subscribedTopicRegex=pattern)
    joined = beat("joins")
    epoch = joined.get("memberEpoch", 1)
    beat("stays", memberEpoch=epoch, **whole)
    beat("a false epoch", memberEpoch=epoch + 98, **whole)
    beat("an epoch of a life before", memberEpoch=epoch - 1 or 7, **{**whole, "topicPartitions": [{"topicId": ids["u"], "partitions": [0]}]})
    beat("an unknown member", memberId="stranger", memberEpoch=epoch, **whole)
    beat("an unknown member leaves", memberId="stranger", memberEpoch=-1, **whole)
    beat("ten thousand long names", memberId="two", subscribedTopicNames=[f"{n:05}-{'y' * 200}" for n in range(10_000)])
    beat("static: joins", groupId="fixed", memberId="first", instanceId="i")
    beat("static: another process, at once", groupId="fixed", memberId="second", instanceId="i")
    beat("static: another process goes on", groupId="fixed", memberId="second", instanceId="i", memberEpoch=1, **whole)
    beat("static: an unknown instance goes on", groupId="fixed", memberId="second", instanceId="j", memberEpoch=1, **whole)
    beat("static: another process leaves", groupId="fixed", memberId="second", instanceId="i", memberEpoch=-1, **whole)
    beat("static: leaves for a moment", groupId="fixed", memberId="first", instanceId="i", memberEpoch=-2, **whole)
    beat("static: another process, then", groupId="fixed", memberId="second", instanceId="i")
    beat("static: the first one goes on", groupId="fixed", memberId="first", instanceId="i", memberEpoch=1, **whole)
    ask("ConsumerGroupDescribe: an unknown one, of a consumer group", "ConsumerGroupDescribe", 1, groupIds=["nought", "modern", ""], includeAuthorizedOperations=False)
    ask("DescribeGroups 5: an unknown one, of a consumer group", "DescribeGroups", 5, groups=["nought", "modern", ""], includeAuthorizedOperations=False)
    ask("DescribeGroups 6: an unknown one, of a consumer group", "DescribeGroups", 6, groups=["nought", "modern", ""], includeAuthorizedOperations=False)
    ask("DeleteGroups: an unknown one, with members, twice", "DeleteGroups", 2, groupsNames=["nought", "modern", "nought"])
    ask("ListGroups: unknown states and kinds", "ListGroups", 5, statesFilter=["Nonsense"], typesFilter=["nonsense"])
    commits(ask, ids, "modern", "one", epoch)


def commits(ask, ids, group, member, epoch):
    def commit(name, version=9, **fields):
        said = {"groupId": group, "memberId": member, "generationIdOrMemberEpoch": epoch, "topics": offsets("t", (0, 1))}
        return ask(f"OffsetCommit {version} to {group}: {name}", "OffsetCommit", version, **{**said, **fields})

    commit("is taken")
    commit("a stale epoch", generationIdOrMemberEpoch=epoch + 9)
    commit("an epoch of before", generationIdOrMemberEpoch=0)
    commit("no member", memberId="", generationIdOrMemberEpoch=-1)
    commit("a stranger's", memberId="stranger")
    commit("under version 8", version=8)
    commit("an unknown instance", groupInstanceId="nought")
    commit("a giant note", topics=offsets("t", (0, 1), (1, 1), metadata=LONG))
    commit("an unknown topic", topics=offsets("nought", (0, 1)))
    commit("a topic that is gone", topics=offsets("gone", (0, 1)))
    commit("unknown partitions", topics=offsets("t", (0, 1), (7, 1), (-1, 1)))
    commit("an offset of -5", topics=offsets("t", (0, -5)))
    commit("by id", version=10, topics=offsets("t", (0, 2), topic_id=ids["t"], version=10))
    commit("by an unknown id, and of what is gone", version=10,
           topics=offsets("", (0, 2), topic_id=NOBODYS, version=10) + offsets("", (0, 2), topic_id=ids["gone"], version=10))
    commit("nothing", topics=[])
    commit("no group", groupId="", memberId="", generationIdOrMemberEpoch=-1)
    for version in (8, 9):
        commit(f"an unknown group, epoch 3, version {version}", version=version, groupId="nought", memberId="x", generationIdOrMemberEpoch=3)
    commit("an unknown group, by hand", groupId="by-hand", memberId="", generationIdOrMemberEpoch=-1)

    def fetch(name, version=9, stable=False, **fields):
        said = {"groupId": group, "memberId": member, "memberEpoch": epoch, "topics": [{"name": "t", "partitionIndexes": [0, 7]}]}
        return ask(f"OffsetFetch {version} of {group}: {name}", "OffsetFetch", version, requireStable=stable, groups=[{**said, **fields}])

    fetch("is answered")
    fetch("a stale epoch", memberEpoch=epoch + 9)
    fetch("a stranger", memberId="stranger")
    fetch("no member", memberId=None, memberEpoch=-1)
    fetch("a member without an epoch", memberEpoch=-1)
    fetch("an unknown group", groupId="nought", memberId=None, memberEpoch=-1)
    fetch("an unknown group, a member", groupId="nought")
    fetch("no group", groupId="", memberId=None, memberEpoch=-1)
    fetch("an unknown topic", memberId=None, memberEpoch=-1, topics=[{"name": "nought", "partitionIndexes": [0]}])
    fetch("by unknown ids", version=10, memberId=None, memberEpoch=-1, topics=[{"topicId": NOBODYS, "partitionIndexes": [0]}, {"topicId": ids["t"], "partitionIndexes": [0]}])

    def delete(name, **fields):
        said = {"groupId": group, "topics": [{"name": "t", "partitions": [{"partitionIndex": 0}]}]}
        return ask(f"OffsetDelete of {group}: {name}", "OffsetDelete", 0, **{**said, **fields})

    delete("what is read")
    delete("what is not", topics=[{"name": "u", "partitions": [{"partitionIndex": 0}]}, {"name": "nought", "partitions": [{"partitionIndex": 0}]}])
    delete("an unknown group", groupId="nought")
    delete("no group", groupId="")


def classic_groups(ask, ids):
    def join(name, version=9, **fields):
        said = {"groupId": "classic", "sessionTimeoutMs": 300_000, "rebalanceTimeoutMs": 30_000, "memberId": "", "protocolType": "consumer",
                "protocols": [{"name": "range", "metadata": subscription("t")}]}
        return ask(f"JoinGroup {version}: {name}", "JoinGroup", version, **{**said, **fields})

    join("no group", groupId="")
    join("a session too short", sessionTimeoutMs=10)
    join("a session too long", sessionTimeoutMs=2_000_000_000)
    join("an unknown member", memberId="stranger")
    join("no protocols", protocols=[])
    join("no kind of protocol", protocolType="")
    join("no kind of protocol, version 1", version=1, protocolType="", protocols=[])
    named = join("must come back with its id").get("memberId", "")
    joined = join("comes back with its id", memberId=named)
    generation = joined.get("generationId", 1)
    join("another protocol", protocols=[{"name": "other", "metadata": subscription("t")}])
    join("another kind", protocolType="connect")
    join("an unknown instance, with an id", groupInstanceId="i", memberId="stranger")

    def sync(name, version=5, **fields):
        said = {"groupId": "classic", "generationId": generation, "memberId": named, "protocolType": "consumer", "protocolName": "range", "assignments": []}
        return ask(f"SyncGroup {version}: {name}", "SyncGroup", version, **{**said, **fields})

    sync("no group", groupId="")
    sync("an unknown group", groupId="nought")
    sync("a stranger", memberId="stranger")
    sync("an unknown generation", generationId=generation + 5)
    sync("another protocol", protocolName="other")
    sync("another kind", protocolType="connect")
    sync("no kind", protocolType=None)
    sync("an unknown instance", groupInstanceId="nought")

    def touch(name, version=4, **fields):
        return ask(f"Heartbeat {version}: {name}", "Heartbeat", version, **{"groupId": "classic", "generationId": generation, "memberId": named, **fields})

    touch("before it has its assignment")
    touch("no group", groupId="")
    touch("an unknown group", groupId="nought")
    touch("a stranger", memberId="stranger")
    touch("an unknown generation", generationId=generation + 5)
    touch("an unknown instance", groupInstanceId="nought")
    ask("OffsetCommit 8 before it has its assignment", "OffsetCommit", 8, groupId="classic", memberId=named, generationIdOrMemberEpoch=generation, topics=offsets("t", (0, 1)))
    sync("is answered", assignments=[{"memberId": named, "assignment": ""}])
    touch("is answered")
    commits(ask, ids, "classic", named, generation)
    modern = {"memberId": "m", "memberEpoch": 0, "rebalanceTimeoutMs": 60_000, "subscribedTopicNames": ["t"], "topicPartitions": []}
    join("another kind of group", groupId="workers", protocolType="connect", version=3)
    ask("ConsumerGroupHeartbeat to a group of workers", "ConsumerGroupHeartbeat", 1, groupId="workers", **modern)
    ask("ShareGroupHeartbeat to a classic group", "ShareGroupHeartbeat", 1, groupId="classic", memberId="m", memberEpoch=0, subscribedTopicNames=["t"])
    ask("ConsumerGroupDescribe: of a classic group", "ConsumerGroupDescribe", 1, groupIds=["classic"], includeAuthorizedOperations=False)
    ask("ShareGroupDescribe: of a classic group, of an unknown one", "ShareGroupDescribe", 1, groupIds=["classic", "nought", ""], includeAuthorizedOperations=False)
    ask("StreamsGroupDescribe: of a classic group, of an unknown one", "StreamsGroupDescribe", 0, groupIds=["classic", "nought", ""], includeAuthorizedOperations=False)
    leave = {"groupId": "classic"}
    ask("LeaveGroup 2: a stranger", "LeaveGroup", 2, **leave, memberId="stranger")
    ask("LeaveGroup 5: a stranger, an unknown instance, both", "LeaveGroup", 5, **leave, members=[
        {"memberId": "stranger", "groupInstanceId": None, "reason": None}, {"memberId": "", "groupInstanceId": "nought", "reason": None},
        {"memberId": named, "groupInstanceId": "nought", "reason": None}])
    ask("LeaveGroup 5: an unknown group, and none", "LeaveGroup", 5, groupId="nought", members=[{"memberId": "stranger", "groupInstanceId": None, "reason": None}])
    ask("LeaveGroup 5: no group", "LeaveGroup", 5, groupId="", members=[])


def share_groups(ask, ids):
    one = "AAAAAAAAAAAAAAAAAAAAAQ"

    def beat(name, **fields):
        said = {"groupId": "queue", "memberId": one, "memberEpoch": 0, "rackId": None, "subscribedTopicNames": ["t"]}
        return ask(f"ShareGroupHeartbeat: {name}", "ShareGroupHeartbeat", 1, **{**said, **fields})

    beat("no group", groupId="")
    beat("no member", memberId="")
    beat("an epoch of -2", memberEpoch=-2)
    beat("a blank rack", rackId=" ")
    beat("no topics", subscribedTopicNames=None)
    beat("no topics at all", subscribedTopicNames=[])
    beat("an unknown group", groupId="nought", memberEpoch=3)
    beat("a leave from an unknown group", groupId="nought", memberEpoch=-1)
    epoch = beat("joins").get("memberEpoch", 1)
    beat("a false epoch", memberEpoch=epoch + 9)
    beat("a stranger", memberId="stranger", memberEpoch=epoch)
    beat("a stranger leaves", memberId="stranger", memberEpoch=-1)
    ask("ConsumerGroupHeartbeat to a share group", "ConsumerGroupHeartbeat", 1, groupId="queue", memberId="m", memberEpoch=0, rebalanceTimeoutMs=60_000, subscribedTopicNames=["t"],
        topicPartitions=[])
    ask("JoinGroup to a share group", "JoinGroup", 3, groupId="queue", sessionTimeoutMs=30_000, rebalanceTimeoutMs=30_000, memberId="", protocolType="consumer",
        protocols=[{"name": "range", "metadata": subscription("t")}])
    ask("OffsetCommit to a share group", "OffsetCommit", 9, groupId="queue", memberId="", generationIdOrMemberEpoch=-1, topics=offsets("t", (0, 1)))
    ask("OffsetFetch of a share group", "OffsetFetch", 9, groups=[{"groupId": "queue", "memberId": None, "memberEpoch": -1, "topics": [{"name": "t", "partitionIndexes": [0]}]}], requireStable=False)
    ask("OffsetDelete of a share group", "OffsetDelete", 0, groupId="queue", topics=[{"name": "t", "partitions": [{"partitionIndex": 0}]}])

    def part(index=0, acknowledged=()):
        batches = [{"firstOffset": first, "lastOffset": last, "acknowledgeTypes": list(kinds)} for first, last, kinds in acknowledged]
        return {"partitionIndex": index, "acknowledgementBatches": batches}

    def fetch(name, version=2, **fields):
        said = {"groupId": "queue", "memberId": one, "shareSessionEpoch": 0, "maxWaitMs": 50, "minBytes": 0, "maxBytes": 1 << 20, "maxRecords": 10, "batchSize": 10,
                "topics": [{"topicId": ids["t"], "partitions": [part()]}], "forgottenTopicsData": []}
        return ask(f"ShareFetch {version}: {name}", "ShareFetch", version, on="share", **{**said, **fields})

    fetch("no group", groupId=None)
    fetch("a blank group", groupId="")
    fetch("no member", memberId=None)
    fetch("an empty member", memberId="")
    fetch("a member's id too long", memberId="m" * 37)
    fetch("an unknown session", shareSessionEpoch=5)
    fetch("the end of an unknown session", shareSessionEpoch=-1, topics=[])
    fetch("acknowledgements from the start", topics=[{"topicId": ids["t"], "partitions": [part(0, [(0, 1, [1])])]}])
    fetch("begins, before the group has an offset")
    fetch("another number", shareSessionEpoch=7)
    for number, (name, batches) in enumerate((
            ("what was not acquired", [(0, 1, [1])]), ("an unknown kind", [(0, 1, [9])]), ("no kinds", [(0, 1, [])]), ("too many kinds", [(0, 1, [1, 1, 1])]),
            ("backwards", [(5, 1, [1])]), ("one over another", [(0, 3, [1]), (2, 5, [1])]), ("a renewal that is not said", [(0, 1, [4])]),
    ), 1):
        fetch(f"acknowledges {name}", shareSessionEpoch=number, topics=[{"topicId": ids["t"], "partitions": [part(0, batches)]}])
    for kind in ("classic", "nought"):
        for number in (0, 1):
            fetch(f"as if {kind} were a share group, number {number}", groupId=kind, memberId=f"of-{kind}", shareSessionEpoch=number, maxWaitMs=1000, minBytes=1)

    def acknowledge(name, version=2, **fields):
        said = {"groupId": "queue", "memberId": "ack", "shareSessionEpoch": 1, "topics": [{"topicId": ids["t"], "partitions": [part(0, [(0, 1, [1])])]}]}
        return ask(f"ShareAcknowledge {version}: {name}", "ShareAcknowledge", version, on="share", **{**said, **fields})

    acknowledge("an unknown session")
    acknowledge("number 0", shareSessionEpoch=0)
    acknowledge("the end of an unknown session", shareSessionEpoch=-1)
    acknowledge("no group", groupId=None)
    acknowledge("no member", memberId="")
    fetch("another member begins", memberId="ack")
    acknowledge("what was not acquired")
    acknowledge("an unknown kind", shareSessionEpoch=2, topics=[{"topicId": ids["t"], "partitions": [part(0, [(0, 1, [7])])]}])
    acknowledge("an unknown topic", shareSessionEpoch=3, topics=[{"topicId": NOBODYS, "partitions": [part(0, [(0, 1, [1])])]}])
    acknowledge("an unknown partition", shareSessionEpoch=4, topics=[{"topicId": ids["t"], "partitions": [part(9, [(0, 1, [1])])]}])
    acknowledge("an old number", shareSessionEpoch=2)
    acknowledge("the end", shareSessionEpoch=-1, topics=[])
    fetch("an unknown topic", memberId="lost", topics=[{"topicId": NOBODYS, "partitions": [part()]}])
    fetch("an unknown partition", memberId="astray", topics=[{"topicId": ids["t"], "partitions": [part(9)]}])
    beat("joins again")
    moved = [{"topicName": "t", "partitions": [{"partitionIndex": 0, "startOffset": 0}, {"partitionIndex": 9, "startOffset": 0}]},
             {"topicName": "nought", "partitions": [{"partitionIndex": 0, "startOffset": 0}]}]
    for group in ("queue", "classic", ""):
        ask(f"AlterShareGroupOffsets: {group or 'no group'}, with members", "AlterShareGroupOffsets", 0, groupId=group, topics=moved)
    ask("AlterShareGroupOffsets: an unknown group", "AlterShareGroupOffsets", 0, groupId="founded", topics=moved)
    for group in ("queue", "nought", "classic", ""):
        ask(f"DeleteShareGroupOffsets: {group or 'no group'}", "DeleteShareGroupOffsets", 0, groupId=group, topics=[{"topicName": "t"}, {"topicName": "nought"}])
    beat("leaves", memberEpoch=-1)
    ask("DeleteShareGroupOffsets: unknown topics", "DeleteShareGroupOffsets", 0, groupId="queue", topics=[{"topicName": "nought"}, {"topicName": "u"}])
    ask("DeleteGroups: share groups", "DeleteGroups", 2, groupsNames=["queue", "founded"])


def streams_groups(ask, ids):
    plain = {"subtopologyId": "0", "sourceTopics": ["t"], "sourceTopicRegex": [], "stateChangelogTopics": [], "repartitionSinkTopics": [], "repartitionSourceTopics": [], "copartitionGroups": []}

    def beat(name, **fields):
        said = {"groupId": "counting", "memberId": "one", "memberEpoch": 0, "endpointInformationEpoch": 0, "rebalanceTimeoutMs": 60_000, "activeTasks": [], "standbyTasks": [], "warmupTasks": [],
                "processId": "p", "clientTags": [], "topology": {"epoch": 0, "subtopologies": [plain]}}
        return ask(f"StreamsGroupHeartbeat: {name}", "StreamsGroupHeartbeat", 0, **{**said, **fields})

    def topology(**fields):
        return {"topology": {"epoch": 0, "subtopologies": [{**plain, **fields}]}}

    def topic(name, partitions=0, replicas=0):
        return {"name": name, "partitions": partitions, "replicationFactor": replicas, "topicConfigs": []}

    whole = {"rebalanceTimeoutMs": -1, "activeTasks": None, "standbyTasks": None, "warmupTasks": None, "processId": None, "clientTags": None, "topology": None}
    beat("no group", groupId="")
    beat("no member", memberId="")
    beat("an epoch of -3", memberEpoch=-3)
    beat("a leave for a moment without an instance", memberEpoch=-2)
    beat("a blank instance", instanceId=" ")
    beat("a blank rack", rackId=" ")
    beat("no rebalance timeout", rebalanceTimeoutMs=-1)
    beat("no topology", topology=None)
    beat("tasks from the start", activeTasks=[{"subtopologyId": "0", "partitions": [0]}])
    beat("nothing said of tasks", activeTasks=None)
    beat("an unknown group", groupId="nought", memberEpoch=4, **whole)
    beat("a leave from an unknown group", groupId="nought", memberEpoch=-1, **whole)
    beat("a changelog of a bad name", groupId="s1", **topology(stateChangelogTopics=[topic("a/b")]))
    beat("a changelog with partitions of its own", groupId="s2", **topology(stateChangelogTopics=[topic("c", partitions=3)]))
    beat("a repartition topic twice", groupId="s3", **topology(repartitionSourceTopics=[topic("r"), topic("r")]))
    beat("an unknown copartition group", groupId="s4", **topology(copartitionGroups=[{"sourceTopics": [7], "sourceTopicRegex": [], "repartitionSourceTopics": []}]))
    beat("an epoch of the topology that is not the first", groupId="s5", topology={"epoch": 3, "subtopologies": [plain]})
    beat("an unknown topic", groupId="s6", **topology(sourceTopics=["nought"]))
    beat("no subtopologies", groupId="s7", topology={"epoch": 0, "subtopologies": []})
    epoch = beat("joins").get("memberEpoch", 1)
    beat("a false epoch", memberEpoch=epoch + 9, **whole)
    beat("a stranger", memberId="stranger", memberEpoch=epoch, **whole)
    beat("a stranger leaves", memberId="stranger", memberEpoch=-1, **whole)
    beat("another topology of the same epoch", memberId="two", **topology(sourceTopics=["u"]))
    beat("an older topology", memberId="three", topology={"epoch": -1, "subtopologies": [plain]})
    ask("ConsumerGroupHeartbeat to a streams group", "ConsumerGroupHeartbeat", 1, groupId="counting", memberId="m", memberEpoch=0, rebalanceTimeoutMs=60_000, subscribedTopicNames=["t"],
        topicPartitions=[])
    ask("ShareGroupHeartbeat to a streams group", "ShareGroupHeartbeat", 1, groupId="counting", memberId="m", memberEpoch=0, subscribedTopicNames=["t"])
    ask("JoinGroup to a streams group", "JoinGroup", 3, groupId="counting", sessionTimeoutMs=30_000, rebalanceTimeoutMs=30_000, memberId="", protocolType="consumer",
        protocols=[{"name": "range", "metadata": subscription("t")}])
    beat("a classic group", groupId="classic")
    beat("a consumer group", groupId="modern")
    ask("DeleteGroups: a streams group with members", "DeleteGroups", 2, groupsNames=["counting"])
    commits(ask, ids, "counting", "one", epoch)


def transactions(ask, ids):
    def init(name, version=4, **fields):
        said = {"transactionalId": "x", "transactionTimeoutMs": 60_000, "producerId": -1, "producerEpoch": -1}
        return ask(f"InitProducerId {version}: {name}", "InitProducerId", version, **{**said, **fields})

    init("an empty id", transactionalId="")
    init("no time at all", transactionTimeoutMs=0)
    init("a time below", transactionTimeoutMs=-1)
    init("a time too long", transactionTimeoutMs=2_000_000_000)
    init("no id, any time", transactionalId=None, transactionTimeoutMs=-5)
    init("no id, an unknown producer id", transactionalId=None, producerId=7, producerEpoch=3)
    init("half an identity", producerId=5)
    init("the other half", producerEpoch=5)
    given = init("is given")
    who = {"producerId": given.get("producerId", -1), "producerEpoch": given.get("producerEpoch", 0)}
    stale = {**who, "producerEpoch": who["producerEpoch"] + 3}
    stranger = {"producerId": 999_999, "producerEpoch": 0}
    init("an unknown epoch", **stale)
    init("an unknown id", **stranger)

    def add(name, version=3, topic="t", transactional_id="x", who=who, partitions=(0,)):
        return ask(f"AddPartitionsToTxn {version}: {name}", "AddPartitionsToTxn", version, v3AndBelowTransactionalId=transactional_id, v3AndBelowProducerId=who["producerId"],
                   v3AndBelowProducerEpoch=who["producerEpoch"], v3AndBelowTopics=[{"name": name, "partitions": list(partitions)} for name in topic.split()])

    def end(name, version=4, commit=True, transactional_id="x", who=who):
        return ask(f"EndTxn {version}: {name}", "EndTxn", version, transactionalId=transactional_id, committed=commit, **who)

    end("nothing is open: commit")
    end("nothing is open: abort", commit=False)
    add("an empty id", transactional_id="")
    add("an unknown id", transactional_id="nought")
    add("an unknown epoch", who=stale)
    add("an unknown producer", who=stranger)
    add("an unknown topic, and one", topic="nought t")
    add("an unknown partition", partitions=(0, 9))
    add("the cluster's own topic", topic="__consumer_offsets")
    add("no partitions", partitions=())
    for version in (4, 5):
        one = {"transactionalId": "x", **who, "verifyOnly": True, "topics": [{"name": "t", "partitions": [0, 9]}]}
        ask(f"AddPartitionsToTxn {version}: asks about what is not in it, and about an unknown one", "AddPartitionsToTxn", version,
            transactions=[one, {**one, "transactionalId": "nought"}, {**one, "transactionalId": ""}])
    offset = {"transactionalId": "x", "groupId": "by-hand", **who}
    ask("AddOffsetsToTxn 3: an unknown id", "AddOffsetsToTxn", 3, **{**offset, "transactionalId": "nought"})
    ask("AddOffsetsToTxn 3: an unknown epoch", "AddOffsetsToTxn", 3, **{**offset, **stale})
    ask("AddOffsetsToTxn 3: no id", "AddOffsetsToTxn", 3, **{**offset, "transactionalId": ""})
    ask("AddOffsetsToTxn 3: no group", "AddOffsetsToTxn", 3, **{**offset, "groupId": ""})

    def commit(name, version=3, **fields):
        said = {"transactionalId": "x", "groupId": "by-hand", **who, "generationIdOrMemberEpoch": -1, "memberId": "", "topics": offsets("t", (0, 5))}
        return ask(f"TxnOffsetCommit {version}: {name}", "TxnOffsetCommit", version, **{**said, **fields})

    commit("the group is not in the transaction")
    commit("an unknown id", transactionalId="nought")
    commit("an unknown epoch", **stale)
    commit("an unknown topic, an unknown partition", topics=offsets("nought", (0, 5)) + offsets("t", (9, 5)))
    add("is taken")
    ask("AddOffsetsToTxn 3: is taken", "AddOffsetsToTxn", 3, **offset)
    commit("is taken")
    commit("a giant note", topics=offsets("t", (0, 5), metadata=LONG))
    commit("an unknown member", groupId="modern", memberId="stranger", generationIdOrMemberEpoch=1)
    commit("an unknown group, a generation", groupId="nought", memberId="m", generationIdOrMemberEpoch=4)
    ask("OffsetFetch 9: a transaction is open", "OffsetFetch", 9, requireStable=True, groups=[{"groupId": "by-hand", "memberId": None, "memberEpoch": -1, "topics": [{"name": "t", "partitionIndexes": [0, 1]}]}])
    end("an unknown id", transactional_id="nought")
    end("an empty id", transactional_id="")
    end("an unknown producer", who=stranger)
    end("an unknown epoch", who=stale)
    end("commit")
    end("commit, again")
    end("abort after the commit", commit=False)
    for version in (5,):
        end("an unknown id", version=version, transactional_id="nought")
        end("an unknown producer", version=version, who=stranger)
        end("an unknown epoch", version=version, who=stale)
        end("nothing is open: commit", version=version)
    bumped = end("nothing is open: abort", version=5, commit=False)
    held = {"producerId": bumped.get("producerId", -1), "producerEpoch": bumped.get("producerEpoch", 0)}
    end("nothing is open: the same abort again", version=5, commit=False)
    end("nothing is open: a commit after it", version=5)
    end("a commit of nothing under the new epoch", version=5, who=held)
    add("the epoch of before", who=who)
    ask("DescribeTransactions: an unknown one, of no name", "DescribeTransactions", 0, transactionalIds=["nought", "", "x"])
    ask("ListTransactions 2: a pattern that is none", "ListTransactions", 2, stateFilters=[], producerIdFilters=[], durationFilter=-1, transactionalIdPattern="(")
    ask("ListTransactions 2: a pattern that is two", "ListTransactions", 2, stateFilters=[], producerIdFilters=[], durationFilter=-1, transactionalIdPattern="a)(b")
    ask("ListTransactions 2: unknown states", "ListTransactions", 2, stateFilters=["Nonsense"], producerIdFilters=[], durationFilter=-1, transactionalIdPattern=None)
    markers(ask, ids)


def markers(ask, ids):
    """Markers from strangers: each sender is taken for a coordinator, as none has to log in."""
    def mark(name, version=1, producer=424_242, epoch=0, coordinator=0, topic="t", partitions=(0,), commit=False):
        one = {"producerId": producer, "producerEpoch": epoch, "transactionResult": commit, "topics": [{"name": topic, "partitionIndexes": list(partitions)}], "coordinatorEpoch": coordinator}
        return ask(f"WriteTxnMarkers {version}: {name}", "WriteTxnMarkers", version, markers=[one])

    mark("an unknown producer")
    mark("an older epoch than the last", epoch=-1)
    mark("an unknown topic", topic="nought")
    mark("an unknown partition", partitions=(0, 9))
    mark("a newer coordinator", coordinator=5)
    mark("an older coordinator", coordinator=3)
    mark("an epoch that was never given", epoch=7, coordinator=5)
    mark("the epoch of before", epoch=2, coordinator=5)
    mark("an unknown group's partition", topic="__consumer_offsets", partitions=(99,))
    ask("WriteTxnMarkers 1: none", "WriteTxnMarkers", 1, markers=[])


def coordinators(ask, ids):
    for version, kind, key in ((4, 0, ""), (4, 1, ""), (4, 7, "x"), (6, 2, "nonsense"), (6, 2, "g:AAAAAAAAAAAAAAAAAAAAKg"), (6, 2, "g:AAAAAAAAAAAAAAAAAAAAKg:x"),
                               (6, 2, f"g:{NOBODYS}:0"), (6, 2, f"g:{ids['t']}:0"), (5, 2, f"g:{ids['t']}:0")):
        name = key.replace(ids["t"], "<t>")
        ask(f"FindCoordinator {version}: kind {kind}, {name or 'no key'}", "FindCoordinator", version, keyType=kind, coordinatorKeys=[key])


PARTS = (consumer_groups, classic_groups, share_groups, streams_groups, transactions, coordinators)
