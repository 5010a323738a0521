"""Seconds of an epoch on this CPU beside the peers', in turn: `python benchmarks/cpu.py OFFICE [PEER ...]`.

OFFICE is a prepared log; a PEER is `rectools=PYTHON` or `recbole=PYTHON`, the interpreter of an environment
with it (RecBole 1.2.1 wants numpy < 2 and setuptools < 80; RecTools 0.19 its extra `torch`).
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from statistics import median

from twoview import Log, Run
from twoview.data.split import split
from twoview.train.machine import processor, versions

HERE = Path(__file__).parent
RELEASED = 120.0  # seconds of an epoch with its evaluation of the released code on 2 cores
SAME = (  # the peers' network: one layer, 128 wide, two heads, softmax over all items, 256 users a step
    "dim=128", "likelihood=softmax", "transformer.layers=1", "transformer.heads=2", "transformer.norm=post",
    "transformer.widening=4", "transformer.activation=gelu", "embedding.norm=layer", "embedding.scale=false",
    "rows.max_len=50", "rows.batch=256",
)  # fmt: skip


def epoch(data: Path, model: str, **told: object) -> tuple[float, float]:
    """Median seconds of training and of validating an epoch, the first left out."""
    with tempfile.TemporaryDirectory() as place:
        story = Run.train(model, data, Path(place) / "run", epochs=5, **told).folder.story()[1:]
    return median(each["train seconds"] for each in story), median(
        each["validation seconds"] for each in story
    )


def written(log: Log, place: Path) -> None:
    """The log as the peers read it: training events alone for one, all for the other, which splits itself."""
    (place / "office").mkdir()
    for path, events, head in (
        (place / "office.tsv", split(log, "leave-one-out").train, ""),
        (place / "office" / "office.inter", log, "user_id:token\titem_id:token\ttimestamp:float\n"),
    ):
        pairs = zip(events.owners.tolist(), events.items.tolist(), strict=True)
        path.write_text(head + "".join(f"{u}\t{i}\t{e}\n" for e, (u, i) in enumerate(pairs)))


def peer(name: str, python: str, place: Path) -> float:
    """Seconds of a training epoch of another library's SASRec."""
    words = {"rectools": [str(place / "office.tsv"), "2"], "recbole": [str(place), "office", "1"]}[name]
    script = HERE / "peers" / f"{name}_sasrec.py"
    command = [python, str(script), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=place)
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    """Measures and writes benchmarks/results/cpu.json."""
    data = Path(sys.argv[1])
    train, valid = epoch(data, "contrastvae", recipe="released")
    rows = [("cpu-released", RELEASED / (train + valid), "times faster", ">= 40", {"seconds": train + valid})]
    mine, asked = epoch(data, "sasrec", recipe="paper", set=SAME)
    with tempfile.TemporaryDirectory() as place:
        written(Log.open(data), Path(place))
        for name, python in (word.split("=", 1) for word in sys.argv[2:]):
            theirs = peer(name, python, Path(place))
            row = "cpu-sasrec" if name == "rectools" else f"cpu-sasrec {name}"
            seconds = {"ours": mine, "ours validating": asked, name: theirs}
            rows.append((row, theirs / mine, "times faster", ">= 6" if name == "rectools" else None, seconds))
    told = [
        {
            "row": row, "value": round(value, 2), "unit": unit, "reach": reach, "seconds": seconds,
            "machine": f"{processor()}, {len(os.sched_getaffinity(0))} cores, {platform.system()}",
            "versions": versions(), "command": "python benchmarks/cpu.py OFFICE rectools=PY recbole=PY",
            "date": str(date.today()),
        }
        for row, value, unit, reach, seconds in rows
    ]  # fmt: skip
    (HERE / "results" / "cpu.json").write_text(json.dumps(told, indent=1) + "\n")
    for row in told:
        print(row["row"], row["value"], row["unit"], row["seconds"])


if __name__ == "__main__":
    main()
