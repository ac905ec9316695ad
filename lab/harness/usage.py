"""What processes use, out of /proc. CPU is user and system time of a process with all its threads, in steps of the kernel's tick (10 ms)."""

import os
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def status_kb(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return None


def resident_mb(pid):
    """Resident memory in MiB; not a number once the process is a zombie."""
    found = status_kb(pid, "VmRSS")
    return float("nan") if found is None else found / 1024


def peak_mb(pid):
    """The most that was resident, in MiB, since the start or the last `reset_peak`."""
    found = status_kb(pid, "VmHWM")
    return float("nan") if found is None else found / 1024


def reset_peak(pid):
    Path(f"/proc/{pid}/clear_refs").write_text("5")


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
            lines = status.read_text().splitlines()
        except OSError:
            continue
        count += sum(int(line.split()[1]) for line in lines if "voluntary_ctxt_switches:" in line)
    return count
