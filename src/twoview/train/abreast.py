"""Several runs side by side on a CPU: a process each with its share of the cores beats one after another.

Each process goes on with a run that has begun, as `twoview train --resume` does, so a group that is stopped
is only some runs to go on with.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

import torch

from ..error import RunError
from .told import Said


@dataclass
class Process:
    """One run in a process of its own; its last words are kept."""

    path: Path
    running: subprocess.Popen[str]
    words: list[str] = field(default_factory=list)


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_each(n_runs: int) -> int:
    """How many threads a run gets when so many are to be done."""
    return max(1, torch.get_num_threads() // max(1, min(n_runs, cores())))


def side_by_side(paths: Sequence[Path], extra: Sequence[str], said: Said) -> Iterator[Path]:
    """Goes on with all runs, as many at once as there are cores; each path when its run is done."""
    waiting, running = list(paths), dict[Path, Process]()
    ended: SimpleQueue[Path] = SimpleQueue()
    try:
        while waiting or running:
            while waiting and len(running) < cores():
                path = waiting.pop(0)
                running[path] = _started(path, extra, said, ended)
            done = running.pop(ended.get())
            with done.running as process:
                failed = process.wait()
            if failed:
                last = done.words[-1] if done.words else f"it ended with {done.running.returncode}"
                raise RunError(f"{done.path}: {last.removeprefix('twoview: ')}")
            yield done.path
    finally:
        for left in running.values():
            with left.running as process:
                process.terminate()


def _started(path: Path, extra: Sequence[str], said: Said, ended: "SimpleQueue[Path]") -> Process:
    command = [sys.executable, "-m", "twoview", "train", "--resume", str(path), *extra]
    quiet = subprocess.DEVNULL
    process = Process(path, subprocess.Popen(command, stdout=quiet, stderr=subprocess.PIPE, text=True))

    def heard() -> None:
        assert process.running.stderr is not None
        for line in process.running.stderr:
            process.words[:] = [line.rstrip()]
            said(path, line.rstrip())
        ended.put(path)

    threading.Thread(target=heard, daemon=True).start()
    return process
