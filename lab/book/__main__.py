"""`make book-test`: each command of the operator's book, and of the pages on Connect, message queues and security, run in the order of its page
against a node or a cluster of the built binary.

A page is run in a folder of its own, with ports of its own; what becomes of which block: pages.py. Pages that need Apache Kafka run in the long
form only, and so do blocks on Kerberos, whose KDC is Debian's. Each line of WARN or ERROR that a node writes meanwhile must have its entry in
messages.md, and every link of the book must lead somewhere.
Printed are page × commands, what is not run here and why, and one line to quote.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compat import fetch
from compat.cli import find_binary

sys.path.insert(0, str(fetch.REPOSITORY / "lab" / "bridge"))
from ends import artemis_home  # noqa: E402  (lab/bridge)

from . import apache, kerberos, links, messages, pages, stage

BOOK = fetch.REPOSITORY / "docs" / "operations"
# Pages beside the book.
BESIDE = [BOOK.parent / name for name in ("CONNECT.md", "QUEUES.md", "SECURITY.md")]


def arguments(words):
    parser = argparse.ArgumentParser(prog="lab/book/run", description="Runs the commands of docs/operations, docs/CONNECT.md, docs/QUEUES.md and docs/SECURITY.md.")
    parser.add_argument("--quick", action="store_true", help="without what needs Apache Kafka or minutes")
    parser.add_argument("--only", help="pages whose path holds one of these words, with commas")
    parser.add_argument("--binary", help="the barnabas program (default: the newest of target/release and target/debug)")
    parser.add_argument("--lanes", type=int, default=6, help="pages at a time")
    parser.add_argument("--keep", action="store_true", help="keep the folders (that of a page that fails is kept anyway)")
    return parser.parse_args(words)


def named(page):
    """The page's place in the book, or its name beside it."""
    return page.path.relative_to(BOOK) if page.path.is_relative_to(BOOK) else Path(page.path.name)


class Run:
    """One page, run: its lines for the reader, and what came of it."""

    def __init__(self, page, options, folder, variables, known):
        self.page, self.options, self.known = page, options, known
        self.folder, self.variables = folder / named(page).with_suffix(""), variables
        self.lines, self.commands, self.files, self.elsewhere, self.left_out, self.failed = [], 0, 0, 0, 0, ""

    def show(self, text):
        self.lines.append(text)

    def steps(self):
        """The blocks of the pages that this one begins with, then its own: (is it its own?, block)."""
        for path in self.page.begins_with:
            yield from ((False, step) for step in pages.read(path).steps if step.kind in ("run", "hidden", "file") and not step.is_long)
        yield from ((True, step) for step in self.page.steps)

    def play(self):
        steps = list(self.steps())
        if self.options.quick and self.page.is_long:
            self.left_out = sum(len(step.commands()) for own, step in steps if own and step.kind == "run")
            return self
        names = [(theirs, ours.replace("$PWD", str(self.folder))) for theirs, ours in self.page.names]
        ports = stage.Ports([path.read_text() for path in (self.page.path, *self.page.sources())], names)
        place = stage.Stage(self.folder, self.options.binary, ports, self.variables)
        try:
            for own, step in steps:
                self.take(place, own, step)
            unknown = messages.unknown(place.warnings(), self.known)
            if unknown:
                shown = "\n".join(f"  {file}: {level} {line}" for file, level, line in unknown[:8])
                raise stage.Failed(f"lines of the log without an entry in messages.md:\n{shown}")
        except stage.Failed as reason:
            self.failed = f"{reason}\n{place.last_lines()}\n  kept: {self.folder}"
        finally:
            place.end()
        if not self.failed and not self.options.keep:
            shutil.rmtree(self.folder)
        return self

    def take(self, place, own, step):
        where = f"{named(self.page)}:{step.line}"
        if step.is_long and (self.options.quick or self.page in self.options.short):
            self.left_out += len(step.commands()) if step.kind != "hidden" else 0
        elif step.kind == "file":
            place.write(step.name, step.text)
            self.files += own
        elif step.kind == "elsewhere":
            self.elsewhere += len(step.commands())
            for command in step.commands():
                self.show(f"  not run here ({step.reason}): {command}")
        elif step.kind == "explain":
            place.write(".explained", step.text)
            said = self.tried(place, where, "barnabas config explain .explained")
            if "not a key" in said or "unknown" in said:
                raise stage.Failed(f"{where}: {said[-600:]}")
            self.files += own
        elif step.kind in ("run", "hidden"):
            self.do(place, own, step, where)

    def do(self, place, own, step, where):
        begun = time.monotonic()
        printed = self.tried(place, where, step.text, step.fails)
        wanted = pages.missing([place.ports.named(line) for line in step.expected], printed)
        if wanted is not None:
            raise stage.Failed(f"{where}: the page shows the line `{wanted}`; printed was:\n{printed[-3000:]}")
        if own and step.kind == "run":
            self.commands += len(step.commands())
            for command in step.commands():
                self.show(f"  ran: {command}")
            self.show(f"       {time.monotonic() - begun:.1f} s" + (f", {len(step.expected)} lines as shown" if step.expected else ""))

    def tried(self, place, where, text, fails=False):
        try:
            return place.run(text, fails)
        except stage.Failed as reason:
            raise stage.Failed(f"{where}: {text.strip()}\n{reason}") from None

    def told(self):
        print(f"{named(self.page)}: {self.page.title}", flush=True)
        print("\n".join(self.lines))
        if self.failed:
            print(f"  FAILED: {self.failed}")
        elif self.left_out:
            print(f"  {self.left_out} commands left to the long form")


