"""A shop from its raw file to a served list, through the command line alone, as a user would."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

SMALL = ["--set", "dim=16", "--set", "rows.max_len=20", "--epochs", "6", "--set", "fit.lr=.005"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a raw csv of purchases, item titles beside it."""
    from twoview.data.synthetic import Dials, shop

    folder = tmp_path_factory.mktemp("shop")
    log = shop(Dials(users=250, mean_length=9.0, predictability=0.8))
    assert log.times is not None and log.titles is not None
    events = pl.DataFrame(
        {"user": [log.user_ids[u] for u in log.owners], "item": [log.item_ids[i] for i in log.items]}
    )
    events.with_columns(pl.Series("time", log.times)).sample(fraction=1.0, shuffle=True, seed=0).write_csv(
        folder / "log.csv"
    )
    pl.DataFrame({"id": log.item_ids, "title": log.titles}).write_csv(folder / "titles.csv")
    return folder


def twoview(folder: Path, *words: str, code: int = 0) -> str:
    command = [sys.executable, "-c", "from twoview.cli import main; main()", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_raw_file_becomes_a_served_list(shop: Path) -> None:
    told = twoview(shop, "prepare", "log.csv", "--out", "log", "--titles", "titles.csv")
    assert "user=user" in told and "item=item" in told and "seconds" in told and "250 users" in told

    twoview(shop, "train", "popularity", "log", "--out", "runs/popularity")
    twoview(shop, "train", "sasrec", "log", "--out", "runs/sasrec", *SMALL)
    twoview(shop, "train", "contrastvae", "log", "--out", "runs/contrastvae", "--seeds", "2", *SMALL)

    found = json.loads(twoview(shop, "evaluate", "runs", "--json"))
    assert [each["model"] for each in found] == ["contrastvae", "contrastvae", "popularity", "sasrec"]
    worth = {each["run"]: each["metrics"]["ndcg@20"] for each in found}
    assert worth["runs/sasrec"] > worth["runs/popularity"]

    table = json.loads(twoview(shop, "compare", "runs", "--json"))
    assert {row["name"].split()[0] for row in table["rows"]} == {"contrastvae", "sasrec", "popularity"}
    contrastvae = next(row for row in table["rows"] if row["model"] == "contrastvae")
    assert contrastvae["seeds"] == [0, 1]
    low, mean = (contrastvae["metrics"]["ndcg@20"][key] for key in ("low", "mean"))
    assert low <= mean == pytest.approx(sum(v for run, v in worth.items() if "contrastvae" in run) / 2)

    user = pl.read_csv(shop / "log.csv")["user"][0]
    items = json.loads(twoview(shop, "recommend", "runs/sasrec", "--user", user, "-k", "5", "--json"))[
        "items"
    ]
    titles = set(pl.read_csv(shop / "titles.csv")["title"])
    bought = set(pl.read_csv(shop / "log.csv").filter(pl.col("user") == user)["item"])
    assert len(items) == 5 and {each["title"] for each in items} <= titles
    assert not bought & {each["id"] for each in items}

    twoview(shop, "recommend", "runs/sasrec", "--users", "all", "--out", "recs.parquet", "-k", "3")
    assert pl.read_parquet(shop / "recs.parquet")["user"].n_unique() == 250

    assert "finished" in twoview(shop, "train", "--resume", "runs")
    assert "exists" in twoview(shop, "train", "popularity", "log", "--out", "runs/popularity", code=2)
