"""Small runs that a page can be made of, trained once."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twoview import Run
from twoview.data.synthetic import markov
from twoview.report.material import Material, material

SMALL = {"set": ("dim=8", "rows.max_len=6", "rows.batch=32"), "epochs": 3, "device": "cpu"}
HEALTH = {
    "run": "runs/contrastvae",
    "model": "contrastvae",
    "verdict": [{"state": "collapsed", "because": "0 of 8 units are active", "try": "a lower cap"}],
    "latent": {
        "kl": {"total": 0.25, "per_dimension": [0.1, 0.2, 0.05]},
        "groups": {"length": [{"group": "1-5", "histories": 12, "sigma": 0.98}]},
    },
    "contrast": None,
    "states": {"cases": 60},
}
EXAMPLES = [
    {
        "user": "u<1>",
        "history": [{"id": "a", "title": "Tea & <b>toast</b>"}],
        "target": {"id": "c", "title": "Jam"},
        "recommended": [{"id": "c", "title": "Jam", "score": 2.5}, {"id": "d", "title": "", "score": 1.0}],
    }
]


def broken_histories(best: float) -> dict[str, Any]:
    """What a robustness.json holds."""
    rows = [
        {"corruption": kind, "share": share / 10, "mean": best - share / 40, "low": best - 0.12, "high": best}
        for kind in ("deletion", "replacement")
        for share in (4, 0, 2)
    ]
    return {"metric": "ndcg@20", "rows": rows}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models, one of them with two seeds, and every file that may lie beside their ranks."""
    folder = tmp_path_factory.mktemp("report")
    data = markov(60, 15, 7, 0.8, 0).save(folder / "log")
    Run.train("popularity", data, folder / "runs" / "popularity", seeds=2, device="cpu")
    Run.train("sasrec", data, folder / "runs" / "sasrec", **SMALL)
    Run.train("contrastvae", data, folder / "runs" / "contrastvae", **SMALL)
    for own in (folder / "runs").rglob("examples.json"):
        own.unlink()
    beside = {
        "contrastvae/diagnosis.json": HEALTH,
        "sasrec/robustness.json": broken_histories(0.3),
        "popularity/seed-0/robustness.json": broken_histories(0.2),
        "sasrec/examples.json": EXAMPLES,
    }
    for name, told in beside.items():
        (folder / "runs" / name).write_text(json.dumps(told), encoding="utf-8")
    return folder / "runs"


@pytest.fixture(scope="session")
def found(runs: Path) -> Material:
    return material([runs])


@pytest.fixture(scope="session")
def crowd(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine settings with long names, forty epochs and terms of every size."""
    folder = tmp_path_factory.mktemp("crowd")
    for number in range(9):
        copy = shutil.copytree(runs / "sasrec", folder / f"run-{number}")
        card = json.loads((copy / "card.json").read_text())
        setting = f"transformer.widening={number},fit.lr=.00{number}1,rows.max_len=200"
        card |= {"model": f"a_model_of_somebody_{number}", "setting": setting, "best_epoch": 31}
        (copy / "card.json").write_text(json.dumps(card))
        ranks = np.load(copy / "ranks_test.npy")
        np.save(copy / "ranks_test.npy", ranks + np.array([number, 0]))
        told = [
            {
                "epoch": epoch,
                "step": epoch,
                "likelihood": 9000.5 / epoch,
                "kl": epoch * 1e-6,
                "validation": 0.1,
            }
            for epoch in range(1, 41)
        ]
        (copy / "story.jsonl").write_text("".join(json.dumps(each) + "\n" for each in told))
    return folder
