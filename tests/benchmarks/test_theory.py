"""The benchmarks of the theory run, at small size, and what they claim holds there."""

import gzip
import json
import math
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator

from twoview.objectives import nt_xent
from twoview.objectives.variational import gaussian_log_density

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = ("gaussian", "mutual_information", "fashion", "record", "critic", "small_batch", "hypersphere")


@pytest.fixture(scope="module", autouse=True)
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The benchmarks' own files, which import one another by name."""
    sys.path.insert(0, str(BENCHMARKS))
    yield {name: import_module(name) for name in NAMES}
    sys.path.remove(str(BENCHMARKS))
    for name in NAMES:
        sys.modules.pop(name)


@pytest.fixture(scope="module")
def theory(scripts: dict[str, ModuleType], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of a small run through the command line, its figure drawn."""
    place = tmp_path_factory.mktemp("theory")
    small = {"anchors": 512, "sets": 24, "steps": 40, "trained_on": 64}
    words = [word for name, value in small.items() for word in (f"--{name}", str(value))]
    words += ["--nats", "2", "8", "--sizes", "2", "16", "64"]
    out, figure = place / "found.json", place / "found.svg"
    scripts["mutual_information"].main([*words, "--out", str(out), "--figure", str(figure)])
    assert "log K" in figure.read_text()
    return json.loads(out.read_text())


def verdicts(rows: list[dict[str, Any]], words: str) -> set[str]:
    return {row["verdict"] for row in rows if "verdict" in row and words in row["row"]}


@pytest.mark.parametrize("nats", [2.0, 8.0])
def test_the_density_ratio_is_the_ratio_of_two_densities(scripts: dict[str, ModuleType], nats: float) -> None:
    gaussian = scripts["gaussian"]
    x, y = gaussian.pairs(nats, 5, Generator().manual_seed(0))
    r, nothing = gaussian.correlation(nats), torch.zeros(5, 5, gaussian.DIM, dtype=torch.float64)
    candidates = y.expand(5, 5, -1)
    given = gaussian_log_density(candidates, r * x[:, None, :], nothing + math.log(1 - r * r)).sum(-1)
    expected = given - gaussian_log_density(candidates, nothing, nothing).sum(-1)
    torch.testing.assert_close(gaussian.density_ratio(nats)(x, y), expected)


def test_pairs_carry_the_information_they_are_said_to(scripts: dict[str, ModuleType]) -> None:
    gaussian = scripts["gaussian"]
    x, y = gaussian.pairs(4.0, 1000, Generator().manual_seed(0))
    pointwise = gaussian.density_ratio(4.0)(x, y).diagonal()
    assert float(pointwise.mean()) == pytest.approx(4.0, abs=4 * float(pointwise.std()) / math.sqrt(1000))


def test_every_estimator_is_its_formula(scripts: dict[str, ModuleType]) -> None:
    scores = torch.tensor([[2.0, 0.5, -1.0], [0.0, 1.0, 0.3], [0.2, -0.4, 3.0]], dtype=torch.float64)
    odds = [[math.exp(float(s)) for s in row] for row in scores]
    others = [[w for k, w in enumerate(row) if k != i] for i, row in enumerate(odds)]
    own = sum(float(scores[i, i]) for i in range(3)) / 3
    average = sum(sum(row) for row in others) / 6
    expected = {
        "info_nce": sum(math.log(3 * odds[i][i] / sum(odds[i])) for i in range(3)) / 3,
        "flat_nce": sum(math.log(2 * odds[i][i] / sum(others[i])) for i in range(3)) / 3,
        "nwj": 1 + own - average,
        "dv": own - math.log(average),
    }
    found = {name: float(each) for name, each in scripts["gaussian"].estimates(scores).items()}
    assert found == pytest.approx(expected)


def test_what_is_proved_of_info_nce_is_confirmed(theory: list[dict[str, Any]]) -> None:
    proved = ("never over log K", "InfoNCE is not above I", "lemma 3.3", "InfoNCE rises", "InfoNCE's best")
    for words in proved:
        assert verdicts(theory, words) == {"confirmed"}, words


def test_what_was_claimed_of_flat_nce_without_the_positive_is_refuted(theory: list[dict[str, Any]]) -> None:
    assert verdicts(theory, "corollary 3.4") == {"refuted"}
    assert verdicts(theory, "FlatNCE's best critic") == {"refuted"}
    assert verdicts(theory, "Jeffreys") == {"confirmed"}


def test_a_wrong_lemma_would_be_refuted(
    scripts: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = scripts["mutual_information"]
    monkeypatch.setattr(script, "dual", lambda scores, u: 1.1 - u - torch.exp(scores - scores[0, 0]).mean(1))
    assert {row["verdict"] for row in script.lemma(6, 64)} == {"refuted"}


def test_training_brings_a_critic_nearer_to_the_density_ratio(scripts: dict[str, ModuleType]) -> None:
    gaussian = scripts["gaussian"]
    budget = gaussian.Budget(anchors=1, sets=20, steps=60, trained_on=32)
    torch.manual_seed(0)
    untrained = scripts["critic"].Separable(gaussian.DIM).double()
    critics = {"untrained": untrained, "best": gaussian.density_ratio(4.0), **gaussian.learnt(4.0, budget)}
    found = gaussian.drawn(critics, 4.0, 32, budget)
    said = {name: float(by["info_nce"].mean()) for name, by in found.items()}
    assert said["untrained"] < said["mlp by info_nce"] < said["best"]
    assert said["untrained"] < said["bilinear by flat_nce"] < said["best"]


@pytest.fixture(scope="module")
def clothes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set in Fashion-MNIST's format whose ten classes are ten places of a bright square."""
    folder, draw = tmp_path_factory.mktemp("clothes"), np.random.default_rng(0)
    for split, n in (("train", 300), ("t10k", 100)):
        labels = draw.integers(0, 10, n).astype(np.uint8)
        images = draw.integers(0, 40, (n, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            down, across = divmod(int(label), 4)
            image[9 * down : 9 * down + 7, 7 * across : 7 * across + 7] = 220
        (folder / f"{split}-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(16) + images.tobytes()))
        (folder / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + labels.tobytes()))
    return folder


def test_pixels_and_labels_are_read_as_they_were_written(
    scripts: dict[str, ModuleType], clothes: Path
) -> None:
    images, labels = scripts["fashion"].fashion(str(clothes), "train", "cpu")
    assert images.shape == (300, 28, 28)
    for image, label in zip(images[:20], labels[:20], strict=True):
        down, across = divmod(int(label), 4)
        assert (image[9 * down : 9 * down + 7, 7 * across : 7 * across + 7] == 220).all()


def test_a_set_that_is_not_there_is_named(scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"train-images-idx3-ubyte\.gz is wanted"):
        scripts["fashion"].fashion(str(tmp_path), "train", "cpu")


def test_the_probe_names_what_is_linear_and_nothing_else(scripts: dict[str, ModuleType]) -> None:
    draw = Generator().manual_seed(0)
    labels, rows = torch.arange(400) % 10, torch.randn(400, 12, generator=draw)
    told = rows + 8 * torch.nn.functional.one_hot(labels, 12)
    probe = scripts["fashion"].probe
    assert probe(told[:300], labels[:300], told[300:], labels[300:]) > 0.97
    assert probe(rows[:300], labels[:300], rows[300:], labels[300:]) < 0.3


def test_two_views_differ_and_the_same_draw_makes_the_same_views(
    scripts: dict[str, ModuleType], clothes: Path
) -> None:
    fashion = scripts["fashion"]
    images, _ = fashion.fashion(str(clothes), "train", "cpu")
    draw = Generator().manual_seed(0)
    first, second = fashion.view(images, draw), fashion.view(images, draw)
    assert first.shape == (300, 1, 28, 28)
    assert not torch.allclose(first, second)
    torch.testing.assert_close(fashion.view(images, Generator().manual_seed(0)), first)


@pytest.mark.parametrize("batch", [16, 64, 300])
def test_every_cell_sees_as_many_images(scripts: dict[str, ModuleType], clothes: Path, batch: int) -> None:
    fashion = scripts["fashion"]
    images, _ = fashion.fashion(str(clothes), "train", "cpu")
    drawn = fashion.batches(images, 640, batch, Generator().manual_seed(0))
    assert sum(len(first) for first, _ in drawn) == 640


def test_groups_do_not_see_each_other(scripts: dict[str, ModuleType]) -> None:
    a, b = torch.randn(2, 12, 5, generator=Generator().manual_seed(0))
    parts = [nt_xent(a[k : k + 4], b[k : k + 4]) for k in (0, 4, 8)]
    found = scripts["small_batch"].grouped(nt_xent, a, b, 4)
    torch.testing.assert_close(found, torch.stack(parts).mean())


def test_the_grid_skips_what_is_done_and_draws_what_there_is(
    scripts: dict[str, ModuleType], clothes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, out, figure = scripts["small_batch"], tmp_path / "found.json", tmp_path / "found.svg"
    small = {"seen": 64, "width": 8, "probed": 200, "looks": 2, "data": str(clothes)}
    budget = scripts["fashion"].Budget(**small)
    cells = [script.Cell(name, 16, 16, "float32", 0) for name in script.OBJECTIVES]
    rows = [script.unlearnt(name, budget) for name in script.UNLEARNT]
    rows += [script.measured(cell, budget) for cell in cells]
    scripts["record"].save(out, {row["row"]: row for row in rows})
    words = [word for name, value in small.items() for word in (f"--{name}", str(value))]
    monkeypatch.setattr(script, "BATCHES", (16,))
    script.main([*words, "--seeds", "1", "--most", "0", "--out", str(out), "--figure", str(figure)])
    assert json.loads(out.read_text()) == sorted(rows, key=lambda row: row["row"])
    assert [row["story"][-1]["seen"] for row in rows if "story" in row] == [64, 64, 64]
    assert "nt_xent" in figure.read_text()


def test_images_that_do_not_fill_the_largest_batch_are_refused(scripts: dict[str, ModuleType]) -> None:
    with pytest.raises(SystemExit, match="a multiple of 1024 images is wanted; 1000 came"):
        scripts["small_batch"].main(["--seen", "1000"])


def test_a_factor_sharpens_the_softmax_and_changes_no_order(
    scripts: dict[str, ModuleType], clothes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = scripts["hypersphere"]
    budget = scripts["fashion"].Budget(data=str(clothes), seen=256, width=8, probed=200)
    scaled = script.sweep(budget)
    trained = {name: script.measured(name, 0, budget) for name in ("cosine / .1", "joint")}
    assert all(row["information"] <= row["log_k"] for row in trained.values())
    monkeypatch.setattr(script, "CRITICS", {name: script.CRITICS[name] for name in trained})
    first, second, third, _ = script.claims(trained, scaled)
    assert [each["verdict"] for each in (first, second, third)] == ["confirmed"] * 3
