"""The command line: what a user's mistakes get is one line and exit 2, and nothing half-written."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from twoview import cli
from twoview.data.synthetic import markov

QUICK = ["--set", "dim=8", "--set", "rows.max_len=6", "--set", "rows.batch=32"]


class Said(NamedTuple):
    code: int
    out: str
    err: str


Twoview = Callable[..., Said]


@pytest.fixture
def twoview(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Twoview:
    """The command, run in this process."""

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["twoview", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            cli.main()
        told = capsys.readouterr()
        return Said(int(left.value.code or 0), told.out, told.err)

    return run


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "log"
    markov(60, 15, 7, 0.8, 0).save(folder)
    return folder


@pytest.fixture
def before(tmp_path: Path) -> Iterator[set[Path]]:
    """What lay in the folder before; nothing may be added."""
    there = set(tmp_path.rglob("*"))
    yield there


def refused(said: Said, *wanted: str) -> None:
    assert said.code == 2 and said.out == ""
    assert said.err.startswith("twoview: ") and said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err
    for word in wanted:
        assert word in said.err, (word, said.err)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"", "empty"),
        (b"user,item,time\n", ""),
        (b"user,item,time\na,b,yesterday\nc,d,today\n", "time"),
        (b"\xff\xfe\x00user\x00,item\n\xff\n", ""),
        (b"one two three\nfour\n\x00\x01", ""),
    ],
    ids=["empty", "header-only", "times-that-are-none", "not-utf-8", "noise"],
)
def test_a_source_that_cannot_be_read_is_refused(
    twoview: Twoview, tmp_path: Path, content: bytes, wanted: str
) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    refused(twoview("prepare", tmp_path / "log.csv", "--out", tmp_path / "out"), wanted)
    assert {each.name for each in tmp_path.iterdir()} == {"log.csv"}


def test_a_source_that_is_not_there_names_the_catalogue(twoview: Twoview, tmp_path: Path) -> None:
    refused(twoview("prepare", "beuty", "--out", tmp_path / "out"), "beauty")
    refused(twoview("prepare", tmp_path / "gone.csv", "--out", tmp_path / "out"), "gone.csv")


def test_a_column_that_is_not_there_names_those_that_are(twoview: Twoview, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "who,what,when\n" + "".join(f"a{u},b{i},{i}\n" for u in range(3) for i in range(4))
    )
    told = ("--user", "whom", "--item", "what", "--time", "when")
    refused(twoview("prepare", tmp_path / "log.csv", "--out", tmp_path / "out", *told), "whom", "who")


def test_a_log_in_which_nobody_has_three_events_trains_nothing(twoview: Twoview, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user,item,time\n" + "".join(f"u{u},i{u % 3},{u}\n" for u in range(9)))
    assert twoview("prepare", tmp_path / "log.csv", "--out", tmp_path / "log").code == 0
    refused(twoview("train", "popularity", tmp_path / "log", "--out", tmp_path / "run"), "three events")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_exists_is_refused_without_force(twoview: Twoview, data: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user,item,time\na,b,1\na,c,2\na,d,3\n")
    command = ("prepare", tmp_path / "log.csv", "--out", tmp_path / "log")
    assert twoview(*command).code == 0
    refused(twoview(*command), "exists", "--force")
    assert twoview(*command, "--force").code == 0


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["sasrek"], "sasrec"),
        (["sasrec", "--recipe", "bestt"], "best"),
        (["sasrec", "--set", "dimm=3"], "dim"),
        (["sasrec", "--set", "dim"], "key=value"),
        (["sasrec", "--set", "dim=wide"], "dim"),
        (["contrastvae", "--set", "first.sampler=gausian"], "gaussian"),
        (["contrastvae", "--set", "contrast=info_mce"], "info_nce"),
        (["contrastvae", "--recipe", "released"], "md5"),
        (["sasrec", "--protocol", "loo"], "leave-one-out"),
        (["sasrec", "--device", "tpu"], "cpu"),
        (["sasrec", "--seeds", "0"], "seeds"),
        (["sasrec", "--set", "transformer.heads=3", "--set", "dim=8"], "heads"),
    ],
)
def test_a_misspelt_training_is_refused_with_what_exists(
    twoview: Twoview, data: Path, tmp_path: Path, words: list[str], wanted: str
) -> None:
    refused(twoview("train", words[0], data, "--out", tmp_path / "run", *words[1:]), wanted)
    assert not any(tmp_path.iterdir())


def test_training_wants_a_prepared_log(twoview: Twoview, tmp_path: Path) -> None:
    refused(twoview("train", "sasrec", tmp_path, "--out", tmp_path / "run"), "twoview prepare")
    refused(twoview("train", "sasrec"), "DATA", "--out")
    refused(twoview("train", "--resume", tmp_path / "gone"), "there is nothing")


def test_a_verb_that_does_not_exist_is_refused_in_words(twoview: Twoview) -> None:
    said = twoview("trian")
    assert said.code == 2 and "trian" in said.err


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    from twoview import Run

    Run.train("sasrec", data, folder / "sasrec", set=("dim=8", "rows.max_len=6"), epochs=1, seeds=2)
    Run.train("popularity", data, folder / "popularity")
    return folder


def test_evaluate_json_is_one_object_or_a_list_of_them(twoview: Twoview, runs: Path) -> None:
    one = json.loads(twoview("evaluate", runs / "popularity", "--json").out)
    assert one.keys() == {"run", "model", "protocol", "metrics"} and one["model"] == "popularity"
    assert {"recall@20", "ndcg@20", "mrr"} <= one["metrics"].keys()
    assert one["protocol"]["protocol"] == "leave-one-out" and one["protocol"]["seen"] == "removed"
    several = json.loads(twoview("evaluate", runs, "--json").out)
    assert [each["model"] for each in several] == ["popularity", "sasrec", "sasrec"]


def test_recommend_json_is_a_list_of_items(twoview: Twoview, runs: Path) -> None:
    one = json.loads(
        twoview("recommend", runs / "popularity", "--items", "item-1,item-2", "-k", 3, "--json").out
    )
    assert one.keys() == {"items"} and len(one["items"]) == 3
    assert one["items"][0].keys() == {"id", "title", "score"}
    several = json.loads(twoview("recommend", runs, "--user", "user-3", "--json").out)
    assert len(several) == 3 and {"run", "items"} == several[0].keys()


@pytest.mark.parametrize("verb", ["models", "objectives", "datasets"])
def test_what_there_is_comes_as_a_list_of_names(twoview: Twoview, verb: str) -> None:
    rows = json.loads(twoview(verb, "--json").out)
    assert all("name" in row for row in rows) and len(rows) > 2
    assert rows[0]["name"] in twoview(verb).out


def test_everybody_is_recommended_to_in_a_file(twoview: Twoview, runs: Path, tmp_path: Path) -> None:
    import polars as pl

    for ending in ("parquet", "csv", "tsv", "jsonl"):
        command = (
            "recommend",
            runs / "popularity",
            "--users",
            "all",
            "--out",
            tmp_path / f"recs.{ending}",
            "-k",
            2,
        )
        assert twoview(*command).code == 0
        refused(twoview(*command), "exists")
    frame = pl.read_parquet(tmp_path / "recs.parquet")
    assert frame.columns == ["user", "place", "item", "title", "score"] and len(frame) == 120
    assert frame.equals(pl.read_csv(tmp_path / "recs.csv").with_columns(pl.col("title").fill_null("")))
    refused(
        twoview("recommend", runs / "popularity", "--users", "all", "--out", tmp_path / "recs.xls"),
        ".parquet",
    )


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--items", "item-1,nothing"], "nothing"),
        (["--items", ","], "at least one item"),
        (["--user", "nobody"], "nobody"),
        (["--user", "user-1", "--data", "/nowhere"], "nowhere"),
        ([], "--user"),
        (["--items", "item-1", "--user", "user-1"], "one of"),
        (["--users", "all"], "--out"),
        (["--items", "item-1", "--only", "/nowhere"], "nowhere"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    twoview: Twoview, runs: Path, words: list[str], wanted: str
) -> None:
    refused(twoview("recommend", runs / "popularity", *words), wanted)


def test_two_data_sets_never_share_a_table(twoview: Twoview, runs: Path, tmp_path: Path) -> None:
    markov(60, 15, 7, 0.8, 1).save(tmp_path / "other")
    assert twoview("train", "popularity", tmp_path / "other", "--out", tmp_path / "run").code == 0
    refused(twoview("compare", runs / "popularity", tmp_path / "run"), "data")


def test_two_protocols_never_share_a_table(twoview: Twoview, runs: Path, data: Path, tmp_path: Path) -> None:
    assert twoview("train", "popularity", data, "--out", tmp_path / "run", "--seen", "kept").code == 0
    refused(twoview("compare", runs / "popularity", tmp_path / "run"), "seen")


def test_compare_groups_seeds_and_puts_the_best_first(twoview: Twoview, runs: Path) -> None:
    found = json.loads(twoview("compare", runs, "--json").out)
    assert [len(row["seeds"]) for row in found["rows"]] in ([2, 1], [1, 2])
    means = [row["metrics"]["ndcg@20"]["mean"] for row in found["rows"]]
    assert means == sorted(means, reverse=True)
    assert "popularity" in twoview("compare", runs).out


def test_a_full_disk_is_a_line_and_leaves_nothing(twoview: Twoview, data: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from twoview.cli import main; main()", "prepare", "synthetic"]
    limit = f"ulimit -f 8; exec {' '.join(map(repr, [*command, '--out', str(tmp_path / 'out')]))}"
    ignored = "trap '' XFSZ; " + limit
    done = subprocess.run(["bash", "-c", ignored], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and "could not be written" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_says_how_to_go_on_and_exits_with_130(data: Path, tmp_path: Path) -> None:
    words = ["train", "sasrec", str(data), "--out", str(tmp_path / "run"), "--epochs", "5000", *QUICK]
    words += ["--set", "fit.patience=5000", "--state-every", "0"]
    command = [sys.executable, "-c", "from twoview.cli import main; main()", *words]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    state = tmp_path / "run" / "state.safetensors"
    while not state.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 130 and "Traceback" not in told
    assert (
        told.splitlines()[-1] == f"twoview: interrupted; `twoview train --resume {tmp_path / 'run'}` goes on"
    )


def test_the_command_line_answers_before_torch_is_loaded() -> None:
    code = "import sys, twoview.cli; print(sorted({'torch', 'polars', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
