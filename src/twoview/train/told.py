"""What is said while a model trains: a bar with the terms of the loss on a terminal, else plain lines."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

BESIDE = ("epoch", "step", "train seconds", "validation seconds")  # what is no term of the loss


class Teller:
    """Is told everything and says nothing; its kin speak."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to put away."""

    def step(self, done: int, of: int, terms: Mapping[str, float]) -> None:
        """A step of an epoch is done."""

    def epoch(self, record: Mapping[str, float]) -> None:
        """An epoch is done."""


def quiet(title: str, epochs: int) -> Teller:
    """A teller that says nothing."""
    return Teller()


class Lines(Teller):
    """A line per epoch."""

    def __init__(self, title: str, epochs: int, console: Console) -> None:
        self.title, self.epochs, self.console = title, epochs, console
        self.best = -math.inf

    def epoch(self, record: Mapping[str, float]) -> None:
        terms = [f"{name} {value:.4f}" for name, value in record.items() if name not in BESIDE]
        value = record.get("validation", -math.inf)
        mark = " *" if value > self.best else ""
        self.best = max(self.best, value)
        seconds = sum(record.get(name, 0.0) for name in BESIDE[2:])
        line = f"{self.title}  epoch {record['epoch']:>3}  {'  '.join(terms)}  {seconds:.1f} s{mark}"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


class Bar(Teller):
    """One bar for the run, with the terms of the last epoch and the best validation so far."""

    def __init__(self, title: str, epochs: int, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self.progress = Progress(*columns, TextColumn("{task.fields[said]}"), console=console)
        self.task = self.progress.add_task(title, total=epochs, said="")
        self.done, self.best = 0, -math.inf

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def step(self, done: int, of: int, terms: Mapping[str, float]) -> None:
        self.progress.update(self.task, completed=self.done + done / of)

    def epoch(self, record: Mapping[str, float]) -> None:
        self.done = int(record["epoch"])
        self.best = max(self.best, record.get("validation", -math.inf))
        said = [f"{name} {value:.3f}" for name, value in record.items() if name not in BESIDE]
        said += [f"best {self.best:.4f}"] if math.isfinite(self.best) else []
        self.progress.update(self.task, completed=self.done, said="  ".join(said))


def speaking(title: str, epochs: int) -> Teller:
    """A bar on a terminal, lines elsewhere; both on standard error."""
    console = Console(stderr=True)
    return Bar(title, epochs, console) if console.is_terminal else Lines(title, epochs, console)


Said = Callable[[Path, str], None]  # which run, and what its process said


def aloud(path: Path, line: str) -> None:
    """A line of a process of its own, on standard error."""
    Console(stderr=True).print(f"{path.name}  {line}", highlight=False, markup=False, soft_wrap=True)


def unheard(path: Path, line: str) -> None:
    """Nothing is said."""


class Voice(NamedTuple):
    """How runs are told of: those of this process, and those of others."""

    of_run: Callable[[str, int], Teller]  # what is trained, for how many epochs
    of_process: Said


QUIET, SPEAKING = Voice(quiet, unheard), Voice(speaking, aloud)
