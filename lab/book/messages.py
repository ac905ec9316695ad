"""The entries of docs/operations/messages.md as patterns: lines of WARN and ERROR that nodes wrote must each have one."""

import re

ENTRY = re.compile(r"^\| `([^`]+)` \| ([A-Z, ]+) \|")


def patterns(page):
    """[(levels, pattern)] of the page's rows. `…` stands for anything."""
    found = []
    for line in page.read_text().splitlines():
        entry = ENTRY.match(line)
        if entry:
            parts = (re.escape(part).replace("'", "['`]") for part in entry.group(1).split("…"))
            found.append((entry.group(2).replace(" ", "").split(","), re.compile(".*" + ".*".join(parts), re.DOTALL)))
    return found


def unknown(warnings, known):
    """Those of (file, level, line) that no entry covers."""
    return [(file, level, line) for file, level, line in warnings if not any(level in levels and pattern.match(line) for levels, pattern in known)]
