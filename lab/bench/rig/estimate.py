"""How long a set will take: counted from its cases, their runs, and what a run of each kind was seen to take.

Not in it: building and fetching what is not there yet.
"""

from .measures import warm_up_seconds
from .peers import PEERS
from .plan import server_key

# Runs that other load disturbs are made again, and something always takes longer: a share of a case's time, up to so many seconds.
MARGIN, MARGIN_S = 0.05, 10


def case_seconds(rig, case, names):
    """Of a case, without the start of servers."""
    total = 0
    for name in names:
        before, each = case.measure.takes(rig.plan, PEERS[name])
        total += before + each * rig.wanted(case, name)
    return total + min(total * MARGIN, MARGIN_S)


def server_seconds(rig, case, names, running):
    """Of the servers that a case needs and that do not run yet; they are noted as running."""
    total = 0
    for name in names:
        key = server_key(name, case.settings)
        if not case.own_server and key not in running:
            running.add(key)
            total += PEERS[name].start_seconds + sum(warm_up_seconds(rig.plan, PEERS[name])) + (2 if PEERS[name].serves_reads else 0) + (6 if PEERS[name].compiles and not rig.plan.is_quick else 0)
    return total


def set_seconds(rig, workloads):
    """{workload: seconds}"""
    found, running = {}, set()
    for workload in workloads:
        if workload.skipped:
            continue
        if workload.alone:
            running = set()
        total = 0
        for case in workload.cases:
            names = rig.to_measure(workload, case)
            total += server_seconds(rig, case, names, running) + case_seconds(rig, case, names)
        running = set() if workload.alone else {key for key in running if not key[1]}
        found[workload.name] = total
    return found
