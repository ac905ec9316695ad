"""The report of the study: lines as JSON, tables and bars as Markdown, backlog as CSV and as a plot (standard library alone)."""

import csv
import json

import plots

# What IBM's connectors cost in Kafka Connect: a study of others, on another machine.
TODAY = "109–201 µs with IBM's connectors"
COLOURS = {"direct": "#1f6fb2", "bridge in": "#2b8a3e", "bridge out": "#99c24d", "Connect in": "#c0504d", "Connect out": "#e39a3b"}
IDLE = "one each 500 ms"


def row(line):
    """A run in a line, while the study goes on."""
    asked = f", {line['requests_per_message']} requests" if "requests_per_message" in line else ""
    return (f"  {line['way']:11} {line['load']:32} {line['read_per_s']:>8,.0f}/s, coupling {line['coupling_us']:6.1f} µs{asked}, p50 {line['p50_ms']:.1f}, p99 {line['p99_ms']:.1f}, "
            f"max {line['max_ms']:.1f} ms, backlog at the end {line['backlog_end']}, {' '.join(f'{name} {value:.0f}' for name, value in line['cpu_us'].items())}")


def runs(lines, way=None, **wanted):
    return [line for line in lines if "put" in line and way in (None, line["way"]) and all(line.get(key) == value for key, value in wanted.items())]


def reached(line):
    """What a rate that was not reached came to."""
    return "" if line["rate"] == 2 or line["read_per_s"] >= 0.97 * line["rate"] else f" (reached {line['read_per_s']:,.0f}/s)"


def ways_of(lines):
    return list(dict.fromkeys(line["way"] for line in lines if "put" in line))


def bars(lines):
    """[(the bar, way, figure in words, held: True, False or None where it is for comparison)]"""
    found = []
    for way in ways_of(lines):
        theirs = way.startswith("Connect")
        for line in runs(lines, way, size=1000, rate=3000):
            found.append((f"coupling ≤ 15 µs of CPU for each message of 1 kB (today: {TODAY})", f"{way}, {line['load']}", f"{line['coupling_us']:.1f} µs{reached(line)}",
                          None if theirs else line["coupling_us"] <= 15))
    for line in lines:
        if "requests_per_message" in line and line["way"] != "application" and (line.get("size", 1000), line.get("rate", 3000)) == (1000, 3000):
            held = line["requests_per_message"] <= 1.05
            found.append(("requests to the queue manager for each message ≤ 1.05", f"{line['way']}, {line['load']}", f"{line['requests_per_message']:.3f}",
                          None if line["way"].startswith("Connect") else held))
    if runs(lines, "direct"):
        found.append(("requests to the queue manager for each message ≤ 1.05", "direct", "0: no queue manager besides the node", True))
    for line in lines:
        if line["way"] == "application":
            found.append(("requests to the queue manager for each message ≤ 1.05", f"the application's own to the node, {line['load']}", f"{line['requests_per_message']:.3f}", None))
    for way in ways_of(lines):
        for line in runs(lines, way, size=1000, rate=10_000):
            found.append(("10,000/s: no backlog after 60 s", f"{way}, {line['load']}, after {line['seconds']:.0f} s",
                          f"{line['backlog_end']:,} messages, {line['drained_s']:.1f} s to read{reached(line)}",
                          None if way.startswith("Connect") else line["backlog_end"] <= 0.1 * line["read_per_s"] and not reached(line)))
    for way in ways_of(lines):
        for line in runs(lines, way, size=1000):
            if line["rate"] in (2, 3000):
                in_unit = (line.get("unit") or 0) > 1
                waits = ", with the time until its unit was whole" if in_unit else ""
                found.append(("put → readable, p99 ≤ 25 ms at 3,000/s and from idle", f"{way}, {line['load']}", f"{line['p99_ms']:.1f} ms (p50 {line['p50_ms']:.1f}){waits}{reached(line)}",
                              None if way.startswith("Connect") or in_unit else line["p99_ms"] <= 25))
    servers = {line["server"]: line for line in lines if line["way"] == "puts"}
    theirs = servers.get("Artemis, AMQP")
    for name, line in servers.items():
        if theirs and name != "Artemis, AMQP":
            ratio = line["per_s_per_core"] / theirs["per_s_per_core"]
            found.append(("puts, synced, of many clients: ≥ 3 × Artemis' messages a second for each core", name,
                          f"{ratio:.2f} × ({line['per_s_per_core']:,} and {theirs['per_s_per_core']:,})", ratio >= 3))
    for line in lines:
        if line["way"] == "idle connections":
            found.append((f"{line['count']:,} idle AMQP connections ≤ 200 MB", "node", f"{line['resident_mb']:.0f} MB ({line['before_mb']:.0f} without)", line["resident_mb"] <= 200))
    return found


def verdict(held):
    return {True: "held", False: "missed", None: "beside"}[held]


def quoted(lines):
    """The line to quote: what each way came to."""
    said = []
    for way in ways_of(lines):
        line = (runs(lines, way, size=1000, rate=3000) or runs(lines, way))[0]
        at_rest = runs(lines, way, rate=2)
        rest = f", from idle {at_rest[0]['p99_ms']:.1f} ms" if at_rest else ""
        said.append(f"{way} {line['coupling_us']:.1f} µs, p99 {line['p99_ms']:.1f} ms{rest}")
    counted = [verdict(held) for *_, held in bars(lines)]
    return "; ".join([*said, f"{counted.count('held')} bars held, {counted.count('missed')} missed"])


