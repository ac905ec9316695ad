"""What the slowest requests of a turn waited for: what watch.rs and the node said of the same moments, as a sentence each.

Pure: lists in, sentences out. Times are µs of one clock. A cause is named where a thread that serves producers was seen standing, or waiting for a
processor, for a quarter of the request's time at least; else the sentence says that none was seen. What stands as *beside* happened in that time
and is not shown to be the cause.
"""

import re
from collections import namedtuple

Request = namedtuple("Request", "due handed acked partition records")
# A thread stood in a system call: `node` is its place among the peer's processes.
Call = namedtuple("Call", "node thread start end what path stack")
# In the 20 ms before `at` a thread was without a processor for `us`, and ran for `ran_us`.
Waited = namedtuple("Waited", "at node thread us ran_us")
Device = namedtuple("Device", "at writes bytes write_us flushes flush_us discards discard_us reads read_bytes read_us")
Probe = namedtuple("Probe", "due us")

# A system call that took so long is looked at for what stood beside it.
LONG_US = 8000
# How much of the request's time something must have taken to be called its cause.
SHARE = 0.25
# What a `Waited` or `Device` covers.
SELDOM_US = 20_000
MOMENTS, BESIDE = 10, 3

# Linux on x86_64 and aarch64.
CALLS = {
    "x86_64": {0: "read", 1: "write", 3: "close", 17: "pread64", 18: "pwrite64", 20: "writev", 26: "msync", 40: "sendfile", 74: "fsync", 75: "fdatasync", 76: "truncate", 77: "ftruncate",
               82: "rename", 83: "mkdir", 84: "rmdir", 87: "unlink", 217: "getdents64", 257: "openat", 258: "mkdirat", 263: "unlinkat", 264: "renameat", 277: "sync_file_range",
               285: "fallocate", 295: "preadv", 296: "pwritev", 306: "syncfs", 316: "renameat2", 327: "preadv2", 328: "pwritev2", -1: "page fault"},
    "aarch64": {34: "mkdirat", 35: "unlinkat", 38: "renameat", 46: "ftruncate", 47: "fallocate", 56: "openat", 57: "close", 61: "getdents64", 63: "read", 64: "write", 66: "writev", 67: "pread64",
                68: "pwrite64", 69: "preadv", 70: "pwritev", 71: "sendfile", 82: "fsync", 83: "fdatasync", 84: "sync_file_range", 227: "msync", 267: "syncfs", 276: "renameat2", -1: "page fault"},
}
WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
READS = ("read", "pread64", "preadv", "preadv2", "sendfile", "page fault")
SYNCS = ("fsync", "fdatasync", "syncfs", "msync", "sync_file_range")
# A producer waits for what these do; for others only by way of the device.
SERVES = ("worker-", "journal-", "data-plane-kafk", "ReplicaFetcher")
# The generator's own: librdkafka's threads of brokers, and tail.rs's.
GENERATES = ("rdk:broker", "tail")
SCHEDULED = {"us": "was without a processor", "ran_us": "was at work"}
# What parsed safepoints are called.
PAUSE = "safepoint"
SAFEPOINT = re.compile(r'^\[(\d+)ns\] Safepoint "(\w+)".*Total: *(\d+) ns')
# Where in the kernel: the first of these that is on the stack says it, so what is special stands before what many ways have in common.
WAITS = (
    ("rq_qos_wait", "in the kernel's write-back throttle"), ("wbt_wait", "in the kernel's write-back throttle"), ("blk_mq_get_tag", "for a place in the device's queue"),
    ("jbd2_log_wait_commit", "for the file system's commit"), ("jbd2_journal_commit", "for the file system's commit"), ("xlog_wait", "for the file system's log"), ("xfs_log_force", "for the file system's log"),
    ("balance_dirty_pages", "because too many pages are dirty"), ("rwsem_down", "for the lock of a file"), ("__mutex_lock", "for a lock of the kernel"),
    ("blkdev_issue_flush", "for a flush of the device"), ("blkdev_issue_discard", "for a discard"), ("__sync_dirty_buffer", "for the block of the file's inode"), ("write_inode", "for the block of the file's inode"),
    ("folio_wait_writeback", "for pages that are being written"), ("filemap_fdatawait", "for pages that are being written"), ("writeback_iter", "for pages that are being written"), ("iomap_dio", "for the device"),
    ("filemap_read", "for a read of the device"), ("folio_wait_bit", "for a page"), ("io_schedule", "for the device"),
)


