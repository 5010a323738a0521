"""The laws of the house, read from its files: who may import whom, and what nobody may."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import twoview

ROOT = Path(twoview.__file__).parent
LAYERS = (
    ("types", "config", "recipe", "error"),
    ("data", "nn", "objectives"),
    ("models",),
    ("train", "evaluate"),
    ("analyse",),
    ("report",),
    ("cli", "__main__"),
    ("__init__",),
)
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}
LIGHT = {"torch", "numpy", "safetensors", "pydantic", "rich", "twoview"} | sys.stdlib_module_names
LEAN = ("train", "evaluate", "models", "nn", "objectives", "data")  # rooms that a bare machine can train with
RUNS_CODE = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
DRAWERS = {"util", "utils", "common", "helper", "helpers", "misc"}


Law = Callable[[Path], list[str]]


class Import(NamedTuple):
    """One imported name, absolute, and whether it happens when the file is imported."""

    name: str
    at_once: bool


def files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.py"))


def room(name: str) -> str:
    """The first name below twoview: twoview.data.log -> data; of the package itself __init__."""
    return name.split(".")[1] if "." in name else "__init__"


def module(path: Path, root: Path) -> str:
    return ".".join(("twoview", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")


def imports(path: Path, root: Path) -> Iterator[Import]:
    """Every import of a file, relative ones resolved, `from . import x` as the module x if it is one."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = {
        id(n)
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)
        for n in ast.walk(f)
    }
    here = ["twoview", *path.relative_to(root).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(each.name, id(node) not in late) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for each in node.names:
                inner = (
                    root.joinpath(*origin.split(".")[1:], each.name)
                    if above or origin == "twoview"
                    else root / "?"
                )
                is_module = inner.with_suffix(".py").exists() or inner.is_dir()
                yield Import(f"{origin}.{each.name}" if is_module else origin, id(node) not in late)


def upward(root: Path) -> list[str]:
    """Imports of a room by one below it, as lines."""
    return [
        f"{module(path, root)} imports {each.name}"
        for path in files(root)
        for each in imports(path, root)
        if each.name.split(".")[0] == "twoview"
        and HEIGHT[room(each.name)] > HEIGHT[path.relative_to(root).with_suffix("").parts[0]]
    ]


def astray(root: Path) -> list[str]:
    """Imports of a library in a room that has to do without it, as lines."""
    found = []
    for path in files(root):
        where = module(path, root)
        own = path.relative_to(root).with_suffix("").parts[0]
        sources = where.startswith("twoview.data.sources")
        for each in imports(path, root):
            library = each.name.split(".")[0]
            wrong = (
                (library == "polars" and not sources)
                or (library in ("matplotlib", "jinja2") and own != "report")
                or (library == "torch" and own == "report")
                or (own in LEAN and not sources and each.at_once and library not in LIGHT)
                or (library in ("scipy", "statsmodels") and where != "twoview.evaluate.compare")
            )
            if wrong:
                found.append(f"{where} imports {each.name}")
    return found


def risky(root: Path) -> list[str]:
    """Ways in which a file that is read could run code, as lines."""
    found = [
        f"{module(path, root)} imports {each.name}"
        for path in files(root)
        for each in imports(path, root)
        if each.name.split(".")[0] in RUNS_CODE
    ]
    for path in files(root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            allows = (
                isinstance(node, ast.keyword)
                and node.arg == "allow_pickle"
                and ast.unparse(node.value) != "False"
            )
            if called in ("eval", "exec", "torch.load") or allows:
                found.append(f"{module(path, root)} has {called or 'allow_pickle'}")
    return found


def loaded_by(*modules: str) -> set[str]:
    """The libraries that a fresh Python holds after importing these."""
    code = "import importlib, sys; [importlib.import_module(m) for m in sys.argv[1:]]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *modules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in done.stdout.split()}


def test_every_room_has_its_place() -> None:
    assert {path.relative_to(ROOT).with_suffix("").parts[0] for path in files(ROOT)} <= set(HEIGHT)


def test_lower_never_imports_upper() -> None:
    assert upward(ROOT) == []


def test_each_library_stays_in_its_room() -> None:
    assert astray(ROOT) == []


def test_nothing_that_is_read_can_run_code() -> None:
    assert risky(ROOT) == []


def test_there_are_rooms_and_no_drawers() -> None:
    named = {name for path in files(ROOT) for name in path.relative_to(ROOT).with_suffix("").parts}
    assert named & DRAWERS == set()


@pytest.mark.parametrize(
    ("law", "path", "code", "line"),
    [
        (upward, "data/log.py", "from ..models import base", "twoview.data.log imports twoview.models.base"),
        (upward, "data/log.py", "def f():\n    import twoview.cli", "twoview.data.log imports twoview.cli"),
        (upward, "error.py", "from .data.log import Log", "twoview.error imports twoview.data.log"),
        (upward, "nn/__init__.py", "from .. import cli", "twoview.nn imports twoview.cli"),
        (upward, "models/base.py", "from twoview import Log", "twoview.models.base imports twoview"),
        (astray, "data/log.py", "def f():\n    import polars", "twoview.data.log imports polars"),
        (astray, "report/page.py", "from torch.nn import Module", "twoview.report.page imports torch.nn"),
        (astray, "train/fit.py", "import pandas", "twoview.train.fit imports pandas"),
        (astray, "evaluate/compare.py", "import scipy.stats", "twoview.evaluate.compare imports scipy.stats"),
        (astray, "evaluate/ranks.py", "def f():\n    import scipy", "twoview.evaluate.ranks imports scipy"),
        (
            astray,
            "analyse/collapse.py",
            "import matplotlib.pyplot",
            "twoview.analyse.collapse imports matplotlib.pyplot",
        ),
        (risky, "train/run.py", "import pickle", "twoview.train.run imports pickle"),
        (risky, "train/run.py", "import torch\ntorch.load('x')", "twoview.train.run has torch.load"),
        (risky, "config.py", "eval('1')", "twoview.config has eval"),
        (risky, "data/log.py", "np.load('x', allow_pickle=True)", "twoview.data.log has allow_pickle"),
    ],
)
def test_a_house_that_breaks_a_law_is_told_where(
    tmp_path: Path, law, path: str, code: str, line: str
) -> None:
    for name, text in (("cli.py", ""), ("models/base.py", ""), (path, code)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert law(tmp_path) == [line]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("data/sources/csv.py", "import polars"),
        ("evaluate/compare.py", "def f():\n    import scipy.stats"),
        ("train/fit.py", "import torch\nfrom ..models.base import Model\nmodel.eval()\nnp.load('x')"),
        ("report/figure.py", "import matplotlib\nfrom ..analyse import collapse"),
    ],
)
def test_a_house_that_keeps_the_laws_is_left_alone(tmp_path: Path, path: str, code: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(code)
    assert upward(tmp_path) + astray(tmp_path) + risky(tmp_path) == []


def test_the_public_names_are_sorted_and_exist() -> None:
    public = {
        name for name, value in vars(twoview).items() if name[0] != "_" and not isinstance(value, ModuleType)
    }
    assert list(twoview.__all__) == sorted(twoview.__all__)
    assert public <= set(twoview.__all__)
    assert [name for name in twoview.__all__ if not hasattr(twoview, name)] == []


@pytest.mark.skipif(not (ROOT / "cli.py").exists(), reason="there is no command line")
def test_the_command_line_opens_without_torch_and_polars() -> None:
    assert loaded_by("twoview.cli") & {"torch", "polars", "scipy", "matplotlib"} == set()


def test_training_and_evaluating_load_nothing_heavier_than_torch() -> None:
    lean = [module(path, ROOT) for path in files(ROOT) if path.relative_to(ROOT).parts[0] in LEAN]
    modules = [name for name in lean if not name.startswith("twoview.data.sources")]
    assert loaded_by(*modules) & {"polars", "scipy", "statsmodels", "matplotlib", "jinja2", "pandas"} == set()


def test_every_module_says_what_is_found_in_it() -> None:
    silent = [
        path.name
        for path in files(ROOT)
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []
