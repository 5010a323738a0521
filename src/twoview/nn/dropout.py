"""Dropout that costs little on a CPU: sixteen random bits a value, four values from one draw."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 1 << 16  # a share is met to within 1 / 65536
LEAST, MOST = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max


def stays(shape: torch.Size, share: float, device: torch.device) -> Tensor:
    """Marks all but a share of the places, at random: shape, bool"""
    n = shape.numel()
    bits = torch.randint(LEAST, MOST, (-(-n // 4),), device=device).view(torch.int16)
    return (bits[:n] >= round(share * LEVELS) - LEVELS // 2).view(shape)


def dropout(x: Tensor, share: float) -> Tensor:
    """A share of the values dropped, the others scaled up: [...] -> [...]"""
    if x.is_cuda:
        return F.dropout(x, share)
    return x * (stays(x.shape, share, x.device).to(x.dtype) * (1 / (1 - share)))


class Dropout(nn.Module):
    """Drops in training."""

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ValueError(f"a dropout wants a share from 0 to below 1; {share} came")
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.share) if self.training and self.share else x
