"""How long does it take until a third of very many partitions have other leaders? A cluster of its own; one broker killed.

All brokers that are left must say so of all partitions (leaders.rs); a topic under load beside them shows that it is true.
"""

import time

from .beat import Beat, all_beat, led, led_at
from .losses import WHOLE, Around

EACH = 1000
# What a peer is given to make them, and then to find new leaders.
LIMIT_S = 120


class Many:
    def __init__(self, quick, partitions):
        self.quick, self.topics = quick, partitions // EACH

    def takes(self, plan, peer):
        return 0, peer.start_seconds + ((LIMIT_S + 45 if peer.makes_files_later else 40) if not self.quick else 15)

    def run(self, rig, peer, case, number):
        peer.start()
        peer.create_assigned({"pulse": WHOLE})
        begun, wanted = time.monotonic(), self.topics * EACH
        over = self.make(peer, begun, wanted)
        if over:
            return {"ended": over}
        made = time.monotonic() - begun
        with Beat(peer.server.address, "pulse", len(WHOLE), 100) as beat:
            all_beat([beat], 60, reads=True, at_least=1.5 if self.quick else 5)
            around = Around(peer, [beat])
            asks = peer.ask()
            active = asks.controller()
            asks.close()
            lost = next(node for node in peer.alive() if node != active)
            ports = [peer.nodes[node].port for node in peer.alive() if node != lost]
            beat.ask("from")
            killed = time.time()
            peer.nodes[lost].kill()
            told = led(led_at(ports, lost, "many-", self.topics, LIMIT_S), LIMIT_S + 30)
            all_beat([beat], 60, at_least=2)
            seen = beat.ask("to")["acks"]
            used = around.told()
        if told["not_led"]:
            return {"ended": f"> {LIMIT_S} s: {told['not_led']} partitions not led", "made_s": round(made, 2), **used}
        if told["partitions"] != wanted:
            raise RuntimeError(f"{peer.label}: {told['partitions']} of {wanted} partitions are known")
        return {"failover_s": round(told["done_at"] - killed, 3), "pulse_gap_ms": max(seen["pauses_ms"]), "failed": seen["failed"], "made_s": round(made, 2), **used}

    def make(self, peer, begun, wanted):
        """Nothing, or why there are not so many."""
        asks, limit = peer.ask(LIMIT_S), 30 if self.quick else LIMIT_S
        try:
            for number in range(self.topics):
                errors = {name: error for name, error in asks.create({f"many-{number}": EACH}).items() if error}
                if errors:
                    raise RuntimeError(f"{peer.label} does not create topics: {errors}")
                if time.monotonic() - begun > limit:
                    return f"> {limit} s to make them ({(number + 1) * EACH:,} answered)"
        except TimeoutError:
            return f"> {limit} s to make them ({number * EACH:,} answered)"
        finally:
            asks.close()
        ports = [node.port for node in peer.nodes.values()]
        left = max(limit - (time.monotonic() - begun), 1)
        found = led(led_at(ports, -1, "many-", self.topics, left), left + 60)
        if found["not_led"]:
            return f"> {limit} s to make them ({found['not_led']:,} not led)"
        while peer.makes_files_later and peer.directories({f"many-{number}" for number in range(self.topics)}) < 3 * wanted:
            if time.monotonic() - begun > limit:
                return f"> {limit} s to make them ({peer.directories({f'many-{number}' for number in range(self.topics)}):,} of {3 * wanted:,} directories)"
            time.sleep(1)
        return ""