def overlap(start, end, other_start, other_end):
    return max(min(end, other_end) - max(start, other_start), 0)


def union(spans):
    """The length of what any of these spans covers."""
    total, reached = 0, None
    for start, end in sorted(spans):
        if reached is None or start > reached:
            total, reached = total + end - start, end
        elif end > reached:
            total, reached = total + end - reached, end
    return total


def reason(stack):
    """What a stack of the kernel waits for, or nothing where it is not known."""
    return next((words for name, words in WAITS if any(name in frame for frame in stack)), "")


def file_of(path):
    """The last two names of a path: a partition's directory and its file."""
    return "/".join(path.removesuffix(" (deleted)").split("/")[-2:])


def doing(call):
    """(kind, what the thread did), in the words of the log directory."""
    file, of_log = file_of(call.path), call.path.endswith((".log", ".index", ".timeindex", ".snapshot", ".txnindex", ".cleaned", ".swap", ".deleted"))
    is_journal = "journal" in call.path.rsplit("/", 1)[-1] or "/journal" in call.path
    if call.what == PAUSE:
        return "JVM pause", "all threads of the JVM stopped"
    if "__cluster_metadata" in call.path or call.thread.startswith(("quorum", "snapshot", "kafka-raft", "raft-")):
        return "metadata log", f"{call.what} of the metadata log"
    if call.what in WRITES:
        if is_journal:
            return "journal round", "a round of the journal"
        if call.thread.startswith("worker-") and of_log:
            return "write back", f"write back to {file}"
        if call.thread.startswith("cleaner") or "log-cleaner" in call.thread or call.thread.startswith("kafka-log-clean"):
            return "compaction", f"compaction writes {file}"
        return "append", f"append to {file}" if of_log else f"write of {file}"
    if call.what in SYNCS:
        if call.what == "syncfs":
            return "segment sync", "sync of the whole file system"
        return ("journal sync", "sync of the journal") if is_journal else ("segment sync", f"sync of {file}")
    if call.what in READS:
        return ("page fault", "page fault") if call.what == "page fault" else ("read", f"read of {file}")
    if call.what == "fallocate":
        return "room", f"room set aside for {file}"
    if call.what in ("ftruncate", "truncate"):
        return "room", f"size of {file} changed"
    if call.what in ("unlink", "unlinkat", "rmdir") or (call.what == "close" and call.path.endswith("(deleted)")):
        return "deletion", "deletion of a file"
    if call.what in ("openat", "mkdir", "mkdirat", "rename", "renameat", "renameat2", "getdents64", "close"):
        return "directory", f"{call.what} of {file}" if call.path else call.what
    return "other", f"{call.what} {file}".strip()


class Seen:
    """All that was seen of a turn. `generator`: the load generator's place among the processes, behind the peer's."""

    def __init__(self, calls=(), waited=(), devices=(), probes=(), rest_us=0, phases=None, generator=None):
        self.calls, self.waited, self.devices, self.probes, self.rest_us, self.generator = list(calls), list(waited), list(devices), list(probes), rest_us, generator
        # (from, to) → words of the node's own on that time.
        self.phases = phases or (lambda start, end: "")

    def calls_in(self, start, end):
        return [call for call in self.calls if call.start < end and call.end > start and call.node != self.generator]

    def of_scheduler(self, start, end, figure):
        """{(node, thread): µs in this time} without a processor (`us`) or on one (`ran_us`), of threads that serve and of those that generate."""
        found = {}
        for one in self.waited:
            share = overlap(start, end, one.at - SELDOM_US, one.at) / SELDOM_US
            if share > 0 and one.thread.startswith(GENERATES if one.node == self.generator else SERVES):
                key = one.node, one.thread
                found[key] = found.get(key, 0) + getattr(one, figure) * share
        return found


