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


# KIP-848: the coordinator assigns. Members hear of a change with their next heartbeat, every five seconds.


def speaks_new_groups(cell):
    if not cell.new_groups:
        raise NotInClient("it does not speak KIP-848's protocol")


@scenario("new group 2→5→3", quick=False)
def new_group_grow(cell):
    speaks_new_groups(cell)
    grow(cell, "server-uniform")


@scenario("new group range")
def new_group_range(cell):
    """The range assignor gives each of two members a stretch of neighbours; a topic that grows is noticed."""
    speaks_new_groups(cell)
    topic, group = cell.topic(4), cell.name("group")
    members = [cell.client().join(group, [topic], "server-range") for _ in range(2)]
    settled(cell, members, topic, 4)
    stretches = sorted(sorted(p for _, p in member.assigned) for member in members)
    expect(stretches == [[0, 1], [2, 3]], f"range gave {stretches}")
    cell.judge.call("create_partitions", name=topic, partitions=6)
    settled(cell, members, topic, 6)
    wanted = feed(cell, topic, 6, 30, "a")
    got = [value for value in everything(members, wanted) if value in set(wanted)]
    expect(len(got) == len(wanted), f"{len(wanted)} records delivered {len(got)} times")


@scenario("new group pattern", quick=False)
def new_group_pattern(cell):
    """A subscription by expression finds the topics that match, and those that come later."""
    speaks_new_groups(cell)
    first, group = cell.topic(2), cell.name("group")
    member = cell.client()
    member.call("join", group=group, topics=[], pattern=first[: first.rindex("-") + 1] + ".*", assignor="server-uniform", session_ms=10000, commit="poll")
    until(lambda: member.assigned == {(first, 0), (first, 1)}, 30, lambda: f"the topic that is there (now {member.assigned})")
    second = cell.topic(1)
    until(lambda: member.assigned == {(first, 0), (first, 1), (second, 0)}, 40, lambda: f"the topic that came (now {member.assigned})")


@scenario("new group static", quick=False)
def new_group_static(cell):
    """A static member that goes for a moment gets its partitions back, and nobody else notices."""
    speaks_new_groups(cell)
    topic, group, partitions = cell.topic(6), cell.name("group"), 6
    members = [cell.client().join(group, [topic], "server-uniform", static=f"static-{n}") for n in range(3)]
    settled(cell, members, topic, partitions)
    before, others = members[1].assigned, [members[0], members[2]]
    counts = [m.assign_count for m in others]
    members[1].call("leave")
    back = cell.client().join(group, [topic], "server-uniform", static="static-1")
    until(lambda: back.assigned == before, 20, lambda: f"the static member's {before} (now {back.assigned}, {back.errors[-1:]})")
    time.sleep(6)
    expect([m.assign_count for m in others] == counts, "the other members were rebalanced")


@scenario("groups migrate", quick=False)
def groups_migrate(cell):
    """A classic group, member by member to the new protocol and back, while records come: nothing is lost, nothing read by two."""
    speaks_new_groups(cell)
    topic, group, partitions = cell.topic(6), cell.name("group"), 6
    members = [cell.client().join(group, [topic], "range") for _ in range(2)]
    settled(cell, members, topic, partitions)
    for round_, assignor in enumerate(("server-uniform", "server-uniform", "range", "range")):
        everything(members, feed(cell, topic, partitions, 30, f"{round_}a"))
        leaving = members.pop(0)
        members.append(cell.client().join(group, [topic], assignor))
        settled(cell, [leaving, *members], topic, partitions, seconds=60)
        leaving.call("leave")
        settled(cell, members, topic, partitions, seconds=60)
        calm_delivery(cell, members, topic, partitions, f"{round_}b")


# Retries


# Share groups (KIP-932). A member hears of its partitions with its next heartbeat, every five seconds.


def share_group(cell, count=10, **settings):
    """A topic with records, and the name of a group that begins at the first of them."""
    if not cell.share_groups:
        raise NotInClient("it has no share consumer")
    topic, group = cell.topic(1), cell.name("group")
    settings = {"share.auto.offset.reset": "earliest", **settings}
    # Only the client itself knows of configs of groups.
    cell.client().call("set_config", type="group", name=group, set=settings)
    if count:
        cell.judge.produce(topic, [{"p": 0, "v": f"shared {n}"} for n in range(count)])
    return topic, group


def share_member(cell, group, topic, **more):
    client = cell.client()
    client.call("share_join", group=group, topic=topic, **more)
    return client


def shared(client, timeout_ms=15000):
    """Offset and delivery count of what a member gets."""
    return [(offset, count) for _, offset, count, _ in client.call("share_poll", timeout_ms / 1000 + 30, timeout_ms=timeout_ms)]


