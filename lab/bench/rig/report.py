"""The report of a set: a table for each workload with medians, spreads, ratios, bars and the source's figures, then the plots.

Made of the lines of runs alone, so that it can be made again. The last attempt of each run counts.
"""

import json
import re
import subprocess
from dataclasses import replace
from itertools import product

from compat import fetch

from . import BENCH
from .machine import DISTURBED, median
from .peers import PEERS

# figure: (what tables call it, unit of plots, scale, digits)
FIGURES = {
    "records_per_s": ("throughput, k/s", "thousand records per second", 0.001, 0),
    "fetch_records_per_s": ("without joining, k/s", "thousand records per second", 0.001, 0),
    "mb_per_s": ("throughput, MB/s", "MB per second", 1, 0),
    "p50_ms": ("p50, ms", "milliseconds", 1, 2),
    "p99_ms": ("p99, ms", "milliseconds", 1, 2),
    "p999_ms": ("p99.9, ms", "milliseconds", 1, 2),
    "max_ms": ("max, ms", "milliseconds", 1, 1),
    "server_us_per_record": ("server CPU, µs/record", "µs of CPU per record", 1, 3),
    "client_us_per_record": ("client CPU, µs/record", "µs of CPU per record", 1, 3),
    "device_bytes_per_record": ("bytes written/record", "bytes per record", 1, 0),
    "device_write_ms": ("a write of the device, ms", "milliseconds", 1, 2),
    "switches_per_record": ("context switches/record", "context switches per record", 1, 4),
    "rss_mb": ("RSS, MB", "MB", 1, 0),
    "ready_s": ("exec to ready, s", "seconds", 1, 3),
    "idle_rss_mb": ("idle RSS, MB", "MB", 1, 1),
    "answered_s": ("answered, s", "seconds", 1, 3),
    "led_s": ("all led, s", "seconds", 1, 3),
    "usable_s": ("a record in each, s", "seconds", 1, 2),
    "last_step_s": ("last step, s", "seconds", 1, 3),
    "partitions_held": ("partitions held", "partitions", 1, 0),
    "server_cpu_s": ("server CPU, s", "seconds of CPU", 1, 2),
    "files": ("files", "files", 1, 0),
    "samples": ("samples", "samples", 1, 0),
}


def shown(values, digits):
    """median [min..max], with thousands set apart."""
    if not values:
        return "–"
    text = [f"{value:,.{digits}f}" for value in (median(values), min(values), max(values))]
    return text[0] if len(values) == 1 else f"{text[0]} [{text[1]}..{text[2]}]"


class Found:
    """What a set's lines say."""

    def __init__(self, lines):
        self.lines = lines

    def values(self, workload, case, peer, figure):
        scale = FIGURES[figure][2]
        return [line[figure] * scale for line in self.lines.counted(workload, case, peer) if line.get(figure) is not None]

    def cell(self, workload, case, peer, figure):
        """The figure, or what it would at least have been where a peer was given no more time."""
        values = self.values(workload, case, peer, figure)
        over = [line["over_s"] for line in self.lines.counted(workload, case, peer) if "over_s" in line]
        return f"> {over[0]}" if over and not values and figure == "usable_s" else shown(values, FIGURES[figure][3])

    def peers(self, workload, case):
        return [name for name in PEERS if name in case.peers and self.lines.counted(workload.name, case.name, name)]

    def version(self, name):
        return next((line["version"] for line in reversed(self.lines.all) if line.get("peer") == name and "version" in line), "")

    def label(self, name):
        label, version = PEERS[name].label, self.version(name)
        return f"{label} {version}" if name.startswith("kafka") and version not in label else label

    def ratio(self, workload, case, bar):
        """(figure or ratio, lowest, highest), or None. The spread of a ratio is that of its runs, paired as they were interleaved; where one side has fewer, each with each."""
        of = self.values(workload.name, case.name, bar.of, bar.figure)
        if not of:
            return None
        if bar.to is None:
            return median(of), min(of), max(of)
        to = self.values(workload.name, bar.case or case.name, bar.to, bar.figure)
        if not to or median(to) == 0:
            return None
        value = median(of) / median(to)
        pairs = [one / other for one, other in (zip(of, to) if len(of) == len(to) else product(of, to)) if other]
        return value, min(pairs + [value]), max(pairs + [value])


