"""What every client is asked to do: one function for each column, each checking content.

A scenario gets a `Cell`: topics made for it alone, client processes that end with it, and a second,
independent client (`cell.judge`) that reads back what the client under test wrote. It returns
nothing, raises `Failure` with what was expected and what came, or `NotInClient`.
"""

import hashlib
import time

from .driver import Failure, NotInClient, Refusal, until

SCENARIOS = {}
# Timestamps that scenarios give: an hour old, since retention deletes what is older than its limit.
RECENT = int(time.time() - 3600) * 1000


def scenario(name, quick=True):
    def add(function):
        SCENARIOS[name] = function
        function.quick = quick
        # The file that it stands in: scenarios, groups, transactions or shares.
        function.part = function.__module__.rpartition(".")[2]
        return function
    return add


def expect(condition, message):
    if not condition:
        raise Failure(message)


def digest(seed, length):
    """What a client shows of the payload {"rand": seed, "len": length}."""
    whole, index = hashlib.sha256(), 0
    data = b"".join(hashlib.sha256(f"{seed}:{index}".encode()).digest() for index in range((length + 31) // 32))[:length]
    if length <= 200:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    whole.update(data)
    return {"sha": whole.hexdigest()[:16], "len": length}


def value_of(spec):
    return digest(spec["rand"], spec["len"]) if isinstance(spec, dict) else spec


def check_read(read, sent, who, exact_headers=False):
    """`read` is `sent`: every record once, in order within its partition, offsets contiguous from 0."""
    by_partition = {}
    for record in read:
        by_partition.setdefault(record.partition, []).append(record)
    expect(len(read) == len(sent), f"{who} read {len(read)} records of {len(sent)}")
    for partition, records in by_partition.items():
        offsets = [record.offset for record in records]
        expect(offsets == list(range(offsets[0], offsets[0] + len(offsets))), f"{who}: offsets of partition {partition} have gaps: {offsets[:12]}")
        wanted = [r for r in sent if r.get("p", partition) == partition]
        if all("p" in r for r in sent):
            expect(len(wanted) == len(records), f"{who}: partition {partition} holds {len(records)} of {len(wanted)}")
            for record, spec in zip(records, wanted):
                check_record(record, spec, who, exact_headers)


def check_record(record, spec, who, exact_headers=False):
    expect(record.value == value_of(spec.get("v")), f"{who}: value of {record}: expected {value_of(spec.get('v'))!r}")
    expect(record.key == value_of(spec.get("k")), f"{who}: key of {record}: expected {spec.get('k')!r}")
    if "t" in spec:
        expect(record.timestamp == spec["t"], f"{who}: timestamp {record.timestamp}, expected {spec['t']}")
    if exact_headers:
        wanted = [[name, value_of(value)] for name, value in spec.get("h", [])]
        expect(record.headers == wanted, f"{who}: headers {record.headers}, expected {wanted}")


def lines(count, partitions=3, prefix="line"):
    return [{"p": n % partitions, "k": f"key-{n}", "v": f"{prefix} {n} " + "abcdefgh" * (n % 7)} for n in range(count)]


def round_trip(cell, records, partitions=3, judge=True, topic=None, exact_headers=False, **config):
    """Sends with the client, reads with it and with the judge; returns what the client read."""
    topic = topic or cell.topic(partitions)
    client = cell.client()
    results = client.produce(topic, records, **config)
    check_offsets(results, records)
    read = client.fetch(topic, list(range(partitions)), len(records))
    check_read(read, records, "the client", exact_headers)
    ends = cell.judge.offsets(topic, list(range(partitions)), "latest")
    expect(sum(ends.values()) == len(records), f"{len(records)} records sent, the log ends at {ends}")
    if judge:
        check_read(cell.judge.fetch(topic, list(range(partitions)), len(records)), records, "the judge", exact_headers)
    return read


def check_offsets(results, records):
    """The acknowledged offsets of each partition are 0, 1, 2 …, each once. kcat tells none (-1)."""
    if all(offset == -1 for _, offset in results):
        return
    told = {}
    for (partition, offset), record in zip(results, records):
        expect("p" not in record or partition == record["p"], f"sent to partition {record.get('p')}, acknowledged by {partition}")
        told.setdefault(partition, []).append(offset)
    for partition, offsets in told.items():
        expect(sorted(offsets) == list(range(len(offsets))), f"acknowledged offsets of partition {partition}: {offsets[:12]}")


# Codecs


def codec(name):
    def run(cell):
        # Small lines that compress well, and one batch of bytes that do not.
        records = lines(600) + [{"p": n % 3, "k": None, "v": {"rand": f"{name}{n}", "len": 20000}} for n in range(9)]
        round_trip(cell, records, codec=name, batch_bytes=65536)
    return run


for each in ("none", "gzip", "snappy", "lz4", "zstd"):
    scenario(each)(codec(each))


@scenario("recompress", quick=False)
def recompress(cell):
    """The topic's own compression.type: the broker compresses anew what the client sent."""
    for own in ("lz4", "zstd", "gzip", "uncompressed"):
        if own in cell.lacks:
            continue
        topic = cell.topic(1, {"compression.type": own})
        round_trip(cell, lines(200, 1), 1, topic=topic, codec="gzip")


# Records


@scenario("keys")
def keys(cell):
    """Without a partition given, equal keys go to one partition, and order within a key is kept."""
    topic = cell.topic(4)
    client = cell.client()
    records = [{"k": f"user-{n % 37}", "v": f"{n // 37}"} for n in range(370)]
    client.produce(topic, records)
    for who, reader in (("the client", client), ("the judge", cell.judge)):
        homes, orders = {}, {}
        read = reader.fetch(topic, [0, 1, 2, 3], len(records))
        expect(len(read) == len(records), f"{who} read {len(read)} of {len(records)}")
        for record in read:
            homes.setdefault(record.key, set()).add(record.partition)
            orders.setdefault(record.key, []).append(record.value)
        expect(len(homes) == 37, f"{who}: {len(homes)} keys of 37")
        expect(all(len(home) == 1 for home in homes.values()), f"{who}: a key in two partitions")
        expect(all(order == [str(n) for n in range(10)] for order in orders.values()), f"{who}: order within a key")


@scenario("headers")
def headers(cell):
    cases = [[["a", "1"]], [["a", "1"], ["b", "zwei"]], [["empty", ""]], [["größe", "ü"]], [[f"h{n}", str(n)] for n in range(50)], []]
    round_trip(cell, [{"p": 0, "k": "k", "v": f"v{n}", "h": h} for n, h in enumerate(cases)], 1, exact_headers=True)
    # Null, repeated and binary headers, for clients that can send them; the rest have passed already.
    for odd in ([["none", None]], [["twice", "1"], ["twice", "2"]], [["blob", {"rand": "h", "len": 300}]]):
        try:
            round_trip(cell, [{"p": 0, "k": "k", "v": "odd", "h": odd}], 1, exact_headers=True)
        except NotInClient:
            pass


@scenario("nulls")
def nulls(cell):
    """No value is not an empty value; no key is not an empty key."""
    round_trip(cell, [{"p": 0, "k": "k1", "v": "v"}, {"p": 0, "k": "k1", "v": None}, {"p": 0, "k": None, "v": "no key"},
                      {"p": 0, "k": "k2", "v": ""}, {"p": 0, "k": "k1", "v": None}], 1)
    # Some clients cannot say one of these; the rest have passed already.
    for odd in ({"p": 0, "k": "", "v": ""}, {"p": 0, "k": None, "v": ""}, {"p": 0, "k": None, "v": None}):
        try:
            round_trip(cell, [odd], 1)
        except NotInClient:
            pass


@scenario("sizes")
def sizes(cell):
    """1 byte to 5 MB, in one topic that allows them."""
    topic = cell.topic(1, {"max.message.bytes": "8388608"})
    lengths = (1, 2, 127, 128, 1023, 16384, 100000, 1000000, 5000000)
    records = [{"p": 0, "k": None, "v": {"rand": f"s{length}", "len": length}} for length in lengths]
    client = cell.client()
    check_offsets(client.produce(topic, records, max_bytes=8000000, delivery_ms=60000), records)
    check_read(client.fetch(topic, [0], len(records), max_bytes=8000000, timeout_ms=30000), records, "the client")
    check_read(cell.judge.fetch(topic, [0], len(records), max_bytes=8000000, timeout_ms=30000), records, "the judge")


@scenario("small-fetch", quick=False)
def small_fetch(cell):
    """A record larger than the reader's limit still arrives (KIP-74)."""
    topic = cell.topic(1, {"max.message.bytes": "8388608"})
    records = [{"p": 0, "k": None, "v": {"rand": f"f{n}", "len": 300000}} for n in range(5)]
    client = cell.client()
    client.produce(topic, records, max_bytes=8000000)
    check_read(client.fetch(topic, [0], 5, max_bytes=4096), records, "the client")


@scenario("too large")
def too_large(cell):
    """The broker refuses what the topic does not allow, by Kafka's name, and takes what follows."""
    topic = cell.topic(1, {"max.message.bytes": "20000"})
    client = cell.client()
    big = {"p": 0, "k": None, "v": {"rand": "big", "len": 50000}}
    results = client.call("produce", topic=topic, records=[big], config={"max_bytes": 1000000, "batch_bytes": 60000, "delivery_ms": 15000})["results"]
    named = str(results[0]).upper().replace("_", "").replace(" ", "")
    expect(any(word in named for word in ("MESSAGETOOLARGE", "MSGSIZETOOLARGE", "RECORDTOOLARGE", "MESSAGESIZETOOLARGE")), f"expected MESSAGE_TOO_LARGE, got {results[0]}")
    client.produce(topic, [{"p": 0, "k": None, "v": "fits"}])
    read = client.fetch(topic, [0], 1)
    expect([r.value for r in read] == ["fits"] and read[0].offset == 0, f"after the refusal: {read}")


@scenario("acks")
def acks(cell):
    topic, client, sent = cell.topic(3), cell.client(), []
    for level in ("all", "1", "0"):
        batch = lines(90, prefix=f"acks {level}")
        client.produce(topic, batch, acks=level)
        sent += batch
    for who, reader in (("the client", client), ("the judge", cell.judge)):
        check_read(reader.fetch(topic, [0, 1, 2], len(sent)), sent, who)


@scenario("auto-create", quick=False)
def auto_create(cell):
    """Producing to a topic that is not there makes it (auto.create.topics.enable)."""
    topic = cell.name("auto")
    client = cell.client()
    client.produce(topic, [{"k": None, "v": "first"}])
    read = client.fetch(topic, [0], 1)
    expect([r.value for r in read] == ["first"], f"read {read}")


@scenario("log-append")
def log_append(cell):
    """message.timestamp.type=LogAppendTime: the broker's clock, not the client's."""
    topic = cell.topic(1, {"message.timestamp.type": "LogAppendTime"})
    client = cell.client()
    before = int(time.time() * 1000)
    try:
        client.produce(topic, [{"p": 0, "k": None, "v": f"v{n}", "t": 1000} for n in range(5)])
    except NotInClient:
        client.produce(topic, [{"p": 0, "k": None, "v": f"v{n}"} for n in range(5)])
    after = int(time.time() * 1000)
    for who, reader in (("the client", client), ("the judge", cell.judge)):
        read = reader.fetch(topic, [0], 5)
        expect([r.value for r in read] == [f"v{n}" for n in range(5)], f"{who} read {read}")
        stamps = [r.timestamp for r in read if r.timestamp != -1]
        expect(all(before - 50 <= stamp <= after + 50 for stamp in stamps), f"{who}: stamps {stamps} outside {before}..{after}")


# Position


@scenario("seek time")
def seek_time(cell):
    topic = cell.topic(2)
    client = cell.client()
    base = RECENT
    records = [{"p": n % 2, "k": None, "v": f"at {n}", "t": base + n * 1000} for n in range(100)]
    client.produce(topic, records)
    read = client.fetch(topic, [0, 1], 41, {"ts": base + 59500}, timeout_ms=2500)
    got = sorted(r.value for r in read)
    expect(got == sorted(f"at {n}" for n in range(60, 100)), f"from 59.5 s on: {len(got)} records, {got[:3]}…")
    expect(client.offsets(topic, [0, 1], {"ts": base + 10000}) == {0: 5, 1: 5}, f"offsets at 10 s: {client.offsets(topic, [0, 1], {'ts': base + 10000})}")
    past = client.offsets(topic, [0, 1], {"ts": base + 10000000})
    expect(past == {0: -1, 1: -1}, f"offsets past the end: {past}")


@scenario("offsets")
def offsets(cell):
    """First and next offset; reading from the middle."""
    topic = cell.topic(2)
    client = cell.client()
    client.produce(topic, lines(100, 2))
    expect(client.offsets(topic, [0, 1], "earliest") == {0: 0, 1: 0}, "earliest is not 0")
    latest = client.offsets(topic, [0, 1], "latest")
    expect(latest == {0: 50, 1: 50}, f"latest {latest}")
    read = client.fetch(topic, [0], 20, {"off": 30})
    expect([r.offset for r in read] == list(range(30, 50)), f"from 30: {[r.offset for r in read]}")


@scenario("out of range")
def out_of_range(cell):
    """Behind the log start: with reset to earliest, reading goes on at the log start."""
    topic = cell.topic(1)
    cell.judge.produce(topic, lines(60, 1))
    cell.judge.call("delete_records", topic=topic, upto={"0": 25})
    client = cell.client()
    read = client.fetch(topic, [0], 35, {"off": 3}, reset="earliest")
    expect([r.offset for r in read] == list(range(25, 60)), f"read {[r.offset for r in read][:5]}…, {len(read)} records")
    first = client.offsets(topic, [0], "earliest")
    expect(first == {0: 25}, f"earliest {first}")


# Groups


def owners(members, topic, partitions):
    """True when the live members together own each partition exactly once."""
    owned = [p for member in members for p in member.assigned or ()]
    return len(owned) == partitions and set(owned) == {(topic, n) for n in range(partitions)}


def settled(cell, members, topic, partitions, everyone=True, seconds=30):
    def good():
        return owners(members, topic, partitions) and (not everyone or all(m.assigned for m in members))
    until(good, seconds, lambda: f"{len(members)} members sharing {partitions} partitions "
          f"(now {[len(m.assigned or ()) for m in members]}; {[e for m in members for e in m.errors][-2:]})")


def everything(members, wanted, seconds=20):
    """Waits until the members have together seen all the wanted values; returns the values as seen."""
    def seen():
        return [record[3] for member in members for record in member.seen()]
    until(lambda: set(seen()) >= set(wanted), seconds, lambda: f"all {len(wanted)} values (seen {len(set(seen()) & set(wanted))})")
    return seen()


def feed(cell, topic, partitions, count, prefix):
    records = [{"p": n % partitions, "k": None, "v": f"{prefix}{n}"} for n in range(count)]
    cell.judge.produce(topic, records)
    return [record["v"] for record in records]


def first_assignor(cell, *names):
    return cell.assignor or names[0]


@scenario("commit+resume")
def commit_resume(cell):
    topic, group = cell.topic(2), cell.name("group")
    first = feed(cell, topic, 2, 60, "a")
    one = cell.client().join(group, [topic], first_assignor(cell, "range"), commit="none")
    expect(sorted(everything([one], first)) == sorted(first), "first reader: not each value once")
    one.call("commit")
    one.call("leave")
    try:
        at = cell.client().committed(group, topic, [0, 1])
    except NotInClient:
        at = cell.judge.committed(group, topic, [0, 1])
    expect(at == {0: 30, 1: 30}, f"committed {at}")
    second = feed(cell, topic, 2, 40, "b")
    two = cell.client().join(group, [topic], first_assignor(cell, "range"))
    got = everything([two], second)
    expect(sorted(got) == sorted(second), f"resumed reader saw {len(got)} values, {len(set(got) & set(first))} of them old")


@scenario("group 2→5→3")
def group_grow(cell):
    """Five members join one by one, two leave; always each partition has one owner."""
    grow(cell, first_assignor(cell, "range"))


def grow(cell, assignor):
    topic, group, partitions = cell.topic(10), cell.name("group"), 10
    feed_all = feed(cell, topic, partitions, 100, "a")
    members = [cell.client().join(group, [topic], assignor) for _ in range(2)]
    settled(cell, members, topic, partitions)
    everything(members, feed_all)
    members += [cell.client().join(group, [topic], assignor) for _ in range(3)]
    settled(cell, members, topic, partitions)
    calm_delivery(cell, members, topic, partitions, "b")
    for leaving in members[:2]:
        leaving.call("leave")
    members = members[2:]
    settled(cell, members, topic, partitions)
    calm_delivery(cell, members, topic, partitions, "c")


def calm_delivery(cell, members, topic, partitions, prefix):
    """With the group at rest, each new record reaches exactly the owner of its partition, once."""
    time.sleep(0.7)
    settled(cell, members, topic, partitions)
    wanted = feed(cell, topic, partitions, partitions * 5, prefix)
    got = [value for value in everything(members, wanted) if value in set(wanted)]
    expect(len(got) == len(wanted), f"{len(wanted)} records delivered {len(got)} times")
    for member in members:
        strangers = {(t, p) for t, p, _, v in member.seen() if v in set(wanted)} - (member.assigned or set())
        expect(not strangers, f"records of partitions {strangers} went to a member that does not own them")


@scenario("member dies")
def member_dies(cell):
    """kill -9 of one of three: the others take over, from the committed offsets on."""
    topic, group, partitions = cell.topic(6), cell.name("group"), 6
    members = [cell.client().join(group, [topic], first_assignor(cell, "range"), session_ms=6000) for _ in range(3)]
    settled(cell, members, topic, partitions)
    first = feed(cell, topic, partitions, 60, "a")
    everything(members, first)
    time.sleep(0.5)
    dead, alive = members[0], members[1:]
    dead.kill()
    begun = time.monotonic()
    second = feed(cell, topic, partitions, 60, "b")
    settled(cell, alive, topic, partitions, seconds=25)
    expect(time.monotonic() - begun > 2, "the dead member's partitions moved before its session could have ended")
    got = everything(alive, second)
    expect(len([v for v in got if v in set(second)]) == len(second), "a record was delivered twice after the takeover")
    again = [v for m in alive for (_, p, _, v) in m.seen() if v in set(first)]
    expect(len(again) == len(set(again)), "a committed record was read again")


@scenario("static member")
def static_member(cell):
    """A static member that is killed and comes back within its session gets its partitions back, and
    nobody else notices (KIP-345)."""
    topic, group, partitions = cell.topic(6), cell.name("group"), 6
    assignor = first_assignor(cell, "range")
    members = {f"static-{n}": cell.client().join(group, [topic], assignor, static=f"static-{n}", session_ms=12000) for n in range(3)}
    settled(cell, list(members.values()), topic, partitions)
    first = feed(cell, topic, partitions, 30, "a")
    everything(list(members.values()), first)
    time.sleep(1)
    before = members["static-1"].assigned
    others = [members["static-0"], members["static-2"]]
    counts = [m.assign_count for m in others]
    members["static-1"].kill()
    back = cell.client().join(group, [topic], assignor, static="static-1", session_ms=12000)
    until(lambda: back.assigned == before, 10, lambda: f"the static member's {before} (now {back.assigned}, {back.errors[-1:]})")
    time.sleep(1)
    expect([m.assign_count for m in others] == counts, "the other members were rebalanced")
    everyone = [back, *others]
    second = feed(cell, topic, partitions, 30, "b")
    got = [v for v in everything(everyone, second) if v in set(second)]
    expect(len(got) == len(second), f"{len(second)} records delivered {len(got)} times")


def assignor_scenario(name):
    def run(cell):
        topic, group, partitions = cell.topic(6), cell.name("group"), 6
        members = [cell.client().join(group, [topic], name) for _ in range(2)]
        settled(cell, members, topic, partitions)
        first = feed(cell, topic, partitions, 30, "a")
        everything(members, first)
        kept = [set(m.assigned) for m in members]
        marks = [len(m.assignments) for m in members]
        members.append(cell.client().join(group, [topic], name))
        settled(cell, members, topic, partitions)
        if name == "cooperative":
            # A cooperative member never gives up what it keeps: each of the old members holds at least
            # two of its three partitions in every assignment that it goes through (KIP-429).
            for member, held, mark in zip(members, kept, marks):
                least = min((len(a & held) for a in member.assignments[mark:]), default=3)
                expect(least >= 2, f"a cooperative member fell to {least} of its {len(held)} partitions")
        calm_delivery(cell, members, topic, partitions, "b")
    return run


for each in ("range", "roundrobin", "sticky", "cooperative"):
    scenario(each, quick=each in ("roundrobin", "cooperative"))(assignor_scenario(each))


# Retries


@scenario("exactly once")
def exactly_once(cell):
    """Connections are cut between the write and its answer: idempotence keeps one copy, in order."""
    topic = cell.topic(2)
    proxy = cell.proxy(cut_every=3, cuts_most=8)
    client = cell.client(through_proxy=True)
    records = [{"p": n % 2, "k": str(n), "v": f"once {n} " + "x" * 150} for n in range(600)]
    results = client.produce(topic, records, idempotent=True, batch_bytes=2048, linger_ms=1, delivery_ms=60000)
    expect(proxy.cuts >= 3, f"only {proxy.cuts} connections were cut: nothing was tried")
    check_offsets(results, records)
    check_read(cell.judge.fetch(topic, [0, 1], len(records) + 1, timeout_ms=4000), records, "the judge")


# Administration


@scenario("admin topics")
def admin_topics(cell):
    client, name = cell.client(), cell.name("admin")
    client.call("create_topic", name=name, partitions=3, config={"retention.ms": "123456"})
    until(lambda: name in client.call("list_topics"), 5, "the new topic in the list")
    found = client.call("describe_topic", name=name)
    expect(found["partitions"] == 3 and found["leaders"] == [1, 1, 1] and found["replicas"] == [[1]] * 3, f"described as {found}")
    try:
        client.call("create_topic", name=name, partitions=3)
        raise Failure("creating it twice was not refused")
    except Refusal as refused:
        expect("EXIST" in refused.name.upper(), f"creating it twice: {refused}")
    try:
        client.call("create_topic", name="no/slash", partitions=1)
        raise Failure("an invalid name was not refused")
    except Refusal as refused:
        expect("TOPIC" in refused.name.upper(), f"an invalid name: {refused}")
    client.call("create_partitions", name=name, partitions=5)
    until(lambda: client.call("describe_topic", name=name)["partitions"] == 5, 5, "five partitions")
    client.produce(name, [{"p": 4, "k": None, "v": "in the fifth"}])
    client.call("delete_topic", name=name)
    until(lambda: name not in client.call("list_topics"), 5, "the topic's end")
    cluster = client.call("cluster")
    expect(cluster["brokers"] == 1 and cluster["controller"] == 1, f"cluster {cluster}")


@scenario("admin configs")
def admin_configs(cell):
    client, name = cell.client(), cell.topic(1, {"retention.ms": "123456"})
    found = client.call("get_config", type="topic", name=name)
    expect(found.get("retention.ms") == "123456", f"retention.ms is {found.get('retention.ms')}")
    expect(found.get("cleanup.policy") == "delete" and found.get("segment.bytes") == "1073741824", f"defaults: {found.get('cleanup.policy')}, {found.get('segment.bytes')}")
    client.call("set_config", type="topic", name=name, set={"retention.ms": "654321"})
    until(lambda: client.call("get_config", type="topic", name=name).get("retention.ms") == "654321", 5, "retention.ms=654321")
    try:
        client.call("set_config", type="topic", name=name, set={"retention.ms": "soon"})
        raise Failure("retention.ms=soon was not refused")
    except Refusal as refused:
        expect("CONFIG" in refused.name.upper() or "CONFIG" in str(refused).upper(), f"retention.ms=soon: {refused}")
    broker = client.call("get_config", type="broker", name="1")
    expect(broker.get("node.id") == "1", f"the broker's node.id is {broker.get('node.id')}")
    try:
        client.call("set_config", type="topic", name=name, delete=["retention.ms"])
    except NotInClient:
        return
    until(lambda: client.call("get_config", type="topic", name=name).get("retention.ms") == "604800000", 5, "the default retention.ms again")


@scenario("admin records")
def admin_records(cell):
    client, topic = cell.client(), cell.topic(2)
    client.produce(topic, lines(100, 2))
    low = client.call("delete_records", topic=topic, upto={"0": 20})
    expect({int(p): o for p, o in low.items()} == {0: 20}, f"low watermarks {low}")
    first = client.offsets(topic, [0, 1], "earliest")
    expect(first == {0: 20, 1: 0}, f"earliest {first}")
    read = client.fetch(topic, [0], 30)
    expect([r.offset for r in read] == list(range(20, 50)), f"left: {[r.offset for r in read][:3]}…")
    try:
        client.call("delete_records", topic=topic, upto={"0": 5000})
        raise Failure("deleting past the end was not refused")
    except Refusal as refused:
        expect("RANGE" in str(refused).upper() or "range" in str(refused), f"deleting past the end: {refused}")


@scenario("admin groups")
def admin_groups(cell):
    client, topic, group = cell.client(), cell.topic(2), cell.name("group")
    wanted = feed(cell, topic, 2, 20, "a")
    member = cell.client().join(group, [topic], first_assignor(cell, "range"))
    everything([member], wanted)
    expect(group in client.call("list_groups"), "the group is not listed")
    found = client.call("describe_group", group=group)
    expect(found["state"] == "Stable" and found["members"] == 1, f"with a member: {found}")
    try:
        client.call("delete_group", group=group)
        raise Failure("deleting a group with members was not refused")
    except Refusal as refused:
        expect("EMPTY" in str(refused).upper(), f"deleting a group with members: {refused}")
    member.call("leave")
    until(lambda: client.call("describe_group", group=group)["state"] == "Empty", 10, "the group empty")
    expect(client.committed(group, topic, [0, 1]) == {0: 10, 1: 10}, f"committed {client.committed(group, topic, [0, 1])}")
    client.call("delete_group", group=group)
    until(lambda: group not in client.call("list_groups"), 5, "the group's end")