def say_of(client, got, word):
    words = {f"0:{offset}": word(offset) if callable(word) else word for offset, _ in got}
    return client.call("share_ack", words=words).get("0")


@scenario("share acks")
def share_acks(cell):
    """Accepted and rejected records are done, released ones come again, counted."""
    topic, group = share_group(cell)
    client = share_member(cell, group, topic)
    got = shared(client)
    expect(got == [(n, 1) for n in range(10)], f"first {got}")
    told = say_of(client, got, lambda n: "reject" if n == 8 else "release" if 5 <= n <= 7 else "accept")
    expect(told == "ok", f"acknowledged: {told}")
    got = shared(client)
    expect(got == [(5, 2), (6, 2), (7, 2)], f"then {got}")
    expect(say_of(client, got, "accept") == "ok", "the second acknowledgement")
    expect(shared(client, 1500) == [], "nothing is left")


@scenario("share two", quick=False)
def share_two(cell):
    """Two consumers share one partition: every record to one of them."""
    topic, group = share_group(cell, 0)
    members = [share_member(cell, group, topic, records="5") for _ in range(2)]
    for member in members:
        shared(member, 7000)
    for n in range(20):
        cell.judge.produce(topic, [{"p": 0, "v": f"{n} {m}"} for m in range(5)])
    got, end = [[], []], time.time() + 30
    while sum(map(len, got)) < 100 and time.time() < end:
        for mine, member in zip(got, members):
            some = shared(member, 300)
            if some:
                expect(say_of(member, some, "accept") == "ok", "an acknowledgement")
            mine.extend(some)
    everything_got = sorted(got[0] + got[1])
    expect(everything_got == [(n, 1) for n in range(100)], f"{len(everything_got)} deliveries")
    expect(got[0] and got[1], f"{len(got[0])} and {len(got[1])}")


@scenario("share lock", quick=False)
def share_lock(cell):
    """A lock ends, and renewing puts that off; who held the records has no say any more."""
    topic, group = share_group(cell, 4, **{"share.record.lock.duration.ms": "3000"})
    first, second = share_member(cell, group, topic), share_member(cell, group, topic)
    mine = shared(first)
    expect(mine == [(n, 1) for n in range(4)], f"first {mine}")
    for _ in range(4):
        time.sleep(1.5)
        expect(say_of(first, mine, "renew") == "ok", "a renewal")
        shared(first, 1)
    expect(shared(second, 500) == [], "what is renewed is nobody else's")
    again = shared(second)
    expect([offset for offset, _ in again] == list(range(4)) and all(count >= 2 for _, count in again), f"second {again}")
    told = say_of(first, mine, "accept")
    expect(told == "INVALID_RECORD_STATE", f"the first: {told}")
    expect(say_of(second, again, "accept") == "ok", "the second")


@scenario("share member dies", quick=False)
def share_member_dies(cell):
    """What a member held that was killed comes to another one as soon as its connection is gone."""
    topic, group = share_group(cell, 6, **{"share.record.lock.duration.ms": "60000"})
    first, second = share_member(cell, group, topic), share_member(cell, group, topic)
    expect(len(shared(first)) == 6, "the first has it all")
    expect(shared(second, 7000) == [], "the second has nothing")
    first.kill()
    begun = time.time()
    again = shared(second, 30000)
    expect(again == [(n, 2) for n in range(6)] and time.time() - begun < 10, f"after {time.time() - begun:.1f} s {again}")
    expect(say_of(second, again, "accept") == "ok", "acknowledged")


@scenario("share limits", quick=False)
def share_limits(cell):
    """No more records than asked for; who fails five times is not delivered again, and at last alone."""
    topic, group = share_group(cell, 3)
    client = share_member(cell, group, topic, records="2", acquire="record_limit")
    first = shared(client)
    expect(first == [(0, 1), (1, 1)], f"first {first}")
    expect(say_of(client, first, "release") == "ok", "released")
    counts = {n: 0 for n in range(3)}
    for offset, _ in first:
        counts[offset] += 1
    while got := shared(client, 2500):
        expect(len(got) <= 2, f"{got}")
        expect(len(got) == 1 or all(count < 5 for _, count in got), f"the last delivery is alone: {got}")
        for offset, count in got:
            counts[offset] += 1
            expect(count == counts[offset], f"{offset} is counted {count} at delivery {counts[offset]}")
        expect(say_of(client, got, "release") == "ok", "released")
    expect(set(counts.values()) == {5}, f"{counts}")


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



# Transactions


def txn(client, txid, topic, values, end, **more):
    """Writes each value to partition n % 2 within the transaction; what was refused comes back."""
    records = [{"p": n % 2, "k": None, "v": value} for n, value in enumerate(values)]
    results = client.call("txn", txid=txid, topic=topic, records=records, end=end, **more)["results"]
    return [result for result in results if isinstance(result, str)]


