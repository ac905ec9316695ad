"""Draws charts: bars with spreads, lines over a quantity, lines over seconds. Run by report.py in an environment that has matplotlib; charts as JSON on standard input.

Each becomes FILE.svg and FILE.png. Bars and points are medians, whiskers reach from the lowest run to the highest.
"""

import json
import sys
import textwrap

import matplotlib

matplotlib.use("Agg")
# The same chart is the same file: no dates, no random ids.
matplotlib.rcParams.update({"svg.hashsalt": "barnabas", "svg.fonttype": "none", "font.family": "DejaVu Sans", "font.size": 10, "axes.spines.top": False,
                            "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e4e4e4", "axes.titleweight": "bold", "axes.titlesize": 12})
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: E402


def number(value, _=None):
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3g}"


def tick(value, _=None):
    return f"{value:,.10g}"


def whiskers(points):
    return [[middle - low for _, middle, low, _ in points], [high - middle for _, middle, _, high in points]]


def bars(axes, chart):
    count, series = len(chart["categories"]), chart["series"]
    thick = 0.8 / len(series)
    longest = max(point[3] for one in series for point in one["points"])
    of = {category: [place for place, one in enumerate(series) if category in (point[0] for point in one["points"])] for category in range(count)}
    for place, one in enumerate(series):
        # A category has room for those that have a figure in it, and no gaps for the others.
        at = [point[0] + (of[point[0]].index(place) - (len(of[point[0]]) - 1) / 2) * thick for point in one["points"]]
        middles = [point[1] for point in one["points"]]
        axes.barh(at, middles, thick * 0.92, color=one["colour"], label=one["label"], xerr=whiskers(one["points"]), error_kw={"lw": 1, "capsize": 2, "ecolor": "#333333"})
        for where, point in zip(at, one["points"]):
            axes.text(point[3] + longest * 0.012, where, number(point[1]), va="center", fontsize=8, color="#333333")
    axes.set_yticks(range(count), ["\n".join(textwrap.wrap(name, 30)) for name in chart["categories"]])
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlim(0, longest * 1.12)
    axes.set_xlabel(chart["y_label"])
    axes.xaxis.set_major_formatter(FuncFormatter(tick))
    axes.grid(visible=False, axis="y")


def lines(axes, chart):
    for place, one in enumerate(chart["series"]):
        # A little to the side of each other, so that no whisker hides another's.
        aside = place - (len(chart["series"]) - 1) / 2
        xs, middles = [point[0] * 1.02 ** aside if chart["x_log"] else point[0] for point in one["points"]], [point[1] for point in one["points"]]
        axes.errorbar(xs, middles, yerr=whiskers(one["points"]), color=one["colour"], label=one["label"], marker="os^Dv"[place % 5], markersize=5, lw=1.8, capsize=3, elinewidth=1)
    if chart["x_log"]:
        axes.set_xscale("log")
    if chart["y_log"]:
        axes.set_yscale("log")
        # Room around, and a tick or more whatever the range.
        axes.set_ylim(min(point[2] for one in chart["series"] for point in one["points"]) / 1.6, 1.6 * max(point[3] for one in chart["series"] for point in one["points"]))
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    else:
        axes.set_ylim(0, 1.08 * max(point[3] for one in chart["series"] for point in one["points"]))
    places = sorted({point[0] for one in chart["series"] for point in one["points"]})
    axes.set_xticks(places if len(places) < 9 else places[:: len(places) // 8 + 1])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(tick))
    axes.yaxis.set_major_formatter(FuncFormatter(tick))
    axes.set_xlabel(chart["x_label"])
    axes.set_ylabel(chart["y_label"])


def seconds(axes, chart):
    """A value for each second: lines without marks, however many there are."""
    for one in chart["series"]:
        axes.plot([point[0] for point in one["points"]], [point[1] for point in one["points"]], color=one["colour"], label=one["label"], lw=1.2)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(FuncFormatter(tick))
    axes.set_xlabel(chart["x_label"])
    axes.set_ylabel(chart["y_label"])


def draw(chart):
    is_bars = chart["kind"] == "bars"
    rows = sum(len(one["points"]) for one in chart["series"])
    figure, axes = plt.subplots(figsize=(9, max(2.6, 1.7 + rows * 0.26) if is_bars else 5), layout="constrained")
    {"bars": bars, "lines": lines, "seconds": seconds}[chart["kind"]](axes, chart)
    axes.set_title(chart["title"], loc="left", pad=12)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3), frameon=False)
    figure.savefig(f"{chart['file']}.svg", metadata={"Date": None})
    figure.savefig(f"{chart['file']}.png", dpi=110, metadata={"Software": None})
    plt.close(figure)


for told in json.load(sys.stdin):
    draw(told)
