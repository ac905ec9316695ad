"""A client program as the runner sees it: calls that answer or raise, and events that arrive.

Each member of a group is a process of its own, so that a member can die as members do: kill -9.
"""

import json
import os
import queue
import signal
import subprocess
import threading
import time


class Failure(Exception):
    """A cell fails; the text says what was expected and what came."""


class NotInClient(Exception):
    """The client has no such thing; the cell is skipped, with this reason."""


class Refusal(Exception):
    """The client reported an error; `name` is Kafka's name of it where the client gives one."""

    def __init__(self, name, message):
        super().__init__(f"{name}: {message}")
        self.name = name


class Driver:
    def __init__(self, command, bootstrap, log):
        self.log = log
        self.stderr = open(log, "ab")
        self.process = subprocess.Popen([*command, bootstrap], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.stderr, start_new_session=True)
        self.answers = queue.Queue()
        self.next_id = 0
        self.lock = threading.Lock()
        self.assigned = None
        self.assign_count = 0
        self.assignments = []
        self.records = []
        self.errors = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "id" in message:
                self.answers.put(message)
                continue
            with self.lock:
                if message["ev"] == "assign":
                    self.assigned = {(topic, number) for topic, number in message["parts"]}
                    self.assignments.append(self.assigned)
                    self.assign_count += 1
                elif message["ev"] == "recs":
                    self.records += [tuple(record) for record in message["recs"]]
                else:
                    self.errors.append(message.get("msg", ""))
        self.answers.put(None)

    def call(self, op, timeout=60, **fields):
        self.next_id += 1
        line = json.dumps({"id": self.next_id, "op": op, **fields}) + "\n"
        try:
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
            answer = self.answers.get(timeout=timeout)
        except queue.Empty:
            raise Failure(f"{op} did not end within {timeout} s") from None
        except (BrokenPipeError, OSError):
            answer = None
        if answer is None:
            raise Failure(f"the client ended during {op}: {self.last_words()}")
        if "unsupported" in answer:
            raise NotInClient(answer["unsupported"])
        if "err" in answer:
            raise Refusal(answer["err"], answer.get("msg", ""))
        return answer.get("ok")

    def last_words(self):
        try:
            with open(self.log, errors="replace") as lines:
                return " | ".join(lines.read().splitlines()[-3:])[-300:]
        except OSError:
            return ""

    # What scenarios ask for, in one place so that they read as sentences.

    def produce(self, topic, records, timeout=90, **config):
        """The [partition, offset] of each record; a refused record fails the cell."""
        results = self.call("produce", timeout, topic=topic, records=records, config=config)["results"]
        refused = [result for result in results if isinstance(result, str)]
        if refused:
            raise Failure(f"{len(refused)} of {len(results)} records refused: {refused[0]}")
        if len(results) != len(records):
            raise Failure(f"{len(records)} records sent, {len(results)} results")
        return results

    def fetch(self, topic, parts, count, start="earliest", timeout_ms=15000, **more):
        answer = self.call("fetch", timeout_ms / 1000 + 30, topic=topic, parts=parts, count=count, timeout_ms=timeout_ms,
                           **{"from": start}, **more)
        return [Record(*fields) for fields in answer["recs"]]

    def offsets(self, topic, parts, at):
        return {int(p): o for p, o in self.call("offsets", topic=topic, parts=parts, at=at).items()}

    def committed(self, group, topic, parts):
        return {int(p): o for p, o in self.call("committed", group=group, topic=topic, parts=parts).items()}

    def join(self, group, topics, assignor, **more):
        self.call("join", group=group, topics=topics, assignor=assignor, **more)
        return self

    def seen(self):
        with self.lock:
            return list(self.records)

    def kill(self):
        """kill -9 of the client and whatever it started: no leave, no commit."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def freeze(self):
        """It stands still, as a machine does that swaps or collects garbage; `thaw` lets it go on."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        os.killpg(self.process.pid, signal.SIGCONT)

    def close(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.close()
                self.process.wait(1)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self.kill()
        self.stderr.close()
        if os.path.exists(self.log) and os.path.getsize(self.log) == 0:
            os.unlink(self.log)


class Record:
    """One record as a client handed it over."""

    __slots__ = ("partition", "offset", "timestamp", "key", "value", "headers")

    def __init__(self, partition, offset, timestamp, key, value, headers):
        self.partition, self.offset, self.timestamp = partition, offset, timestamp
        self.key, self.value, self.headers = key, value, headers

    def __repr__(self):
        return f"{self.partition}/{self.offset} {self.key!r}={str(self.value)[:60]!r}"


def until(condition, seconds, what):
    """Waits until `condition()` is true; says `what` was waited for when it never is."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failure(f"{what() if callable(what) else what} not within {seconds} s")
        time.sleep(0.05)
