"""What two servers cannot have in common is taken out of what a tool printed: ids, addresses, times, and the epochs of groups, which every
server counts for itself (Kafka 4.3 begins with 2, KAFKA-20268; members only compare). Everything else must be the same.

Rows come in the order of a hash map of the tool's, so lines are compared sorted; the width of columns goes by the longest id, so
white space counts as one blank.
"""

import json
import re

# Columns of tables whose values are a server's own, by the tool's headings.
OWN = {"GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "CURRENT-EPOCH", "TARGET-EPOCH", "MEMBER-EPOCH", "ASSIGNMENT-EPOCH", "ProducerId", "LastTimestamp", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "Duration(min)", "Duration"}
WORDS = (
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<node>"),
    (re.compile(r"localhost:\d+"), "<node>"),
    # 16 random bytes in base 64, but no word of ours or theirs that happens to be as long.
    (re.compile(r"(?<![\w-])(?!(?:[A-Z]?[a-z]+)+(?![\w-]))[\w-]{22}(?![\w-])"), "<id>"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "<time>"),
    # Who got which of a share group's partitions, or of the tasks of a streams group, goes by the members' ids, which are random.
    (re.compile(r"\bjobs:[\d,]+"), "jobs:<some>"),
    (re.compile(r"StreamThread-\d+"), "StreamThread"),
    (re.compile(r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"), "<then>"),
    # Figures of the load tools: moments, what goes by the clock, and the milliseconds at the end.
    (re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}\b"), "<then>"),
    (re.compile(r"^(.*<then>, <then>, .*), \d+$"), r"\1, <ms>"),
    (re.compile(r"(?<=, )\d+\.\d{4}(?=, )"), "<figure>"),
    # A set of partitions.
    (re.compile(r"\[[\w.-]+-\d+(?:, [\w.-]+-\d+)+\]"), lambda found: "[" + ", ".join(sorted(found.group()[1:-1].split(", "))) + "]"),
)
# Lines of the tools' own logging, and of stack traces.
NOISE = re.compile(r"^(\[\d{4}-|\s+at |\s*\.\.\. \d+ more|Caused by: |SLF4J|WARN |console-share-consumer: no record came|java\.\w+(\.\w+)*(Exception|Error)\b|(org\.apache\.kafka|com\.fasterxml)\.\S+Exception(: |$))")


def event(line):
    """A line of the verifiable tools, without its moment and its speed; Java's reflection gives the order of fields."""
    try:
        fields = json.loads(line)
    except ValueError:
        return line
    if not isinstance(fields, dict) or "timestamp" not in fields:
        return line
    return json.dumps({key: value for key, value in fields.items() if key not in ("timestamp", "avg_throughput")}, sort_keys=True)


def masked(said):
    """The lines to compare, sorted."""
    out, own, width = [], (), 0
    for line in said.splitlines():
        if not line.strip() or NOISE.match(line):
            continue
        line = event(line)
        for pattern, word in WORDS:
            line = pattern.sub(word, line)
        fields = line.split()
        if OWN & set(fields):
            own, width = [place for place, field in enumerate(fields) if field in OWN], len(fields)
        elif own and len(fields) >= width - 1:
            # The last column may be empty, or have blanks in it.
            for place in own:
                if place < len(fields) and re.fullmatch(r"<time>|-?\d+", fields[place]):
                    fields[place] = "<own>"
        else:
            own = ()
        # How many markers of transactions a topic between two halves of a topology has goes by the moments of its commits.
        if any(field.endswith("-repartition") for field in fields):
            fields = [*fields[:3], *(re.sub(r"^\d+$", "<own>", field) for field in fields[3:])]
        out.append(" ".join(fields))
    return sorted(out)
