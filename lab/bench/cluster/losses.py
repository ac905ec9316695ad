"""A broker is lost under load, and comes back: killed (whoever, or the active controller), or restarted as planned.

A producer and a reader that do not wait (beat.rs) watch each partition: of a topic with three replicas, and of one with two, of which some partitions
have none on the broker that is lost. What they see is told apart:
- *gap*: partitions with three replicas that the lost broker led (a planned restart: all partitions with three replicas)
- *live leaders*: partitions with three replicas that another one led; the lost broker was in sync with it
- *apart*: partitions of which the lost broker had nothing
"""

import math
import time
from contextlib import ExitStack

from rig.machine import CORES, children_seconds, cpu_seconds, kernel_seconds, processes_busy, resident_mb
from rig.measures import topic_name, warm

from .beat import UNRETRIED, Beat, all_beat
from .peers import IDS, KAFKA, OURS

# Each broker leads four of twelve and two of six.
WHOLE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 4
PAIRS = [[1, 2], [2, 3], [3, 1], [2, 1], [3, 2], [1, 3]]
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
        each = 20 if peer.name == KAFKA else 5
        return 3, 5 + each * self.times[peer.name] + (0 if self.quick or peer.name == KAFKA else BEHIND_SESSION_S)

    def names(self, case):
        return topic_name(case, "whole"), topic_name(case, "pairs")

    def prepare(self, rig, peer, case):
        warm(rig, peer)
        whole, pairs = self.names(case)
        peer.create_assigned({whole: WHOLE})
        # With a broker lost one of two is enough, as two of three are.
        peer.create_assigned({pairs: PAIRS}, {"min.insync.replicas": "1"})

    def finish(self, rig, peer, case):
        peer.delete(list(self.names(case)))

    def clients(self, peer, case):
        whole, pairs = self.names(case)
        return [Beat(peer.server.address, whole, len(WHOLE), PER_SECOND), Beat(peer.server.address, pairs, len(PAIRS), PER_SECOND)]

    def run(self, rig, peer, case, number):
        with ExitStack() as stack:
            beats = [stack.enter_context(beat) for beat in self.clients(peer, case)]
            all_beat(beats, 30, reads=True, at_least=1)
            around = Around(peer, beats)
            self.window(beats, "from")
            time.sleep(0.5 if self.quick else 2)
            told = self.window(beats, "to")
            still = max(max(one["acks"]["pauses_ms"]) for one in told)
            still_read = max(max(one["reads"]["pauses_ms"]) for one in told[:2])
            events = []
            for place in range(self.times[peer.name]):
                events.append({"undisturbed_ms": still, "undisturbed_read_ms": still_read, **self.lose(peer, case, beats, place)})
                all_beat(beats, 30, reads=True, at_least=0.5)
            return {"events": events, **around.told()}

    @staticmethod
    def window(beats, word):
        return [beat.ask(word) for beat in beats]

    def led(self, peer, case):
        """(active controller, {(topic, partition): Led})"""
        asks = peer.ask()
        try:
            return asks.controller(), asks.described(list(self.names(case)))[1]
        finally:
            asks.close()

    def lose(self, peer, case, beats, place):
        raise NotImplementedError

    def back(self, peer, case, beats, lost):
        """It leads again what it led before; the longest pause meanwhile, ms, in sync after, s."""
        begun = time.monotonic()
        peer.wait_ready(lost)
        peer.wait_in_sync(list(self.names(case)))
        took, asks = time.monotonic() - begun, peer.ask()
        error = asks.elect_preferred()
        asks.close()
        if error:
            raise RuntimeError(f"{peer.label}: ElectLeaders: error {error}")
        peer.wait_in_sync(list(self.names(case)), preferred=True)
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

    def victim(self, active):
        others = [number for number in IDS if number != active]
        self.turn += 1
        return active if self.controller else others[self.turn % 2]

    def lose(self, peer, case, beats, place):
        active, leads = self.led(peer, case)
        lost = self.victim(active)
        whole, pairs = self.names(case)
        self.window(beats, "from")
        peer.nodes[lost].kill()
        # The first of a run stays away for longer than a session lasts.
        at_least = BEHIND_SESSION_S if place == 0 and not self.quick and peer.name == OURS else 2
        recovered = all_beat(beats, 60, at_least=at_least)
        told = self.window(beats, "to")
        event = {"lost": lost, "controller": active, "recovered_s": round(recovered, 2), **self.told_apart(told, leads, whole, pairs, lost), **self.failures(told)}
        self.window(beats, "from")
        peer.spawn(lost)
        event["back_s"] = round(self.back(peer, case, beats, lost), 2)
        told = self.window(beats, "to")
        event["return_ms"] = longest(told[0], "acks", range(len(WHOLE)))
        event["failed"] += self.failures(told)["failed"]
        return event

    @staticmethod
    def told_apart(told, leads, whole, pairs, lost):
        own = [number for (topic, number), led in leads.items() if topic == whole and led.leader == lost]
        others = [number for (topic, number), led in leads.items() if topic == whole and led.leader != lost]
        apart = [number for (topic, number), led in leads.items() if topic == pairs and lost not in led.replicas]
        return {"gap_ms": longest(told[0], "acks", own), "read_gap_ms": longest(told[0], "reads", own), "others_ms": longest(told[0], "acks", others),
                "others_read_ms": longest(told[0], "reads", others), "apart_ms": longest(told[1], "acks", apart), "apart_read_ms": longest(told[1], "reads", apart)}


class Restarts(Losses):
    """SIGTERM, and started again when it has ended. A third client does not retry: each refusal is an error to it."""

    turn = 0

    def clients(self, peer, case):
        whole, _ = self.names(case)
        return [*super().clients(peer, case), Beat(peer.server.address, whole, len(WHOLE), 50, reads=False, settings=UNRETRIED)]

    def lose(self, peer, case, beats, place):
        lost = IDS[self.turn % 3]
        self.turn += 1
        self.window(beats, "from")
        begun = time.monotonic()
        if not peer.nodes[lost].stop(60):
            raise RuntimeError(f"{peer.label}: node {lost} did not stop within a minute")
        stopped = time.monotonic() - begun
        all_beat(beats, 60, at_least=0.5)
        told = self.window(beats, "to")
        self.window(beats, "from")
        peer.spawn(lost)
        back = self.back(peer, case, beats, lost)
        all_beat(beats, 60, at_least=0.3)
        returned = self.window(beats, "to")
        everything = range(len(WHOLE))
        found = {**self.failures(told[:2]), "refused": told[2]["acks"]["failed"] + returned[2]["acks"]["failed"]}
        found["failed"] += self.failures(returned[:2])["failed"]
        refusals = sorted({one[2]["acks"]["error"] for one in (told, returned)} - {""})
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
