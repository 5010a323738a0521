"""Popularity gives everybody the counts of the training events."""

import numpy as np
import torch

from twoview.data.layout import pack
from twoview.data.log import Log
from twoview.models.base import Facts
from twoview.models.popularity import Config, Popularity


def test_everybody_gets_the_training_counts() -> None:
    items = np.array([2, 0, 2, 2, 3, 0], dtype=np.int32)
    log = Log(
        offsets=np.array([0, 4, 6]), items=items, times=None, user_ids=["a", "b"], item_ids=list("wxyz")
    )
    model = Popularity(Config(), Facts.of(log, max_len=5))
    for epoch in (0, 1):  # counted anew, never added up
        model.prepare(log, epoch)
    history = pack(torch.tensor([[1, 2], [3, 0], [0, 0]]), torch.tensor([2, 1, 2]))
    assert model.score(history).tolist() == [[2.0, 0.0, 3.0, 1.0]] * 3
