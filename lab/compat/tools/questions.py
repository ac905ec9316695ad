"""What is asked of the tools, in three parts: what only looks, what must be refused, and what changes something.

What only looks and what is refused can be asked in any order; of what changes something each list is one after the other, and the lists
belong to different groups. `quick` is what the short form asks, of a stage without Kafka Streams.

What is asked of [`alone`] needs no stage: each list makes its own topics.
"""

import json
import re
import time
from dataclasses import dataclass

from .stage import LONG_AGO

SEVERAL = 10_000
TO_MOVE = json.dumps({"topics": [{"topic": "moving-topic"}], "version": 1})


@dataclass
class Question:
    tool: str
    words: tuple
    quick: bool = False
    # Sets the scene for the questions after it: asked with Apache's tools where Barnabas has none that answers word for word.
    setup: bool = False
    # A tool that works until it is stopped: asked for so many seconds.
    seconds: int = 0

    @property
    def name(self):
        """As printed; moments go by the clock."""
        return re.sub(r"20[2-4]\d-\d\d-\d\dT\S+", "<then>", f"kafka-{self.tool} {' '.join(self.words)}")


def _asked(tool, line, quick=False):
    return Question(tool, tuple(line.split()), quick)


def moment(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms / 1000)) + ".000"


def looks():
    out = []
    for line, quick in (("--list", False), ("--list --state", True), ("--list --state Stable", False), ("--list --state Empty,PreparingRebalance", False), ("--list --type", True),
                        ("--list --type classic", False), ("--list --type consumer", False), ("--list --type consumer,classic --state", False)):
        out.append(_asked("consumer-groups", line, quick))
    for line, quick in (("--offsets", True), ("--offsets --verbose", False), ("--members", False), ("--members --verbose", True), ("--state", False), ("--state --verbose", True)):
        out.append(_asked("consumer-groups", f"--describe --all-groups {line}", quick))
    for group in ("stable", "modern", "resting", "modern-rest", "joining", "leaderless", "moving", "mixed"):
        out.append(_asked("consumer-groups", f"--describe --group {group} --timeout {SEVERAL}"))
    for group in ("nobody", "queue", "counting"):
        for part in ("", " --members", " --state"):
            out.append(_asked("consumer-groups", f"--describe --group {group}{part}", quick=group == "nobody" and not part))
    for line, quick in (("--list", True), ("--list --consumer", False), ("--list --share", True), ("--list --streams", False), ("--list --protocol consumer", False),
                        ("--list --protocol share", False), ("--list --protocol streams", False), ("--list --protocol nonsense", False),
                        *((f"--list --group-type {kind}", False) for kind in ("classic", "consumer", "share", "streams", "nonsense"))):
        out.append(_asked("groups", line, quick))
    for line, quick in (("--list", False), ("--list --state", True), ("--list --state Stable", False), ("--list --state Empty", False)):
        out.append(_asked("share-groups", line, quick))
        out.append(_asked("streams-groups", line))
    for line, quick in (("--offsets", True), ("--offsets --verbose", False), ("--members", False), ("--members --verbose", True), ("--state", False), ("--state --verbose", True)):
        out.append(_asked("share-groups", f"--describe --all-groups {line}", quick))
    for group in ("nobody", "stable", "counting"):
        out.append(_asked("share-groups", f"--describe --group {group}", quick=group == "nobody"))
        out.append(_asked("share-groups", f"--describe --group {group} --state"))
    for group in ("counting", "counted"):
        for line in ("--offsets", "--offsets --verbose", "--members", "--members --verbose", "--state", "--state --verbose"):
            out.append(_asked("streams-groups", f"--describe --group {group} {line}"))
    for group in ("uncounted", "nobody", "stable"):
        out.append(_asked("streams-groups", f"--describe --group {group} --state"))
    out.append(_asked("streams-groups", "--describe --group nobody"))
    for line, quick in (("list", True), ("list --duration-filter 0", False), ("list --duration-filter 86400000", False), ("list --transactional-id-pattern tx-.*do.*", True),
                        ("list --transactional-id-pattern nothing", False), ("list --transactional-id-pattern (", False)):
        out.append(_asked("transactions", line, quick))
    for txid in ("tx-open", "tx-done", "tx-undone", "tx-new", "tx-stray", "tx-none"):
        out.append(_asked("transactions", f"describe --transactional-id {txid}", quick=txid in ("tx-open", "tx-none")))
    for line, quick in (("describe-producers --topic ledger --partition 0", True), ("describe-producers --topic ledger --partition 1", False),
                        ("describe-producers --topic stray --partition 0 --broker-id 1", False), ("find-hanging --broker-id 1", True), ("find-hanging --topic stray", False),
                        ("find-hanging --topic stray --partition 0", False), ("find-hanging --topic ledger", False), ("find-hanging --broker-id 1 --max-transaction-timeout 600", False)):
        out.append(_asked("transactions", line, quick))
    for line, quick in (("--topic orders", False), ("--topic orders --time earliest", False), ("--topic orders --time max-timestamp", False), (f"--topic orders --time {LONG_AGO + 3_000}", False),
                        ("--topic ord.*|moving.* --partitions 0,2", False), ("--topic-partitions orders:1-3,moving.*:-1", False), ("--topic orders --time 99999999999999", False),
                        ("--topic orders --time -4", False), ("--topic nothing", False), ("--topic orders --time soon", False), ("--topic orders --partitions x", False),
                        ("--topic-partitions orders:x", False)):
        out.append(_asked("get-offsets", line, quick))
    for line in ("version-mapping --release-version 4.0-IV3", "version-mapping --release-version 3.9", "feature-dependencies --feature eligible.leader.replicas.version=1 --feature group.version=1",
                 "feature-dependencies --feature nothing=1", "feature-dependencies --feature kraft.version=7", "feature-dependencies --feature group.version", "upgrade",
                 "upgrade --feature group.version=x", "disable --feature share.version --dry-run", "downgrade --feature group.version=0 --dry-run",
                 "upgrade --feature group.version=9", "upgrade --feature transaction.version=2"):
        out.append(_asked("features", line, False))
    out.append(_asked("reassign-partitions", "--list"))
    return out


