"""Each likelihood equals a loop over the places asked, given the negatives it drew."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from twoview.data.layout import Columns, laid_out
from twoview.data.log import Log
from twoview.nn.likelihood import (
    BinaryConfig,
    GeneralisedBinaryConfig,
    Likelihood,
    SampledSoftmaxConfig,
    SoftmaxConfig,
)
from twoview.types import Batch

N_ITEMS, MAX_LEN, N = 9, 4, 3
LENGTHS = np.array([[3, 1, 4]])


def log_of() -> Log:
    return Log(
        offsets=np.array([0, 3, 4, 8]),
        items=np.array([0, 1, 2, 3, 4, 5, 6, 7], dtype=np.int32),
        times=None,
        user_ids=["a", "b", "c"],
        item_ids=[str(item) for item in range(N_ITEMS)],
    )


def batch_of() -> Batch:
    """Three histories of users 2, 0, 1 in one row, some places not asked."""
    columns = Columns(log_of().items, None, torch.device("cpu"))
    begin = np.array([[0, 3, 4]])
    layout = laid_out(begin, LENGTHS, width=10)
    users = np.array([2, 0, 1])
    history, _ = columns.history(layout, 0, users=users, event=users, n_rows=1)
    targets = torch.where(history.real & (history.items % 3 > 0), (history.items + 1) % N_ITEMS, -1)
    return Batch(history=history, targets=targets)


BATCH = batch_of()
STATES = torch.randn(*BATCH.targets.shape, 5, generator=torch.Generator().manual_seed(1))
TABLE = torch.randn(N_ITEMS, 5, generator=torch.Generator().manual_seed(2))


def built(config) -> Likelihood:
    part = config.build(3, N_ITEMS, 8, MAX_LEN)
    part.prepare(log_of())
    return part


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def places() -> list[tuple[int, int, Tensor, int]]:
    """Which history, which place, its state and its target, for every place asked."""
    owner, targets = BATCH.history.owner.flatten().tolist(), BATCH.targets.flatten().tolist()
    states = STATES.flatten(0, 1)
    return [(own, k, states[k], t) for k, (own, t) in enumerate(zip(owner, targets, strict=True)) if t >= 0]


def redrawn(part: Likelihood, users: Tensor, n: int) -> tuple[float, Tensor]:
    """The loss, and the negatives that the same seed draws."""
    torch.manual_seed(0)
    loss = part(STATES, TABLE, BATCH).item()
    torch.manual_seed(0)
    return loss, part.negatives.draw(users, n)


def test_softmax_is_the_mean_over_places_asked_among_all_items() -> None:
    losses = [-(TABLE @ state).log_softmax(0)[target].item() for _, _, state, target in places()]
    assert len(losses) == 5
    assert built(SoftmaxConfig())(STATES, TABLE, BATCH).item() == pytest.approx(np.mean(losses), rel=1e-5)


def test_binary_compares_with_one_negative_for_each_place() -> None:
    owner = BATCH.history.owner.clamp(min=0)
    loss, others = redrawn(built(BinaryConfig()), BATCH.history.users[owner], 1)
    losses = [
        softplus(-(state @ TABLE[target]).item()) + softplus((state @ TABLE[others.flatten()[k]]).item())
        for _, k, state, target in places()
    ]
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_sampled_softmax_shares_its_negatives_within_a_history() -> None:
    loss, others = redrawn(built(SampledSoftmaxConfig(negatives=N)), BATCH.history.users, N)
    losses = []
    for own, _, state, target in places():
        rejected = sum(math.exp((state @ TABLE[other]).item()) for other in others[own])
        chosen = math.exp((state @ TABLE[target]).item())
        losses.append(-math.log(chosen / (chosen + rejected)))
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize("calibration", [0.0, 0.75, 1.0])
def test_generalised_binary_tempers_the_positive_side(calibration) -> None:
    config = GeneralisedBinaryConfig(negatives=N, calibration=calibration)
    loss, others = redrawn(built(config), BATCH.history.users, N)
    alpha = N / (N_ITEMS - 1)
    beta = alpha * (calibration * (1 - 1 / alpha) + 1 / alpha)  # equation 9 of the paper
    losses = []
    for own, _, state, target in places():
        chosen = beta * softplus(-(state @ TABLE[target]).item())
        rejected = [softplus((state @ TABLE[other]).item()) for other in others[own]]
        losses.append((chosen + sum(rejected)) / (N + 1))
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_without_calibration_the_positive_side_is_plain() -> None:
    assert built(GeneralisedBinaryConfig(negatives=N, calibration=0.0)).beta == 1.0
    assert built(GeneralisedBinaryConfig(negatives=100, calibration=1.0)).beta == 1.0


@pytest.mark.parametrize("config", [BinaryConfig(), SampledSoftmaxConfig(), GeneralisedBinaryConfig()])
def test_negatives_are_never_the_user_s_own_and_belong_to_the_place(config) -> None:
    part = built(config)
    asked: list[Tensor] = []
    draw = part.negatives.draw

    def remembered(users: Tensor, n: int) -> Tensor:
        asked.append(users)
        return draw(users, n)

    part.negatives.draw = remembered
    part(STATES, TABLE, BATCH)
    (users,) = asked
    drawn, log = draw(users, 50), log_of()
    for user in range(3):
        own = log.items[log.offsets[user] : log.offsets[user + 1]].tolist()
        assert not set(drawn[users == user].flatten().tolist()) & set(own)
    if users.dim() == 2:
        real = BATCH.history.real
        assert torch.equal(users[real], BATCH.history.users[BATCH.history.owner[real]])


@pytest.mark.parametrize(
    "config", [SoftmaxConfig(), BinaryConfig(), SampledSoftmaxConfig(), GeneralisedBinaryConfig()]
)
def test_places_that_ask_nothing_pull_nothing(config) -> None:
    states = STATES.clone().requires_grad_()
    built(config)(states, TABLE, BATCH).backward()
    assert states.grad is not None
    assert torch.equal(states.grad.any(-1), BATCH.targets >= 0)


def test_a_likelihood_without_a_forward_says_so() -> None:
    with pytest.raises(TypeError, match="Likelihood is a likelihood without a forward"):
        Likelihood()(STATES, TABLE, BATCH)