def with_version(label, version):
    return label if version in label else f"{label} {version}"


def spread_text(value, low, high, bound=None):
    """With so many digits that the value is not taken for the bound that it misses."""
    digits = 3 if value < 0.1 else 2
    while bound is not None and digits < 4 and value != bound and round(value, digits) == round(bound, digits):
        digits += 1
    return f"{value:,.{digits}f}" + (f" [{low:,.{digits}f}..{high:,.{digits}f}]" if low != high else "")


def bound_text(bar):
    sign, name, scale = ("≥" if bar.least else "≤"), FIGURES[bar.figure][0], FIGURES[bar.figure][2]
    unit = f" {name.split(', ')[-1]}" if bar.to is None else ""
    text = f"{sign} {bar.bound:.{(3 if bar.bound < 0.1 else 2) if bar.bound < 10 else 0}f}{unit}"
    return text if bar.or_itself is None else f"{text}, or {sign} {bar.or_itself * scale:,.0f} {name.split(', ')[-1]}"


def to_kafka(bar):
    """The same figure as a ratio to Kafka's, where a bar is of the figure itself."""
    return replace(bar, to="kafka", case=None)


def is_met(found, workload, case, bar, value):
    if bar.or_itself is not None:
        itself, bound = median(found.values(workload.name, case.name, bar.of, bar.figure)), bar.or_itself * FIGURES[bar.figure][2]
        if itself >= bound if bar.least else itself <= bound:
            return True
    return value >= bar.bound if bar.least else value <= bar.bound


def judged(found, workload, case, bar):
    """One row of the bars' table, and whether it is met; None where there are no figures."""
    measured = found.ratio(workload, case, bar)
    if measured is None:
        return None
    value, low, high = measured
    met = is_met(found, workload, case, bar, value)
    what = FIGURES[bar.figure][0]
    against = "itself" if bar.to is None else found.label(bar.to) + (f", {bar.case}" if bar.case else "")
    to = "–" if bar.to is None else shown(found.values(workload.name, bar.case or case.name, bar.to, bar.figure), FIGURES[bar.figure][3])
    of = shown(found.values(workload.name, case.name, bar.of, bar.figure), FIGURES[bar.figure][3])
    # A spread that lies on both sides of the bound does not say which it is.
    hidden = "" if bar.bound < low or bar.bound > high or low == high else ", within the noise"
    return f"| {case.name} | {what} | {of} | {to} | {against} | {spread_text(value, low, high, bar.bound)} | {bound_text(bar)} | {'met' if met else 'MISSED'}{hidden} |", met


def tables(found, workload, cases):
    """A table for each stretch of cases that have the same figures."""
    lines, before = [], None
    for case in cases:
        peers = found.peers(workload, case)
        if any("profile" in line for peer in peers for line in found.lines.counted(workload.name, case.name, peer)):
            continue
        figures = [name for name in workload.figures if any(found.values(workload.name, case.name, peer, name) for peer in peers)]
        if figures != before:
            lines += ["", "| case | peer | runs | " + " | ".join(FIGURES[name][0] for name in figures) + " | other load | source |", "|" + "---|" * (len(figures) + 5)]
            before = figures
        for place, peer in enumerate(peers):
            runs = found.lines.counted(workload.name, case.name, peer)
            cells = [found.cell(workload.name, case.name, peer, name) for name in figures]
            loads = [line["other_load"] for line in runs if "other_load" in line]
            other = f"{median(loads):.0%}" + (" (disturbed)" if median(loads) > DISTURBED else "") if loads else "–"
            ended = "; ".join(sorted({line["ended"] for line in runs if line.get("ended")}))
            cells += [other, "; ".join(filter(None, (ended, case.source if place == 0 else "")))]
            lines.append(f"| {case.name if place == 0 else ''} | {found.label(peer)} | {len(runs)} | {' | '.join(cells)} |")
    return lines


