"""The rig itself: interleaving, repeats, what goes wrong, resuming, and what the report makes of lines. No server, no client; the quick set runs it."""

import contextlib
import io
import json
import socket
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

from . import estimate, flame, machine, main, report
from .clients import Client, Clients, Load, steady_state
from .peers import PEERS
from .peers.peer import Peer
from .plan import PLANS, Bar, Case, Chart, Workload, question
from .profile import innermost, shortened
from .runner import Lines, Rig


class Pretended(Peer):
    """A server that is nothing but a name; it takes no port."""

    def make_server(self, overrides):
        return SimpleNamespace(process=SimpleNamespace(poll=lambda: None), port=1, remove=lambda: None, kill=lambda: None, label=self.name)

    def start(self):
        return self


class A(Pretended):
    name = label = "kafka"


class B(Pretended):
    name = label = "barnabas"


class Broken(Pretended):
    name = label = "written"

    def start(self):
        raise RuntimeError("ended with 1")


class Measure:
    """Tells what it was asked for; its loads are foreign ones in the order given."""

    def __init__(self, loads=(), fails=()):
        self.asked, self.loads, self.fails = [], list(loads), fails

    def prepare(self, rig, peer, case):
        self.asked.append(f"prepare {peer.name}")

    def run(self, rig, peer, case, number):
        self.asked.append(f"{peer.name} {number}")
        if f"{peer.name} {number}" in self.fails:
            raise RuntimeError("it does not\nanswer")
        return {"records_per_s": 1000.0 * len(self.asked), "other_load": self.loads.pop(0) if self.loads else 0.0}

    def finish(self, rig, peer, case):
        self.asked.append(f"finish {peer.name}")

    def takes(self, plan, peer):
        return 1, 10


def workload(measure, **more):
    return Workload("w", "W", "What?", [Case("c", measure, ("kafka", "barnabas", "written"), **more)], ("records_per_s",), needs_gb=0)