def refusals():
    return [_asked("consumer-groups", line, quick) for line, quick in (
        ("--delete --group stable", True), ("--delete --group modern", False), ("--delete --group nobody", False), ("--delete --group joining", False), ("--delete --group queue", False),
        ("--reset-offsets --group stable --all-topics --to-earliest --execute", True), ("--reset-offsets --group modern --topic orders --to-latest --execute", False),
        ("--reset-offsets --group joining --topic orders --to-latest --execute", False), ("--reset-offsets --group resting --topic not-there --to-latest --dry-run", False),
        ("--reset-offsets --group queue --topic jobs --to-latest --execute", False),
        ("--delete-offsets --group stable --topic orders", True), ("--delete-offsets --group modern --topic orders", False), ("--delete-offsets --group nobody --topic orders", False),
        ("--delete-offsets --group resting --topic not-there", False))
    ] + [_asked("share-groups", line, quick) for line, quick in (
        ("--delete --group queue", True), ("--delete --group nobody", False), ("--delete --group stable", False), ("--reset-offsets --group queue --topic jobs --to-earliest --execute", False),
        ("--delete-offsets --group queue --topic jobs", False), ("--delete-offsets --group nobody --topic jobs", False), ("--delete-offsets --group stable --topic jobs", False),
        ("--reset-offsets --group stable --topic orders --to-earliest --execute", False))
    ] + [_asked("streams-groups", line) for line in (
        "--delete --group counting", "--delete --group nobody", "--delete --group stable", "--reset-offsets --group counting --all-input-topics --to-earliest --execute",
        "--reset-offsets --group nobody --all-input-topics --to-earliest --dry-run", "--delete-offsets --group counting --input-topic lines")
    ] + [_asked("transactions", line) for line in (
        "abort --topic ledger --partition 1 --start-offset 7", "abort --topic stray --partition 0 --start-offset 99", "forceTerminateTransaction --transactionalId tx-none")]


