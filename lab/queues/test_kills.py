"""What kills.py counts, on transcripts that are made up."""

import unittest

from kills import judge_amqp, judge_mq


def lines(text):
    return [line.split() for line in text.strip().splitlines()]


def broken(judge, text):
    """The claims that a transcript breaks."""
    return {claim: wrong for claim, wrong in judge(lines(text))[0].items() if wrong}


class Mq(unittest.TestCase):
    def test_message_that_went_through_breaks_nothing(self):
        self.assertEqual(broken(judge_mq, "put sure a b\nmoved sure a b\ngot sure a\ngot sure b"), {})

    def test_confirmed_put_that_never_comes_is_lost(self):
        self.assertEqual(broken(judge_mq, "put sure a b\ngot sure a"), {"lost": ["b"]})

    def test_get_in_doubt_counts_as_got(self):
        self.assertEqual(broken(judge_mq, "put sure a\ngot doubt a # 2009"), {})

    def test_put_that_went_back_and_comes_is_from_nothing(self):
        self.assertEqual(broken(judge_mq, "put not a\nmoved sure a")["from nothing"], ["a"])

    def test_unit_in_doubt_comes_whole_or_not_at_all(self):
        self.assertEqual(broken(judge_mq, "put doubt a b # 2009"), {})
        self.assertEqual(broken(judge_mq, "put doubt a b # 2009\ngot sure a\ngot sure b"), {})
        self.assertEqual(broken(judge_mq, "put doubt a b # 2009\ngot sure a"), {"torn": [["a", "b"]]})

    def test_message_comes_twice_only_after_a_move_in_doubt(self):
        twice = "put sure a\ngot sure a\ngot sure a\n"
        self.assertEqual(broken(judge_mq, twice), {"doubled": ["a"]})
        self.assertEqual(broken(judge_mq, twice + "moved doubt a # 2123"), {})
        self.assertEqual(broken(judge_mq, twice + "got sure a\nmoved doubt a # 2123"), {"doubled": ["a"]})


class Amqp(unittest.TestCase):
    def test_message_comes_twice_only_where_its_connection_broke_soon_after(self):
        twice = "put sure a\ngot 0.0 1000 a\ngot 1.0 9000 a\n"
        self.assertEqual(broken(judge_amqp, twice), {"doubled": ["a"]})
        self.assertEqual(broken(judge_amqp, twice + "broke 0.0 1500"), {})
        self.assertEqual(broken(judge_amqp, twice + "broke 0.0 8000"), {"doubled": ["a"]})

    def test_confirmed_put_that_never_comes_is_lost(self):
        self.assertEqual(broken(judge_amqp, "put sure a\nput doubt b"), {"lost": ["a"]})


if __name__ == "__main__":
    unittest.main()
