"""What the rig must notice: a page that shows what is not printed, a block without a kind, a link without a heading, a line without an entry."""

import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

from book import links, messages, pages, stage


def page(text):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "page.md"
        path.write_text(text)
        return pages.read(path)


class Pages(unittest.TestCase):
    def test_block_and_what_it_shows_are_one_step(self):
        step, = page("# T\n\n```sh\nls \\\n  -l\n# no\n```\n```text\na … b\n```\n").steps
        self.assertEqual((step.kind, step.commands(), step.expected), ("run", ["ls -l"], ["a … b"]))

    def test_block_behind_a_name_is_a_file(self):
        step, = page("`x.json`:\n\n```json\n{}\n```\n").steps
        self.assertEqual((step.kind, step.name, step.text), ("file", "x.json", "{}\n"))

    def test_block_without_a_kind_is_run_where_a_comment_says_so(self):
        step, = page("<!-- book: sh -->\n```\nls\n```\n").steps
        self.assertEqual((step.kind, step.commands()), ("run", ["ls"]))

    def test_long_run_is_left_out_of_the_short_form(self):
        short, long = page("<!-- book: run: ls -->\n<!-- book: long run:\nls\n-->\n").steps
        self.assertEqual([(step.kind, step.is_long) for step in (short, long)], [("hidden", False), ("hidden", True)])

    def test_block_that_is_not_run_needs_a_reason(self):
        with self.assertRaises(pages.Wrong):
            page("<!-- book: elsewhere -->\n```sh\nls\n```\n")
        with self.assertRaises(pages.Wrong):
            page("```\nls\n```\n")

    def test_missing_line_is_named(self):
        self.assertEqual(pages.missing(["a … c", "d"], "a b c\nx"), "d")
        self.assertIsNone(pages.missing(["a … c", "…", "d"], "a  b   c\nx\nd"))

    def test_ports_are_put_back(self):
        ports = stage.Ports(["see 127.0.0.1:19092"])
        self.assertNotIn("19092", ports.replaced("127.0.0.1:19092"))
        self.assertEqual(ports.put_back(ports.replaced("127.0.0.1:19092 119092")), "127.0.0.1:19092 119092")

    def test_name_is_read_as_another_before_ports_are_replaced(self):
        names = page("<!-- book: page: for a.example.com read localhost -->\n").names
        self.assertRegex(stage.Ports(["a.example.com:9092"], names).replaced("to a.example.com:9092"), r"^to localhost:(?!9092$)\d+$")

    def test_link_in_a_comment_of_the_rig_is_none(self):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "a.md"
            path.write_text("# A\n\n<!-- book: run: echo '[2:$1](kafka)' -->\n")
            self.assertEqual(links.broken([path]), (0, []))

    def test_line_without_an_entry_is_unknown(self):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "messages.md"
            path.write_text("| `broker … fenced: …` | WARN | c | d |\n")
            known = messages.patterns(path)
        fenced = ("1.log", "WARN", "broker 3 fenced: lost")
        self.assertEqual(messages.unknown([fenced, ("1.log", "ERROR", fenced[2]), ("1.log", "WARN", "else")], known),
                         [("1.log", "ERROR", fenced[2]), ("1.log", "WARN", "else")])

    def test_link_to_no_heading_is_broken(self):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "a.md"
            path.write_text("# A\n\n## To do, now\n\n[x](#to-do-now) [y](#nowhere) [z](b.md)\n")
            self.assertEqual(links.broken([path]), (3, ["a.md: #nowhere", "a.md: b.md"]))


if __name__ == "__main__":
    unittest.main()
