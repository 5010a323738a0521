"""Seconds of an epoch of RecBole's SASRec, in its own environment: `recbole_sasrec.py FOLDER NAME EPOCHS`."""

import sys
import time

import numpy as np
import torch

for old, new in (("float_", np.float64), ("int_", np.int64), ("bool8", np.bool_)):
    setattr(np, old, getattr(np, old, new))

from recbole.config import Config  # noqa: E402
from recbole.data import create_dataset, data_preparation  # noqa: E402
from recbole.model.sequential_recommender import SASRec  # noqa: E402
from recbole.trainer import Trainer  # noqa: E402

folder, name, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.argv = sys.argv[:1]
settings = {
    "data_path": folder, "hidden_size": 128, "inner_size": 512, "n_layers": 1, "n_heads": 2, "epochs": epochs,
    "MAX_ITEM_LIST_LENGTH": 50, "loss_type": "CE", "train_neg_sample_args": None, "train_batch_size": 256,
    "load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "show_progress": False, "state": "ERROR",
    "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "mode": "full", "group_by": "user"},
}  # fmt: skip
config = Config(model="SASRec", dataset=name, config_dict=settings)
dataset = create_dataset(config)
train, _, _ = data_preparation(config, dataset)
model = SASRec(config, train.dataset).to("cpu")
trainer = Trainer(config, model)
torch.set_num_threads(torch.get_num_threads())
taken = []
for epoch in range(epochs):
    started = time.perf_counter()
    trainer._train_epoch(train, epoch, show_progress=False)
    taken.append(time.perf_counter() - started)
print(sorted(taken)[len(taken) // 2])