def profiles(found, workload, case):
    """The dearest functions of each peer, side by side, and what our own metering says of the same seconds."""
    last = {peer: runs[-1] for peer in found.peers(workload, case) if (runs := found.lines.counted(workload.name, case.name, peer)) and "profile" in runs[-1]}
    if not last:
        return []
    lines = [f"### {case.name}", "", "Own time, per cent of the server's CPU samples" + "".join(f"; {found.label(peer)} by {line['profile_by']}" for peer, line in last.items() if "profile_by" in line) + ".", "", "| " + " | ".join(f"{found.label(peer)} | %" for peer in last) + " |", "|---|---:" * len(last) + "|"]
    for place in range(max(len(line["profile"]) for line in last.values())):
        rows = [line["profile"][place] if place < len(line["profile"]) else ("", "") for line in last.values()]
        lines.append("| " + " | ".join(f"{'`' + name + '`' if name else ''} | {share}" for share, name in rows) + " |")
    for peer, line in last.items():
        if line.get("hotspots"):
            lines += ["", f"`barnabas hotspots`, the same seconds of {found.label(peer)}:", "", "```", *line["hotspots"], "```"]
    return [*lines, ""]


def flames(found, workload, case):
    return [text for peer in found.peers(workload, case) for line in found.lines.counted(workload.name, case.name, peer)[-1:] if "flame" in line
            for text in (f"![{case.name}]({line['flame']})", "")]


def workload_part(found, workload):
    """The workload's lines, and which of its bars are met."""
    if workload.skipped:
        return [f"## {workload.title}", "", f"Skipped: {workload.skipped}.", ""], []
    cases = [case for case in workload.cases if found.peers(workload, case)]
    if not cases:
        return [], []
    lines = [f"## {workload.title}", "", workload.question, *tables(found, workload, cases), ""]
    lines += [workload.note, ""] if workload.note else []
    for case in cases:
        lines += profiles(found, workload, case) + flames(found, workload, case)
    rows = [row for case in cases for bar in case.bars if (row := judged(found, workload, case, bar))]
    if rows:
        lines += ["| case | figure | Barnabas | against | of | ratio | bar | |", "|---|---|---|---|---|---|---|---|", *(row for row, _ in rows), ""]
    return lines, [met for _, met in rows]


# Plots


def series_of(found, workload, chart, cases):
    """[{label, colour, points: [(place, median, min, max)]}], one for each peer; a line for each peer and line name where there are several."""
    digits_lines = sorted({case.line for case in cases})
    made = []
    for peer in [name for name in PEERS if any(name in case.peers for case in cases)]:
        for line in digits_lines:
            points = []
            for place, case in enumerate(cases):
                values = found.values(workload.name, case.name, peer, chart.figure) if case.line == line else []
                if values:
                    points.append((place_on_line(found, workload, chart, case, peer) if chart.kind == "lines" else place, median(values), min(values), max(values)))
            if points:
                label = found.label(peer) + (f", {line}" if len(digits_lines) > 1 else "")
                made.append({"label": label, "colour": PEERS[peer].colour, "points": sorted(points)})
    return made


def place_on_line(found, workload, chart, case, peer):
    """A case's x; where it has none, what the peer reached, in the figure's own unit and not that of tables."""
    if case.x is not None:
        return case.x
    return median(found.values(workload.name, case.name, peer, chart.x_of)) / FIGURES[chart.x_of][2]


def drawn(found, plan, workloads, directory):
    """What plots.py is told to draw."""
    charts = []
    for workload in workloads:
        for number, chart in enumerate(workload.charts):
            cases = [case for case in workload.cases if re.search(chart.only, case.name) and (chart.kind != "lines" or chart.x_of or case.x is not None)]
            series = series_of(found, workload, chart, cases)
            with_any = {point[0] for one in series for point in one["points"]}
            if not series or (chart.kind == "lines" and len(with_any) < 2):
                continue
            if chart.kind == "bars":
                kept = sorted(with_any)
                for one in series:
                    one["points"] = [(kept.index(place), *rest) for place, *rest in one["points"]]
                cases = [cases[place] for place in kept]
            charts.append({"file": str(directory / f"{plan.name}-{workload.name}-{number + 1}"), "title": chart.title, "kind": chart.kind, "y_label": FIGURES[chart.figure][1],
                           "x_label": chart.x_label, "x_log": chart.x_log, "y_log": chart.y_log, "categories": [case.name for case in cases], "series": series, "workload": workload.name,
                           "digits": FIGURES[chart.figure][3]})
    return charts


