"""Runs side by side are the runs that one after another would be, and one that fails says why."""

from pathlib import Path

import pytest
import torch

from twoview import Run
from twoview.data.log import Log
from twoview.data.synthetic import markov
from twoview.error import RunError
from twoview.train.abreast import cores, side_by_side, threads_each
from twoview.train.folder import Folder, folders

QUICK = ("dim=8", "rows.max_len=6", "rows.batch=32", "fit.precision=float32")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    markov(70, 15, 7, 0.8, 0).save(tmp_path / "log")
    return tmp_path / "log"


def test_side_by_side_and_in_turn_give_the_same_runs(data: Path, tmp_path: Path) -> None:
    Run.train("sasrec", data, tmp_path / "aside", set=QUICK, epochs=2, seeds=3)
    Run.train("sasrec", Log.open(data), tmp_path / "turn", set=QUICK, epochs=2, seeds=3)
    for mine, theirs in zip(folders(tmp_path / "aside"), folders(tmp_path / "turn"), strict=True):
        (one, _), (other, _) = (folder.tensors("weights.safetensors") for folder in (mine, theirs))
        assert all(torch.allclose(one[name], other[name], atol=1e-4) for name in one)
        assert mine.path.name == theirs.path.name and mine.finished


def test_a_run_that_fails_says_why_and_the_others_can_be_resumed(data: Path, tmp_path: Path) -> None:
    run = Run.train("sasrec", data, tmp_path / "run", set=QUICK, epochs=1)
    run.folder.write_card(run.folder.card() | {"finished": False, "model": "gone"})
    with pytest.raises(RunError, match="no model 'gone'"):
        list(side_by_side([run.path], [], lambda path, line: None))
    assert not Folder(run.path).finished


def test_runs_share_the_cores() -> None:
    assert threads_each(1) == torch.get_num_threads() and threads_each(10 * cores()) == 1
