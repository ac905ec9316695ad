"""What a run used (harness/usage.py), and whether other programs used the machine meanwhile.

CPU comes in steps of 10 ms: a figure per record needs a second of load or more. What the kernel does in threads of its own (writing back the page cache, mostly what a server wrote) and for the network is told apart
(`kernel_load`) and disturbs nobody; what the host takes away (steal) does.
"""

import bisect
import os
import resource
import statistics
import threading
import time
from pathlib import Path

from harness.usage import TICK, context_switches, cpu_seconds, resident_mb, written_bytes

CORES = os.cpu_count() or 1
# The share of the machine that others may use during a run that counts.
DISTURBED = 0.1


def device_writes():
    """(writes, milliseconds that they took) of all whole disks: the device's own share of a synced answer's time."""
    count = took = 0
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if Path(f"/sys/block/{fields[2]}").exists() and not fields[2].startswith(("loop", "ram", "dm-", "md", "zram")):
            count, took = count + int(fields[7]), took + int(fields[10])
    return count, took


def machine_busy():
    values = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(values) - values[3] - values[4]) / TICK


def processes_busy():
    """What processes and kernel threads used, and what the host took away: all of `machine_busy` but interrupts, which are for whoever sends."""
    user, nice, system, _, _, _, _, steal = (int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + steal) / TICK


def kernel_seconds():
    """CPU of the kernel's own threads that live."""
    ticks = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                with open(f"/proc/{entry.name}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            # kthreadd is 2, and the parent of the others.
            if entry.name == "2" or fields[1] == "2":
                ticks += int(fields[11]) + int(fields[12])
    return ticks / TICK


# A device at rest: so many small synced writes in a row, none longer than that.
CALM_WRITES, CALM_S = 150, 0.03


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
    """Bytes that ended children had written to the device: what was written back at a clean stop is among them."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock * 512


def settle():
    """What one run left in the page cache is not written during the next."""
    os.sync()


def calm(directory, patience=90):
    """Waits until the device answers small synced writes as it does at rest: after a row of gigabytes some of them take seconds,
    whoever asks, and a wait of that kind is nobody's failover. Seconds that it took; `None`: it never did."""
    settle()
    begun, quick = time.monotonic(), 0
    file = os.open(Path(directory) / "calm", os.O_CREAT | os.O_WRONLY | os.O_DSYNC)
    try:
        while quick < CALM_WRITES:
            at = time.monotonic()
            os.pwrite(file, bytes(4096), 0)
            quick = quick + 1 if time.monotonic() - at < CALM_S else 0
            if time.monotonic() - begun > patience:
                return None
            time.sleep(0.02)
    finally:
        os.close(file)
        os.unlink(Path(directory) / "calm")
    return round(time.monotonic() - begun, 2)


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


class Sampled:
    """What a server's processes, its clients and everybody else had used by any moment of a run, so that a part of it can be looked at afterwards.

    Costs a hundredth of a core. `watch` is called when the clients run; what is read seldom is interpolated over a second.
    """

    OFTEN_S, SELDOM_S = 0.1, 1.0

    def __init__(self, pids, clients=()):
        self.pids, self.clients = list(pids), list(clients)
        self.often, self.seldom = [self._often()], [self._seldom()]
        self.ended, self.thread = threading.Event(), None

    def _often(self):
        """(when, {what: how much by then})"""
        clients = children_seconds()
        for process in self.clients:
            try:
                clients += cpu_seconds(process.pid) if process.returncode is None else 0
            except OSError:
                continue
        return time.monotonic(), {"server": sum(cpu_seconds(pid) for pid in self.pids), "client": clients, "busy": processes_busy(),
                                  "written": sum(written_bytes(pid) for pid in self.pids)}

    def _seldom(self):
        writes, write_ms = device_writes()
        return time.monotonic(), {"kernel": kernel_seconds(), "switches": sum(context_switches(pid) for pid in self.pids), "writes": writes, "write_ms": write_ms}

    def watch(self, clients):
        self.clients = list(clients)
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        while not self.ended.wait(self.OFTEN_S):
            try:
                self.often.append(self._often())
                if time.monotonic() - self.seldom[-1][0] > self.SELDOM_S:
                    self.seldom.append(self._seldom())
            except OSError:
                # The server has ended; who waits for the clients will say so.
                return

    def end(self):
        self.ended.set()
        if self.thread is not None:
            self.thread.join()
        try:
            self.often.append(self._often())
            self.seldom.append(self._seldom())
        except OSError:
            # The same: the server is gone.
            self.often.append(self.often[-1])
            self.seldom.append(self.seldom[-1])

    @property
    def stretch(self):
        return self.often[0][0], self.often[-1][0]

    def between(self, begin, end, records):
        """What was used from one moment to another, in which so many records were acknowledged."""
        used = {name: after - before for series in (self.often, self.seldom)
                for (name, after), before in zip(interpolated(series, end).items(), interpolated(series, begin).values())}
        seconds, records = max(end - begin, 1e-9), max(records, 1)
        other = used["busy"] - used["server"] - used["client"] - used["kernel"]
        return {"server_us_per_record": used["server"] * 1e6 / records, "client_us_per_record": used["client"] * 1e6 / records,
                "other_load": round(max(other, 0) / (seconds * CORES), 3), "kernel_load": round(used["kernel"] / (seconds * CORES), 3),
                "device_bytes_per_record": used["written"] / records, "switches_per_record": used["switches"] / records,
                "device_write_ms": round(used["write_ms"] / max(used["writes"], 1), 3),
                "rss_mb": round(sum(resident_mb(pid) for pid in self.pids), 1), "seconds": round(seconds, 2)}


def interpolated(series, when):
    """{what: how much} at a moment, out of [(moment, {what: how much})]."""
    place = min(max(bisect.bisect_left([moment for moment, _ in series], when), 1), len(series) - 1)
    (before, low), (after, high) = series[place - 1], series[place]
    share = 0 if after == before else min(max((when - before) / (after - before), 0), 1)
    return {name: low[name] + (high[name] - low[name]) * share for name in low}