def committed_values(reader, topic, count, timeout_ms=15000):
    return sorted(record.value for record in reader.fetch(topic, [0, 1], count, timeout_ms=timeout_ms, isolation="committed"))


@scenario("transactions")
def transactions(cell):
    """Readers of committed records see what was committed, in its order, and nothing that was aborted or is open."""
    client, topic, txid = cell.client(), cell.topic(2), cell.name("tx")
    committed = []
    for round_number in range(12):
        values = [f"{round_number}.{n}" for n in range(20)]
        end = "abort" if round_number % 3 == 1 else "commit"
        expect(not txn(client, txid, topic, values, end), "records were refused")
        committed += values if end == "commit" else []
    expect(not txn(client, txid, topic, ["open", "open too"], "open"), "records were refused")
    for who, reader in (("the client", client), ("the judge", cell.judge)):
        found = committed_values(reader, topic, len(committed))
        expect(found == sorted(committed), f"{who} read {len(found)} of {len(committed)} committed: {found[:3]}…")
        every = reader.fetch(topic, [0, 1], 12 * 20 + 2)
        expect(len(every) == 12 * 20 + 2, f"{who} read {len(every)} records of all kinds")
        by_partition = {p: [r.value for r in every if r.partition == p] for p in (0, 1)}
        for p, values in by_partition.items():
            wanted = [f"{number}.{n}" for number in range(12) for n in range(p, 20, 2)]
            expect(values[:-1] == wanted, f"{who}: order in partition {p}: {values[:5]}…")
    late = committed_values(cell.judge, topic, len(committed) + 1, timeout_ms=1500)
    expect(len(late) == len(committed), "an open transaction was read")
    expect(not txn(client, txid, topic, ["more"], "commit"), "records were refused")
    found = committed_values(cell.judge, topic, len(committed) + 3)
    expect(found == sorted(committed + ["open", "open too", "more"]), f"after the commit: {len(found)}")


@scenario("transaction offsets")
def transaction_offsets(cell):
    """How far was read, and what was written, are committed together or not at all."""
    client, source, topic, txid, group = cell.client(), cell.topic(1), cell.topic(2), cell.name("tx"), cell.name("group")
    cell.judge.produce(source, lines(30, 1))
    stands, written = 0, []
    for round_number, end in enumerate(("commit", "abort", "commit", "abort", "commit")):
        read = client.fetch(source, [0], 10, {"off": stands})
        values = [f"{round_number}: {record.value}" for record in read[:10]]
        offsets = {"group": group, "topic": source, "offsets": {"0": stands + 10}}
        expect(not txn(client, txid, topic, values, end, offsets=offsets), "records were refused")
        if end == "commit":
            stands, written = stands + 10, written + values
        until(lambda: cell.judge.committed(group, source, [0])[0] == stands, 10, f"offset {stands} committed")
    found = committed_values(cell.judge, topic, len(written))
    expect(found == sorted(written), f"committed {len(found)} of {len(written)}")


@scenario("transaction fencing")
def transaction_fencing(cell):
    """Whoever comes last holds the transactional id: the one before can commit nothing any more."""
    topic, txid = cell.topic(2), cell.name("tx")
    first, second = cell.client(), cell.client()
    expect(not txn(first, txid, topic, ["zombie"], "open"), "records were refused")
    expect(not txn(second, txid, topic, ["heir"], "commit"), "records were refused")
    try:
        refused = txn(first, txid, topic, ["again"], "commit")
        expect(refused, "a fenced producer has committed")
    except Refusal as refused:
        # franz-go commits nothing under a producer id that has failed.
        told = str(refused).upper()
        expect(any(word in told for word in ("FENCED", "EPOCH", "ABORT", "TRANSACTION", "NOT_ATTEMPTED")), f"the fenced producer was told {refused}")
    found = committed_values(cell.judge, topic, 2, timeout_ms=3000)
    expect(found == ["heir"], f"read {found}")


@scenario("transaction timeout", quick=False)
def transaction_timeout(cell):
    """A transaction that its producer forgot ends by itself, and holds up its readers no longer."""
    topic, txid = cell.topic(2), cell.name("tx")
    client, other = cell.client(), cell.client()
    expect(not txn(client, txid, topic, ["forgotten"], "open", timeout_ms=2000), "records were refused")
    expect(not txn(other, cell.name("tx"), topic, ["in time"], "commit"), "records were refused")
    # Apache Kafka looks for such transactions every ten seconds.
    found = committed_values(cell.judge, topic, 1, timeout_ms=25000)
    expect(found == ["in time"], f"read {found}")
