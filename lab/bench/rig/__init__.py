"""What every bench shares: peers, clients, what the machine does, interleaved runs, reports and plots. `lab/bench/log` and `lab/bench/run` stand on it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BENCH = ROOT / "lab/bench"
RESULTS = BENCH / "results"
