"""What every bench shares: peers, clients, what processes use, interleaved runs, reports and plots. `lab/bench/log` and `lab/bench/run` stand on it."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BENCH = ROOT / "lab/bench"
RESULTS = BENCH / "results"

# lab/compat fetches and starts what is tested; one copy of that for both. Last, as it has a `stories` as well.
if str(ROOT / "lab/compat") not in sys.path:
    sys.path.append(str(ROOT / "lab/compat"))
