"""The posteriors of a model, heard while it answers: KL place by place, what it knows at the newest one."""

from typing import Any

import torch
from torch import Tensor

from ..data.layout import newest_of
from ..objectives.variational import gaussian_kl
from ..types import History

ACTIVE = 0.01  # variance of a posterior mean over histories above which its unit is in use


class Posteriors:
    """Hears a posterior and keeps what the tables want: sums over places, and the newest place of each."""

    def __init__(self) -> None:
        self.by_dimension = torch.zeros(0, dtype=torch.float64)  # [D] KL summed over places
        self.by_position = torch.zeros(0, dtype=torch.float64)  # [max_len] KL summed over histories
        self.places = torch.zeros(0, dtype=torch.float64)  # [max_len] how many histories are so long
        self._newest: list[tuple[Tensor, Tensor]] = []

    def hear(self, given: tuple[Any, ...], came: tuple[Tensor, Tensor]) -> None:
        """Vectors and History as they went in, mean and log variance [R, W, D] as they came."""
        (mean, log_var), history = came, given[-1]
        assert isinstance(history, History)
        kl = gaussian_kl(mean, log_var)[history.real].double()  # [places, D]
        position = history.position[history.real]
        n = max(len(self.places), int(position.max()) + 1)
        self.by_dimension = longer(self.by_dimension, kl.shape[1]) + kl.sum(0)
        self.by_position = longer(self.by_position, n).index_add(0, position, kl.sum(1))
        self.places = longer(self.places, n) + torch.bincount(position, minlength=n)
        self._newest.append((newest_of(mean, history), newest_of(log_var, history)))

    @property
    def newest(self) -> tuple[Tensor, Tensor]:
        """Mean and log variance at the newest place of every history: [C, D], [C, D]"""
        mean, log_var = zip(*self._newest, strict=True)
        return torch.cat(mean), torch.cat(log_var)

    def kl(self) -> dict[str, Any]:
        """Nats from the prior, a mean over places: in all, by dimension, by position from the newest."""
        n_places = self.places.sum()
        return {
            "total": float(self.by_dimension.sum() / n_places),
            "newest": float(self.by_position[0] / self.places[0]),
            "per_dimension": (self.by_dimension / n_places).tolist(),
            "per_position": (self.by_position / self.places).tolist(),
        }


def longer(sums: Tensor, n: int) -> Tensor:
    """Sums with noughts behind them: [n or fewer] -> [n]"""
    return torch.cat([sums, sums.new_zeros(n - len(sums))])


def active_units(mean: Tensor) -> Tensor:
    """Which dimensions of the posterior mean vary over histories: [C, D] -> [D]

    Var_x(E[z_d | x]) > .01
    Burda, Grosse, Salakhutdinov, ICLR 2016, arXiv 1509.00519
    """
    return mean.double().var(0) > ACTIVE
