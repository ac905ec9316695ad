"""The commands of docs/QUEUES.md that concern the listeners, run as they stand but for addresses and logins."""

import re
import shlex
from pathlib import Path

from compat import fetch

PAGE = fetch.REPOSITORY / "docs" / "QUEUES.md"


def commands():
    """Lines of the page that begin with `barnabas` and go to a running node, under the headings of the listeners."""
    text = PAGE.read_text()
    listeners = text[text.index("## Applications talk AMQP"): text.index("\n## Bridge")]
    blocks = re.findall(r"```sh\n(.*?)```", listeners, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if "--bootstrap-server" in line]
    return [shlex.split(line) for line in lines]


def play(node):
    """Runs them all; how many failed."""
    failed = 0
    for words in commands():
        at = words.index("--bootstrap-server")
        name, rest = words[1], [word for number, word in enumerate(words) if number > 1 and number not in (at, at + 1)]
        try:
            node.tool(name, *rest)
            print(f"docs/QUEUES.md: barnabas {name} {' '.join(rest)}", flush=True)
        except ValueError as error:
            failed += 1
            print(f"docs/QUEUES.md: FAILED: {error}", flush=True)
    return failed
