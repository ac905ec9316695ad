"""The workloads, by name, in the order in which a set runs them. Adding one is a file with `workload(plan)` and its line here."""

from . import cost, flames, hotspot, ladder, load, modes, partitions, sizes, skyline, speed, tls

WORKLOADS = {module.__name__.rsplit(".", 1)[1]: module.workload for module in (speed, cost, load, hotspot, flames, sizes, skyline, ladder, modes, partitions, tls)}
