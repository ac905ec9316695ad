"""The bench's own sums, and its closing line."""

import unittest
from types import SimpleNamespace

from rig import report
from rig.runner import Lines

from .bench import quoted
from .drive import Drivers
from .rows import FIGURES, QUOTA, compared, in_turn, quota_error_pct, workload


def leg(rate, cpu):
    return {"records_per_s": rate, "server_us_per_record": cpu, "other_load": rate / 1000, "kernel_load": 0}


class Sums(unittest.TestCase):
    def test_an_error_of_the_rate_has_no_sign(self):
        self.assertEqual([round(quota_error_pct(QUOTA * share), 6) for share in (0.9, 1, 1.1)], [10, 0, 10])

    def test_the_legs_of_every_second_run_are_turned(self):
        self.assertEqual([in_turn(number, (None, "EC")) for number in ("0-first", "1-0", "2-1")], [(None, "EC"), ("EC", None), (None, "EC")])

    def test_tls_is_compared_with_plain_and_the_worse_load_kept(self):
        told = compared(leg(100, 2), leg(80, 3))
        self.assertEqual((told["kept"], told["cpu_ratio"], told["other_load"]), (0.8, 1.5, 0.1))

    def test_a_program_that_fails_is_named(self):
        failed = SimpleNamespace(returncode=1, stdout="", stderr="no such listener")
        with self.assertRaisesRegex(RuntimeError, "hold: no such listener"):
            Drivers.told(None, failed, "hold")


class Closing(unittest.TestCase):
    def test_a_figure_stands_beside_kafkas_and_without_it_where_kafka_has_none(self):
        report.FIGURES.update(FIGURES)
        lines, load = Lines("/nonexistent/security.jsonl"), workload(None, None, False, 20_000)
        names = [case.name for case in load.cases]
        handshakes, acl = "full handshakes, ECDSA P-256", names[-1]
        lines.all = [{"workload": "security", "case": handshakes, "peer": peer, "run": 0, "per_core_s": value} for peer, value in (("kafka", 900), ("barnabas", 3100))]
        lines.all += [{"workload": "security", "case": acl, "peer": "barnabas", "run": 0, "acl_ns": 80, "acl_share_pct": 0.4}]
        self.assertEqual(quoted(report.Found(lines), load), f"{handshakes}: handshakes/s of a core 3,100 (900); {acl}: a decision, ns 80.0, decision ÷ small request, % 0.40")

    def test_fewer_connections_are_held_where_fewer_files_may_be_open(self):
        self.assertTrue(any(case.name == "1,500 TLS connections, memory" for case in workload(None, None, False, 2_000).cases))


if __name__ == "__main__":
    unittest.main()
