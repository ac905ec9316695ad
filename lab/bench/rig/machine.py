"""What processes use, out of /proc, and whether somebody else was using the machine meanwhile.

CPU is user and system time of a process with all its threads, in steps of the kernel's tick (10 ms): a figure per record needs a second of load
or more. What the kernel does in threads of its own (writing back the page cache) is nobody's, and counts as other load.
"""

import os
import resource
import statistics
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count() or 1
# The share of the machine that others may use during a run that counts.
DISTURBED = 0.1


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def status_kb(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return None


def resident_mb(pid):
    found = status_kb(pid, "VmRSS")
    return float("nan") if found is None else found / 1024


def written_bytes(pid):
    """Bytes that the process had written to the device or left in the page cache for it."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    raise RuntimeError("no write_bytes")


def context_switches(pid):
    """Of all threads that live; a thread that has ended has taken its own along."""
    count = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        count += sum(int(line.split()[1]) for line in text.splitlines() if "voluntary_ctxt_switches:" in line)
    return count


def machine_busy():
    values = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(values) - values[3] - values[4]) / TICK


def busy_share(seconds):
    """The share of all cores that is used by anybody now."""
    before = machine_busy()
    time.sleep(seconds)
    return (machine_busy() - before) / (seconds * CORES)


def children_seconds():
    """CPU of this program's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def blocks_of_the_dead():
    """Bytes that ended children had written to the device: what was laid at a clean stop is among them."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock * 512


def settle():
    """What one run left in the page cache is not written during the next."""
    os.sync()


def all_descriptors():
    """As many open files as the system lets this program and its children have; the number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def median(values):
    return statistics.median(values)


def spread(values, digits=2):
    shown = [f"{value:.{digits}f}" for value in (median(values), min(values), max(values))]
    return f"{shown[0]} [{shown[1]}..{shown[2]}]"


class Usage:
    """What a server's processes, its clients and everybody else used between two moments."""

    def __init__(self, pids, client_seconds=children_seconds):
        self.pids, self.client_seconds = list(pids), client_seconds
        self.before, self.switches = self._now(), self._switches()

    def _now(self):
        server = sum(cpu_seconds(pid) for pid in self.pids)
        return server, self.client_seconds(), machine_busy(), time.monotonic(), sum(written_bytes(pid) for pid in self.pids)

    def _switches(self):
        return sum(context_switches(pid) for pid in self.pids)

    def since(self, records):
        server, client, busy, seconds, written = (now - before for now, before in zip(self._now(), self.before))
        return {"server_us_per_record": server * 1e6 / max(records, 1), "client_us_per_record": client * 1e6 / max(records, 1),
                "other_load": round(max(busy - server - client, 0) / (seconds * CORES), 3), "device_bytes_per_record": written / max(records, 1)}

    def in_full(self, records):
        """`since`, and what only the whole lab reports."""
        found = self.since(records)
        switches, rss = self._switches() - self.switches, sum(resident_mb(pid) for pid in self.pids)
        return {**found, "switches_per_record": switches / max(records, 1), "rss_mb": round(rss, 1), "seconds": round(time.monotonic() - self.before[3], 2)}
