"""The rows that are no plain load: many partitions, kill -9, bytes on the device. Each returns lines (for the file) and rows (for the table)."""

import shutil
import time
from dataclasses import dataclass

from harness.ask import metadata_answers
from loads import librdkafka
from rig.asks import one_record
from rig.machine import blocks_of_the_dead, median, settle, spread

THREE = librdkafka("librdkafka, 3 producers, 1 kB", 16, 1000, 3)
ONE = librdkafka("librdkafka, 1 producer, 100 B", 16, 100, 1)


@dataclass
class Row:
    what: str
    kafka: str
    ours: str
    bar: str
    met: bool | None


# 10,000 partitions beside 10


def many_partitions(bench):
    """Throughput and p99.9 at 10,000 partitions, fresh and with history, as shares of those at 10."""
    count = bench.quick and 2_000 or 10_000
    rows, found = [], {}
    for name in ("barnabas", "kafka"):
        if name == "kafka" and bench.quick:
            continue
        peer = bench.peers(f"many-{name}")[name]
        peer.server.start()
        try:
            found[name] = {"10": [], "fresh": [], "history": []}

            def measured(kind, topic):
                told = bench.clients.run(peer, ONE, topic)
                found[name][kind].append(told)
                bench.keep(what=f"partitions: {kind} (of {count})", peer=name, **told)

            peer.create({"ten": 10})
            for _ in range(3 if name == "kafka" else 1):
                bench.clients.run(peer, ONE, "ten", 5)
            # Kafka refuses 10,000 partitions in one request.
            crowd = min(count, 9_999) if name == "kafka" else count
            peer.create({"crowd": crowd})
            if name == "kafka":
                # It takes a minute to make 10,000 partitions, and has files for 20,000: fresh ones are measured once.
                measured("10", "ten")
                measured("fresh", "crowd")
            peer.ask().produce_to_each({"crowd": crowd}, one_record(b"h" * 60))
            for run in range(bench.runs):
                if len(found[name]["10"]) < run + 1:
                    measured("10", "ten")
                measured("history", "crowd")
                if name == "barnabas":
                    peer.create({f"fresh-{run}": count})
                    measured("fresh", f"fresh-{run}")
                    peer.delete([f"fresh-{run}"])
        finally:
            peer.server.kill()
            peer.server.remove()
            settle()
    for kind, words in (("fresh", "fresh"), ("history", "with history")):
        shares, tails, shown, tails_shown = {}, {}, {}, {}
        for name, of in found.items():
            pairs = list(zip(of[kind], of["10"]))
            shares[name] = [one["records_per_s"] / ten["records_per_s"] for one, ten in pairs]
            tails[name] = [one["p999_ms"] / max(ten["p999_ms"], 0.001) for one, ten in pairs]
            at = f"{median([one['records_per_s'] for one in of[kind]]) / 1000:.0f} k/s"
            shown[name] = f"{at}; {spread(shares[name])}"
            tails_shown[name] = f"{median([one['p999_ms'] for one in of[kind]]):.0f} ms; {spread(tails[name])}"
        rows.append(Row(f"throughput at {count:,} partitions, {words}, ÷ that at 10", shown.get("kafka", "–"), shown["barnabas"], "≥ 0.90", median(shares["barnabas"]) >= 0.9))
        rows.append(Row(f"p99.9 at {count:,} partitions, {words}, ÷ that at 10", tails_shown.get("kafka", "–"), tails_shown["barnabas"], "≤ 3", median(tails["barnabas"]) <= 3))
    return rows


# 20,000 partitions


