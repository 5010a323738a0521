"""Seconds of one epoch of RecTools' SASRec, in its own environment: `rectools_sasrec.py LOG.tsv EPOCHS`."""

import sys
import time
import warnings

import pandas as pd
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel

warnings.filterwarnings("ignore")
DIM, LAYERS, HEADS, MAX_LEN, BATCH = 128, 1, 2, 50, 256


def seconds(dataset: Dataset, epochs: int) -> float:
    """A fit of so many epochs."""
    model = SASRecModel(
        n_blocks=LAYERS, n_heads=HEADS, n_factors=DIM, session_max_len=MAX_LEN, loss="softmax",
        batch_size=BATCH, epochs=epochs, lr=1e-3, dropout_rate=0.5, verbose=0,
    )  # fmt: skip
    started = time.perf_counter()
    model.fit(dataset)
    return time.perf_counter() - started


frame = pd.read_csv(sys.argv[1], sep="\t", names=[Columns.User, Columns.Item, Columns.Datetime])
frame[Columns.Datetime] = pd.to_datetime(frame[Columns.Datetime], unit="s")
frame[Columns.Weight] = 1.0
dataset = Dataset.construct(frame)
seconds(dataset, 1)
epochs = int(sys.argv[2])
print((seconds(dataset, 1 + epochs) - seconds(dataset, 1)) / epochs)