def plots(charts):
    """Draws them with matplotlib in an environment of the rig's own; a line that says why not, or nothing."""
    if not charts:
        return ""
    try:
        interpreter = plot_python()
    except (fetch.Missing, OSError) as reason:
        return f"no plots: {reason}"
    done = subprocess.run([interpreter, "-B", str(BENCH / "rig/plots.py")], input=json.dumps(charts), capture_output=True, text=True)
    return "" if done.returncode == 0 else f"no plots: {(done.stderr.strip().splitlines() or ['?'])[-1][:300]}"


def plot_python():
    """The interpreter that has matplotlib: an environment beside lab/compat's, so that neither changes the other."""
    directory, wanted = fetch.CACHE.parent / "bench" / "plots", "matplotlib==3.11.2"
    directory.mkdir(parents=True, exist_ok=True)
    fresh, _ = fetch._stamp(directory, wanted)
    interpreter = directory / "bin" / "python"
    if not (fresh and interpreter.exists()):
        fetch._run("plots-venv", ["python3", "-m", "venv", "--clear", str(directory)])
        fetch._run("plots", [str(interpreter), "-m", "pip", "install", "-q", wanted])
        fetch._stamp(directory, wanted)[1]()
    return str(interpreter)


def stretch(lines):
    """When the runs were made."""
    times = sorted(line["at"] for line in lines.all if "at" in line)
    return f"{times[0]} to {times[-1]}" if times else "no runs"


def write_report(options, plan, workloads, lines, complaints):
    """<set>.md and its plots; one line of what was found."""
    found = Found(lines)
    about = next((line["machine"] for line in lines.all if "machine" in line), {})
    directory = options.results
    directory.mkdir(parents=True, exist_ok=True)
    charts = drawn(found, plan, workloads, directory)
    complaint = plots(charts)
    complaints = complaints + lines.failures() + ([complaint] if complaint else [])
    versions = ", ".join(with_version(PEERS[name].label.split(",")[0], version) for name, version in about.get("versions", {}).items() if not name.startswith(("skyline", "written")))
    text = [f"# The lab: the {plan.name} set", "",
            f"{stretch(lines)}, commit {about.get('commit', '?')}: {about.get('cores', '?')} cores ({about.get('cpu', '?')}), {about.get('memory_gb', '?')} GB, Linux {about.get('kernel', '?')}, "
            f"{about.get('file_system', '?')}; {versions}. Broker and clients share the machine.", "",
            "Cells are median [lowest..highest] of the runs, which were interleaved. Kafka does not sync before it answers, as is its default; Barnabas, synced, does. "
            f"*Other load* is the share of all cores that neither broker, client nor the kernel's own threads used; a run above {DISTURBED:.0%} is made again, and marked where it stayed so. "
            "Figures of Apache's producer are those of its steady state. At full throughput latency is mostly queueing in the client.", ""]
    verdicts = []
    from . import speed_table
    from workloads.speed import TABLE
    speed, met = speed_table.part(found, workloads, TABLE)
    text += speed if met else []
    for workload in workloads:
        part, met = workload_part(found, workload)
        text += part
        verdicts += met
        text += [line for chart in charts if not complaint and chart["workload"] == workload.name for line in (f"![{chart['title']}]({chart['file'].rsplit('/', 1)[1]}.svg)", "")]
    if complaints:
        text += ["## What did not run", "", *(f"- {line}" for line in complaints), ""]
    (directory / f"{plan.name}.md").write_text("\n".join(text))
    for line in complaints[-1:] if complaint else []:
        print(f"bench: {line}")
    shown_directory = directory.name if directory.is_absolute() else directory
    return f"{sum(verdicts)} of {len(verdicts)} bars met; {len(charts) if not complaint else 0} plots; report in {shown_directory}/{plan.name}.md"
