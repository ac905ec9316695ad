"""The part of the report that tables do not hold: which second was slow, and what the slowest requests waited for. Made of the lines of turns alone."""

import re

from rig.report import FIGURES, PEERS

from .histogram import merged, percentile_ms

SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999)


def per_turn(lines, workload, case, peer):
    return lines.counted(workload.name, case.name, peer)


def all_turns(turns):
    """{share: ms} of all turns' records together, and the largest."""
    histogram = merged(*(turn["histogram"] for turn in turns))
    most = max(turn["max_ms"] for turn in turns) * 1e3
    return {share: percentile_ms(histogram, share, most) for share in SHARES}, most / 1e3


def percentiles(lines, workload, case, peers):
    rows = ["", "All turns' records together, ms:", "", "| peer | " + " | ".join(f"p{share * 100:g}" for share in SHARES) + " | max |", "|" + "---|" * (len(SHARES) + 2)]
    for peer in peers:
        found, most = all_turns(per_turn(lines, workload, case, peer))
        rows.append(f"| {PEERS[peer].label} | " + " | ".join(f"{found[share]:.2f}" for share in SHARES) + f" | {most:.1f} |")
    return rows


def slow(turn):
    return "; ".join(f"second {second}: p99 {p99:.1f}, max {most:.1f} ms" for second, p99, most in turn["slow_seconds"]) or "none above three times the median second's p99"


def summed(turns, name):
    """Causes of all turns, the most frequent first."""
    causes = {}
    for turn in turns:
        for kind, count in turn[name].items():
            causes[kind] = causes.get(kind, 0) + count
    return ", ".join(f"{kind} {count}" for kind, count in sorted(causes.items(), key=lambda one: -one[1]))


def together(turns):
    """Long calls of all turns by kind, and what stood beside them."""
    kinds = {}
    for turn in turns:
        for kind, counts in turn["company"].items():
            of = kinds.setdefault(kind, {})
            for name, count in counts.items():
                of[name] = of.get(name, 0) + count
    return "; ".join(f"{kind} {of['calls']} (" + ", ".join(f"{name} {count}" for name, count in of.items() if name != "calls" and count) + ")" for kind, of in kinds.items())


def part(lines, loads):
    """The sections, and charts for rig/plots.py."""
    text, charts = [], []
    for workload in loads:
        for case in workload.cases:
            peers = [peer for peer in PEERS if peer in case.peers and any("slowest" in turn for turn in per_turn(lines, workload, case, peer))]
            if not peers:
                continue
            text += [f"## {case.name}", *percentiles(lines, workload, case, peers), ""]
            file = file_of(case.name)
            charts.append(chart(lines, workload, case, peers, file))
            text += [f"![{case.name}]({file}.svg)", ""]
            for peer in peers:
                turns = per_turn(lines, workload, case, peer)
                worst = max(turns, key=lambda turn: turn["p999_ms"])
                said, tail = (summed(turns, name) for name in ("causes", "causes_of_p99"))
                text += [f"**{PEERS[peer].label}**: slow seconds of the turn with the highest p99.9: {slow(worst)}. Causes, all turns: of the slowest moments {said or 'none'}; of the requests above p99 (four of each second at most) {tail or 'none'}.", ""]
                text += [f"System calls of 8 ms and more of threads that serve, and beside how many of them another thread of the node stood in which, all turns: {stood}.", ""] if (stood := together(turns)) else []
                text += [f"Beside: {worst['beside']}.", ""] if worst["beside"] else []
                text += [*(f"{number}. {sentence}." for number, sentence in enumerate(worst["slowest"], 1)), ""]
    return text, charts


def chart(lines, workload, case, peers, file):
    """The largest latency of each second in the last turn, and the floor's in ours."""
    series = []
    for peer in peers:
        turn = per_turn(lines, workload, case, peer)[-1]
        series.append({"label": f"{PEERS[peer].label}, max", "colour": PEERS[peer].colour, "points": points(turn, 1)})
        if not peer.startswith("kafka"):
            series.append({"label": f"floor beside {PEERS[peer].label}, max", "colour": "#999999", "points": points(turn, 2)})
    return {"file": file, "title": case.name, "kind": "seconds", "x_label": "second of the last turn", "y_label": FIGURES["max_ms"][1], "x_log": False, "y_log": True, "series": series}


def file_of(name):
    """A row's plot keeps its name when other rows come."""
    return "tail-line-" + re.sub("[^a-z0-9]+", "-", name.lower())


def points(turn, of):
    return [(second, *(max(row[of], 0.01),) * 3) for second, row in enumerate(turn["seconds_line"])]
