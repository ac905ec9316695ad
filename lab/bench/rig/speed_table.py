"""The first part of a report: the table that Barnabas is held to, line for line, filled in.

A line names cases and figures; what must hold is said by the bars of those cases. Cells are median [lowest..highest]; the spread of a ratio is that of
runs paired as they were interleaved. A line that holds for many cases shows the one that comes nearest to missing it, and how many meet it.
"""

from dataclasses import dataclass

from . import report
from .plan import KAFKA, SYNCED, WRITTEN


@dataclass
class Line:
    """`what` and `was` (Kafka when it was first measured) are the table's own words; `cells`: (workload, case, figure). With `worst_to`: of all
    cells that have a bar against that peer, the worst."""

    what: str
    was: str
    cells: list
    worst_to: str = ""


def lines_of(line, found, workloads):
    """([a row's text], [met])"""
    judged = [(workload, case, bar, *verdict) for name, case_name, figure in line.cells for workload, case in cases(workloads, name, case_name)
              for bar in case.bars if bar.figure == figure and (not line.worst_to or bar.to == line.worst_to) for verdict in [verdict_of(found, workload, case, bar)] if verdict]
    if not judged:
        return [f"| {line.what} | not measured | | {line.was} | | | | | |"], []
    note = ""
    if line.worst_to:
        met = sum(one[-1] for one in judged)
        note = f" (the worst of {len(judged)}; {met} meet it)"
        judged = [min(judged, key=lambda one: one[3][0] / one[2].bound * (1 if one[2].least else -1))]
    rows = []
    for number, (workload, case, bar, measured, met) in enumerate(judged):
        rows.append(f"| {line.what if number == 0 else ''} | {row(found, workload, case, bar, measured, met, note, line.was if number == 0 else '')} |")
    return rows, [one[-1] for one in judged]


def cases(workloads, name, case_name):
    """One case, or (a name that ends in an asterisk) all that begin so."""
    for workload in workloads:
        for case in workload.cases if workload.name == name else ():
            if case.name == case_name or (case_name.endswith("*") and case.name.startswith(case_name[:-1])):
                yield workload, case


def verdict_of(found, workload, case, bar):
    measured = found.ratio(workload, case, bar)
    return None if measured is None else (measured, report.is_met(found, workload, case, bar, measured[0]))


def row(found, workload, case, bar, measured, met, note, was):
    name, digits = report.FIGURES[bar.figure][0], report.FIGURES[bar.figure][3]

    def cell(peer, of=None):
        return report.shown(found.values(workload.name, of or case.name, peer, bar.figure), digits)

    value, low, high = measured
    ratio = report.spread_text(value, low, high, bar.bound)
    if bar.to is None:
        against = found.ratio(workload, case, report.to_kafka(bar))
        ratio = report.spread_text(*against) if against else "–"
    elif bar.to != KAFKA:
        to = f"{found.label(bar.to)}{', ' + bar.case if bar.case else ''}: {cell(bar.to, bar.case)}"
        ratio += f" of {to}"
    elif bar.case:
        ratio += f" of {found.label(KAFKA)}, {bar.case}: {cell(KAFKA, bar.case)}"
    hidden = "" if bar.bound < low or bar.bound > high or low == high else ", within the noise"
    return (f"{case.name}: {name}{note} | {cell(KAFKA)} | {was} | {cell(SYNCED)} | {cell(WRITTEN)} | {ratio} | {report.bound_text(bar)} | {'met' if met else 'MISSED'}{hidden}")


def part(found, workloads, table):
    """Its lines, and which cells are met."""
    lines, verdicts = ["| what | case: figure | Kafka, unsynced | Kafka when first measured | Barnabas, synced | Barnabas, written | ratio [lowest..highest] | bar | |", "|" + "---|" * 9], []
    for line in table:
        rows, met = lines_of(line, found, workloads)
        lines += rows
        verdicts += met
    return ["## Speed, line by line", "", "A ratio is Barnabas, synced, to Kafka in the same run, where nothing else is named. Bars with a unit hold for the figure itself. "
            f"**{sum(verdicts)} of {len(verdicts)} met.**", "", *lines, ""], verdicts
