"""Critics score every x of a set against every y: a bounded one, and unbounded ones of rising capacity."""

import torch
from torch import Tensor, nn

from twoview.objectives.margin import scored


class Likeness(nn.Module):
    """A cosine over a temperature, or the bare dot product: no parameters."""

    def __init__(self, temperature: float = 1.0, similarity: str = "cosine") -> None:
        super().__init__()
        self.temperature, self.similarity = temperature, similarity

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """[N, D], [N, D] -> [N, N]"""
        return scored(x, y, self.temperature, self.similarity)


class Bilinear(nn.Module):
    """x^T W y."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(dim) / dim)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """[N, D], [N, D] -> [N, N]"""
        return x @ self.weight @ y.mT


class Separable(nn.Module):
    """The dot product of two networks, one for x and one for y."""

    def __init__(self, dim: int, hidden: int = 256, out: int = 64) -> None:
        super().__init__()
        self.of_x, self.of_y = (
            nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, out)) for _ in range(2)
        )

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """[N, D], [N, D] -> [N, N]"""
        of_x, of_y = self.of_x(x), self.of_y(y)
        scores: Tensor = of_x @ of_y.mT
        return scores


class Joint(nn.Module):
    """A network of each pair, its first layer shared among all pairs of a row and of a column."""

    def __init__(self, dim: int, hidden: int = 64) -> None:
        super().__init__()
        self.of_x, self.of_y = nn.Linear(dim, hidden), nn.Linear(dim, hidden, bias=False)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """[N, D], [N, D] -> [N, N]"""
        pairs = self.of_x(x)[:, None, :] + self.of_y(y)[None, :, :]  # [N, N, H]
        scores: Tensor = self.rest(pairs)
        return scores.squeeze(-1)
