"""What a benchmark leaves behind: rows with the machine that made them, and figures that need no colour."""

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).parent
RESULTS, FIGURES = HERE / "results", HERE.parent / "docs" / "figures"
Row = dict[str, Any]
LOOK: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "twoview",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.3,
}


class Style(NamedTuple):
    """How a series looks; marker and dash tell it from the others without its colour."""

    color: str
    marker: str
    linestyle: Any


STYLES = (
    Style("#1b4f9c", "o", "-"),
    Style("#c4500b", "s", (0, (5, 2))),
    Style("#237a3b", "^", (0, (1, 1.5))),
    Style("#8a2f8f", "D", (0, (6, 2, 1, 2))),
    Style("#555555", "v", (0, (3, 1, 1, 1, 1, 1))),
)


def machine(device: str = "cpu") -> str:
    """The accelerator's or the processor's model, and how many cores may be used."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor()}, {len(os.sched_getaffinity(0))} cores"


def made(
    row: str, value: float, unit: str, *, device: str = "cpu", reach: str | None = None, **more: Any
) -> Row:
    """One row of a result file, made here and now by the command that runs."""
    versions = {name: version(name) for name in ("twoview", "torch", "numpy")}
    command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    told = {"row": row, "value": round(value, 5), "unit": unit, "reach": reach}
    where = {"machine": machine(device), "versions": versions, "command": command, "date": str(date.today())}
    return {**told, **where, **more}


def claim(name: str, value: float, unit: str, reach: str, *, holds: bool, **more: Any) -> Row:
    """A sentence of the theory, the number that decides it, and what it decided."""
    return made(
        f"claim: {name}", value, unit, reach=reach, verdict="confirmed" if holds else "refuted", **more
    )


def finite(number: torch.Tensor) -> float | None:
    """A number as json knows it; None for what has grown past counting."""
    return round(float(number), 4) if number.isfinite() else None


def told(claims: Sequence[Row]) -> str:
    """Claims as lines to read."""
    return "\n".join(f"{row['verdict']}: {row['row'][7:]}: {row['value']:g} {row['unit']}" for row in claims)


def load(path: Path) -> dict[str, Row]:
    """The rows of a result file by name, none where there is no file."""
    return {row["row"]: row for row in json.loads(path.read_text())} if path.exists() else {}


def save(path: Path, rows: Mapping[str, Row]) -> None:
    """Write the rows in order of name, each on a line, the file whole at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(rows[name]) for name in sorted(rows))
    beside = path.with_suffix(".part")
    beside.write_text(f"[\n{lines}\n]\n")
    beside.replace(path)


class Grid(NamedTuple):
    """Where rows are kept, what they must state to count as made, and how many are made now and at once."""

    path: Path
    stated: Row
    workers: int
    most: int

    def rows(self, jobs: Mapping[str, Callable[[], Row]]) -> dict[str, Row]:
        """The rows there are, after those that were not have been made, each written as it comes."""
        rows = load(self.path)
        left = [job for name, job in jobs.items() if not self.stated.items() <= rows.get(name, {}).items()]
        with ProcessPoolExecutor(self.workers, mp_context=get_context("spawn")) as pool:
            waiting = [pool.submit(alone, job) for job in left[: self.most]]
            for done, finished in enumerate(as_completed(waiting), 1):
                row = finished.result()
                rows[row["row"]] = row
                save(self.path, rows)
                print(f"{done} of {len(waiting)}: {row['row']} {row['value']:.4f}", flush=True)
        return {name: rows[name] for name in jobs if name in rows}


def alone(job: Callable[[], Row]) -> Row:
    """What a job returns on one thread; threads that wait for one another spin."""
    torch.set_num_threads(1)
    return job()


@contextmanager
def panels(path: Path, columns: int, size: tuple[float, float]) -> Iterator[Sequence[Axes]]:
    """Axes side by side, saved as SVG when they are drawn."""
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=size, layout="constrained", facecolor="white")
        yield list(figure.subplots(1, columns, squeeze=False)[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table as a page of the documentation has it."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