class Bench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        kept = dict(PEERS)
        PEERS.update({"kafka": A, "barnabas": B, "written": Broken})
        self.addCleanup(lambda: (PEERS.clear(), PEERS.update(kept)))

    def rig(self, peers=("kafka", "barnabas"), **more):
        options = SimpleNamespace(**{"runs": 2, "attempts": 2, "skip_done": False, "port": None, "case": None, "minutes": None, **more})
        lines = Lines(Path(self.folder.name) / "results/t.jsonl")
        return Rig(options, PLANS["short"], Path(self.folder.name), None, {name: "1" for name in peers}, lines)

    def ran(self, rig, load):
        with contextlib.redirect_stdout(io.StringIO()):
            rig.run(load)
        return load.cases[0].measure.asked

    def test_runs_are_interleaved(self):
        asked = self.ran(self.rig(), workload(Measure()))
        self.assertEqual(asked, ["prepare kafka", "prepare barnabas", "kafka 0-0", "barnabas 0-0", "kafka 1-0", "barnabas 1-0", "finish kafka", "finish barnabas"])

    def test_a_disturbed_run_is_made_again_and_the_last_attempt_counts(self):
        rig = self.rig(runs=1)
        self.ran(rig, workload(Measure(loads=[0.5, 0.0, 0.5, 0.6])))
        self.assertEqual(rig.disturbed, 1)
        counted = rig.lines.counted("w", "c", "kafka")
        self.assertEqual([(line["attempt"], line["other_load"]) for line in counted], [(1, 0.0)])
        self.assertEqual(len(rig.lines.all), 4)

    def test_a_peer_that_does_not_start_costs_one_line(self):
        rig = self.rig(peers=("kafka", "barnabas", "written"))
        asked = self.ran(rig, workload(Measure()))
        self.assertEqual(rig.complaints, ["w: c: written: ended with 1"])
        self.assertIn("barnabas 1-0", asked)

    def test_a_run_that_fails_ends_its_peers_case_and_no_other(self):
        rig = self.rig()
        asked = self.ran(rig, workload(Measure(fails=("kafka 0-0",))))
        self.assertEqual(rig.complaints, ["w: c: kafka: it does not answer"])
        self.assertEqual(rig.lines.failures(), rig.complaints)
        self.assertEqual(rig.lines.counted("w", "c", "kafka"), [])
        self.assertNotIn("kafka 1-0", asked)
        self.assertIn("barnabas 1-0", asked)
        self.assertEqual([name for name, _ in rig.running], ["barnabas"])

    def test_what_is_done_is_left_out(self):
        self.ran(self.rig(), workload(Measure()))
        self.assertEqual(self.ran(self.rig(skip_done=True), workload(Measure())), [])
        kept = [json.loads(line) for line in (Path(self.folder.name) / "results/t.jsonl").read_text().splitlines()]
        self.assertEqual(len(kept), 4)

    def test_a_case_that_lacks_a_peer_is_measured_anew_for_all_of_them(self):
        self.ran(self.rig(peers=("kafka",)), workload(Measure()))
        rig = self.rig(skip_done=True)
        self.assertEqual(self.ran(rig, workload(Measure()))[:4], ["prepare kafka", "prepare barnabas", "kafka 0-0", "barnabas 0-0"])
        self.assertEqual(len(rig.lines.all), 4)

    def test_a_case_that_is_measured_anew_loses_its_old_lines(self):
        self.ran(self.rig(), workload(Measure()))
        rig = self.rig(runs=1)
        self.ran(rig, workload(Measure()))
        self.assertEqual(len(rig.lines.all), 2)

    def test_no_case_is_begun_when_time_is_over(self):
        rig = self.rig(minutes=1e-9)
        self.assertEqual(self.ran(rig, workload(Measure())), [])
        self.assertEqual(rig.left, 1)

    def test_a_disk_without_room_is_one_line(self):
        rig, load = self.rig(), workload(Measure())
        load.needs_gb = 1e9
        self.assertEqual(self.ran(rig, load), [])
        self.assertIn("GB free", rig.complaints[0])

    def test_a_port_that_is_taken_is_said_so(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            peer = A(self.folder.name)
            peer.server.port = taken.getsockname()[1]
            with self.assertRaisesRegex(RuntimeError, "is taken; give another one with --port"):
                peer.refuse_taken_port()

    def report_of(self, bars, kafka, ours):
        lines = Lines(Path(self.folder.name) / "results/t.jsonl")
        for name, values in (("kafka", kafka), ("barnabas", ours)):
            lines.all += [{"workload": "w", "case": "c", "peer": name, "version": "1", "run": run, "attempt": 0, "records_per_s": value} for run, value in enumerate(values)]
        load = workload(Measure(), bars=bars)
        load.charts = (Chart("records_per_s", "T"),)
        return report.Found(lines), load

    def test_a_bar_is_a_ratio_of_medians_with_the_spread_of_its_pairs(self):
        bar = Bar("records_per_s", 2, least=True)
        found, load = self.report_of((bar,), [100_000, 200_000, 300_000], [400_000, 500_000, 600_000])
        self.assertEqual(found.ratio(load, load.cases[0], bar), (2.5, 2.0, 4.0))
        text, met = report.workload_part(found, load)
        self.assertEqual(met, [True])
        self.assertIn("| 500 [400..600] | 200 [100..300] | kafka 1 | 2.50 [2.00..4.00] | ≥ 2.00 | met, within the noise |", "\n".join(text))

    def test_the_spread_of_a_ratio_holds_the_ratio(self):
        bar = Bar("records_per_s", 1, least=True)
        found, load = self.report_of((bar,), [200_000, 100_000], [150_000, 160_000, 300_000, 290_000, 280_000])
        self.assertEqual(found.ratio(load, load.cases[0], bar), (280 / 150, 0.75, 3.0))

    def test_a_figure_is_not_taken_for_the_bound_that_it_misses(self):
        self.assertEqual(report.spread_text(0.2512, 0.2, 0.3, bound=0.25), "0.251 [0.200..0.300]")
        self.assertEqual(report.spread_text(0.27, 0.2, 0.3, bound=0.25), "0.27 [0.20..0.30]")
        self.assertEqual(report.spread_text(1645.0, 200, 1645, bound=200), "1,645.00 [200.00..1,645.00]")

    def test_a_bar_without_figures_is_not_judged(self):
        found, load = self.report_of((Bar("records_per_s", 2), Bar("p99_ms", 1, to=None)), [], [1])
        self.assertEqual(report.workload_part(found, load)[1], [])

    def test_bars_leave_out_cases_without_figures(self):
        found, load = self.report_of((), [100_000], [200_000])
        load.cases.insert(0, Case("never run", Measure(), ("kafka",)))
        chart, = report.drawn(found, PLANS["short"], [load], Path("x"))
        self.assertEqual(chart["categories"], ["c"])
        self.assertEqual([one["points"] for one in chart["series"]], [[(0, 100.0, 100.0, 100.0)], [(0, 200.0, 200.0, 200.0)]])

    def test_a_case_without_an_x_stands_on_a_line_where_its_peer_got(self):
        found, load = self.report_of((), [100_000], [200_000])
        load.charts = (Chart("records_per_s", "T", kind="lines", x_of="records_per_s"), Chart("records_per_s", "T", kind="lines"))
        chart, = report.drawn(found, PLANS["short"], [load], Path("x"))
        self.assertEqual([one["points"] for one in chart["series"]], [[(100_000.0, 100.0, 100.0, 100.0)], [(200_000.0, 200.0, 200.0, 200.0)]])
        load.cases[0].x = 30
        self.assertEqual([one["points"][0][0] for one in report.series_of(found, load, load.charts[0], load.cases)], [30, 30])

    def test_what_apaches_producer_says_is_summed_over_its_processes(self):
        said = ("900 records sent, 500.0 records/sec (0.05 MB/sec), 3.00 ms avg latency, 9.00 ms max latency, 2 ms 50th, 5 ms 95th, 7 ms 99th, 8 ms 99.9th.\n"
                "600 steady state records sent, 600.5 records/sec (0.06 MB/sec), 2.00 ms avg latency, {worst}.00 ms max latency, 1 ms 50th, 3 ms 95th, 4 ms 99th, 6 ms 99.9th.\n")
        found = Clients("", "", 1, "").java_results("x", [said.format(worst=6), said.format(worst=8)])
        self.assertEqual(found, (1800, {"records_per_s": 1201.0, "p50_ms": 1, "p99_ms": 4, "p999_ms": 6, "max_ms": 8.0}))
        with self.assertRaisesRegex(RuntimeError, "x: nonsense"):
            Clients("", "", 1, "").java_results("x", ["nonsense"])

    def test_a_load_is_shared_out_among_topics_and_processes(self):
        clients = Clients("CP", "load", 2, "/tmp/x", "barnabas")
        peer = SimpleNamespace(name="kafka", server=SimpleNamespace(address="host:1"))
        load = Load("l", "librdkafka", 8, 100, 4, {"acks": "all"}, rate=1000, topics=2)
        self.assertEqual(clients.command(peer, load, "t", 2.0), ["load", "host:1", "t", "2", "100", "2.0", "0.5", "0", "500", "acks=all"])
        load.client, clients.rates["l", "kafka"], load.rate = "java", 600_000, 0
        words = clients.command(peer, load, "t", 2.0)
        # 150,000 a second for each of four: 0.8 s' worth to warm up, 0.4 s that are let go, 2 s that count.
        self.assertEqual([words[words.index(flag) + 1] for flag in ("--num-records", "--warmup-records")], ["480000", "120000"])

    def test_what_a_producer_does_before_its_steady_state_does_not_count(self):
        def line(records):
            return f"{records} records sent, 1000.0 records/sec (0.10 MB/sec), 1.0 ms avg latency, 2.0 ms max latency.\n"

        client = Client(["true"], "/dev/null")
        client.said(10)
        client.lines = [(1.0, line(5)), (1.1, "In steady state.\n"), (1.2, line(100)), (2.2, line(1000)), (3.2, line(1000)), (3.3, "2105 records sent, 1 records/sec …\n")]
        used = machine.Sampled([])
        used.often = [(at, {"server": at * 0.5, "client": 0, "busy": 0, "written": 0}) for at in (0.0, 4.0)]
        used.seldom = [(at, {"kernel": 0, "switches": 0, "writes": 0, "write_ms": 0}) for at in (0.0, 4.0)]
        told = steady_state(used, [client])
        # From 0.4 s after the first report of steady state: 1.6 s at 1,000 a second.
        self.assertEqual((round(told["records_per_s"]), told["steady_records"], round(told["server_us_per_record"])), (1000, 1600, 500))

    def test_a_set_is_estimated_by_counting(self):
        rig, load = self.rig(), workload(Measure())
        # Two runs of two peers, something to prepare, and two servers that start and warm up.
        cases = 2 * (1 + 2 * 10) * (1 + estimate.MARGIN)
        self.assertGreater(estimate.set_seconds(rig, [load])["w"], cases)
        rig.options.case = "another"
        self.assertEqual(estimate.set_seconds(rig, [load])["w"], 0)

    def test_remains_of_a_killed_rig_are_removed_and_those_of_a_living_one_are_not(self):
        import os
        folder = Path(self.folder.name)
        for name in ("bench-999999999-x", f"bench-{os.getpid()}-x", "bench-log-x", "bench-quick"):
            (folder / name).mkdir()
        main.remove_remains(folder)
        self.assertEqual(sorted(path.name for path in folder.iterdir()), sorted([f"bench-{os.getpid()}-x", "bench-log-x", "bench-quick"]))

    def test_processes_are_accounted_for(self):
        import os
        used = machine.Sampled([os.getpid()])
        used.watch([])
        sum(number * number for number in range(4_000_000))
        used.end()
        told = used.between(*used.stretch, 1000)
        self.assertGreater(told["server_us_per_record"], 0)
        self.assertGreater(told["rss_mb"], 1)

    def test_stacks_are_folded_and_drawn(self):
        told = ("worker-0 \n\t    7f00 core::iter::next+0x10\n\t    5500 barnabas::connection::serve::h0123456789abcdef+0x1\n\t    7f01 clone3+0x2\n\n"
                "worker-0 \n\tffffffff81000000 tcp_sendmsg\n\t    5500 barnabas::connection::serve::h0123456789abcdef+0x1\n\n")
        found = flame.folded(told, shortened)
        self.assertEqual(found, {("worker", "barnabas::connection::serve", "core::iter::next"): 1, ("worker", "barnabas::connection::serve", "kernel: tcp_sendmsg"): 1})
        drawn = flame.drawn(found, "T & t", 100)
        self.assertIn("<title>kernel: tcp_sendmsg: 50.0%</title>", drawn)
        self.assertIn("T &amp; t", drawn)

    def test_what_a_peer_had_no_time_for_is_said_so(self):
        found, load = self.report_of((), [], [])
        found.lines.all = [{"workload": "w", "case": "c", "peer": "kafka", "run": 0, "over_s": 45, "ended": "not done within 45 s"}]
        self.assertEqual(found.cell("w", "c", "kafka", "usable_s"), "> 45")

    def test_the_recorders_samples_are_counted_by_their_innermost_function(self):
        sample = "jdk.ExecutionSample {{\n  startTime = 1\n  stackTrace = [\n    org.apache.kafka.common.network.{}(int)  line: 1\n  ]\n}}\n"
        self.assertEqual(innermost(sample.format("Selector.poll") * 3 + sample.format("Sender.run")), [(75.0, "Selector.poll"), (25.0, "Sender.run")])

    def test_words(self):
        self.assertEqual(question("One.\n\nTwo\nthree.\n\nFour."), "Two three.")
        self.assertEqual(shortened("<core::iter::Map<I,F> as X>::next  -  -"), "X::next")
        self.assertEqual(shortened("void org.apache.kafka.common.network.Selector.poll(java.util.Set, boolean)"), "Selector.poll")
        self.assertEqual(shortened("0x000000000000ab68"), "(without a name)")
        self.assertEqual(shortened("barnabas::round::write::h0123456789abcdef"), "barnabas::round::write")
        self.assertEqual(machine.spread([3, 1, 2], 1), "2.0 [1.0..3.0]")

    def test_every_workload_can_be_written_back_out_in_every_set(self):
        from workloads import WORKLOADS
        for plan in PLANS.values():
            for name, make in WORKLOADS.items():
                load = make(plan)
                names = [case.name for case in load.cases]
                self.assertEqual((load.name, len(names)), (name, len(set(names))))
                for figure in (*load.figures, *(bar.figure for case in load.cases for bar in case.bars), *(chart.figure for chart in load.charts)):
                    self.assertIn(figure, report.FIGURES)
                for bar in (bar for case in load.cases for bar in case.bars if bar.case and not plan.is_quick):
                    self.assertIn(bar.case, names)
                for case in load.cases:
                    self.assertLessEqual(set(case.peers), set(PEERS))


if __name__ == "__main__":
    unittest.main()
