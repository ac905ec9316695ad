#!/usr/bin/env python3
"""Draws the two plots of the project's README from the stored runs: results/readme-cost.svg and results/readme-partitions.svg.

`lab/bench/plots.py` writes them, `lab/bench/plots.py --check` fails if they are not what the stored runs give. Needs only Python's standard library; the
charts of a whole report are drawn by rig/plots.py, which needs matplotlib.

Marks are medians of the runs, whiskers reach from the lowest run to the highest. The last attempt of each run counts, as in the reports.
"""

import json
import math
import statistics
import sys
from html import escape
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
COLOURS = {"Apache Kafka": "#8a8f98", "Barnabas": "#1f6fb2"}
STYLE = 'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="12"'
# (results file, workload, case, what the README calls it)
COST = [
    ("full", "speed", "3 librdkafka, 100 B, 16 partitions", "One node, 3 librdkafka producers, 16 partitions"),
    ("full", "speed", "librdkafka, 100 B, 1 partition", "One node, librdkafka, 1 partition"),
    ("full", "speed", "Java, 100 B, 16 partitions, 64 KiB, linger 5", "One node, Java, 16 partitions, 64 KiB batches"),
    ("full", "speed", "Java, 100 B, 1 partition, 16 KiB, linger 0", "One node, Java, 1 partition, 16 KiB batches"),
    ("cluster", "cluster", "6 partitions, 100 B, 64 KiB", "Three brokers, Java, 6 partitions, 64 KiB batches"),
    ("cluster", "cluster", "6 partitions, 100 B, 16 KiB", "Three brokers, Java, 6 partitions, 16 KiB batches"),
]
COUNTS = (1, 10, 100, 1_000, 5_000, 10_000)
PEERS = {"full": {"Apache Kafka": "kafka", "Barnabas": "barnabas"}, "cluster": {"Apache Kafka": "kafka-cluster", "Barnabas": "barnabas-cluster"}}


class Runs:
    """The runs of one results file."""

    def __init__(self, name):
        lines = [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text().splitlines()]
        self.machine = next(line["machine"] for line in lines if "machine" in line)
        self.last = {}
        for line in lines:
            if "run" in line:
                self.last[line["workload"], line["case"], line["peer"], line["run"]] = line

    def spread(self, workload, case, peer, figure, scale=1.0):
        """(median, lowest, highest), or None where no run has the figure."""
        values = [line[figure] * scale for key, line in sorted(self.last.items()) if key[:3] == (workload, case, peer) and figure in line]
        return (statistics.median(values), min(values), max(values)) if values else None

    def source(self):
        versions = self.machine["versions"]
        kafka = versions.get("kafka") or versions["kafka-cluster"]
        return f"{self.machine['date']}, commit {self.machine['commit']}, Apache Kafka {kafka}"


def text(x, y, content, anchor="start", size=None, bold=False):
    size = f' font-size="{size}"' if size else ""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{size}{weight} fill="#222">{escape(content)}</text>'


