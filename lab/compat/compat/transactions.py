"""Transactions, as their clients write and read them.

Three questions are asked over and over: does a reader of committed records see all that was committed and nothing else; does whoever was
replaced write nothing any more; does what a transaction has read move on with what it wrote, or not at all.
"""

import time

from .driver import Failure, NotInClient, Refusal, until
from .raw import configure_group
from .scenarios import expect, lines, scenario


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


# What a producer may be told that does not hold its transactional id any more. franz-go commits nothing under a producer id that has failed.
FENCED = ("FENCED", "EPOCH", "ABORT", "TRANSACTION", "TXN", "NOT_ATTEMPTED", "PRODUCER")


def refused(function):
    """What the client was told, upper case; "" where nothing was refused."""
    try:
        return " ".join(function() or ()).upper()
    except Refusal as told:
        return str(told).upper()


@scenario("transaction taken over", quick=False)
def transaction_taken_over(cell):
    """Two producers with one transactional id in turns: each start fences the other, and only what its holder committed is read."""
    topic, txid = cell.topic(2), cell.name("tx")
    first, second = cell.client(), cell.client()
    committed = []
    for round_number in range(3):
        for who, (holder, other) in enumerate(((first, second), (second, first))):
            mine = [f"{round_number}{who} kept", f"{round_number}{who} kept too"]
            expect(not txn(holder, txid, topic, mine, "commit", init=True), "the holder's records were refused")
            committed += mine
            expect(not txn(holder, txid, topic, [f"{round_number}{who} lost"], "open"), "the holder's records were refused")
            if round_number or who:
                told = refused(lambda: txn(other, txid, topic, [f"{round_number}{who} stale"], "commit"))
                expect(any(word in told for word in FENCED), f"whoever was fenced was told {told or 'nothing'}")
    expect(not txn(first, txid, topic, ["the end"], "commit", init=True), "the last holder's records were refused")
    committed.append("the end")
    found = committed_values(cell.judge, topic, len(committed) + 1, timeout_ms=4000)
    expect(found == sorted(committed), f"read {len(found)} of {len(committed)}: {sorted(set(found) ^ set(committed))[:3]}")


@scenario("transaction heir", quick=False)
def transaction_heir(cell):
    """A producer is killed within its transaction: the next with its transactional id ends that at once, and readers wait no longer."""
    topic, txid = cell.topic(2), cell.name("tx")
    dead = cell.client()
    expect(not txn(dead, txid, topic, ["never", "ever"], "open", timeout_ms=300000), "records were refused")
    dead.kill()
    other = cell.client()
    expect(not txn(other, cell.name("tx"), topic, ["waits", "too"], "commit"), "records were refused")
    found = committed_values(cell.judge, topic, 1, timeout_ms=1500)
    expect(found == [], f"read past an open transaction: {found}")
    heir = cell.client()
    begun = time.monotonic()
    expect(not txn(heir, txid, topic, ["at last"], "commit", timeout_ms=300000), "records were refused")
    found = committed_values(cell.judge, topic, 3, timeout_ms=10000)
    expect(found == ["at last", "too", "waits"], f"read {found}")
    expect(time.monotonic() - begun < 20, f"the heir took {time.monotonic() - begun:.0f} s")


@scenario("transaction forgotten", quick=False)
def transaction_forgotten(cell):
    """A producer whose transaction timed out may not commit it; made anew, it goes on."""
    client, topic, txid = cell.client(), cell.topic(2), cell.name("tx")
    expect(not txn(client, txid, topic, ["too late"], "open", timeout_ms=2000), "records were refused")
    other = cell.client()
    expect(not txn(other, cell.name("tx"), topic, ["in time"], "commit"), "records were refused")
    # Apache Kafka looks for such transactions every ten seconds.
    expect(committed_values(cell.judge, topic, 1, timeout_ms=25000) == ["in time"], "the transaction did not end by itself")
    told = refused(lambda: txn(client, txid, topic, [], "commit"))
    expect(any(word in told for word in FENCED), f"it was told {told or 'nothing'}")
    expect(not txn(client, txid, topic, ["again"], "commit", init=True), "the producer that was made anew was refused")
    found = committed_values(cell.judge, topic, 2)
    expect(found == ["again", "in time"], f"read {found}")


