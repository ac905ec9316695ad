"""The two programs of this bench, built by rustc alone, and what a run says to them: beat.rs (pauses of each partition) and leaders.rs (when all are led)."""

import json
import os
import select
import subprocess
import time
from pathlib import Path

from compat import fetch
from harness.process import spawn

HERE = Path(__file__).resolve().parent
FOLDER = "bench-cluster"
# What Apache's own client has for defaults, and librdkafka has not: a retry is neither written twice nor out of order.
RETRIED = {"enable.idempotence": "true", "linger.ms": "0"}
# Whoever asks for this is told each refusal.
UNRETRIED = {"enable.idempotence": "false", "retries": "0", "linger.ms": "0"}


def built(name):
    """The program, compiled where it is not the one of this source."""
    out = fetch.CACHE / FOLDER / name
    out.mkdir(parents=True, exist_ok=True)
    source, words = HERE / f"{name}.rs", []
    if name == "beat":
        found = sorted(Path(fetch.python()).parents[1].glob("lib/python3*/site-packages/confluent_kafka.libs/librdkafka*.so*"))
        if not found:
            raise fetch.Missing("the confluent-kafka wheel brings no librdkafka")
        words = ["-C", f"link-arg={found[0]}", "-C", f"link-arg=-Wl,-rpath,{found[0].parent}"]
    fresh, seal = fetch._stamp(out, source.read_text(), (HERE.parent / "rig/librdkafka.rs").read_text(), *words)
    if not (fresh and (out / name).exists()):
        made = out / f"{name}-{os.getpid()}"
        fetch._run(f"bench-{name}", ["rustc", "--edition", "2024", "-O", str(source), "--crate-name", name, "-o", str(made), *words])
        made.replace(out / name)
        seal()
    return str(out / name)


class Beat:
    """One such producer with its reader, as long as the `with` lasts."""

    def __init__(self, address, topic, partitions, per_second, record_bytes=100, reads=True, settings=None):
        words = [address, topic, partitions, per_second, record_bytes, int(reads), *(f"{key}={value}" for key, value in (settings or RETRIED).items())]
        self.topic, self.reads = topic, reads
        self.process = spawn([built("beat"), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, word):
        """Its answer."""
        try:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError(f"the client of {self.topic} has ended with {self.process.wait()}") from None
        ready, _, _ = select.select([self.process.stdout], [], [], 20)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            raise RuntimeError(f"the client of {self.topic} does not answer")
        return json.loads(line)

    def silent(self, reads=False):
        """The longest silence of a partition that there is now, ms, and which; one that never spoke is infinitely silent."""
        now = self.ask("now")
        quiet = [float("inf") if one < 0 else one for one in now["acks"] + (now["reads"] if reads and self.reads else [])]
        longest = max(quiet)
        return longest, quiet.index(longest) % len(now["acks"])


def all_beat(beats, within, at_least=1.5, reads=False, longest_ms=1000):
    """Waits until no partition of any of them is silent, `at_least` so many seconds: longer than what is no silence yet, so that none is overlooked which has
    begun just now. Raises where that takes too long."""
    begun = time.monotonic()
    while True:
        time.sleep(0.05)
        waited = time.monotonic() - begun
        if waited < at_least:
            continue
        silent = [(beat.topic, *beat.silent(reads)) for beat in beats]
        if all(found[1] <= longest_ms for found in silent):
            return waited
        if waited > within:
            raise RuntimeError(f"silence after {within} s: {', '.join(f'{topic}, partition {partition}, for {ms:.0f} ms' for topic, ms, partition in silent)}")


def led_at(ports, dead, prefix, topics, within=60):
    """Starts to watch until all partitions of these topics are led, by all brokers behind these ports; `led` waits for it."""
    words = [",".join(map(str, ports)), dead, prefix, topics, int(within)]
    return spawn([built("leaders"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def led(watching, within=90):
    try:
        out, err = watching.communicate(timeout=within)
    finally:
        watching.kill()
        watching.wait()
    if watching.returncode != 0:
        raise RuntimeError(f"who leads cannot be asked: {err.strip()[-300:]}")
    return json.loads(out)
