"""ZooKeeper mode, KRaft and Barnabas: message throughput, making partitions, how many one node holds.

Question: what does the controller cost, and where does each end? Units: s from the request until every partition is led, and until a record
in every partition was acknowledged. Held fixed: one node, fresh for each story, topics of 1,000 partitions, stock limits of the operating
system. A peer is given a limited time for each story; what it had done by then stands in its line. Left out on purpose: replicas.
"""

import time

from harness.usage import cpu_seconds, resident_mb
from rig.asks import one_record
from rig.clients import java
from rig.measures import Produce, Story
from rig.peers import PEERS
from rig.plan import KAFKA, SYNCED, THRICE, ZOOKEEPER, Bar, Case, Chart, Workload, question

STEP = 1_000


def used(peer, since):
    """What the partitions cost by now."""
    files = sum(1 for _ in (path for top in peer.log_directories() for path in top.glob("*/*")))
    return {"rss_mb": sum(resident_mb(pid) for pid in peer.pids()), "server_cpu_s": sum(cpu_seconds(pid) for pid in peer.pids()) - since, "files": files}


def led_of(peer, topics, within):
    """Seconds until all are led, or what is missing in words."""
    begun, asks = time.monotonic(), peer.ask()
    wanted = sum(topics.values())
    try:
        while True:
            led = asks.led(list(topics))
            if led >= wanted:
                return time.monotonic() - begun
            if time.monotonic() - begun > within:
                raise RuntimeError(f"{led:,} of {wanted:,} partitions led after {within:.0f} s")
            time.sleep(0.02)
    finally:
        asks.close()


def refusals(errors):
    return ", ".join(f"{sum(error == each for error in errors.values())} topics refused with error {each}" for each in sorted(set(errors.values()) - {0}))


def made(peer, topics, within):
    """Asks for topics in one request: seconds to the answer, to the leaders, and to a record in every partition."""
    begun = time.monotonic()
    asks = peer.ask(within)
    errors = asks.create(topics)
    answered = time.monotonic() - begun
    if any(errors.values()):
        raise RuntimeError(f"{sum(topics.values()):,} partitions in one request: {refusals(errors)}")
    led_of(peer, topics, within)
    led = time.monotonic() - begun
    taken, batch = 0, one_record()
    while taken < sum(topics.values()):
        if time.monotonic() - begun > within:
            raise RuntimeError(f"{taken:,} of {sum(topics.values()):,} partitions take a record after {within:.0f} s")
        taken = asks.produce_to_each(topics, batch)
    asks.close()
    return {"answered_s": answered, "led_s": led, "usable_s": time.monotonic() - begun}


def said(tell, count, within, line):
    """A peer that says no, or takes too long, has done so: that is its result, and nobody asks it for more of the same."""
    def told(rig, peer):
        over = rig.remembered.setdefault((line, peer.name), count)
        if over < count:
            return {"partitions": count, "over_s": within, "ended": f"left out: more than {within} s at {over:,}"}
        begun = time.monotonic()
        try:
            found = tell(rig, peer)
        except (RuntimeError, OSError) as reason:
            if peer.server.process is None:
                raise
            if time.monotonic() - begun < within:
                return {"partitions": count, "ended": str(reason)}
            return {"partitions": count, "over_s": within, "ended": f"not done within {within} s"}
        del rig.remembered[line, peer.name]
        return found

    return told