def _resets(tool, group, whole, one, some, extra=()):
    """Every way to move a group's offsets; each is looked at through the table that the tool prints and, at the end, through --describe."""
    to = f"--reset-offsets --group {group}"
    return [
        _asked(tool, f"{to} {whole} --to-earliest --dry-run", True), _asked(tool, f"{to} {whole} --to-earliest --execute"), _asked(tool, f"{to} {one} --to-latest --execute", True),
        _asked(tool, f"{to} {some} --to-earliest --execute", True), _asked(tool, f"{to} {one} --to-datetime {moment(LONG_AGO + 3_000)} --execute"),
        _asked(tool, f"{to} {one} --to-datetime 2099-01-01T00:00:00.000 --execute"),
        *(_asked(tool, f"{to} {line} --execute") for line in extra), _asked(tool, f"--describe --group {group}", True)]


def _offsets(*rows):
    return json.dumps({"partitions": [{"topic": topic, "partition": partition, "offset": offset} for topic, partition, offset in rows], "version": 1})


def _plan(*rows):
    return json.dumps({"partitions": [{"topic": topic, "partition": partition, "replicas": replicas} for topic, partition, replicas in rows], "version": 1})


def changes(file):
    """Lists of questions; `file(text)` answers with the path of a file that holds it."""
    out = []
    for group in ("resting", "modern-rest"):
        plan = file("orders,0,3\norders,2,5\n")
        several = file(f'"{group}",orders,1,4\n"simple",orders,1,2\n')
        acts = _resets("consumer-groups", group, "--all-topics", "--topic orders", "--topic orders:0,2", (
            "--topic orders --to-offset 5", "--topic orders --to-offset 99999", "--topic orders:1 --shift-by -2", "--topic orders --shift-by 100000", "--topic orders --shift-by -100000",
            "--topic orders --by-duration PT30M", "--topic orders --by-duration P1D", "--topic orders --to-current", f"--from-file {plan}"))
        acts += [_asked("consumer-groups", f"--reset-offsets --group {group} --topic orders --to-offset 6 --export --dry-run"),
                 _asked("consumer-groups", f"--reset-offsets --group {group} --group simple --from-file {several} --dry-run"),
                 _asked("consumer-groups", f"--delete-offsets --group {group} --topic orders:1", True), _asked("consumer-groups", f"--describe --group {group}"),
                 _asked("consumer-groups", f"--delete-offsets --group {group} --topic orders"), _asked("consumer-groups", f"--describe --group {group}"),
                 _asked("consumer-groups", f"--delete --group {group}", True), _asked("consumer-groups", f"--describe --group {group} --state"), _asked("consumer-groups", f"--delete --group {group}")]
        out.append(acts)
    # A group that never had a member: moving its offsets makes it.
    out.append([_asked("consumer-groups", line) for line in (
        "--reset-offsets --group simple --topic orders --to-earliest --execute", "--describe --group simple", "--describe --group simple --state", "--describe --group simple --members", "--delete --group simple",
        "--describe --group simple --state")])
    out.append(_resets("share-groups", "queue-rest", "--all-topics", "--topic jobs", "--topic jobs:0,2") + [_asked("share-groups", line, quick) for line, quick in (
        ("--delete-offsets --group queue-rest --topic not-there", False), ("--delete-offsets --group queue-rest --topic jobs", True), ("--describe --group queue-rest", False),
        ("--delete --group queue-rest", True), ("--describe --group queue-rest --state", False), ("--delete --group queue-rest", False),
        ("--reset-offsets --group new-queue --topic jobs --to-earliest --execute", False), ("--describe --group new-queue", False), ("--delete --group new-queue", False))])
    out.append([_asked("client-metrics", line, quick) for line, quick in (
        ("--list", False), ("--alter --name one --metrics org.apache.kafka.consumer.,x.y --interval 5000 --match client_id=a.*", False), ("--list", False), ("--describe", False),
        ("--describe --name none", False), ("--alter --name one --match nothing=1", False), ("--delete --name one", False), ("--list", False), ("--delete", False))])
    out.append([_asked("delete-records", f"--offset-json-file {file(text)}", quick) for text, quick in (
        (_offsets(("shrinking", 0, 2), ("shrinking", 1, -1)), False), (_offsets(("shrinking", 0, 999), ("shrinking", 7, 1), ("not-there", 0, 1)), False),
        (_offsets(("shrinking", 0, 1), ("shrinking", 0, 2)), False), ("{}", False), ("no JSON", False))]
        + [_asked("get-offsets", "--topic shrinking --time earliest", False)])
    out.append([_asked("reassign-partitions", line, quick) for line, quick in (
        (f"--generate --topics-to-move-json-file {file(TO_MOVE)} --broker-list 1", False), (f"--execute --reassignment-json-file {file(_plan(('moving-topic', 0, [1]), ('moving-topic', 1, [1])))}", False),
        (f"--verify --reassignment-json-file {file(_plan(('moving-topic', 0, [1]), ('moving-topic', 1, [2])))}", False),
        (f"--execute --reassignment-json-file {file(_plan(('moving-topic', 0, [1])))} --throttle 1000000 --replica-alter-log-dirs-throttle 2000000", False),
        (f"--verify --preserve-throttles --reassignment-json-file {file(_plan(('not-there', 0, [1])))}", False), (f"--cancel --reassignment-json-file {file(_plan(('moving-topic', 0, [1])))}", False),
        (f"--execute --reassignment-json-file {file(_plan(('moving-topic', 0, [7])))}", False), (f"--execute --reassignment-json-file {file(_plan(('moving-topic', 9, [1])))}", False),
        (f"--execute --reassignment-json-file {file(_plan(('not-there', 0, [1])))}", False), (f"--execute --reassignment-json-file {file(_plan(('moving-topic', 0, [1, 1])))}", False),
        (f"--execute --reassignment-json-file {file(_plan(('moving-topic', 0, [])))}", False), (f"--execute --reassignment-json-file {file('{}')}", False),
        (f"--generate --topics-to-move-json-file {file(TO_MOVE)} --broker-list 7", False), (f"--generate --topics-to-move-json-file {file(TO_MOVE)} --broker-list 1,1", False))])
    plan = file("lines,0,3\nlines,2,5\n")
    out.append(_resets("streams-groups", "counted", "--all-input-topics", "--input-topic lines", "--input-topic lines:0,2", (
        "--input-topic lines --to-offset 5", "--input-topic lines --to-offset 99999", "--input-topic lines:1 --shift-by -2", "--input-topic lines --by-duration PT30M",
        "--input-topic lines --to-current", f"--from-file {plan}")) + [_asked("streams-groups", line) for line in (
        "--reset-offsets --group counted --input-topic lines --to-offset 6 --export --dry-run", "--delete-offsets --group counted --input-topic lines:1", "--describe --group counted",
        "--delete-offsets --group counted --input-topic lines", "--reset-offsets --group counted --all-input-topics --to-earliest --execute --delete-all-internal-topics",
        "--describe --group counted", "--delete --group counted", "--describe --group counted --state", "--delete --group counted")])
    out.append([_asked("transactions", line, quick) for line, quick in (
        ("abort --topic stray --partition 0 --start-offset 0", True), ("find-hanging --broker-id 1", True), ("describe-producers --topic stray --partition 0", False),
        ("forceTerminateTransaction --transactionalId tx-open", True), ("list", True), ("describe --transactional-id tx-open", False),
        ("describe-producers --topic ledger --partition 0", False))])
    return out