def cause(request, seen):
    """(kind, µs, the longest call or (node, thread) behind it): what took most of the request's time; kind `unseen` where nothing took enough of it."""
    start, end = request.handed, request.acked
    by_kind = {}
    for call in seen.calls_in(start, end):
        if call.what == PAUSE or call.thread.startswith(SERVES):
            by_kind.setdefault(doing(call)[0], []).append(call)
    found = [("generator", start - request.due, None)]
    for kind, calls in by_kind.items():
        spans = [(max(call.start, start), min(call.end, end)) for call in calls]
        found.append((kind, union(spans), max(calls, key=lambda call: overlap(start, end, call.start, call.end))))
    for figure, name in (("us", "processor"), ("ran_us", "work")):
        # A request passes through one thread after the other, so their waits add up; at most to its time.
        of = {"generator": [], name: []}
        for who, us in seen.of_scheduler(start, end, figure).items():
            of["generator" if who[0] == seen.generator else name].append((us, (*who, figure)))
        found += [(kind, min(sum(us for us, _ in some), end - start), max(some)[1]) for kind, some in of.items() if some]
    kind, us, what = max(found, key=lambda one: one[1])
    return (kind, us, what) if us >= SHARE * (request.acked - request.due) else ("unseen", 0, None)


def ms(us):
    return f"{us / 1e3:.1f} ms" if us < 100_000 else f"{us / 1e3:,.0f} ms"


def thread_name(node, thread, several):
    return f"{thread} of node {node + 1}" if several else thread


def stood(call, several):
    """A call as a part of a sentence."""
    if call.what == PAUSE:
        return f"{doing(call)[1]} for {ms(call.end - call.start)} ({call.path})"
    why = reason(call.stack)
    return f"{doing(call)[1]}, {call.what} by {thread_name(call.node, call.thread, several)}, {ms(call.end - call.start)} or more{', ' + why if why else ''}"


def why(request, seen, several):
    kind, us, what = cause(request, seen)
    if kind == "generator":
        if what is None:
            return f"the load generator itself handed over late by {ms(us)}"
    if kind in ("processor", "work", "generator"):
        figures = seen.of_scheduler(request.handed, request.acked, what[2])
        most = sorted(((us, who) for who, us in figures.items() if (who[0] == seen.generator) == (kind == "generator")), reverse=True)
        if kind == "generator":
            return f"the load generator itself {SCHEDULED[what[2]]}: " + ", ".join(f"{who[1]} for {ms(us)}" for us, who in most[:BESIDE])
        return f"a thread {SCHEDULED[what[2]]}: " + ", ".join(f"{thread_name(*who, several)} for {ms(us)}" for us, who in most[:BESIDE])
    if kind == "unseen":
        return "no thread that serves producers was seen standing, without a processor or working for a quarter of that"
    share = us / max(request.acked - request.due, 1)
    return f"{stood(what, several)} ({kind} covers {share:.0%} of the time)"


def beside(request, seen, several):
    """What else stood in that time: the longest call of each kind but the cause's."""
    main, _, what = cause(request, seen)
    longest = {}
    for call in seen.calls_in(request.handed, request.acked):
        kind = doing(call)[0]
        if call is not what and (kind != main or what is None) and call.end - call.start > longest.get(kind, (0, None))[0]:
            longest[kind] = call.end - call.start, call
    return "; ".join(stood(call, several) for _, call in sorted(longest.values(), key=lambda one: -one[0])[:BESIDE])


def causes(requests, seen):
    """{kind: requests}, the most frequent first."""
    found = {}
    for request in requests:
        kind = cause(request, seen)[0]
        found[kind] = found.get(kind, 0) + 1
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def company(seen, least_us=LONG_US):
    """{kind: {"calls": long calls of threads that serve, "alone": of them those beside which nothing of the node stood, other kind: those beside which that stood}}"""
    found = {}
    for call in seen.calls:
        if call.end - call.start < least_us or not call.thread.startswith(SERVES) or call.node == seen.generator:
            continue
        kind = doing(call)[0]
        others = {doing(other)[0] for other in seen.calls_in(call.start, call.end) if other is not call and other.node == call.node and other.thread != call.thread}
        counts = found.setdefault(kind, {"calls": 0, "alone": 0})
        counts["calls"] += 1
        for name in others or {"alone"}:
            counts[name] = counts.get(name, 0) + 1
    return found