def line(x1, y1, x2, y2, colour="#333", width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def box(x, y, width, height, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def document(width, height, title, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" {STYLE}>'
    return "\n".join([head, f"<title>{escape(title)}</title>", box(0, 0, width, height, "#ffffff"), text(16, 26, title, size=15, bold=True), *parts, "</svg>"]) + "\n"


def legend(y):
    parts, x = [], 16
    for label, note in (("Apache Kafka", "does not sync before it answers"), ("Barnabas", "synced before it answers")):
        parts += [box(x, y - 10, 12, 12, COLOURS[label]), text(x + 18, y, f"{label} ({note})")]
        x += 380
    return parts


def cost(files):
    width, left, right, top, row = 900, 370, 60, 64, 46
    rows = [(name, {peer: files[file].spread(workload, case, PEERS[file][peer], "server_us_per_record") for peer in COLOURS}) for file, workload, case, name in COST]
    most = max(spread[2] for _, spreads in rows for spread in spreads.values())
    scale = (width - left - right) / most
    bottom = top + row * len(rows)
    parts = legend(48)
    for tick in range(0, math.floor(most) + 1):
        x = left + tick * scale
        parts += [line(x, top, x, bottom, "#e4e4e4"), text(x, bottom + 16, str(tick), "middle", 11)]
    for place, (name, spreads) in enumerate(rows):
        y = top + place * row + 8
        parts.append(text(left - 10, y + 20, name, "end"))
        for step, (peer, (middle, low, high)) in enumerate(spreads.items()):
            at = y + step * 16
            parts += [box(left, at, middle * scale, 13, COLOURS[peer]), line(left + low * scale, at + 6.5, left + high * scale, at + 6.5)]
            parts.append(text(left + high * scale + 5, at + 11, f"{middle:.2f}", size=11))
    parts.append(text(left, bottom + 34, "µs of broker CPU per record of 100 bytes, acks=all (three brokers: their sum)", size=11))
    parts += [text(16, bottom + 54 + 15 * place, f"{name}: {files[file].source()}", size=10) for place, (name, file) in enumerate((("One node", "full"), ("Three brokers", "cluster")))]
    return document(width, bottom + 80, "What a record costs the brokers", parts)


def partitions(files):
    width, height, left, right, top, bottom = 900, 420, 70, 30, 70, 330
    runs, spreads = files["full"], {}
    for peer in COLOURS:
        for count in COUNTS:
            case = f"librdkafka, {count:,} partition{'s' * (count > 1)}"
            spread = runs.spread("partitions", case, PEERS["full"][peer], "records_per_s", 0.001)
            if spread:
                spreads[peer, count] = spread
    most = max(spread[2] for spread in spreads.values()) * 1.05
    x_of = {count: left + 30 + (width - left - right - 60) * math.log10(count) / math.log10(COUNTS[-1]) for count in COUNTS}

    def y_of(value):
        return bottom - value / most * (bottom - top)

    parts = legend(52)
    for tick in range(0, int(most) + 1, 1000):
        parts += [line(left, y_of(tick), width - right, y_of(tick), "#e4e4e4"), text(left - 8, y_of(tick) + 4, f"{tick:,}", "end", 11)]
    parts += [text(x_of[count], bottom + 18, f"{count:,}", "middle", 11) for count in COUNTS]
    for step, peer in enumerate(COLOURS):
        points = [(x_of[count] + step * 6 - 3, *spreads[peer, count]) for count in COUNTS if (peer, count) in spreads]
        path = " ".join(f"{x:.1f},{y_of(middle):.1f}" for x, middle, _, _ in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[peer]}" stroke-width="2"/>')
        for x, middle, low, high in points:
            parts += [line(x, y_of(low), x, y_of(high), COLOURS[peer]), f'<circle cx="{x:.1f}" cy="{y_of(middle):.1f}" r="4" fill="{COLOURS[peer]}"/>']
    parts += [
        text(left, bottom + 40, "thousand records of 100 bytes per second, by partitions of the topic: one librdkafka producer, one node, acks=all", size=11),
        text(left, bottom + 56, "Apache Kafka was not asked for 10,000 partitions: it refuses them in one request.", size=11),
        text(16, bottom + 80, runs.source(), size=10),
    ]
    return document(width, height, "Throughput over the number of partitions", parts)


def main():
    files = {name: Runs(name) for name in ("full", "cluster")}
    plots = {"readme-cost.svg": cost(files), "readme-partitions.svg": partitions(files)}
    stale = [name for name, svg in plots.items() if not (RESULTS / name).exists() or (RESULTS / name).read_text() != svg]
    if "--check" in sys.argv[1:]:
        print(f"not as the stored runs give them: {', '.join(stale)}; run lab/bench/plots.py" if stale else "both plots are as the stored runs give them")
        return 1 if stale else 0
    for name, svg in plots.items():
        (RESULTS / name).write_text(svg)
    print(f"written: {', '.join(plots)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
