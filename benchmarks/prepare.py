"""How long 25 million events take from parquet to a prepared log, and how much memory; results are written.

The parquet file holds text ids in order of time, so that nothing is sorted by user or numbered in advance.
"""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "prepare.json"
REACH = {"prepare-seconds": "<= 120", "prepare-memory": "<= 8"}


def make(parquet: str) -> None:
    """A parquet file of 25 million events of the synthetic shop."""
    import numpy as np
    import polars as pl

    from twoview.data.synthetic import Dials, shop

    log = shop(Dials(users=250_000, items=60_000, mean_length=100))
    order = np.argsort(log.times, kind="stable")
    users = pl.Series(log.user_ids).gather(log.owners[order])
    items = pl.Series(log.item_ids).gather(log.items[order])
    pl.DataFrame({"user_id": users, "item_id": items, "timestamp": log.times[order]}).write_parquet(parquet)


def measure(parquet: str, out: str) -> None:
    """Seconds, peak memory and counts of one preparation, printed as json."""
    from twoview.data.prepare import prepare

    begun = time.perf_counter()
    log, verdict = prepare(parquet, out)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(json.dumps({"seconds": seconds, "peak": peak, "events": log.n_events, "verdict": verdict}))


def machine() -> str:
    """The processor's model and how many cores may be used."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor()}, {len(os.sched_getaffinity(0))} cores"


def child(*words: str) -> str:
    """What this script prints when it runs alone with these words."""
    done = subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def main() -> None:
    """Makes the file, prepares it in a process of its own, writes and prints the rows."""
    with tempfile.TemporaryDirectory() as folder:
        parquet = f"{folder}/events.parquet"
        child("make", parquet)
        found = json.loads(child("measure", parquet, f"{folder}/log"))
    shared = {
        "machine": machine(),
        "versions": {name: version(name) for name in ("twoview", "numpy", "polars")},
        "command": "python benchmarks/prepare.py",
        "date": date.today().isoformat(),
    }
    values = {"prepare-seconds": (found["seconds"], "s"), "prepare-memory": (found["peak"], "GB")}
    rows = [
        {"row": row, "value": round(value, 2), "unit": unit, "reach": REACH[row], **shared}
        for row, (value, unit) in values.items()
    ]
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{found['events']:,} events: {found['verdict']}")
    print("\n".join(f"{row['row']}: {row['value']} {row['unit']} (reach {row['reach']})" for row in rows))


if __name__ == "__main__":
    {"make": make, "measure": measure}[sys.argv[1]](*sys.argv[2:]) if len(sys.argv) > 1 else main()