def device(request, seen):
    """What the device was asked for meanwhile, and what the probe found."""
    rows = [one for one in seen.devices if one.at > request.handed and one.at - SELDOM_US < request.acked]
    words = []
    if rows:
        of = {name: sum(getattr(one, name) for one in rows) for name in Device._fields[1:]}
        words += [f"{of['writes']:,} writes ({of['bytes'] / 1e6:.1f} MB, {ms(of['write_us'] / max(of['writes'], 1))} each)"] if of["writes"] else []
        words += [f"{of['reads']:,} reads ({of['read_bytes'] / 1e6:.1f} MB, {ms(of['read_us'] / of['reads'])} each)"] if of["reads"] else []
        words += [f"{of['flushes']} flushes ({ms(of['flush_us'] / of['flushes'])} each)"] if of["flushes"] else []
        words += [f"{of['discards']} discards ({ms(of['discard_us'] / of['discards'])} each)"] if of["discards"] else []
    probed = [one.us for one in seen.probes if one.due < request.acked and one.due + one.us > request.handed and one.us >= 0]
    floor = f"a synced write of 4 KiB due then took {ms(max(probed))} ({ms(seen.rest_us)} at rest)" if probed else "no probe was due then"
    return f"device: {', '.join(words) or 'nothing'}; {floor}"


def sentence(request, seen, origin, others=0, several=False):
    """One of the slowest requests. `origin`: the turn's start; `others`: slow ones of the same moment."""
    head = (f"{ms(request.acked - request.due)}: {request.records} records of partition {request.partition}, due at {(request.due - origin) / 1e6:.3f} s, handed over {ms(request.handed - request.due)} later, "
            f"acknowledged {ms(request.acked - request.handed)} after that{f' (and {others} more of this moment)' if others else ''}")
    also, node = beside(request, seen, several), seen.phases(request.handed, request.acked)
    return ". ".join([head, f"Cause: {why(request, seen, several)}", *([f"Beside: {also}"] if also else []), device(request, seen)[0].upper() + device(request, seen)[1:], *([node] if node else [])])


def moments(requests, most=MOMENTS):
    """[(request, how many others are of its moment)], the slowest first. Of one moment are those of which more than half of the shorter one's time is shared."""
    found = []
    for request in sorted(requests, key=lambda one: one.due - one.acked):
        for place, (known, others) in enumerate(found):
            shared = overlap(request.due, request.acked, known.due, known.acked)
            if shared > 0.5 * min(request.acked - request.due, known.acked - known.due):
                found[place] = known, others + 1
                break
        else:
            found.append((request, 0))
    return found[:most]


def parsed(lines, pids, machine):
    """Seen's lists out of watch.rs's lines (already of JSON), and what it said of itself: {cpu_us, samples, late, dropped}."""
    node, names = {pid: place for place, pid in enumerate(pids)}, CALLS.get(machine, {-1: "page fault"})
    calls, waited, devices, probes, used = [], [], [], [], {}
    for kind, *rest in lines:
        if kind == "call":
            pid, thread, start, end, number, path, _, stack = rest
            calls.append(Call(node.get(pid, 0), thread, start, end, names.get(number, f"system call {number}"), path, tuple(stack)))
        elif kind == "cpu":
            at, pid, *scheduled = rest
            waited.append(Waited(at, node.get(pid, 0), *scheduled))
        elif kind == "device":
            devices.append(Device(*rest))
        elif kind == "probe":
            probes.append(Probe(*rest))
        elif kind == "used":
            used = dict(zip(("cpu_us", "samples", "late", "dropped"), rest))
    return calls, waited, devices, probes, used


def pauses(text, node):
    """Times in which a JVM stopped all its threads, as calls: of its log `safepoint`, decorated with `timenanos`, which is CLOCK_MONOTONIC."""
    found = (SAFEPOINT.match(line) for line in text.splitlines())
    return [Call(node, "JVM", int(one[1]) // 1000 - int(one[3]) // 1000, int(one[1]) // 1000, PAUSE, one[2], ()) for one in found if one]


def slow_seconds(seconds, most=5, times=3):
    """[(second, p99, max)] of those whose p99 is `times` the median second's, the worst first. seconds: [[records, p50, p99, max], …]"""
    filled = sorted(one[2] for one in seconds if one[0])
    usual = filled[len(filled) // 2] if filled else 0
    slow = [(place, one[2], one[3]) for place, one in enumerate(seconds) if one[0] and one[2] > times * usual]
    return sorted(slow, key=lambda one: -one[1])[:most]
