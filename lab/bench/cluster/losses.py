"""A broker is lost under load, and comes back: killed (whoever, or the active controller), or restarted as planned.

A producer and a reader that do not wait (beat.rs) watch each partition of a topic with three replicas. Where a broker is killed, each two brokers have
a topic that the third has nothing of, with a client of its own: a broker answers the requests of one connection in order, so that a partition which
waits for the lost broker holds up all that are asked for behind it. What they see is told apart:
- *gap*: partitions with three replicas that the lost broker led (a planned restart: all partitions with three replicas)
- *live leaders*: partitions with three replicas that another one led; the lost broker was in sync with it
- *apart*: partitions of which the lost broker had nothing
"""

import math
import time
from contextlib import ExitStack

from harness.usage import cpu_seconds, resident_mb
from rig.machine import CORES, calm, children_seconds, kernel_seconds, processes_busy
from rig.measures import topic_name, warm

from .beat import UNRETRIED, Beat, all_beat
from .peers import IDS, KAFKA, OURS

# Each broker leads four of twelve, and one of two with each other.
WHOLE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 4
PAIRS = ([1, 2], [2, 3], [3, 1])
PER_SECOND = 200
# Kafka's session timeout is nine seconds: what stalls only then is to be seen as well.
BEHIND_SESSION_S = 11


class Around:
    """What others used meanwhile, where servers end and start; what has ended is a child that was waited for."""

    def __init__(self, peer, beats):
        self.peer, self.beats = peer, beats
        self.begun, self.before = time.monotonic(), self._now()

    def _now(self):
        known = children_seconds() + time.process_time()
        for pid in [*self.peer.pids(), *(beat.process.pid for beat in self.beats)]:
            try:
                known += cpu_seconds(pid)
            except OSError:
                continue
        return processes_busy() - known - kernel_seconds()

    def told(self):
        seconds = time.monotonic() - self.begun
        return {"other_load": round(max(self._now() - self.before, 0) / (seconds * CORES), 3), "rss_mb": round(sum(map(resident_mb, self.peer.pids())), 1), "seconds": round(seconds, 2)}


def longest(told, kind, numbers):
    """The longest pause of these partitions, ms."""
    pauses = told[kind]["pauses_ms"]
    return max((pauses[number] for number in numbers), default=0.0)


class Losses:
    """`times`: {peer: brokers lost in a run}."""

    def __init__(self, quick, times):
        self.quick, self.times = quick, times

    def takes(self, plan, peer):
        each = 18 if peer.name == KAFKA else 4
        return 2, 4 + each * self.times[peer.name] + (0 if self.quick or peer.name == KAFKA else BEHIND_SESSION_S)

    def names(self, case):
        return [topic_name(case, "whole")]

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        peer.create_assigned({self.names(case)[0]: WHOLE})

    def finish(self, rig, peer, case):
        peer.delete(self.names(case))

    def clients(self, peer, case):
        """The first is that of the topic with three replicas."""
        return [Beat(peer.server.address, self.names(case)[0], len(WHOLE), PER_SECOND)]

    def run(self, rig, peer, case, number):
        calm_s = calm(peer.directory)
        with ExitStack() as stack:
            beats = [stack.enter_context(beat) for beat in self.clients(peer, case)]
            all_beat(beats, 30, reads=True)
            around = Around(peer, beats)
            self.window(beats, "from")
            time.sleep(0.5 if self.quick else 2)
            told = self.window(beats, "to")
            still = max(max(one["acks"]["pauses_ms"]) for one in told)
            still_read = max(max(one["reads"]["pauses_ms"]) for one, beat in zip(told, beats) if beat.reads)
            events = []
            for place in range(self.times[peer.name]):
                events.append({"undisturbed_ms": still, "undisturbed_read_ms": still_read, **self.lose(peer, case, beats, place)})
                all_beat(beats, 30, reads=True)
            return {"events": events, "calm_s": calm_s, **around.told()}

    @staticmethod
    def window(beats, word):
        return [beat.ask(word) for beat in beats]

    def led(self, peer, case):
        """(active controller, {(topic, partition): Led})"""
        asks = peer.ask()
        try:
            return asks.controller(), asks.described(self.names(case))[1]
        finally:
            asks.close()

    def lose(self, peer, case, beats, place):
        raise NotImplementedError

    def back(self, peer, case, beats, lost):
        """It leads again what it led before; the seconds until it was in sync."""
        begun = time.monotonic()
        peer.wait_ready(lost)
        peer.wait_in_sync(self.names(case))
        took, asks = time.monotonic() - begun, peer.ask()
        error = asks.elect_preferred()
        asks.close()
        if error:
            raise RuntimeError(f"{peer.label}: ElectLeaders: error {error}")
        peer.wait_in_sync(self.names(case), preferred=True)
        return took

    @staticmethod
    def failures(told):
        """{failed, errors} of producers that retry."""
        errors = sorted({one["acks"]["error"] for one in told if one["acks"]["error"]})
        return {"failed": sum(one["acks"]["failed"] for one in told), **({"errors": errors} if errors else {})}


