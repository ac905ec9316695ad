"""The study's own tests: framing, times between ticks, bars."""

import threading
import unittest

from . import report
from .counting import Framing
from .programs import Program


class Frames(unittest.TestCase):
    def test_frames_are_counted_however_the_stream_is_cut(self):
        amqp = b"AMQP\x00\x01\x00\x00" + b"\x00\x00\x00\x0a\x02\x00\x00\x00ab" + b"\x00\x00\x00\x08\x02\x00\x00\x00"
        mq = b"TSHM\x00\x00\x00\x0cabcd" + b"TSH \x00\x00\x00\x09x"
        for stream, count in ((amqp, 3), (mq, 2)):
            for cut in range(1, len(stream)):
                framing = Framing()
                for start in range(0, len(stream), cut):
                    framing.feed(stream[start:start + cut])
                self.assertEqual((framing.count, framing.rest), (count, b""), cut)

    def test_length_that_no_frame_has_is_an_error(self):
        with self.assertRaises(ValueError):
            Framing().feed(b"\x00\x00\x00\x00\x02\x00\x00\x00")


class Counts(unittest.TestCase):
    def test_count_between_two_ticks_is_in_proportion(self):
        program = Program.__new__(Program)
        program.at, program.changed = [(10.0, 100), (11.0, 300)], threading.Condition()
        self.assertEqual([program.count_at(at) for at in (9, 10, 10.5, 12)], [0, 100, 200, 300])


def line(way, rate, **more):
    return {"way": way, "load": f"1 kB, {rate}/s", "size": 1000, "rate": rate, "put": 10, "read": 10, "seconds": 60, "read_per_s": rate, "coupling_us": 10, "p50_ms": 1, "p99_ms": 2,
            "backlog_end": 0, "drained_s": 0, **more}


class Bars(unittest.TestCase):
    def verdicts(self, *lines):
        return [held for *_, held in report.bars(list(lines))]

    def test_bar_is_held_up_to_its_bound_and_missed_beyond(self):
        self.assertEqual(self.verdicts(line("bridge in", 3000, coupling_us=15, requests_per_message=1.05, p99_ms=25)), [True, True, True])
        self.assertEqual(self.verdicts(line("bridge in", 3000, coupling_us=15.1, requests_per_message=1.06, p99_ms=25.1)), [False, False, False])

    def test_latency_of_a_unit_of_several_is_not_judged(self):
        self.assertEqual(self.verdicts(line("direct", 3000, unit=10, p99_ms=90)), [True, True, None])
        self.assertEqual(self.verdicts(line("direct", 3000, unit=1, p99_ms=90)), [True, True, False])

    def test_rate_that_is_not_reached_has_a_backlog(self):
        self.assertEqual(self.verdicts(line("bridge in", 10_000)), [True])
        self.assertEqual(self.verdicts(line("bridge in", 10_000, read_per_s=9000)), [False])
        self.assertEqual(self.verdicts(line("bridge in", 10_000, backlog_end=1001)), [False])

    def test_connect_is_beside_and_never_judged(self):
        self.assertEqual(set(self.verdicts(line("Connect in", 3000, coupling_us=150, p99_ms=900), line("Connect in", 10_000))), {None})

    def test_puts_are_compared_for_each_core(self):
        servers = [{"way": "puts", "server": name, "per_s": 1, "server_us": 1, "per_s_per_core": count} for name, count in (("Artemis, AMQP", 10), ("node, AMQP", 30), ("node, MQ", 29))]
        self.assertEqual(self.verdicts(*servers), [True, False])


if __name__ == "__main__":
    unittest.main()