def twenty_thousand(bench):
    """Created and usable; then killed under load with every partition written."""
    count = 20_000
    topics = {f"t{number}": 1000 for number in range(count // 1000)}
    led, usable, serving = [], [], []
    batch = one_record()
    for run in range(bench.runs):
        peer = bench.peers(f"crowd-{run}")["barnabas"]
        peer.server.start()
        begun = time.monotonic()
        led.append(peer.create(topics))
        asks = peer.ask()
        taken = asks.produce_to_each(topics, batch)
        usable.append(time.monotonic() - begun)
        asks.close()
        if taken != count:
            raise RuntimeError(f"{taken} of {count} partitions took a record")
        bench.keep(what="20,000 partitions", peer="barnabas", led_s=led[-1], usable_s=usable[-1])
        served, all_served = kill_under_load(bench, peer, "t0", topics)
        serving.append(served)
        bench.keep(what="kill -9, 20,000 written partitions", peer="barnabas", serving_s=served, each_partition_s=all_served)
        peer.server.kill()
        peer.server.remove()
    kafka_made, kafka_back = "–", "–"
    if not bench.quick:
        kafka_made, kafka_back = kafka_at_its_limit(bench, topics, batch)
    return [Row("20,000 partitions created, all led, s", kafka_made, spread(led), "≤ 2", median(led) <= 2),
            Row("20,000 partitions created, a record in each acknowledged, s", "", spread(usable), "≤ 2", median(usable) <= 2),
            Row("kill −9 under load, 20,000 written partitions, serving after, s", kafka_back, spread(serving), "≤ 1", median(serving) <= 1)]


def kafka_at_its_limit(bench, topics, batch):
    """One run: at 20,000 partitions Kafka is at the end of its descriptors (`ulimit -n` 20000); what happens is told in words."""
    peer = bench.peers("crowd")["kafka"]
    try:
        peer.server.start()
        begun = time.monotonic()
        try:
            # Of many at once it refuses 10,000 partitions and more.
            for name, partitions in topics.items():
                peer.create({name: partitions}, within=180)
            made = peer.directories(topics)
            took = time.monotonic() - begun
            taken = peer.ask().produce_to_each(topics, batch)
            said = f"{took:.0f} s (1 run): {made:,} directories, {taken:,} took a record"
        except (RuntimeError, OSError) as reason:
            said = f"fails after {time.monotonic() - begun:.0f} s: {str(reason)[:80]}"
        peer.server.kill()
        peer.server.ready_within = 180
        try:
            peer.server.start()
            back = f"{peer.server.ready_after:.0f} (1 run, first Metadata)"
        except RuntimeError as reason:
            back = f"does not start again: {str(reason)[-80:]}"
        bench.keep(what="20,000 partitions", peer="kafka", said=said, restart=back)
        return said, back
    finally:
        peer.server.kill()
        peer.server.remove()
        settle()


# kill -9


def kill_under_load(bench, peer, topic, topics):
    """(exec to the first record acknowledged and Metadata answered, exec to one acknowledged in each partition), s."""
    running = bench.clients.start(peer, ONE if topic == "t0" else THREE, topic, 60)
    time.sleep(2)
    peer.server.kill()
    for process in running:
        process.kill()
        process.wait()
    begun = time.monotonic()
    peer.server.ready_within = 180
    peer.server.start()
    batch = one_record()
    served = until(lambda: peer.ask().produce_to_each({topic: 1}, batch) == 1, begun)
    every = until(lambda: peer.ask().produce_to_each(topics, batch) == sum(topics.values()), begun)
    if not metadata_answers(peer.server.port):
        raise RuntimeError("it serves and does not answer")
    return served, every


def until(asked, begun, within=180):
    while True:
        try:
            if asked():
                return time.monotonic() - begun
        except OSError:
            pass
        if time.monotonic() - begun > within:
            raise RuntimeError(f"not serving within {within} s")
        time.sleep(0.01)


def kill_with_data(bench):
    """Time to serve after kill -9 under load, with much data."""
    free = shutil.disk_usage(bench.work).free / 1e9
    wanted = 1 if bench.quick else bench.data_gb
    size = max(1, min(wanted, int(free - 14)))
    shown, all_shown, medians = {}, {}, {}
    for name in ("kafka", "barnabas"):
        if bench.quick and name == "kafka":
            continue
        peer = bench.peers("kill")[name]
        peer.server.start()
        try:
            peer.create({"data": 16})
            begun = time.monotonic()
            while peer.log_bytes() < size * 1e9:
                if time.monotonic() - begun > 600:
                    raise RuntimeError(f"{size} GB were not written within 600 s")
                bench.clients.run(peer, THREE, "data", 5)
            served, every = [], []
            # A Kafka takes 13 s and more each time.
            for _ in range(bench.runs if name == "barnabas" else min(bench.runs, 3)):
                one, all_ = kill_under_load(bench, peer, "data", {"data": 16})
                served.append(one)
                every.append(all_)
                bench.keep(what=f"kill -9, {size} GB", peer=name, serving_s=one, each_partition_s=all_, ready_s=peer.server.ready_after)
            shown[name], all_shown[name], medians[name] = spread(served), spread(every), median(every)
        finally:
            peer.server.kill()
            peer.server.remove()
            settle()
    note = "" if size >= 20 else f" (of 20 wanted: {free:.0f} GB are free)" if not bench.quick else " (quick)"
    return [Row(f"kill −9 under load, {size} GB of data{note}, serving on each partition after, s", all_shown.get("kafka", "–"), all_shown["barnabas"], "≤ 1", medians["barnabas"] <= 1)]


# Bytes on the device


def amplification(bench):
    """Bytes that the process wrote, from start to clean stop (when all is written back) ÷ bytes of record batches in its segments."""
    # Small: what one application's producers send, 16 KiB batches and less. Large: requests near their limit of 1 MB.
    small = librdkafka("small appends (16 KiB)", 16, 100, 3, spread=16, batch_size=16384)
    large = librdkafka("large appends (1 MB)", 16, 1000, 1, batch_size=1_000_000, linger_ms=50)
    # Without a bar: rounds are the smaller the less there is to do, and each is filled up to whole blocks.
    paced = librdkafka("small appends, 100,000/s", 16, 100, 3, spread=16, rate=100_000, batch_size=16384)
    rows = []
    for load, bar in ((small, 2.05), (large, 1.05), (paced, None)):
        if bench.quick and load is paced:
            continue
        found = {"barnabas": []} if bench.quick else {"kafka": [], "barnabas": []}
        for name in found:
            peer = bench.peers(f"bytes-{load.rate}-{bar}")[name]
            try:
                # The first life makes the journal's files, which are written once whatever is sent.
                for run in range(1 + (bench.runs if name == "barnabas" else 1)):
                    written, logged = blocks_of_the_dead(), peer.log_bytes()
                    peer.server.start()
                    peer.create({f"a{run}": 16})
                    told = bench.clients.run(peer, load, f"a{run}", None if run else 2)
                    if not peer.server.stop(120):
                        raise RuntimeError(f"{peer.server.label} did not stop within 120 s")
                    written, logged = blocks_of_the_dead() - written, peer.log_bytes() - logged
                    if run:
                        found[name].append(written / max(logged, 1))
                        bench.keep(what=load.title, peer=name, device_bytes=written, log_bytes=logged, records_per_s=told["records_per_s"])
            finally:
                peer.server.kill()
                peer.server.remove()
                settle()
        of = {name: spread(values, 3) for name, values in found.items()}
        rows.append(Row(f"bytes written ÷ bytes of record batches, {load.title}", of.get("kafka", "–"), of["barnabas"], f"≤ {bar}" if bar else "",
                        median(found["barnabas"]) <= bar if bar else None))
    return rows

