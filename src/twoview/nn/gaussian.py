"""A posterior per place: from vectors to the mean and the log variance of a diagonal Gaussian."""

from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor, nn

from ..config import Part
from ..types import History
from .transformer import Transformer, TransformerConfig, causal


def sigma_of(log_var: Tensor) -> Tensor:
    """The standard deviation: [...] -> [...]"""
    return (0.5 * log_var).exp()


class Stacks(nn.Module):
    """Two stacks of their own, one for the mean and one for the log variance."""

    def __init__(self, dim: int, config: TransformerConfig) -> None:
        super().__init__()
        self.mean, self.log_var = (Transformer(dim, config, causal) for _ in range(2))

    def forward(self, x: Tensor, history: History) -> tuple[Tensor, Tensor]:
        """[R, W, D] -> [R, W, D], [R, W, D]"""
        return self.mean(x, history), self.log_var(x, history)


class Trunk(nn.Module):
    """One stack under two linear heads."""

    def __init__(self, dim: int, config: TransformerConfig) -> None:
        super().__init__()
        self.body = Transformer(dim, config, causal)
        self.mean, self.log_var = (nn.Linear(dim, dim) for _ in range(2))

    def forward(self, x: Tensor, history: History) -> tuple[Tensor, Tensor]:
        """[R, W, D] -> [R, W, D], [R, W, D]"""
        x = self.body(x, history)
        return self.mean(x), self.log_var(x)


class StacksConfig(Part):
    kind: Literal["stacks"] = "stacks"
    transformer: TransformerConfig = TransformerConfig()

    def build(self, dim: int) -> nn.Module:
        return Stacks(dim, self.transformer)


class TrunkConfig(Part):
    kind: Literal["trunk"] = "trunk"
    transformer: TransformerConfig = TransformerConfig()

    def build(self, dim: int) -> nn.Module:
        return Trunk(dim, self.transformer)


PosteriorConfig = Annotated[StacksConfig | TrunkConfig, Field(discriminator="kind")]
