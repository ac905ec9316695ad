"""What this bench makes of answers and of runs. No server, no client; `--quick` runs it."""

import struct
import unittest

from rig.asks import crc32c

from .asks import ClusterAsks, Led, batch_of, compact, compact_text, count, uvarint, varint
from .losses import PAIRS, WHOLE, Kills, percentile, pooled


class Answering(ClusterAsks):
    """A connection on which one answer has come."""

    def __init__(self, answer):
        self.answer, self.sent = answer, []

    def send(self, key, version, body):
        self.sent.append((key, version, body))

    def receive(self):
        return self.answer


class Formats(unittest.TestCase):
    def test_numbers_of_either_kind(self):
        self.assertEqual([varint(0), varint(63), varint(64), varint(985)], [b"\0", b"\x7e", b"\x80\x01", b"\xb2\x0f"])
        for number in (0, 1, 126, 127, 500, 20_000):
            self.assertEqual(uvarint(count(number), 0), (number + 1, len(count(number))))
        self.assertEqual(compact_text(compact("many-1"), 0), ("many-1", 7))
        self.assertEqual(compact_text(b"\0", 0), (None, 1))

    def test_a_batch_is_whole(self):
        batch = batch_of(3, 985)
        length, _, magic, crc = struct.unpack_from(">iibI", batch, 8)
        self.assertEqual((length, magic, crc), (len(batch) - 12, 2, crc32c(batch[21:])))
        self.assertEqual(struct.unpack_from(">i", batch, 57)[0], 3)

    def test_refusals_are_told(self):
        head = b"\0" + struct.pack(">ih", 0, 0) + b"\0"
        row = struct.pack(">ih", 4, 0) + b"\0\0"
        refused = struct.pack(">ih", 5, 38) + compact("why") + b"\0"
        self.assertEqual(Answering(head + count(1) + compact("t") + count(1) + row + b"\0\0").moved(), "")
        self.assertEqual(Answering(head + count(1) + compact("t") + count(2) + row + refused + b"\0\0").moved(), "partition 5: error 38 why")
        self.assertFalse(Answering(head + b"\x01\0").is_moving())
        self.assertTrue(Answering(head + b"\x02" + compact("t")).is_moving())

    def test_what_is_not_deleted_is_told(self):
        answer = b"\0" + struct.pack(">i", 0) + count(2) + b"".join(compact(name) + bytes(16) + struct.pack(">h", error) + b"\0\0" for name, error in (("a", 0), ("b", 29))) + b"\0"
        with self.assertRaisesRegex(RuntimeError, "b: error 29"):
            Answering(answer).delete(["a", "b"])

    def test_the_active_controller(self):
        answer = b"\0\0\0\x02" + compact("__cluster_metadata") + b"\x02" + struct.pack(">ihi", 0, 0, 3) + b"\0" * 20
        self.assertEqual(Answering(answer).controller(), 3)


class Figures(unittest.TestCase):
    def test_percentiles_are_values_that_were_seen(self):
        values = list(range(50))
        self.assertEqual((percentile(values, 0.5), percentile(values, 0.99), percentile([7], 0.5)), (24, 49, 7))

    def test_all_losses_of_a_row_are_one_line(self):
        runs = [{"run": number, "other_load": 0.1 * number, "events": [{"gap_ms": 100 * number + at, "failed": 1} for at in range(2)]} for number in range(2)]
        found = pooled(runs)
        self.assertEqual((found["events"], found["gap_p50_ms"], found["gap_p99_ms"], found["failed"]), (4, 1, 101, 4))

    def test_partitions_are_told_apart(self):
        leads = {("w", number): Led(row[0], tuple(row), tuple(row)) for number, row in enumerate(WHOLE)}
        told = [{kind: {"pauses_ms": [1000 * topic + 10 * number + add for number in range(partitions)]} for kind, add in (("acks", 0), ("reads", 5))}
                for topic, partitions in enumerate((len(WHOLE), 2, 2, 2))]
        found = Kills.told_apart(told, leads, "w", 1)
        # Broker 1 leads 0, 3, 6 and 9 of the whole, and has nothing of the second pair, which is the third topic.
        self.assertEqual(PAIRS[1], [2, 3])
        self.assertEqual((found["gap_ms"], found["others_ms"], found["apart_ms"], found["apart_read_ms"]), (90, 110, 2010, 2015))


if __name__ == "__main__":
    unittest.main()
