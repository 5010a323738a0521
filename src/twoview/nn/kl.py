"""What a posterior pays: its KL from the prior, charged by a rate, weighted by a schedule."""

from typing import Any, Literal, Self

from pydantic import ConfigDict
from torch import Tensor, nn

from ..config import Part
from ..objectives.rate import Whole, rate
from ..objectives.schedule import Schedule, schedule
from ..objectives.variational import gaussian_kl
from ..types import History


class Named(Part):
    """A part of the objectives' room by name; its settings are checked where it is built."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    kind: str

    @classmethod
    def of(cls, kind: str, **settings: Any) -> Self:
        return cls.model_validate({"kind": kind, **settings})

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class KL(nn.Module):
    """The weighted KL of a batch."""

    def __init__(self, charged: Whole, weight: Schedule) -> None:
        super().__init__()
        self.charged, self.weight = charged, weight

    def forward(self, mean: Tensor, log_var: Tensor, history: History, step: Tensor) -> Tensor:
        """[R, W, D], [R, W, D], [] -> []"""
        charge = self.charged(gaussian_kl(mean, log_var), history.real, step)
        return self.weight(step) * self.share(history) * charge

    def share(self, history: History) -> Tensor | float:
        """The mean is over real places."""
        return 1.0


class KLOverSlots(KL):
    """The mean is over all the slots that padding would have made, most of them empty."""

    def __init__(self, charged: Whole, weight: Schedule, max_len: int) -> None:
        super().__init__(charged, weight)
        self.max_len = max_len

    def share(self, history: History) -> Tensor | float:
        return history.real.sum() / (history.n_histories * self.max_len)


class KLConfig(Part):
    """How the KL is charged and weighted."""

    schedule: Named = Named.of("linear", cap=0.2)  # the weight, by optimiser step
    rate: Named = Named.of("whole")  # free bits and their kin
    over: Literal["places", "slots"] = (
        "places"  # slots: max_len for every history, as the released code counts
    )

    def build(self, max_len: int) -> KL:
        weight = schedule(self.schedule.kind, **self.schedule.settings)
        charged = rate(self.rate.kind, **self.rate.settings)
        return KL(charged, weight) if self.over == "places" else KLOverSlots(charged, weight, max_len)
