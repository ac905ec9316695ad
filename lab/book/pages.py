"""A page of the book as steps: which of its code blocks are run, written into files, or shown only.

| block | what becomes of it |
|---|---|
| `sh` | run in the page's shell, in order; a command that fails fails the page |
| `text` right behind an `sh` block | what that block must have printed: these lines in this order, others between them; `…` stands for anything |
| any other, behind a line that is a file's name in backticks and a colon | written into the file |
| `properties` without a file's name | every key must be known to `barnabas config explain` |

A comment `<!-- book: WORD: TEXT -->` above a block changes that: `elsewhere` (not run here: the reason, and what checks it instead), `shown` (an
example of a file or a line: the reason), `long` (only in the long form), `fails` (the last command must fail), `sh` (a block without a kind is run).
By itself it is an order of the rig: `run` (commands that readers do not need), `long run` (the same, in the long form), `files of PAGE` (those that
another page shows, behind their names), `page: long: REASON`, `page: begins with PAGE` (that page's blocks first, in this page's folder), `page: for
NAME read OTHER` (in commands, files and what is expected; `$PWD` is the page's folder).
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^```(\S*)\s*$")
COMMENT = re.compile(r"<!-- book:\s+(.*?)\s*-->", re.DOTALL)
FILE_NAME = re.compile(r"^`([^`]+)`(?: \([^)]*\))?:$")
WORDS = ("elsewhere", "shown", "long", "fails", "sh")


class Wrong(Exception):
    """A page that the rig cannot read; the text is for its author."""


@dataclass
class Step:
    """One block. `kind`: run, hidden, file, explain, elsewhere, shown."""

    kind: str
    line: int
    text: str
    reason: str = ""
    name: str = ""
    is_long: bool = False
    fails: bool = False
    expected: list = field(default_factory=list)

    def commands(self):
        """The commands of the block, continued lines in one; neither comments nor what a here-document holds."""
        found, until = [], None
        for line in self.text.replace("\\\n", " ").splitlines():
            if until is not None:
                until = None if line.strip() == until else until
                continue
            opened = re.search(r"<<-?\s*'?(\w+)'?", line)
            until = opened.group(1) if opened else None
            if line.strip() and not line.strip().startswith("#"):
                found.append(" ".join(line.split()))
        return found


@dataclass
class Page:
    path: Path
    title: str
    steps: list
    begins_with: list
    is_long: bool = False
    files_of: list = field(default_factory=list)
    # (name of the page, what is read for it here)
    names: list = field(default_factory=list)

    def sources(self):
        """Further pages whose text counts for this one."""
        return [*self.begins_with, *self.files_of, *(path for begin in self.begins_with for path in read(begin).files_of)]


def read(path):
    """The page at `path`. Raises `Wrong`."""
    lines = path.read_text().splitlines()
    page = Page(path, next((line[2:] for line in lines if line.startswith("# ")), path.stem), [], [])
    number, pending, before = 0, {}, ""
    while number < len(lines):
        line = lines[number]
        fence = FENCE.match(line)
        if line.startswith("<!-- book:"):
            start = number
            while "-->" not in lines[number]:
                number += 1
            ordered(page, COMMENT.match("\n".join(lines[start:number + 1])), start + 1, pending)
        elif fence:
            start = number
            number += 1
            while lines[number] != "```":
                number += 1
            take(page, fence.group(1), lines[start + 1:number], start + 1, pending, before)
            pending, before = {}, "```"
        elif line.strip():
            if pending:
                raise Wrong(f"{path.name}:{number + 1}: a comment {sorted(pending)} that no block follows")
            before = line
        number += 1
    return page


def ordered(page, comment, line, pending):
    """A comment of ours: an order at once, or a word for the block that follows."""
    word, _, text = comment.group(1).partition(":")
    text = text.strip()
    if word in ("run", "long run"):
        page.steps.append(Step("hidden", line, text, is_long=word == "long run"))
    elif word == "page" and text.startswith("begins with "):
        page.begins_with.append(page.path.parent / text.removeprefix("begins with "))
    elif word == "page" and (other := re.fullmatch(r"for (\S+) read (\S+)", text)):
        page.names.append(other.groups())
    elif word == "page" and text.startswith("long"):
        page.is_long = True
    elif word.startswith("files of "):
        path = page.path.parent / word.removeprefix("files of ")
        page.files_of.append(path)
        page.steps.extend(files(path))
    elif word in WORDS:
        if word in ("elsewhere", "shown") and not text:
            raise Wrong(f"{page.path.name}:{line}: {word} without a reason")
        pending[word] = text
    else:
        raise Wrong(f"{page.path.name}:{line}: unknown word {word}")


def take(page, language, body, line, pending, before):
    text, named = "\n".join(body) + "\n", FILE_NAME.match(before)
    more = {"is_long": "long" in pending, "fails": "fails" in pending}
    if "elsewhere" in pending:
        page.steps.append(Step("elsewhere", line, text, pending["elsewhere"]))
    elif "shown" in pending:
        page.steps.append(Step("shown", line, text, pending["shown"]))
    elif language == "sh" or (not language and "sh" in pending):
        page.steps.append(Step("run", line, text, **more))
    elif language == "text" and before == "```" and page.steps and page.steps[-1].kind == "run":
        page.steps[-1].expected.extend(body)
    elif named:
        page.steps.append(Step("file", line, text, name=named.group(1), **more))
    elif language == "properties":
        page.steps.append(Step("explain", line, text, **more))
    else:
        raise Wrong(f"{page.path.name}:{line}: a block of {language or 'no kind'} that is neither run nor written nor explained")


def files(path):
    """The blocks of any page that stand behind a file's name."""
    found, before, named = [], "", None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if named and line != "```":
            named.text += line + "\n"
        elif named:
            found.append(named)
            named, before = None, ""
        elif FENCE.match(line) and FILE_NAME.match(before):
            named = Step("file", number, "", name=FILE_NAME.match(before).group(1))
        elif line.strip():
            before = line
    return found


def missing(expected, printed):
    """The first expected line that was not printed, in order; None where all were."""
    lines = iter(" ".join(line.split()) for line in printed.splitlines())
    for wanted in expected:
        words = " ".join(wanted.split())
        if words in ("", "…"):
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in words.split("…")))
        if not any(pattern.fullmatch(line) for line in lines):
            return wanted
    return None
