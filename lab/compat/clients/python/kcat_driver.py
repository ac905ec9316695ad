"""kcat behind the runner's protocol: each operation is one or more runs of the program itself.

kcat tells no offsets when it produces, so its results carry -1 for them; it has no administration.
The command line that starts kcat comes in KCAT, one word per line.
"""

import json
import os
import re
import signal
import subprocess
import threading
import time

from protocol import Client, Refused, Unsupported, payload, say, serve, shown

KCAT = os.environ["KCAT"].split("\n")
MESSAGE_END, KEY_END = "-=(message)=-", "-=(key)=-"
ASSIGNORS = {"range": "range", "roundrobin": "roundrobin", "cooperative": "cooperative-sticky"}


def settings(**values):
    return [word for key, value in values.items() for word in ("-X", f"{key.replace('_', '.')}={value}")]


class Kcat(Client):
    def __init__(self, bootstrap):
        super().__init__(bootstrap)
        self.member = None

    def error_name(self, error):
        return str(error).split(":")[0] if isinstance(error, Refused) else type(error).__name__

    def run(self, *arguments, data=b"", timeout=60):
        done = subprocess.run([*KCAT, "-b", self.bootstrap, *arguments], input=data, capture_output=True, timeout=timeout)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    # Records

    def op_produce(self, command):
        config = command.get("config", {})
        common = ["-P", "-E", "-t", command["topic"], "-z", config.get("codec", "none"), *settings(
            acks=config.get("acks", "all"), enable_idempotence=str(config.get("idempotent", False)).lower(), linger_ms=config.get("linger_ms", 5), reconnect_backoff_max_ms=200,
            message_max_bytes=config.get("max_bytes", 1000000), message_timeout_ms=config.get("delivery_ms", 30000))]
        if "batch_bytes" in config:
            common += settings(batch_size=config["batch_bytes"])
        results = [None] * len(command["records"])
        for run in self.runs(command["records"]):
            flags, indexes = run
            error = self.send(common, flags, [command["records"][index] for index in indexes])
            for index in indexes:
                results[index] = error or [command["records"][index].get("p", -1), -1]
        return {"results": results}

    def runs(self, records):
        """Records that one run of kcat can send: same partition, same headers, the same kind of key and value."""
        runs = []
        for index, record in enumerate(records):
            if "t" in record:
                raise Unsupported("kcat cannot set timestamps")
            headers = []
            for name, value in record.get("h", []):
                if value is None or isinstance(value, dict):
                    raise Unsupported("kcat's headers come from the command line: text only")
                headers += ["-H", f"{name}={value}"]
            # With -Z an empty text is no value, without it an empty value; likewise for keys.
            null = ["-Z"] if record.get("v") is None else []
            keyed = ["-K", KEY_END] if record.get("k") is not None else []
            if not keyed and not record.get("v") or keyed and record["k"] == "":
                raise Unsupported("kcat cannot send this mix of nothing and empty")
            partition = ["-p", str(record["p"])] if "p" in record else []
            flags = [*partition, *headers, *null, *keyed]
            home = next((run for run in reversed(runs) if run[0][:2] == flags[:2] or not partition), None)
            if home is not None and home[0] == flags:
                home[1].append(index)
            else:
                runs.append((flags, [index]))
        return runs

    def send(self, common, flags, records):
        lines = []
        for record in records:
            key = payload(record["k"]) + KEY_END.encode() if "-K" in flags else b""
            lines.append(key + (payload(record.get("v")) or b""))
        code, _, said = self.run(*common, *flags, "-D", MESSAGE_END, data=MESSAGE_END.encode().join(lines))
        if code == 0 and "failed" not in said.lower():
            return None
        return "MSG_SIZE_TOO_LARGE" if "too large" in said.lower() else said.strip()[-120:] or f"exit {code}"

    def read(self, topic, partition, arguments, count, timeout):
        form = "%p %o %T %K %S %h\n%k%s\n"
        code, out, said = self.run("-C", "-q", "-t", topic, "-p", str(partition), "-c", str(count), "-e", "-f", form, *arguments, timeout=timeout)
        if code != 0:
            raise Refused(said.strip()[-200:])
        records = []
        while out:
            head, _, out = out.partition(b"\n")
            number, offset, stamp, key_length, length, *headers = head.decode().split(" ", 5)
            key_length, length = int(key_length), int(length)
            key, out = (None, out) if key_length < 0 else (out[:key_length], out[key_length:])
            value, out = (None, out) if length < 0 else (out[:length], out[length:])
            out = out[1:]
            pairs = [pair.split("=", 1) for pair in headers[0].split(",") if pair] if headers else []
            records.append([int(number), int(offset), int(stamp), shown(key), shown(value), pairs])
        return records

    def op_fetch(self, command):
        limit = command.get("max_bytes", 1048576)
        arguments = settings(max_partition_fetch_bytes=limit, fetch_max_bytes=max(limit, 52428800), receive_message_max_bytes=max(limit, 52428800) + 600,
                             auto_offset_reset=command.get("reset", "error"))
        start = command.get("from", "earliest")
        if start == "earliest":
            arguments += ["-o", "beginning"]
        elif "off" in start:
            arguments += ["-o", str(start["off"])]
        else:
            arguments += ["-o", f"s@{start['ts']}"]
        records = []
        for partition in command["parts"]:
            records += self.read(command["topic"], partition, arguments, command["count"], command["timeout_ms"] / 1000 + 10)
        return {"recs": records}

    def op_offsets(self, command):
        at = {"earliest": -2, "latest": -1}.get(command["at"]) if isinstance(command["at"], str) else command["at"]["ts"]
        wanted = [word for p in command["parts"] for word in ("-t", f"{command['topic']}:{p}:{at}")]
        code, out, said = self.run("-Q", *wanted)
        if code != 0:
            raise Refused(said.strip()[-200:])
        return {int(p): int(o) for p, o in re.findall(r"\[(\d+)\] offset (-?\d+)", out.decode())}

    # Groups

    def op_join(self, command):
        if command["assignor"] not in ASSIGNORS:
            raise Unsupported(f"librdkafka has no {command['assignor']} assignor")
        more = settings(partition_assignment_strategy=ASSIGNORS[command["assignor"]], session_timeout_ms=command.get("session_ms", 10000),
                        heartbeat_interval_ms=500, auto_offset_reset="earliest", auto_commit_interval_ms=100)
        if command.get("static"):
            more += settings(group_instance_id=command["static"])
        self.member = subprocess.Popen([*KCAT, "-b", self.bootstrap, "-G", command["group"], *more, "-u", "-f", "%t\t%p\t%o\t%s\n", *command["topics"]],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        threading.Thread(target=self.read_records, args=(self.member,), daemon=True).start()
        threading.Thread(target=self.read_assignments, args=(self.member,), daemon=True).start()

    def read_records(self, member):
        for line in member.stdout:
            topic, partition, offset, value = line.decode().rstrip("\n").split("\t")
            self.tell_records([[topic, int(partition), int(offset), value]])

    def read_assignments(self, member):
        owned = set()
        for line in member.stderr:
            text = line.decode(errors="replace")
            parts = {(topic, int(p)) for topic, p in re.findall(r"(\S+) \[(\d+)\]", text.partition("):")[2])}
            if ": assigned:" in text or "incremental assign" in text:
                owned = owned | parts if "incremental" in text else parts
            elif ": revoked:" in text or "incremental unassign" in text or "incremental revoke" in text:
                owned = owned - parts if parts else set()
            elif not text.startswith("% Reached end"):
                if "Waiting for group rebalance" not in text:
                    say({"ev": "error", "msg": text.strip()[:200]})
                continue
            self.tell_assignment(owned)

    def op_commit(self, command):
        """kcat commits by itself, here every 100 ms."""
        time.sleep(0.5)

    def op_leave(self, command):
        self.member.send_signal(signal.SIGTERM)
        self.member.wait(15)

    def op_list_topics(self, command):
        code, out, said = self.run("-L", "-J")
        return sorted(topic["topic"] for topic in json.loads(out)["topics"])


serve(Kcat)