def chosen(options):
    """The pages in the order of SUMMARY.md, which must name each of them."""
    listed = [BOOK / name for name in pages.re.findall(r"\]\(([^)#]+\.md)\)", (BOOK / "SUMMARY.md").read_text()) if not name.startswith("..")]
    unlisted = sorted(set(BOOK.rglob("*.md")) - {*listed, BOOK / "SUMMARY.md"})
    if unlisted:
        raise pages.Wrong(f"SUMMARY.md does not name {', '.join(str(path.relative_to(BOOK)) for path in unlisted)}")
    words = options.only.split(",") if options.only else [""]
    return [pages.read(path) for path in (*listed, *BESIDE) if any(word in str(path) for word in words)]


def end(*_):
    stage.end_all()
    os._exit(130)


def main(words):
    options = arguments(words)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    begun = time.monotonic()
    book = chosen(options)
    options.binary = find_binary(options.binary)
    folder = Path(tempfile.mkdtemp(prefix="barnabas-book-"))
    variables = {"BOOK_TOOLS": str(Path(__file__).parent)}
    if not options.quick and any(page.is_long for page in book):
        try:
            print(f"Apache Kafka {apache.make(folder / 'kafka')} by its jars", flush=True)
            variables |= {"KAFKA_HOME": str(folder / "kafka"), "ARTEMIS_HOME": str(artemis_home())}
        except fetch.Missing as missing:
            print(f"without Apache Kafka: {missing}")
            options.quick = True
    options.short = [page for page in book if "KERBEROS_HOME" in page.path.read_text()]
    if not options.quick and options.short:
        try:
            variables["KERBEROS_HOME"] = str(kerberos.make(folder / "kerberos"))
            options.short = []
        except fetch.Missing as missing:
            print(f"without a KDC, the short form of {', '.join(page.path.name for page in options.short)}: {missing}")
    known = messages.patterns(BOOK / "messages.md")
    count, broken = links.broken([*sorted(BOOK.rglob("*.md")), *BESIDE, BOOK.parent / "OPERATIONS.md", BOOK.parent / "README.md"])
    print(f"{count} links, {len(broken)} of them lead nowhere{''.join(f'; {link}' for link in broken)}", flush=True)
    with ThreadPoolExecutor(options.lanes) as lanes:
        runs = [Run(page, options, folder, variables, known) for page in book]
        # The longest first, so that none is left alone at the end; shown in the order of the book.
        by_length = sorted(runs, key=lambda run: -len(run.page.steps))
        ends = {run: lanes.submit(run.play) for run in by_length}
        for run in runs:
            ends[run].result()
            run.told()
    failed, skipped = [run for run in runs if run.failed], sum(run.page.is_long for run in runs) if options.quick else 0
    if not failed and not options.keep:
        shutil.rmtree(folder)
    for run in failed:
        print(f"failed: {named(run.page)}: {run.failed.splitlines()[0]}")
    print(f"{len(runs) - len(failed) - skipped} passed, {len(failed)} failed, {skipped} skipped")
    total = {name: sum(getattr(run, name) for run in runs) for name in ("commands", "files", "elsewhere", "left_out")}
    print(f"book-test: {len(runs)} pages, {total['commands']} commands run, {total['files']} files written or explained, "
          f"{total['elsewhere']} commands not run here (reasons above), {total['left_out']} left to the long form, {len(failed)} pages failed, "
          f"{len(broken)} of {count} links broken, {time.monotonic() - begun:.0f} s")
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
