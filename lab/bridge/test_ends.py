"""What the rig makes of a reader that fails. No Artemis; `run` runs it first."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

from compat.driver import Failure

import ends

# Prints as the JVM does that cannot start: to its standard output, and nothing to standard error.
DIES = "print('Error occurred during initialization of VM'); sys.exit(1)"
CUT = "print('0\\t0\\ta')"
WHOLE = "print('0\\t0\\ta'); print('end 1')"


class Alive:
    """An Artemis that runs."""

    address, process = "127.0.0.1:1", None

    def is_alive(self):
        return True

    def __str__(self):
        return "Artemis"


class Reader(unittest.TestCase):
    def browse(self, *scripts):
        """Each try runs the next script."""
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()) as said:
            count = Path(scratch) / "count"
            count.write_text("0")
            program = (f"import sys, pathlib; count = pathlib.Path({str(count)!r}); at = int(count.read_text()); count.write_text(str(at + 1)); "
                       f"exec({list(scripts)!r}[at])")
            try:
                return ends.browsed([sys.executable, "-c", program], Alive(), "Q", tries=len(scripts)), said.getvalue()
            except Failure as failure:
                return failure, said.getvalue()

    def test_reader_that_dies_is_run_again_and_its_last_words_are_shown(self):
        rows, said = self.browse(DIES, WHOLE)
        self.assertEqual(rows, [["0", "0", "a"]])
        self.assertIn("exit 1", said)
        self.assertIn("Error occurred during initialization of VM", said)
        self.assertIn("Artemis runs", said)

    def test_output_without_its_end_is_not_taken(self):
        rows, said = self.browse(CUT, WHOLE)
        self.assertEqual(rows, [["0", "0", "a"]])
        self.assertIn("exit 0 after 1 lines", said)

    def test_signal_is_named(self):
        failure, said = self.browse("import os; os.kill(os.getpid(), 9)")
        self.assertIsInstance(failure, Failure)
        self.assertIn("killed by SIGKILL", said)


if __name__ == "__main__":
    unittest.main()
