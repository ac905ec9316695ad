"""What a set is made of: how many runs of which length, and what a workload says of itself."""

from dataclasses import dataclass, field


# Peers that stand beside: a few runs of theirs are enough.
FEW_RUNS = 3


@dataclass(frozen=True)
class Plan:
    """A set: quick (that everything works, in about a minute), short (`make bench`, half an hour), full (`make bench-full`, an hour).
    `seconds` of a run are what is measured; `minutes`: no case is begun that would not be done by then."""

    name: str
    runs: int
    seconds: float
    attempts: int
    minutes: float | None = None

    def peers(self, all_of_them, few):
        """The full set has every peer in every case; half an hour has room for those that a bar needs."""
        return all_of_them if self.is_full else few

    def runs_of(self, peer):
        return self.runs if peer in (KAFKA, SYNCED) else min(self.runs, FEW_RUNS)

    @property
    def is_quick(self):
        return self.name == "quick"

    @property
    def is_full(self):
        return self.name == "full"


PLANS = {
    "quick": Plan("quick", 1, 1, 1),
    "short": Plan("short", 5, 2, 2, 29.5),
    "full": Plan("full", 5, 2, 2, 54),
}

KAFKA, ZOOKEEPER, SYNCED, WRITTEN = "kafka", "kafka-zk", "barnabas", "written"
FLOOR, NULL, FILE, JOURNAL = "skyline-segments", "skyline-null", "skyline-file", "skyline-journal"
BOTH = (KAFKA, SYNCED)
THREE = (KAFKA, SYNCED, WRITTEN)
THRICE = {KAFKA: FEW_RUNS, SYNCED: FEW_RUNS}


@dataclass(frozen=True)
class Bar:
    """`figure` of `of` ÷ that of `to` must be at most (or, with `least`, at least) `bound`. With `case`: of that other case's `to`.
    Without `to`: the figure itself is what is bounded. `or_itself`: met as well where the figure itself reaches that."""

    figure: str
    bound: float
    least: bool = False
    to: str | None = KAFKA
    of: str = SYNCED
    case: str | None = None
    or_itself: float | None = None


@dataclass
class Case:
    name: str
    measure: object
    peers: tuple
    # Settings of the server, beyond each peer's own; "lab.log.dirs": so many log directories.
    settings: dict = field(default_factory=dict)
    # Settings that the running server is told to change, and keeps: what it has compiled is not lost.
    altered: dict = field(default_factory=dict)
    bars: tuple = ()
    # What the source says itself, or our own baseline where there is no figure of it.
    source: str = ""
    # Which line it is a point of, and where.
    line: str = ""
    x: float | None = None
    # Fewer runs of peers that take long: {name: runs}.
    runs: dict = field(default_factory=dict)
    # Each run gets a server of its own, not started.
    own_server: bool = False


@dataclass
class Chart:
    """`figure` of the cases: bars in groups, or a line over each case's x."""

    figure: str
    title: str
    kind: str = "bars"
    x_label: str = ""
    x_log: bool = False
    y_log: bool = False
    # Cases in whose name this expression is found, where not all of them.
    only: str = ""
    # Of a line: the figure that places a case without an x of its own, as one that goes as fast as it can.
    x_of: str = ""


def server_key(name, settings):
    """One server serves all cases that want this peer with these settings."""
    return name, tuple(sorted(settings.items()))


def question(document):
    """A workload's question out of its module's text: the paragraph behind the first."""
    return " ".join(document.strip().split("\n\n", 2)[1].split())


@dataclass
class Workload:
    name: str
    title: str
    question: str
    cases: list
    figures: tuple
    charts: tuple = ()
    note: str = ""
    # Room that it needs on the disk, GB.
    needs_gb: float = 3
    # Its servers are its own: none is taken over from the workload before, or left to the one behind.
    alone: bool = False
    # Said instead of running it.
    skipped: str = ""
    # Only run when it is asked for by name.
    by_name: bool = False
