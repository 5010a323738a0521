"""Laws that every objective in the registry obeys, held against slow spellings with Python loops."""

import inspect
import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, stack_module_state, vmap

from twoview import objectives
from twoview.error import RecipeError
from twoview.objectives import OBJECTIVES, objective

DIM = 5
ONE_SIDED = {"info_nce", "moco"}  # anchors are the rows of a alone
WITHOUT_NEGATIVES = {"barlow_twins", "vicreg"}
NOT_CONTRASTIVE = WITHOUT_NEGATIVES | {"align_uniform", "direct_au"}  # nothing without a second pair
TEMPERATURE = 0.5

every = pytest.mark.parametrize("name", OBJECTIVES)


def but(exempt: set[str]) -> pytest.MarkDecorator:
    """Every objective that the law can apply to."""
    return pytest.mark.parametrize("name", sorted(OBJECTIVES.keys() - exempt))


def built(name: str, **settings: Any) -> Any:
    """The objective, with a memory that outlasts no test."""
    small = {"n_keys": 7} if name == "moco" else {}
    return objective(name, dim=DIM, **{**small, **settings})


def pairs(
    n: int, *, seed: int = 0, noise: float = 0.3, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    a = torch.randn(n, DIM, generator=draw, dtype=torch.float64)
    return a.to(dtype), (a + noise * torch.randn(n, DIM, generator=draw, dtype=torch.float64)).to(dtype)


def slope(
    function: Callable[..., Tensor], a: Tensor, b: Tensor, **batch: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The value and both gradients."""
    a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
    value = function(a, b, **batch)
    da, db = torch.autograd.grad(value, (a, b), allow_unused=True)
    return value.detach(), da, torch.zeros_like(b) if db is None else db


def cosine(x: list[float], y: list[float]) -> float:
    lengths = math.hypot(*x) * math.hypot(*y)
    return sum(i * j for i, j in zip(x, y, strict=True)) / lengths


def anchors(a: Tensor, b: Tensor, akin: Tensor) -> Iterator[tuple[float, list[float]]]:
    """Of each of 2N rows: the partner's score and those of its negatives."""
    rows, n = a.tolist() + b.tolist(), len(a)
    for i, row in enumerate(rows):
        scores = [cosine(row, other) / TEMPERATURE for other in rows]
        negatives = [s for j, s in enumerate(scores) if j % n != i % n and not akin[i % n, j % n]]
        yield scores[(i + n) % (2 * n)], negatives


def mean_over(losses: list[float]) -> float:
    return sum(losses) / len(losses)


def cross_entropy(own: float, negatives: list[float]) -> float:
    return math.log(math.exp(own) + sum(map(math.exp, negatives))) - own


def slow_info_nce(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    losses = []
    for i, row in enumerate(a.tolist()):
        scores = [cosine(row, other) / TEMPERATURE for other in b.tolist()]
        losses.append(
            cross_entropy(scores[i], [s for j, s in enumerate(scores) if j != i and not akin[i, j]])
        )
    return mean_over(losses)


def slow_nt_xent(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    return mean_over([cross_entropy(own, others) for own, others in anchors(a, b, akin)])


def slow_flat_nce(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    return mean_over([1.0 if others else 0.0 for _, others in anchors(a, b, akin)])


def slow_dcl(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    losses = [
        math.log(sum(map(math.exp, others))) - own if others else 0.0 for own, others in anchors(a, b, akin)
    ]
    return mean_over(losses)


def slow_dclw(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    pulls = [math.exp(cosine(x, y) / 0.5) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    weights = [2 - pull / mean_over(pulls) for pull in pulls] * 2
    losses = [
        math.log(sum(map(math.exp, others))) - weight * own if others else 0.0
        for weight, (own, others) in zip(weights, anchors(a, b, akin), strict=True)
    ]
    return mean_over(losses)


def reweighted(own: float, others: list[float], hardness: float, prior: float) -> float:
    if not others:
        return 0.0
    weights = [math.exp(hardness * s) for s in others]
    total = sum(w * math.exp(s) for w, s in zip(weights, others, strict=True)) / mean_over(weights)
    n = len(others)
    negatives = max((total - prior * n * math.exp(own)) / (1 - prior), n * math.exp(-1 / TEMPERATURE))
    return -math.log(math.exp(own) / (math.exp(own) + negatives))


def slow_debiased(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    return mean_over([reweighted(own, others, 0.0, 0.1) for own, others in anchors(a, b, akin)])


def slow_hard_negative(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    return mean_over([reweighted(own, others, 1.0, 0.1) for own, others in anchors(a, b, akin)])


def slow_moco(a: Tensor, b: Tensor, akin: Tensor, queue: Any) -> float:
    losses = []
    for query, key in zip(a.tolist(), b.tolist(), strict=True):
        negatives = [cosine(query, old) * math.hypot(*old) / queue.temperature for old in queue.keys.tolist()]
        losses.append(cross_entropy(cosine(query, key) / queue.temperature, negatives))
    return mean_over(losses)


def slow_alignment(a: Tensor, b: Tensor) -> float:
    return mean_over([2 - 2 * cosine(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)])


def slow_uniformity(x: Tensor, akin: Tensor) -> float:
    rows = x.tolist()
    potentials = [
        math.exp(-2 * (2 - 2 * cosine(rows[i], rows[j])))
        for i in range(len(rows))
        for j in range(len(rows))
        if i != j and not akin[i, j]
    ]
    return math.log(mean_over(potentials))


def slow_align_uniform(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    return slow_alignment(a, b) + (slow_uniformity(a, akin) + slow_uniformity(b, akin)) / 2


def slow_vicreg(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    n, total = len(a), 0.0
    for x, y in zip(a.flatten().tolist(), b.flatten().tolist(), strict=True):
        total += 25 * (x - y) ** 2 / (n * DIM)
    for view in (a, b):
        columns = [[x - mean_over(column) for x in column] for column in view.T.tolist()]
        for i, left in enumerate(columns):
            total += 25 / 2 * max(0, 1 - math.sqrt(sum(x * x for x in left) / (n - 1) + 1e-4)) / DIM
            for j, right in enumerate(columns):
                total += 0 if i == j else (sum(map(float.__mul__, left, right)) / (n - 1)) ** 2 / DIM
    return total


def slow_barlow_twins(a: Tensor, b: Tensor, akin: Tensor, _: Any) -> float:
    n, total = len(a), 0.0
    columns: list[list[list[float]]] = []
    for view in (a, b):
        centred = [[x - mean_over(column) for x in column] for column in view.T.tolist()]
        columns.append([[x / math.sqrt(mean_over([z * z for z in c]) + 1e-5) for x in c] for c in centred])
    for i in range(DIM):
        for j in range(DIM):
            correlation = sum(map(float.__mul__, columns[0][i], columns[1][j])) / n
            total += (1 - correlation) ** 2 if i == j else 0.0051 * correlation**2
    return total


SLOW: dict[str, Callable[[Tensor, Tensor, Tensor, Any], float]] = {
    "align_uniform": slow_align_uniform,
    "barlow_twins": slow_barlow_twins,
    "dcl": slow_dcl,
    "dclw": slow_dclw,
    "debiased": slow_debiased,
    "direct_au": slow_align_uniform,
    "flat_nce": slow_flat_nce,
    "hard_negative": slow_hard_negative,
    "info_nce": slow_info_nce,
    "moco": slow_moco,
    "nt_xent": slow_nt_xent,
    "sup_con": slow_nt_xent,
    "vicreg": slow_vicreg,
}


def test_every_objective_has_a_slow_spelling() -> None:
    assert SLOW.keys() == OBJECTIVES.keys()


def test_the_registry_holds_the_functions_that_are_imported_by_name() -> None:
    assert {name for name in OBJECTIVES if hasattr(objectives, name)} == OBJECTIVES.keys() - {"moco"}
    assert all(OBJECTIVES[name] is getattr(objectives, name) for name in OBJECTIVES.keys() - {"moco"})


@every
@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_it_equals_its_slow_spelling(name: str, n: int, share: float) -> None:
    a, b = pairs(n, seed=n)
    akin = torch.rand(n, n, generator=torch.Generator().manual_seed(3)) < share
    akin[:2, :2] = False
    loss, memory = built(name), built(name)
    assert loss(a, b, akin=akin).item() == pytest.approx(SLOW[name](a, b, akin, memory), rel=1e-9, abs=1e-12)


@every
def test_it_is_symmetric_unless_its_anchors_are_one_side(name: str) -> None:
    a, b = pairs(6)
    there, back = built(name)(a, b), built(name)(b, a)
    assert (abs(there - back) < 1e-9) == (name not in ONE_SIDED)


@every
def test_pairs_permuted_together_change_nothing(name: str) -> None:
    a, b = pairs(8)
    akin = torch.rand(8, 8, generator=torch.Generator().manual_seed(1)) < 0.2
    order = torch.randperm(8, generator=torch.Generator().manual_seed(2))
    value, da, _ = slope(built(name), a, b, akin=akin)
    permuted, permuted_da, _ = slope(built(name), a[order], b[order], akin=akin[order][:, order])
    torch.testing.assert_close(permuted, value)
    torch.testing.assert_close(permuted_da, da[order])


@every
def test_aligned_pairs_cost_less_than_shuffled_ones(name: str) -> None:
    a, b = pairs(16, noise=0.1)
    aligned, shuffled = built(name)(a, b), built(name)(a, b.roll(1, 0))
    if name == "flat_nce":  # says nothing by its value, which is a law of its own
        assert aligned == shuffled == 1
    else:
        assert aligned < shuffled


@every
def test_following_its_gradient_brings_partners_together(name: str) -> None:
    a, b = pairs(12, noise=1.0)
    _, da, _ = slope(built(name), a, b)
    stepped = a - 0.05 * da / da.norm()
    before, after = objectives.alignment(a, b), objectives.alignment(stepped, b)
    assert after < before


ROWS = {
    "identical": lambda a, b: (torch.ones_like(a), torch.ones_like(b)),
    "zero": lambda a, b: (torch.zeros_like(a), torch.zeros_like(b)),
    "one zero row": lambda a, b: (a * (torch.arange(len(a)) > 0)[:, None], b),
    "opposed": lambda a, b: (a + b, -a - b),
    "large": lambda a, b: (3e3 * a, -3e3 * b),
    "tiny": lambda a, b: (1e-7 * a, 1e-7 * b),
}


@every
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("n", [1, 2, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_any_rows_give_a_finite_value_and_gradient_or_a_clear_error(
    name: str, rows: str, n: int, dtype: torch.dtype
) -> None:
    a, b = (view.to(dtype) for view in ROWS[rows](*pairs(n)))
    if rows == "large" and name == "vicreg":  # a fourth power, whose gradient float16 cannot hold
        a, b = a / 300, b / 300
    if n == 1 and name in NOT_CONTRASTIVE:
        with pytest.raises(ValueError, match=r"wants 2 pairs or more; \[1, 5\] and \[1, 5\] came"):
            built(name)(a, b)
        return
    value, da, db = slope(built(name), a, b)
    assert value.isfinite()
    assert value.shape == ()
    assert da.isfinite().all()
    assert db.isfinite().all()
    assert da.dtype == dtype


@but(WITHOUT_NEGATIVES)
def test_rows_of_any_length_give_a_finite_cosine(name: str) -> None:
    a, b = pairs(6, dtype=torch.float32)
    lengths = torch.tensor([1e-5, 1e-3, 1.0, 1e3, 1e18, 1e30])[:, None]
    torch.testing.assert_close(built(name)(lengths * a, lengths.flip(0) * b), built(name)(a, b))


@every
def test_half_precision_is_near_double(name: str) -> None:
    for dtype, near in ((torch.float32, 1e-4), (torch.bfloat16, 0.05), (torch.float16, 0.01)):
        a, b = pairs(8, dtype=dtype)
        value = built(name)(a, b)
        assert value.dtype == torch.float32
        assert value.item() == pytest.approx(built(name)(a.double(), b.double()).item(), rel=near, abs=near)


@every
def test_autocast_changes_nothing(name: str) -> None:
    a, b = pairs(8, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = built(name)(a, b)
    torch.testing.assert_close(inside, built(name)(a, b), rtol=1e-6, atol=1e-6)


@every
def test_a_row_that_is_not_a_number_is_not_hidden(name: str) -> None:
    for n in (1, 2, 6) if name not in NOT_CONTRASTIVE else (2, 6):
        a, b = pairs(n)
        a[0, 0] = torch.nan
        assert built(name)(a, b).isnan()


@every
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 5), (4, 5)),
        ((3, 5), (3, 4)),
        ((5,), (5,)),
        ((2, 3, 5), (2, 3, 5)),
        ((0, 5), (0, 5)),
        ((3, 0), (3, 0)),
    ],
)
def test_what_are_no_pairs_is_refused(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="want"):
        built(name)(torch.ones(a), torch.ones(b))


@every
def test_whole_numbers_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="real numbers"):
        built(name)(torch.ones(3, DIM, dtype=torch.long), torch.ones(3, DIM, dtype=torch.long))


@every
def test_it_runs_without_values(name: str) -> None:
    with FakeTensorMode():
        a, b = torch.randn(6, DIM, requires_grad=True), torch.randn(6, DIM, requires_grad=True)
        value = built(name)(a, b, akin=torch.zeros(6, 6, dtype=torch.bool))
        value.backward()
        assert a.grad is not None
        assert a.grad.shape == a.shape


@every
def test_several_at_once_are_each_alone(name: str) -> None:
    a, b = (torch.stack(views) for views in zip(*(pairs(6, seed=seed) for seed in range(3)), strict=True))
    akin = torch.rand(3, 6, 6, generator=torch.Generator().manual_seed(1)) < 0.2
    alone = [slope(built(name), x, y, akin=k)[:2] for x, y, k in zip(a, b, akin, strict=True)]
    several = [built(name) for _ in range(3)]
    one, a = several[0], a.requires_grad_()
    if isinstance(one, nn.Module):
        state = stack_module_state([each for each in several if isinstance(each, nn.Module)])[1]
        values = vmap(lambda own, x, y, k: functional_call(one, own, (x, y), {"akin": k}))(state, a, b, akin)
        assert state["place"].tolist() == [6, 6, 6]
    else:
        values = vmap(lambda x, y, k: one(x, y, akin=k))(a, b, akin)
    (together,) = torch.autograd.grad(values.sum(), a)
    torch.testing.assert_close(values, torch.stack([value for value, _ in alone]))
    torch.testing.assert_close(together, torch.stack([da for _, da in alone]))


@but(WITHOUT_NEGATIVES | {"moco"})
def test_akin_pairs_do_not_repel(name: str) -> None:
    a, b = pairs(5)
    akin = torch.zeros(5, 5, dtype=torch.bool)
    akin[0, 1] = akin[1, 0] = True
    moved_a, moved_b = a.clone(), b.clone()
    moved_a[1] = a[0] + 0.01
    moved_b[1] = b[0] + 0.01
    heeding = built(name)(moved_a, moved_b, akin=akin) - built(name)(a, b, akin=akin)
    blind = built(name)(moved_a, moved_b) - built(name)(a, b)
    assert heeding < blind or name == "flat_nce"
    _, da, _ = slope(built(name), moved_a, moved_b, akin=akin)
    _, blind_da, _ = slope(built(name), moved_a, moved_b)
    assert not torch.allclose(da[0], blind_da[0], atol=1e-4)


@but(NOT_CONTRASTIVE | {"moco"})
def test_an_anchor_without_negatives_contributes_zero(name: str) -> None:
    a, b = pairs(4)
    everyone = torch.ones(4, 4, dtype=torch.bool)
    value, da, db = slope(built(name), a, b, akin=everyone)
    assert value == 0
    assert not da.any()
    assert not db.any()
    one_alone = torch.zeros(4, 4, dtype=torch.bool)
    one_alone[0] = one_alone[:, 0] = True
    if name != "dclw":  # its weights are over all pairs
        without = built(name)(a[1:], b[1:])
        torch.testing.assert_close(built(name)(a, b, akin=one_alone), without * 3 / 4)


@but(WITHOUT_NEGATIVES)
def test_akin_of_another_shape_or_kind_is_refused(name: str) -> None:
    a, b = pairs(4)
    for akin in (torch.zeros(4, 3, dtype=torch.bool), torch.zeros(4, 4)):
        with pytest.raises(ValueError, match="akin wants booleans"):
            built(name)(a, b, akin=akin)


@every
def test_it_copies_with_its_settings(name: str) -> None:
    a, b = pairs(4)
    loss = built(name)
    torch.testing.assert_close(deepcopy(loss)(a, b), loss(a, b))


@every
def test_it_names_its_formula_its_source_and_its_settings(name: str) -> None:
    row = next(row for row in objectives.describe() if row["name"] == name)
    assert row["formula"]
    assert "arXiv" in row["source"]
    assert "akin" not in row["settings"]
    assert row["settings"].keys() <= inspect.signature(OBJECTIVES[name]).parameters.keys() | {
        "temperature",
        "similarity",
    }
    same = built(name, **row["settings"])
    a, b = pairs(4)
    torch.testing.assert_close(same(a, b), objective(name, dim=DIM)(a, b))


@every
def test_a_setting_it_lacks_is_refused_with_those_it_has(name: str) -> None:
    first = next(iter(objectives.defaults(OBJECTIVES[name])))
    with pytest.raises(RecipeError, match=f"objective {name} has no tempreature; it has .*{first}"):
        built(name, tempreature=1.0)
    with pytest.raises(RecipeError, match=f"objective {name} has no akin"):
        objective(name, dim=DIM, akin=None)


def test_a_wrong_value_is_refused_when_it_is_chosen_not_when_it_is_used() -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("dcl", {"temperature": 0.0}, "temperature is wanted above 0; 0.0 came"),
        ("dcl", {"similarity": "cosin"}, "no similarity 'cosin'; there are cosine, dot"),
        ("dcl", {"temperature": "warm"}, "wants temperature to be a number; 'warm' came"),
        ("dcl", {"temperature": [0.5]}, r"wants temperature to be a number; \[0.5\] came"),
        ("moco", {"n_keys": 2.5}, "wants n_keys to be a whole number; 2.5 came"),
        ("flat_nce", {"with_positive": 1}, "wants with_positive to be true or false; 1 came"),
        ("debiased", {"prior": 1.0}, "prior is wanted from 0 up to 1"),
        ("dclw", {"sigma": -1.0}, "sigma is wanted above 0"),
        ("moco", {"n_keys": 0}, "n_keys of 1 or more"),
    ]
    for name, settings, message in wrong:
        with pytest.raises(RecipeError, match=message):
            objective(name, dim=DIM, **settings)
    with pytest.raises(RecipeError, match=r"no objective 'infonce'; there are align_uniform, .*, vicreg"):
        objective("infonce")
    with pytest.raises(RecipeError, match="moco: a memory wants dim"):
        objective("moco")
