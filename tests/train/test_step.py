"""A step moves the parameters of its phase as a loop over its terms would, clipped where told."""

from contextlib import nullcontext

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from twoview.data.layout import pack
from twoview.models.base import Optimiser, Phase
from twoview.train.average import Last
from twoview.train.step import KINDS, Eager, StepConfig, optimiser_of, precision_of
from twoview.types import Batch, Terms

HISTORY = pack(torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, dtype=torch.int64))
CPU = torch.device("cpu")
PLAIN = StepConfig(optimiser="sgd", lr=0.1, clip=None, precision="float32")


def batch(value: int) -> Batch:
    return Batch(history=HISTORY, targets=torch.tensor([[value]]))


class Valley(nn.Module):
    """Two weights, pulled to the target by one term and to zero by another."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor([3.0, -1.0]))
        self.b = nn.Parameter(torch.tensor([1.0]))

    def loss(self, batch: Batch, step: Tensor) -> Terms:
        fit = (self.a - batch.targets[0, 0]).square().sum() + self.b.square().sum()
        return {"fit": fit, "shrink": (step + 1) * 0.5 * self.a.abs().sum()}


def stepped(model: Valley, config: StepConfig = PLAIN, moves=None) -> Eager:
    phase = Phase(model.loss, moves or {None: list(model.parameters())})
    return Eager(phase, config, Last(model), lambda: nullcontext())


def slopes(a: Tensor, b: Tensor, target: float, step: float) -> tuple[Tensor, Tensor]:
    """The gradient of both terms together, by hand."""
    return 2 * (a - target) + (step + 1) * 0.5 * a.sign(), 2 * b


def test_a_step_follows_the_sum_of_its_terms() -> None:
    model = Valley()
    step, a, b = stepped(model), model.a.detach().clone(), model.b.detach().clone()
    for k in range(5):
        to_a, to_b = slopes(a, b, k, k)
        a, b = a - 0.1 * to_a, b - 0.1 * to_b
        step(batch(k), torch.tensor(float(k)))
    torch.testing.assert_close(model.a.detach(), a)
    torch.testing.assert_close(model.b.detach(), b)


def test_means_are_of_the_terms_since_they_were_last_asked() -> None:
    model = Valley()
    step = stepped(model)
    for first in (0, 3):
        wanted: dict[str, list[float]] = {"fit": [], "shrink": []}
        for k in range(first, first + 3):
            for name, term in model.loss(batch(k), torch.tensor(float(k))).items():
                wanted[name].append(term.item())
            step(batch(k), torch.tensor(float(k)))
        means = step.means()
        assert means == pytest.approx({name: sum(values) / 3 for name, values in wanted.items()})
    assert step.means() == {}


@pytest.mark.parametrize("clip", [0.5, 1e6])
def test_the_gradient_is_clipped_to_its_norm_over_all_parameters(clip) -> None:
    model = Valley()
    before = torch.cat([model.a.detach(), model.b.detach()])
    slope = torch.cat(slopes(model.a.detach(), model.b.detach(), 0, 0))
    stepped(model, PLAIN.model_copy(update={"clip": clip}))(batch(0), torch.tensor(0.0))
    moved = before - torch.cat([model.a.detach(), model.b.detach()])
    torch.testing.assert_close(
        moved, 0.1 * slope * min(1.0, clip / slope.norm().item()), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_optimiser_goes_on_to_the_bit(kind) -> None:
    config = StepConfig(optimiser=kind, lr=0.05, weight_decay=0.1, precision="float32")
    model, other = Valley(), Valley()
    whole, again = stepped(model, config), stepped(other, config)
    for k in range(4):
        whole(batch(k), torch.tensor(0.0))
    other.load_state_dict(model.state_dict())
    again.restore({name: tensor.clone() for name, tensor in whole.state().items()})
    for k in range(4):
        for step in (whole, again):
            step(batch(k), torch.tensor(0.0))
    assert torch.equal(model.a, other.a) and torch.equal(model.b, other.b)


def test_a_phase_moves_each_parameter_by_its_own_optimiser() -> None:
    model = Valley()
    a, b = model.a.detach().clone(), model.b.detach().clone()
    step = stepped(model, moves={None: [model.a], Optimiser(kind="sgd", lr=0.01): [model.b]})
    step(batch(0), torch.tensor(0.0))
    to_a, to_b = slopes(a, b, 0, 0)
    torch.testing.assert_close(model.a.detach(), a - 0.1 * to_a)
    torch.testing.assert_close(model.b.detach(), b - 0.01 * to_b)
    assert len(step.optimisers) == 2


def test_a_phase_with_two_optimisers_restores_each() -> None:
    model, other = Valley(), Valley()
    own = Optimiser(kind="adam", lr=0.01)
    config = StepConfig(lr=0.1, precision="float32")
    whole = stepped(model, config, {None: [model.a], own: [model.b]})
    again = stepped(other, config, {None: [other.a], own: [other.b]})
    whole(batch(0), torch.tensor(0.0))
    other.load_state_dict(model.state_dict())
    again.restore({name: tensor.clone() for name, tensor in whole.state().items()})
    for step in (whole, again):
        step(batch(1), torch.tensor(0.0))
    assert torch.equal(model.a, other.a) and torch.equal(model.b, other.b)


def test_parameters_of_no_phase_stay() -> None:
    model = Valley()
    stepped(model, moves={None: [model.a]})(batch(0), torch.tensor(0.0))
    assert model.b.tolist() == [1.0]
    assert model.a.tolist() != [3.0, -1.0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_optimiser_is_built_with_what_it_is_told(kind) -> None:
    optimiser = optimiser_of(kind, [nn.Parameter(torch.ones(1))], 0.3, 0.2)
    (group,) = optimiser.param_groups
    assert isinstance(optimiser, KINDS[kind])
    assert (group["lr"], group["weight_decay"]) == (0.3, 0.2)


@pytest.mark.parametrize("precision, dtype", [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_products_have_the_precision_asked_for_and_the_loss_is_float32(precision, dtype) -> None:
    seen = []

    def loss(batch: Batch, step: Tensor) -> Terms:
        product = weight @ weight
        seen.append(product.dtype)
        return {"square": product.sum()}

    weight = nn.Parameter(torch.eye(2))
    config = StepConfig(precision=precision)
    step = Eager(Phase(loss, {None: [weight]}), config, Last(nn.Identity()), precision_of(config, CPU))
    step(batch(0), torch.tensor(0.0))
    assert seen == [dtype]
    assert weight.dtype == torch.float32


@pytest.mark.parametrize(
    "setting", [{"lr": 0.0}, {"clip": 0.0}, {"weight_decay": -0.1}, {"optimiser": "adma"}]
)
def test_settings_that_move_nothing_or_do_not_exist_are_refused(setting) -> None:
    with pytest.raises(ValidationError, match=next(iter(setting))):
        StepConfig(**setting)