def _set(tool, line):
    return Question(tool, tuple(line.split()), setup=True)


def _written(topic, partitions=1, records=5):
    return [_set("topics", f"--create --topic {topic} --partitions {partitions}"), _set("verifiable-producer", f"--topic {topic} --max-messages {records} --repeating-keys 2")]


def alone():
    """Lists of questions, one after the other, of topics and groups that nothing else uses."""
    from_start = "--alter --entity-type groups --add-config share.auto.offset.reset=earliest --entity-name"
    out = [[_set("topics", "--create --topic verified --partitions 1"), *(_asked("verifiable-producer", line) for line in (
        "--topic verified --max-messages 4 --repeating-keys 2 --value-prefix 7", "--topic verified --max-messages 2 --acks 0", "--topic verified --max-messages 1 --acks 1 --message-create-time 1000",
        "--topic verified --max-messages 0")), *(_asked("verifiable-consumer", line) for line in (
            "--topic verified --group-id verifying --max-messages 7 --verbose", "--topic verified --group-id verifying-too --max-messages 3 --enable-autocommit",
            "--topic verified --group-id verifying --max-messages 0")), _asked("consumer-groups", "--describe --group verifying")]]
    out.append([*_written("shared"), _set("configs", f"{from_start} sharing"), _set("configs", f"{from_start} console-share-consumer"), *(_asked("console-share-consumer", line) for line in (
        "--topic shared --group sharing --max-messages 5 --release --formatter-property print.delivery=true --formatter-property print.offset=true --formatter-property print.key=true",
        "--topic shared --group sharing --max-messages 5 --reject --formatter-property print.delivery=true --formatter-property print.timestamp=true --formatter-property print.partition=true",
        "--topic shared --group sharing --timeout-ms 4000", "--topic shared --max-messages 5 --formatter-property print.headers=true --enable-systest-events",
        "--topic shared --max-messages 0")), _asked("share-groups", "--describe --group sharing"), _asked("share-groups", "--describe --group console-share-consumer")])
    out.append([*_written("measured"), _set("configs", f"{from_start} measuring"), _set("configs", f"{from_start} perf-share-consumer"), *(_asked("share-consumer-perf-test", line) for line in (
        "--topic measured --num-records 5 --group measuring --show-consumer-stats", "--topic measured --messages 5 --timeout 9000",
        "--topic measured --num-records 5 --group measuring --timeout 2000 --hide-header"))])
    seek = "--application-id app --input-topics inputs"
    out.append([*_written("inputs"), _set("topics", "--create --topic between --partitions 1"), _set("topics", "--create --topic app-store-changelog --partitions 1"),
                *(_asked("streams-application-reset", line) for line in (
                    "--application-id app", f"{seek} --dry-run", f"{seek} --to-latest --dry-run", f"{seek} --to-offset 3 --internal-topics nothing", f"{seek} --to-offset 99 --dry-run",
                    f"{seek} --intermediate-topics between,not-there --shift-by -2 --dry-run", f"{seek},missing --to-datetime 2099-01-01T00:00:00.000 --dry-run", f"{seek} --by-duration P1D --dry-run",
                    f"{seek} --to-offset 3")), _asked("consumer-groups", "--describe --group app"), _asked("streams-application-reset", f"{seek} --shift-by 1"),
                _asked("consumer-groups", "--describe --group app")])
    # One line as it begins, and one report: it is asked for less than two of its intervals.
    out.append([*_written("replicated", partitions=2), Question("replica-verification", ("--broker-list", "{node}", "--topics-include", "replicated", "--time", "-2", "--report-interval-ms", "9000"),
                                                                seconds=16)])
    return out