@scenario("transaction wide", quick=False)
def transaction_wide(cell):
    """Forty partitions in one transaction: all or nothing, and in each partition the order of writing."""
    client, topic, txid = cell.client(), cell.topic(40), cell.name("tx")
    for round_number, end in enumerate(("commit", "abort", "commit")):
        records = [{"p": n % 40, "k": None, "v": f"{round_number}.{n}"} for n in range(200)]
        results = client.call("txn", txid=txid, topic=topic, records=records, end=end)["results"]
        expect(not [result for result in results if isinstance(result, str)], f"records were refused: {results[:3]}")
    read = cell.judge.fetch(topic, list(range(40)), 401, timeout_ms=4000, isolation="committed")
    expect(len(read) == 400, f"read {len(read)} of 400 committed")
    for p in range(40):
        values = [record.value for record in read if record.partition == p]
        expect(values == [f"{number}.{n}" for number in (0, 2) for n in range(p, 200, 40)], f"partition {p}: {values}")


@scenario("transaction empty", quick=False)
def transaction_empty(cell):
    """Transactions in which nothing is written end as well as any, between others."""
    client, topic, txid = cell.client(), cell.topic(2), cell.name("tx")
    for number, end in enumerate(("commit", "abort", "commit", "commit")):
        expect(not txn(client, txid, topic, [], end), "an empty transaction was refused")
        expect(not txn(client, txid, topic, [f"after {number}"], "commit"), "records were refused")
    found = committed_values(cell.judge, topic, 5, timeout_ms=3000)
    expect(found == [f"after {n}" for n in range(4)], f"read {found}")


# Read, process, write: a member of a group hands on what it read, and how far it read is part of the transaction.


def members_pipe(client, txid, group, source, topic, end, assignor="server-uniform", **more):
    """Reads `count` records as a member, writes "value!" for each, stores how far it read, ends the transaction; `open`: only reads and writes."""
    return client.call("pipe", 90, txid=txid, group=group, source=source, topic=topic, end=end, assignor=assignor, **more)


def prepared(cell, count):
    source, topic, group = cell.topic(1), cell.topic(2), cell.name("group")
    configure_group(cell.server.port, group, {"consumer.session.timeout.ms": 6000, "consumer.heartbeat.interval.ms": 1000})
    cell.judge.produce(source, [{"p": 0, "k": None, "v": f"in {n}"} for n in range(count)])
    return source, topic, group


@scenario("read-process-write")
def read_process_write(cell):
    """A member of a KIP-848 group commits, aborts and commits: what was aborted is read again, and every record is handed on once."""
    if not cell.new_groups:
        raise NotInClient("it does not speak KIP-848's protocol")
    source, topic, group = prepared(cell, 40)
    client, txid = cell.client(), cell.name("tx")
    read, stands = [], 0
    for end in ("commit", "abort", "commit", "abort", "commit", "commit"):
        got = members_pipe(client, txid, group, source, topic, end, count=10)["read"]
        expect(got == [f"in {n}" for n in range(stands, stands + 10)], f"at {stands} it read {got[:2]}… {len(got)}")
        stands += 10 if end == "commit" else 0
        read += got
        until(lambda: cell.judge.committed(group, source, [0])[0] == stands, 10, f"offset {stands} committed")
    found = committed_values(cell.judge, topic, 41, timeout_ms=3000)
    expect(found == sorted(f"in {n}!" for n in range(40)), f"read {len(found)}: {found[:3]}")


@scenario("transaction zombie", quick=False)
def transaction_zombie(cell):
    """A member stands still within its transaction until another has its partition: what it commits afterwards is refused, offsets and all."""
    if not cell.new_groups:
        raise NotInClient("it does not speak KIP-848's protocol")
    source, topic, group = prepared(cell, 20)
    zombie, heir, dead, alive = cell.client(), cell.client(), cell.name("tx"), cell.name("tx")
    got = members_pipe(zombie, dead, group, source, topic, "open", count=10)["read"]
    expect(got == [f"in {n}" for n in range(10)], f"it read {got}")
    zombie.freeze()
    # The heir waits for the end of the session of the one that stands still.
    mine = []
    while len(mine) < 20:
        mine += members_pipe(heir, alive, group, source, topic, "commit", count=10)["read"]
    expect(mine == [f"in {n}" for n in range(20)], f"the heir read {mine[:3]}…")
    zombie.thaw()
    expect(not zombie.call("pipe_end", 60, txid=dead)["committed"], "the zombie has committed")
    found = committed_values(cell.judge, topic, 21, timeout_ms=4000)
    expect(found == sorted(f"in {n}!" for n in range(20)), f"read {len(found)}: {found[:3]}")
    expect(cell.judge.committed(group, source, [0])[0] == 20, f"committed {cell.judge.committed(group, source, [0])}")
