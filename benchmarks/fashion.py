"""Fashion-MNIST in pairs of views, a small encoder and a linear probe: what the learning benchmarks share.

There is no batch norm, so the size of a batch reaches the encoder through the objective alone.
"""

import argparse
import gzip
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from record import Grid
from torch import Generator, Tensor, nn

FOLDER = "/usr/share/datasets/fashion-mnist"  # where Debian's dataset-fashion-mnist puts its files
CENTRE, SPREAD = 0.286, 0.353  # of the training images


class Budget(NamedTuple):
    """What all encoders of a benchmark share."""

    data: str = FOLDER
    seen: int = 32768  # images, each in two views
    width: int = 16
    probed: int = 10000  # labelled images the probe learns from
    rate: float = 2e-3  # Adam's for a batch of 256, times the root of batch / 256, falling to 0 as a cosine
    looks: int = 10  # how often the contrast is looked at
    device: str = "cpu"

    @property
    def stated(self) -> dict[str, Any]:
        """What a row says of its budget, by which it is known to be done."""
        unsaid = {"data", "looks", "device"}
        return {name: value for name, value in self._asdict().items() if name not in unsaid}


def column(folder: str, name: str, header: int) -> np.ndarray:
    """The bytes of one of the set's files behind its header."""
    path = Path(folder) / f"{name}-ubyte.gz"
    if not path.is_file():
        raise SystemExit(f"{path.name} is wanted in {folder}; install dataset-fashion-mnist or give --data")
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


def fashion(folder: str, split: str, device: str) -> tuple[Tensor, Tensor]:
    """Images and labels of `train` or `t10k`: [N, 28, 28], [N]"""
    images = column(folder, f"{split}-images-idx3", 16).reshape(-1, 28, 28)
    labels = column(folder, f"{split}-labels-idx1", 8)
    return torch.from_numpy(images.copy()).to(device), torch.from_numpy(labels.copy()).long().to(device)


def standard(images: Tensor) -> Tensor:
    """Pixels of mean 0 and variance 1: [N, 28, 28] -> [N, 1, 28, 28]"""
    return (images.float()[:, None] / 255 - CENTRE) / SPREAD


def view(images: Tensor, draw: Generator) -> Tensor:
    """A fifth to all of each image, flipped or not, lighter or darker: [N, 28, 28] -> [N, 1, 28, 28]"""
    share, x, y, flip, gain, lift = torch.rand(6, len(images), generator=draw).to(images.device)
    side = torch.sqrt(0.2 + 0.8 * share)
    none = torch.zeros_like(side)
    across = torch.stack([torch.where(flip < 0.5, -side, side), none, (2 * x - 1) * (1 - side)], 1)
    down = torch.stack([none, side, (2 * y - 1) * (1 - side)], 1)
    pixels = standard(images)
    places = F.affine_grid(torch.stack([across, down], 1), list(pixels.shape), align_corners=False)
    crops = F.grid_sample(pixels, places, padding_mode="border", align_corners=False)
    return crops * (0.6 + 0.8 * gain)[:, None, None, None] + (0.8 * lift - 0.4)[:, None, None, None]


class Encoder(nn.Module):
    """Three convolutions, what the probe reads, and the head that the objective sees."""

    def __init__(self, width: int = 16, dim: int = 64) -> None:
        super().__init__()
        sizes = (1, width, 2 * width, 4 * width)
        layers = [part for pair in itertools.pairwise(sizes) for part in layer(*pair)]
        self.states = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.dim = 4 * sizes[-1]  # of what the probe reads
        self.head = nn.Sequential(
            nn.Linear(self.dim, self.dim // 2), nn.ReLU(), nn.Linear(self.dim // 2, dim)
        )

    def forward(self, pixels: Tensor) -> Tensor:
        """What the objective sees: [N, 1, 28, 28] -> [N, D]"""
        return self.head(self.states(pixels))


def layer(before: int, after: int) -> tuple[nn.Module, nn.Module, nn.Module]:
    """A convolution that halves each side, its norm by image, its nonlinearity."""
    return nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GroupNorm(8, after), nn.ReLU()


def batches(images: Tensor, seen: int, batch: int, draw: Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Two views of every image, each image once an epoch, until so many were seen."""
    epochs = math.ceil(seen / len(images))
    order = torch.cat([torch.randperm(len(images), generator=draw) for _ in range(epochs)])[:seen]
    for places in order.to(images.device).split(batch):
        yield view(images[places], draw), view(images[places], draw)


@torch.no_grad()
def states_of(encoder: Encoder, images: Tensor) -> Tensor:
    """What the probe reads of whole images: [N, 28, 28] -> [N, 16 width]"""
    return torch.cat([encoder.states(standard(part)) for part in images.split(500)])


def probe(train: Tensor, labels: Tensor, test: Tensor, answers: Tensor) -> float:
    """The share of test rows that logistic regression on the training rows names rightly."""
    centre, spread = train.mean(0), train.std(0).clamp_min(1e-6)
    rows, asked = (train - centre) / spread, (test - centre) / spread
    weight = torch.zeros(rows.shape[1], 10, device=rows.device, requires_grad=True)
    bias = torch.zeros(10, device=rows.device, requires_grad=True)
    search = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        value = F.cross_entropy(rows @ weight + bias, labels) + 1e-3 * weight.square().sum()
        value.backward()
        return value

    search.step(loss)
    return float(((asked @ weight + bias).argmax(1) == answers).double().mean())


def learn(
    parts: nn.Module,
    loss: Callable[[Tensor, Tensor, int], Tensor],
    images: Tensor,
    budget: Budget,
    *,
    batch: int,
    seed: int,
) -> None:
    """Fit the parts to a loss of two views and the number of images seen with them."""
    draw = Generator().manual_seed(seed)
    adam = torch.optim.Adam(parts.parameters(), budget.rate * math.sqrt(batch / 256))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, math.ceil(budget.seen / batch))
    seen = 0
    for first, second in batches(images, budget.seen, batch, draw):
        seen += len(first)
        adam.zero_grad()
        loss(first, second, seen).backward()
        adam.step()
        schedule.step()


def probed(budget: Budget, states: Callable[[Tensor], Tensor]) -> float:
    """The probe's share of right answers on the whole test set."""
    images, labels = fashion(budget.data, "train", budget.device)
    test, answers = fashion(budget.data, "t10k", budget.device)
    return probe(states(images[: budget.probed]), labels[: budget.probed], states(test), answers)


def asked(words: Sequence[str] | None, about: str, out: Path, figure: Path) -> argparse.Namespace:
    """What the command line wants: `budget`, `seeds`, `grid`, and where the figure goes."""
    parser = argparse.ArgumentParser(description=about)
    for name, default in Budget()._asdict().items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1, help="processes, one cell each")
    parser.add_argument("--most", type=int, default=10**6, help="cells made now; 0 draws what there is")
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--figure", type=Path, default=figure)
    found = parser.parse_args(words)
    found.budget = Budget(**{name: getattr(found, name) for name in Budget._fields})
    found.grid = Grid(found.out, found.budget.stated, found.workers, found.most)
    return found