def text(about, lines, failed):
    machine = about["machine"]
    head = ["# Queues and topics: the ways beside each other", "",
            f"{machine['date']}, commit {machine['commit']}, {machine['cores']} cores ({machine['cpu']}), {machine['file_system']}, Apache Artemis {machine['versions']['artemis']}, Kafka Connect "
            f"{machine['versions']['connect']}; {'long' if about['full'] else 'short'} form. Other processes used {about['busy_before']:.0%} of the machine before it. {about['note']}".strip(), "",
            "`make mq-study` writes this page. CPU is µs for each message that became readable; *coupling* is the thread `mq` of the node (direct), the bridge, or Connect's worker.", ""]
    told = ["## Bars", "", "| bar | way, load | figure | |", "|---|---|---|---|", *(f"| {bar} | {way} | {figure} | {verdict(held)} |" for bar, way, figure, held in bars(lines)), ""]
    names = list(dict.fromkeys(name for line in runs(lines) for name in line["cpu_us"]))
    told += ["## Runs", "", f"| way | load | put/s | read/s | coupling, µs | {' | '.join(f'{name}, µs' for name in names)} | requests | p50, ms | p99, ms | max, ms | p99 from due, ms | backlog: end, most | other load |",
             "|" + "---|" * (12 + len(names))]
    for line in runs(lines):
        cpu = " | ".join(f"{line['cpu_us'][name]:.0f}" if name in line["cpu_us"] else "–" for name in names)
        if line["rate"] == 2:
            cpu = " | ".join("–" for _ in names)
        coupling = "–" if line["rate"] == 2 else f"{line['coupling_us']:.1f}"
        told.append(f"| {line['way']} | {line['load']} | {line['put_per_s']:,.0f} | {line['read_per_s']:,.0f} | {coupling} | {cpu} | {line.get('requests_per_message', '–')} | {line['p50_ms']:.1f} | "
                    f"{line['p99_ms']:.1f} | {line['max_ms']:.1f} | {line['due_p99_ms']:.1f} | {line['backlog_end']:,}, {line['backlog_max']:,} | {line['other_load']:.0%} |")
    servers = [line for line in lines if line["way"] == "puts"]
    if servers:
        told += ["", "## Puts that wait for their answer, 32 clients, 1 kB", "", "| server | messages/s | server CPU, µs a message | messages/s for each core |", "|---|---|---|---|",
                 *(f"| {line['server']} | {line['per_s']:,} | {line['server_us']:.1f} | {line['per_s_per_core']:,} |" for line in servers)]
    told += ["", "![backlog](mq-backlog.svg)", ""]
    return "\n".join([*head, *told, *(f"- FAILED: {one}" for one in failed)])


def plot(backlogs):
    """Backlog over seconds at 10,000/s (3,000/s where a way has no other)."""
    width, height, left, right, top, bottom = 900, 380, 80, 30, 70, 320
    chosen = {}
    for way, load, second, count in backlogs:
        if "10,000/s" in load or not any(w == way and "10,000/s" in other for w, other, _, _ in backlogs) and "1 kB, 3,000/s" in load:
            chosen.setdefault((way, load), []).append((second, count))
    if not chosen:
        return None
    longest = max(second for points in chosen.values() for second, _ in points)
    most = max(10, max(count for points in chosen.values() for _, count in points))
    parts, y = [], 46
    for step in range(5):
        at = bottom - step / 4 * (bottom - top)
        parts += [plots.line(left, at, width - right, at, "#e4e4e4"), plots.text(left - 8, at + 4, f"{most * step / 4:,.0f}", "end", 11)]
    for second in range(0, longest + 1, max(1, longest // 6)):
        parts.append(plots.text(left + second / longest * (width - left - right), bottom + 18, str(second), "middle", 11))
    for place, ((way, load), points) in enumerate(chosen.items()):
        ends = [(left + second / longest * (width - left - right), bottom - count / most * (bottom - top)) for second, count in points]
        parts += [plots.line(*one, *two, COLOURS[way], 2.0) for one, two in zip(ends, ends[1:])]
        x = 16 + place % 3 * 290
        parts += [plots.box(x, y - 10 + place // 3 * 15, 12, 12, COLOURS[way]), plots.text(x + 18, y + place // 3 * 15, f"{way}: {load}", size=11)]
    parts.append(plots.text(left, bottom + 38, "seconds since the load began; messages that are put and not yet readable", size=11))
    return plots.document(width, height, "Backlog", parts)


def write(results, about, lines, backlogs, failed):
    results.mkdir(parents=True, exist_ok=True)
    (results / "mq.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (about, *lines)))
    (results / "mq.md").write_text(text(about, lines, failed) + "\n")
    with open(results / "mq-backlog.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("way", "load", "second", "backlog"))
        writer.writerows(backlogs)
    drawn = plot(backlogs)
    if drawn:
        (results / "mq-backlog.svg").write_text(drawn)