class Kills(Losses):
    """kill −9. `controller`: the active one; otherwise the two others in turn."""

    def __init__(self, quick, times, controller=False):
        super().__init__(quick, times)
        self.controller, self.turn = controller, 0

    def names(self, case):
        return [*super().names(case), *(topic_name(case, f"pair-{one}-{other}") for one, other in PAIRS)]

    def prepare(self, rig, peer, case):
        super().prepare(rig, peer, case)
        # With a broker lost one of two is enough, as two of three are.
        peer.create_assigned({name: [pair, pair[::-1]] for name, pair in zip(self.names(case)[1:], PAIRS)}, {"min.insync.replicas": "1"})

    def clients(self, peer, case):
        return [*super().clients(peer, case), *(Beat(peer.server.address, name, 2, PER_SECOND) for name in self.names(case)[1:])]

    def victim(self, active):
        others = [number for number in IDS if number != active]
        self.turn += 1
        return active if self.controller else others[self.turn % 2]

    def lose(self, peer, case, beats, place):
        active, leads = self.led(peer, case)
        lost = self.victim(active)
        whole = self.names(case)[0]
        self.window(beats, "from")
        peer.nodes[lost].kill()
        # The first of a run stays away for longer than a session lasts.
        at_least = BEHIND_SESSION_S if place == 0 and not self.quick and peer.name == OURS else 2
        recovered = all_beat(beats, 60, at_least=at_least)
        told = self.window(beats, "to")
        event = {"lost": lost, "controller": active, "recovered_s": round(recovered, 2), **self.told_apart(told, leads, whole, lost), **self.failures(told)}
        self.window(beats, "from")
        peer.spawn(lost)
        event["back_s"] = round(self.back(peer, case, beats, lost), 2)
        told = self.window(beats, "to")
        event["return_ms"] = longest(told[0], "acks", range(len(WHOLE)))
        event["failed"] += self.failures(told)["failed"]
        return event

    @staticmethod
    def told_apart(told, leads, whole, lost):
        own = [number for (topic, number), led in leads.items() if topic == whole and led.leader == lost]
        others = [number for number in range(len(WHOLE)) if number not in own]
        apart = told[1 + next(place for place, pair in enumerate(PAIRS) if lost not in pair)]
        return {"gap_ms": longest(told[0], "acks", own), "read_gap_ms": longest(told[0], "reads", own), "others_ms": longest(told[0], "acks", others),
                "others_read_ms": longest(told[0], "reads", others), "apart_ms": longest(apart, "acks", range(2)), "apart_read_ms": longest(apart, "reads", range(2))}


class Restarts(Losses):
    """SIGTERM, and started again when it has ended. A second client does not retry: each refusal is an error to it."""

    turn = 0

    def clients(self, peer, case):
        return [*super().clients(peer, case), Beat(peer.server.address, self.names(case)[0], len(WHOLE), 50, reads=False, settings=UNRETRIED)]

    def lose(self, peer, case, beats, place):
        lost = IDS[self.turn % 3]
        self.turn += 1
        self.window(beats, "from")
        begun = time.monotonic()
        if not peer.nodes[lost].stop(60):
            raise RuntimeError(f"{peer.label}: node {lost} did not stop within a minute")
        stopped = time.monotonic() - begun
        all_beat(beats, 60)
        told = self.window(beats, "to")
        self.window(beats, "from")
        peer.spawn(lost)
        back = self.back(peer, case, beats, lost)
        all_beat(beats, 60)
        returned = self.window(beats, "to")
        everything = range(len(WHOLE))
        found = {**self.failures(told[:1]), "refused": told[1]["acks"]["failed"] + returned[1]["acks"]["failed"]}
        found["failed"] += self.failures(returned[:1])["failed"]
        refusals = sorted({one[1]["acks"]["error"] for one in (told, returned)} - {""})
        return {"lost": lost, "stop_s": round(stopped, 2), "back_s": round(back, 2), "gap_ms": longest(told[0], "acks", everything), "read_gap_ms": longest(told[0], "reads", everything),
                "return_ms": longest(returned[0], "acks", everything), **({"refusals": refusals} if refusals else {}), **found}


# Figures over all events of all runs

SUMMED = ("failed", "refused")
SPREAD = ("gap_ms", "read_gap_ms", "others_ms", "others_read_ms", "apart_ms", "apart_read_ms", "return_ms", "undisturbed_ms", "undisturbed_read_ms")


def percentile(values, share):
    """The nearest rank: of 50 values p99 is the largest."""
    return sorted(values)[max(math.ceil(len(values) * share), 1) - 1]


def pooled(runs):
    """One line out of those of a row's runs."""
    events = [event for run in runs for event in run["events"]]
    found = {**runs[-1], "run": 0, "events": len(events)}
    for name in SPREAD:
        values = [event[name] for event in events if name in event]
        if values:
            found |= {f"{name[:-3]}_p50_ms": percentile(values, 0.5), f"{name[:-3]}_p99_ms": percentile(values, 0.99)}
    for name in SUMMED:
        values = [event[name] for event in events if name in event]
        if values:
            found[name] = sum(values)
    found["other_load"] = sorted(run["other_load"] for run in runs)[len(runs) // 2]
    return found


class Pooled:
    """The rig's lines for a report: the runs of a row that loses brokers are one line."""

    def __init__(self, lines):
        self.lines = lines
        self.all = lines.all

    def counted(self, workload, case, peer):
        runs = self.lines.counted(workload, case, peer)
        return [pooled(runs)] if runs and "events" in runs[0] else runs

    def failures(self):
        return self.lines.failures()
