"""On what a number was made: the machine's kind and the versions of what computed it, no name and no path."""

import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

LIBRARIES = ("twoview", "torch", "numpy", "pydantic", "safetensors")


def versions() -> dict[str, str]:
    """Python and the libraries that a result depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


def machine(device: torch.device) -> dict[str, Any]:
    """The processor, its cores as torch uses them, and the device."""
    found = {"processor": processor(), "threads": torch.get_num_threads(), "device": device.type}
    return found | ({"accelerator": torch.cuda.get_device_name(device)} if device.type == "cuda" else {})


@contextmanager
def threads(n: int) -> Iterator[None]:
    """So many threads for a while: sums of another number of parts differ in their last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def processor() -> str:
    """The processor's name as the system tells it."""
    told = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.+)", told.read_text()) if told.is_file() else None
    return named[1] if named else platform.processor() or platform.machine()