def at_once(count, within):
    """`count` partitions, topics of 1,000, in one request (Kafka takes less than 10,000 partitions: then in requests of nine such topics)."""
    def tell(rig, peer):
        peer.start()
        begun, since = time.monotonic(), sum(cpu_seconds(pid) for pid in peer.pids())
        topics = {f"many-{number}": STEP for number in range(count // STEP)}
        if peer.makes_files_later and count > 9 * STEP:
            # Of 10,000 and more in one request it says no (error 44).
            names, told = list(topics), {"answered_s": 0.0, "led_s": 0.0, "usable_s": 0.0}
            for first in range(0, len(names), 9):
                part = made(peer, {name: STEP for name in names[first:first + 9]}, left_of(begun, within))
                told = {key: told[key] + part[key] for key in told}
        else:
            told = made(peer, topics, within)
        return {"partitions": count, **told, **used(peer, since)}

    return said(tell, count, within, "at once")


def left_of(begun, within):
    return max(within - (time.monotonic() - begun), 0.1)


def in_steps(count, within):
    """1,000 at a time, each step usable before the next; the time of all, and of the last step."""
    def tell(rig, peer):
        peer.start()
        since, begun, last = sum(cpu_seconds(pid) for pid in peer.pids()), time.monotonic(), {}
        for number in range(count // STEP):
            last = made(peer, {f"step-{number}": STEP}, left_of(begun, within))
        return {"partitions": count, "usable_s": time.monotonic() - begun, "last_step_s": last["usable_s"], **used(peer, since)}

    return said(tell, count, within, "in steps")


def one_topic(count, within):
    def tell(rig, peer):
        peer.start()
        since = sum(cpu_seconds(pid) for pid in peer.pids())
        return {"partitions": count, **made(peer, {"one": count}, within), **used(peer, since)}

    return said(tell, count, within, "one topic")


def capacity(most, step, within):
    """Steps until it refuses, fails, or its time is over: how many partitions took a record, and why it ended."""
    def tell(rig, peer):
        peer.start()
        begun, held, why = time.monotonic(), 0, f"all of {most:,} asked for"
        since = sum(cpu_seconds(pid) for pid in peer.pids())
        while held < most:
            left = within - (time.monotonic() - begun)
            if left <= 0:
                why = f"{within} s were over"
                break
            try:
                made(peer, {f"c-{held}-{number}": STEP for number in range(step // STEP)}, max(left, 5))
            except (RuntimeError, OSError) as reason:
                why = str(reason) if peer.server.process.poll() is None else f"the broker ended ({reason})"
                break
            held += step
        dead = peer.server.process.poll() is not None
        return {"partitions_held": held, "ended": why, "seconds": time.monotonic() - begun, **({} if dead else used(peer, since))}

    return tell


def seconds(count, within, ours):
    """What a story takes, for the estimate: Kafka makes some 130 partitions a second, with the ZooKeeper mode no more."""
    kafka = min(count / 130, within + 5)
    return {ZOOKEEPER: kafka + 4, KAFKA: kafka, SYNCED: ours}


def creation(plan, within):
    """1,000 to 80,000 partitions. What takes Kafka more than `within` seconds is said so, and it is not asked for more."""
    source, once = {1_000: "0.77 s; ZooKeeper 7.7 s", 5_000: "38.7 s", 10_000: "64 s", 20_000: "88 s"}, {KAFKA: 1, ZOOKEEPER: 1, SYNCED: 3}
    zookeeper_to, kafka_to = (1_000, 1_000) if plan.is_quick else (1_000, 80_000) if plan.is_full else (1_000, 5_000)
    is_over, cases = 0, []
    for count in (1_000,) if plan.is_quick else (1_000, 5_000, 10_000, 20_000, 40_000, 80_000) if plan.is_full else (1_000, 5_000, 80_000):
        takes = seconds(count, within, count / 12_000)
        if is_over:
            takes.update({KAFKA: -PEERS[KAFKA].start_seconds, ZOOKEEPER: -PEERS[ZOOKEEPER].start_seconds})
        is_over = count / 130 > within
        peers = ((ZOOKEEPER,) if count <= zookeeper_to else ()) + ((KAFKA,) if count <= kafka_to else ()) + (SYNCED,)
        cases.append(Case(f"{count:,} partitions at once", Story(at_once(count, within), takes), peers, own_server=True, runs=once, line="at once", x=count, source=source.get(count, "")))
    for count in () if plan.is_quick else (5_000, 20_000, 80_000) if plan.is_full else (80_000,):
        cases.append(Case(f"{count:,} partitions in steps of 1,000", Story(in_steps(count, within), {SYNCED: count / 8_000}), (SYNCED,), own_server=True, runs=once,
                          line="in steps of 1,000", x=count))
    return cases


def workload(plan):
    three = (ZOOKEEPER, KAFKA, SYNCED)
    within = 50
    cases = creation(plan, within)
    if not plan.is_quick:
        cases.insert(0, Case("Java, 100 B, 16 partitions, 64 KiB, linger 5", Produce(java("", 16, 100, 1, 65536, 5)), three, bars=(Bar("records_per_s", 1, least=True),), runs=THRICE,
                             source="KRaft 1,224 k/s, 0.52 µs; ZooKeeper 1,259 k/s, 0.65 µs"))
        cases.append(Case("one topic of 100,000 partitions", Story(one_topic(100_000, within), {KAFKA: 2, SYNCED: 8}), (KAFKA, SYNCED), own_server=True, runs={KAFKA: 1, SYNCED: 3},
                          source="refused with error 44"))
    if plan.is_full:
        # With more time Kafka comes to its end at 19,850 partitions (20,000 files); a million of ours are lab/density's.
        cases.append(Case("partitions that one node holds after 40 s, in steps of 1,000", Story(capacity(1_000_000, 1_000, 40), {KAFKA: 40, SYNCED: 40}), (KAFKA, SYNCED), own_server=True,
                          runs={KAFKA: 1, SYNCED: 1}, source="Kafka ends at 19,850 (20,000 files)"))
    return Workload("modes", "ZooKeeper mode, KRaft and Barnabas", question(__doc__), cases,
                    ("records_per_s", "server_us_per_record", "answered_s", "led_s", "usable_s", "last_step_s", "partitions_held", "rss_mb", "server_cpu_s", "files"),
                    (Chart("usable_s", "Until every partition has taken a record, made at once", kind="lines", x_label="partitions", x_log=True, y_log=True, only="at once"),
                     Chart("records_per_s", "Throughput by mode, 100-byte records", only="Java"), Chart("partitions_held", "Partitions that one node holds after 40 s, fresh, stock limits", only="one node")),
                    note="The source column is our own baseline of Kafka 4.3.1 and 3.9.2. A million partitions on one node are lab/density's (`make density`).", needs_gb=10)
