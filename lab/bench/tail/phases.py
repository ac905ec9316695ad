"""What a node of ours says of the same seconds: its metrics page once a second, and between two pages how long each phase of a Produce request took at most.

A page has steps of powers of two, and counts; so a phase is known as *up to* so many ms, in the seconds around a request, for any of their requests. It
costs the node a millisecond of CPU a second. Kafka has nothing of the kind: its sentences go without.
"""

import re
import threading
import time
import urllib.request

from .moments import ms

FAMILIES = "barnabas_request_phase,barnabas_journal,barnabas_segment_sync,barnabas_worker_write_back,barnabas_retention,barnabas_compaction_w,barnabas_direct,barnabas_appends_delayed"
EVERY_S = 1.0
LINE = re.compile(r'^(barnabas_\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="([^"]*)"')
# Shorter phases are left out of sentences.
LEAST_US = 2000


def page_of(text):
    """{(family, labels without le): {le in µs: count} or value}, of all workers and directories together."""
    found = {}
    for line in text.splitlines():
        matched = LINE.match(line)
        if not matched:
            continue
        family, part, labels, value = matched.groups()
        named = dict(LABEL.findall(labels or ""))
        le = named.pop("le", None)
        for label in ("worker", "log_directory"):
            named.pop(label, None)
        key = family, tuple(sorted(named.items()))
        if part == "_bucket" and le != "+Inf":
            steps = found.setdefault(key, {})
            steps[round(float(le) * 1e6)] = steps.get(round(float(le) * 1e6), 0) + int(float(value))
        elif part == "_count" or part is None:
            key = key if part is None else (f"{family}_count", key[1])
            found[key] = found.get(key, 0) + float(value)
    return found


def largest_us(before, after, key):
    """(the upper edge of the largest step that gained a value, values gained)"""
    steps, old = after.get(key) or {}, before.get(key) or {}
    largest, passed, last = 0, 0, 0
    for edge in sorted(steps):
        gained = steps[edge] - old.get(edge, 0)
        if gained > passed:
            largest, passed = edge, gained
        last = gained
    return largest, last


def gained(before, after, name):
    return sum(value - (before.get(key) or 0) for key, value in after.items() if key[0] == name and not isinstance(value, dict))


def words(before, after, seconds):
    """What the node says of the time between two pages."""
    phases = {dict(key[1]).get("phase"): largest_us(before, after, key)[0] for key in after if key[0] == "barnabas_request_phase_seconds" and dict(key[1]).get("request") == "Produce"}
    phases = sorted(((us, name) for name, us in phases.items() if us >= LEAST_US), reverse=True)
    rounds, syncs, backs = (largest_us(before, after, (f"barnabas_{name}_seconds", ())) for name in ("journal_write", "segment_sync", "worker_write_back"))
    said = [f"phases up to {', '.join(f'{name} {ms(us)}' for us, name in phases)}" if phases else "no phase of 2 ms"]
    for what, (us, count) in (("journal rounds", rounds), ("syncs of segments", syncs), ("turns that wrote back", backs)):
        said += [f"{count} {what} (up to {ms(us)})"] if count else []
    back = gained(before, after, "barnabas_journal_written_back_bytes_total")
    said += [f"{back / 1e6:.1f} MB written back"] if back else []
    for name, what in (("barnabas_direct_appends_total", "direct appends"), ("barnabas_appends_delayed_total", "appends delayed"), ("barnabas_retention_segments_deleted_total", "segments deleted")):
        count = gained(before, after, name)
        said += [f"{count:.0f} {what}"] if count else []
    return f"Node, in these {seconds:.1f} s: {'; '.join(said)}"


class Pages:
    """Asks each second, as long as the `with` lasts. `ports`: of the metrics listeners of all nodes; none: nothing is asked."""

    def __init__(self, ports):
        self.ports, self.pages, self.failed = list(ports), [], 0
        self.ended, self.thread = threading.Event(), threading.Thread(target=self._ask, daemon=True)

    def __enter__(self):
        if self.ports:
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        if self.ports:
            self.thread.join(10)

    def _ask(self):
        while True:
            texts = []
            for port in self.ports:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics?buckets=all&families={FAMILIES}", timeout=5) as answer:
                        texts.append(answer.read().decode())
                except OSError:
                    self.failed += 1
            self.pages.append((time.monotonic() * 1e6, texts))
            if self.ended.wait(EVERY_S):
                return

    def between(self, start, end):
        """The node's words on a time: of the last page before it and the first behind it; of several nodes, together."""
        if len(self.pages) < 2:
            return ""
        first = max((place for place, (at, _) in enumerate(self.pages) if at <= start), default=0)
        last = min((place for place, (at, _) in enumerate(self.pages) if at >= end), default=len(self.pages) - 1)
        if first >= last:
            return ""
        before, after = (page_of("\n".join(self.pages[place][1])) for place in (first, last))
        return words(before, after, (self.pages[last][0] - self.pages[first][0]) / 1e6)
