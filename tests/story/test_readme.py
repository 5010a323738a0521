"""What the README shows is what happens: its model trains, its Python runs."""

import re
from pathlib import Path

import pytest

from twoview import Log, Run
from twoview.data.synthetic import markov

README = Path(__file__).parents[2] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    markov(80, 20, 7, 0.8, 0).save(tmp_path / "data")
    return Log.open(tmp_path / "data")


def test_the_model_of_ones_own_trains_and_recommends(log: Log, tmp_path: Path) -> None:
    (text,) = [block for block in blocks() if "class Mine" in block]
    (tmp_path / "mine.py").write_text(text)
    run = Run.train(str(tmp_path / "mine.py"), tmp_path / "data", tmp_path / "run", set=("dim=8",), epochs=3)
    again = Run.open(tmp_path / "run", model=str(tmp_path / "mine.py"))
    assert again.evaluate()["metrics"]["recall@20"] > 0
    assert len(run.recommend(items=["item-1", "item-2"], k=4)) == 4
    assert len(again.recommend(user="user-3", k=4)) == 4


def test_the_python_example_runs(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (text,) = [block for block in blocks() if "Log.from_columns" in block]
    whole = Run.train.__func__  # type: ignore[attr-defined]
    small = {"set": ("dim=8", "rows.max_len=6"), "epochs": 1}
    monkeypatch.setattr(
        Run, "train", classmethod(lambda cls, *given, **told: whole(cls, *given, **told, **small))
    )
    columns = {
        "users": [u for u in "abcdefgh" for _ in range(6)],
        "items": list("ABCDEFBCDEFGCDEFGH") * 2 + list("ABCDEFGHABCD"),
    }
    exec(text, {**columns, "times": list(range(48))})
    told = capsys.readouterr().out.splitlines()
    assert 0 <= float(told[0]) <= 1 and 1 <= len(told) - 1 <= 10
