"""What this bench makes of what was seen: histograms, seconds, moments, sentences. No server, no client; `--quick` runs it."""

import tempfile
import unittest
from types import SimpleNamespace

from rig.plan import Case

from . import moments, story
from .histogram import bucket, merged, percentile_ms, rank_ms, upper_edge
from .moments import Call, Device, Probe, Request, Seen, Waited
from .phases import Pages, page_of, words
from .programs import histogram_tests
from .rows import CROSS, FULL, QUICK, SHORT, of_set, workloads
from .turn import Row, bounded

JOURNAL, SEGMENT = "/d/data/barnabas-journal-03", "/d/data/t-4/00000000000000000000.log"


def call(thread, start, end, what="pwrite64", path=JOURNAL, stack=(), node=0):
    return Call(node, thread, start, end, what, path, stack)


class Histograms(unittest.TestCase):
    def test_the_programs_histogram(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(histogram_tests(directory), "")

    def test_steps_are_those_of_the_program(self):
        for us in [*range(5000), 123_456, 60_000_000, 2 ** 44]:
            step = bucket(us)
            self.assertTrue(us <= upper_edge(step) <= us + us // 64, us)
            self.assertEqual((bucket(upper_edge(step)), bucket(upper_edge(step) + 1)), (step, step + 1))

    def test_percentiles_count_from_below_and_end_at_the_largest(self):
        histogram = [[bucket(us), 1] for us in range(1, 101)]
        self.assertEqual([percentile_ms(histogram, share, 100) for share in (0.5, 0.99, 0.9999, 1)], [0.05, 0.099, 0.1, 0.1])
        self.assertEqual(percentile_ms([[bucket(1_000_003), 1]], 0.5, 1_000_003), 1000.003)
        self.assertEqual((percentile_ms([], 0.5, 0), rank_ms([], 0.5), rank_ms([3000, 1000, 2000], 0.5)), (0, 0, 2))
        # 9,999 of 10,000: one above it is not p99.99.
        self.assertEqual(percentile_ms([[10, 9_999], [20, 1]], 0.9999, 20), 0.01)

    def test_turns_are_added(self):
        self.assertEqual(merged([[1, 2], [5, 1]], [[5, 3], [9, 1]]), [[1, 2], [5, 4], [9, 1]])


class Seconds(unittest.TestCase):
    def test_slow_seconds_are_those_far_above_the_usual_one(self):
        seconds = [[100, 1, 5, 6]] * 9 + [[100, 1, 40, 90], [0, 0, 0, 0]]
        self.assertEqual(moments.slow_seconds(seconds), [(9, 40, 90)])
        self.assertEqual(moments.slow_seconds([[0, 0, 0, 0]]), [])

    def test_a_chart_has_a_point_for_each_second(self):
        turn = {"seconds_line": [[5, 6, 0.2], [5, 0, 0.3]]}
        self.assertEqual(story.file_of("5 MB/s, 1 kB, 10,000 partitions, RF 3, beside a cold reader"), "tail-line-5-mb-s-1-kb-10-000-partitions-rf-3-beside-a-cold-reader")
        self.assertEqual(story.points(turn, 1), [(0, 6, 6, 6), (1, 0.01, 0.01, 0.01)])


class Moments(unittest.TestCase):
    def test_slow_ones_of_one_moment_are_one(self):
        stall = [Request(1000 * at, 1000 * at, 50_000 + at, at, 10) for at in range(5)]
        apart = Request(200_000, 200_000, 230_000, 9, 10)
        self.assertEqual([(one.partition, others) for one, others in moments.moments([apart, *stall])], [(0, 4), (9, 0)])
        self.assertEqual(len(moments.moments([Request(at * 10_000, at * 10_000, at * 10_000 + 5000, 0, 1) for at in range(30)])), moments.MOMENTS)

    def test_spans_are_counted_once(self):
        self.assertEqual(moments.union([(0, 10), (5, 20), (30, 40), (32, 35)]), 30)


class Causes(unittest.TestCase):
    request = Request(0, 1000, 41_000, 4, 76)

    def check(self, seen, kind, *said, several=False):
        sentence = moments.sentence(self.request, seen, 0, several=several)
        self.assertEqual(moments.cause(self.request, seen)[0], kind, sentence)
        for words in said:
            self.assertIn(words, sentence)
        return sentence

    def test_a_round_that_waits_for_a_flush_beside_a_segments_sync(self):
        seen = Seen([call("journal-0", 5000, 35_000, stack=("io_schedule", "blkdev_issue_flush", "ext4_sync_file")), call("committer-0", 4000, 30_000, "fdatasync", SEGMENT)],
                    devices=[Device(20_000, 12, 3_000_000, 24_000, 4, 28_000, 2, 10_000, 1, 4096, 300)], probes=[Probe(10_000, 22_000)], rest_us=200)
        self.check(seen, "journal round", "Cause: a round of the journal, pwrite64 by journal-0, 30.0 ms or more, for a flush of the device", "covers 73%",
                   "Beside: sync of t-4/00000000000000000000.log, fdatasync by committer-0, 26.0 ms", "12 writes (3.0 MB, 2.0 ms each), 1 reads (0.0 MB, 0.3 ms each), 4 flushes (7.0 ms each), 2 discards (5.0 ms each)",
                   "a synced write of 4 KiB due then took 22.0 ms (0.2 ms at rest)")

    def test_rounds_one_after_the_other_are_one_cause(self):
        self.check(Seen([call("journal-0", 1000 + 8000 * at, 9000 + 8000 * at) for at in range(4)]), "journal round", "covers 78%")

    def test_a_worker_that_writes_back(self):
        self.check(Seen([call("worker-1", 2000, 39_000, "pwritev", SEGMENT, ("rwsem_down_write_slowpath",))]), "write back", "write back to t-4/00000000000000000000.log, pwritev by worker-1",
                   "for the lock of a file")

    def test_a_committer_alone_is_no_cause(self):
        sentence = self.check(Seen([call("committer-0", 2000, 39_000, "fdatasync", SEGMENT)]), "unseen", "no thread that serves producers was seen standing")
        self.assertIn("Beside: sync of t-4", sentence)

    def test_what_took_less_than_a_quarter_is_no_cause(self):
        self.check(Seen([call("journal-0", 5000, 13_000)]), "unseen")

    def test_a_thread_without_a_processor(self):
        waited = [Waited(20_000, 0, "journal-0", 15_000, 0), Waited(40_000, 0, "journal-0", 12_000, 0), Waited(40_000, 0, "cleaner-0", 20_000, 0), Waited(40_000, 0, "worker-1", 6000, 0)]
        self.check(Seen(waited=waited), "processor", "a thread was without a processor: journal-0 for 26.2 ms, worker-1 for 6.0 ms")
        # None of them a quarter by itself.
        self.check(Seen(waited=[Waited(40_000, 0, name, 5000, 0) for name in ("worker-0", "worker-1", "journal-0")]), "processor")
        self.check(Seen(waited=[Waited(20_000, 0, "worker-1", 0, 19_000)]), "work", "a thread was at work: worker-1 for 18.1 ms")

    def test_the_generators_own_lateness_is_not_the_brokers(self):
        late = Request(0, 30_000, 41_000, 4, 76)
        self.assertEqual(moments.cause(late, Seen())[0], "generator")
        self.check(Seen(waited=[Waited(20_000, 1, "rdk:broker1", 18_000, 0)], generator=1), "generator", "the load generator itself was without a processor: rdk:broker1 for 17.1 ms")

    def test_of_three_nodes_the_node_is_named(self):
        self.check(Seen([call("journal-0", 5000, 35_000, node=2)], generator=3), "journal round", "by journal-0 of node 3", several=True)

    def test_kafkas_threads(self):
        self.check(Seen([call("data-plane-kafk", 5000, 35_000, "write", SEGMENT, ("folio_wait_bit", "balance_dirty_pages"))]), "append", "append to t-4/", "because too many pages are dirty")

    def test_a_jvm_that_stops(self):
        line = '[30000000ns] Safepoint "G1CollectForAllocation", Time since last: 900 ns, Reaching safepoint: 1 ns, Cleanup: 2 ns, At safepoint: 3 ns, Total:  20000000 ns'
        paused = moments.pauses(f"nothing\n{line}\n", 0)
        self.assertEqual((paused[0].start, paused[0].end), (10_000, 30_000))
        self.check(Seen(paused), "JVM pause", "all threads of the JVM stopped for 20.0 ms (G1CollectForAllocation)")

    def test_causes_are_counted(self):
        seen = Seen([call("journal-0", 5000, 35_000)])
        self.assertEqual(moments.causes([self.request, self.request, Request(900_000, 900_000, 990_000, 0, 1)], seen), {"journal round": 2, "unseen": 1})

    def test_long_calls_are_told_with_their_company(self):
        calls = [call("journal-0", 0, 20_000), call("committer-0", 10_000, 15_000, "fdatasync", SEGMENT), call("journal-0", 50_000, 60_000), call("journal-0", 70_000, 74_000)]
        self.assertEqual(moments.company(Seen(calls)), {"journal round": {"calls": 2, "alone": 1, "segment sync": 1}})
        turn = {"company": moments.company(Seen(calls))}
        self.assertEqual(story.together([turn, turn]), "journal round 4 (alone 2, segment sync 2)")

    def test_calls_are_named_by_what_they_are_for(self):
        for one, kind in ((call("worker-0", 0, 1), "journal round"), (call("worker-0", 0, 1, "fallocate", SEGMENT), "room"), (call("deletions", 0, 1, "unlink", ""), "deletion"),
                          (call("cleaner-0", 0, 1, "pwritev", SEGMENT), "compaction"), (call("committer-0", 0, 1, "syncfs", "/d/data"), "segment sync"),
                          (call("quorum", 0, 1, "fdatasync", "/d/data/__cluster_metadata-0/0.log"), "metadata log"), (call("worker-0", 0, 1, "page fault", ""), "page fault"),
                          (call("worker-0", 0, 1, "openat", ""), "directory"), (call("scrub", 0, 1, "pread64", SEGMENT), "read")):
            self.assertEqual(moments.doing(one)[0], kind, one)

    def test_lines_of_the_watch_are_taken_apart(self):
        lines = [["call", 77, "journal-0", 1, 9, 18, JOURNAL, "18 0x3", ["io_schedule"]], ["cpu", 20, 66, "worker-0", 3000, 9], ["device", 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], ["probe", 5, 100], ["used", 1, 2, 3, 0]]
        calls, waited, devices, probes, used = moments.parsed(lines, [66, 77], "x86_64")
        self.assertEqual((calls[0].node, calls[0].what, waited[0].node, devices[0].flushes, probes[0].us), (1, "pwrite64", 0, 4, 100))
        self.assertEqual(used, {"cpu_us": 1, "samples": 2, "late": 3, "dropped": 0})


PAGE = """barnabas_request_phase_seconds_bucket{{request="Produce",phase="sync",le="0.016384"}} {0}
barnabas_request_phase_seconds_bucket{{request="Produce",phase="sync",le="0.032768"}} {1}
barnabas_request_phase_seconds_bucket{{request="Produce",phase="sync",le="+Inf"}} {1}
barnabas_request_phase_seconds_count{{request="Produce",phase="sync"}} {1}
barnabas_journal_write_seconds_bucket{{log_directory="/a",le="0.032768"}} {1}
barnabas_journal_written_back_bytes_total {2}
"""


class Phases(unittest.TestCase):
    def test_between_two_pages_the_largest_step_that_gained(self):
        before, after = page_of(PAGE.format(5, 6, 1e6)), page_of(PAGE.format(9, 11, 3e6))
        said = words(before, after, 1)
        self.assertIn("phases up to sync 32.8 ms", said)
        self.assertIn("5 journal rounds (up to 32.8 ms)", said)
        self.assertIn("2.0 MB written back", said)
        self.assertIn("no phase of 2 ms", words(after, after, 1))

    def test_the_pages_around_a_request(self):
        pages = Pages([])
        pages.pages = [(at * 1e6, [PAGE.format(at, at, at * 1e6)]) for at in range(5)]
        self.assertIn("in these 2.0 s", pages.between(1.5e6, 2.5e6))
        self.assertEqual((pages.between(4.5e6, 5e6), Pages([]).between(0, 1)), ("", ""))


class Rows(unittest.TestCase):
    def test_every_row_has_its_name_once(self):
        names = [row.name for row in dict.fromkeys([*CROSS, *FULL, *SHORT, *QUICK])]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(CROSS), 64)
        self.assertEqual(len(FULL), len(set(FULL)))

    def test_rows_are_found_wherever_they_stand(self):
        self.assertEqual(of_set("short", r"^60 MB/s, 100 B, 1 partition, RF 3$"), [Row(60, 100, 1, 3)])
        self.assertEqual(of_set("short", "retention")[0].beside, "retention")
        self.assertEqual(of_set("short", "no such"), [])

    def test_three_brokers_stand_apart_and_bars_hold_both(self):
        made = workloads([Row(30, 1000, 10, 1), Row(20, 1000, 10, 3)], 20, before=True)
        self.assertEqual([load.name for load in made], ["rf-1", "rf-3"])
        self.assertIsInstance(made[1].cases[0], Case)
        self.assertEqual(made[1].cases[0].peers, ("kafka-cluster", "barnabas-cluster", "before-cluster"))
        self.assertEqual({bar.to for bar in made[0].cases[0].bars}, {"kafka", "before"})

    def test_a_long_row_does_not_fill_the_disk(self):
        self.assertEqual(bounded(Row(1, 1000, 10, 1), 60), {})
        self.assertLessEqual(int(bounded(Row(60, 1000, 10, 3), 600)["retention.bytes"]) * 30, 8e9)

    def test_turns_are_told_together(self):
        turns = [{"histogram": [[10, 99]], "max_ms": 1.0}, {"histogram": [[20, 1]], "max_ms": 2.0}]
        self.assertEqual(story.all_turns(turns)[0][0.99], 0.01)
        self.assertEqual(story.slow({"slow_seconds": [(3, 4.0, 9.0)]}), "second 3: p99 4.0, max 9.0 ms")
        self.assertEqual(story.per_turn(SimpleNamespace(counted=lambda *names: names), SimpleNamespace(name="w"), SimpleNamespace(name="c"), "p"), ("w", "c", "p"))


if __name__ == "__main__":
    unittest.main()
