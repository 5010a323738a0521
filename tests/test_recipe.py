"""Where amendments come from, how they add up, and what is answered to those that do not exist."""

from pathlib import Path
from typing import Any

import pytest

from twoview.config import Part
from twoview.error import RecipeError
from twoview.recipe import amended, amendments, completed, recipe_file, recipe_names, resolved, settings


def test_the_right_amendment_wins_in_depth() -> None:
    assert amended({"dim": 1, "fit": {"lr": 1}}, {"fit": {"lr": 2}}) == {"dim": 1, "fit": {"lr": 2}}


def test_a_table_whose_kind_changes_keeps_nothing_else() -> None:
    base = {"contrast": {"kind": "flat_nce", "temperature": 0.7}}
    assert amended(base, {"contrast": {"kind": "info_nce"}}) == {"contrast": {"kind": "info_nce"}}
    assert amended(base, {"contrast": "info_nce"}) == {"contrast": {"kind": "info_nce"}}
    assert amended(base, {"contrast": {"kind": "flat_nce"}}) == base
    assert amended(base, {"contrast": "flat_nce"}) == base


def test_settings_join_a_kind_that_was_given_as_a_word() -> None:
    assert amended({"contrast": "info_nce"}, {"contrast": {"temperature": 0.3}}) == {
        "contrast": {"kind": "info_nce", "temperature": 0.3}
    }


def test_a_table_over_a_list_of_tables_amends_each() -> None:
    views = [{"kind": "mask", "ratio": 0.2}, {"kind": "crop", "ratio": 0.6}]
    assert amended({"views": views}, {"views": {"ratio": 0.1}}) == {
        "views": [{**each, "ratio": 0.1} for each in views]
    }
    assert amended({"views": views}, {"views": "mask"}) == {"views": [views[0], {"kind": "mask"}]}
    assert amended({"views": views}, {"views": ["keep"]}) == {"views": ["keep"]}


def test_amending_leaves_both_sides_as_they_were() -> None:
    base, amendment = {"fit": {"lr": 1}}, {"fit": {"epochs": 2}}
    assert amended(base, amendment) == {"fit": {"lr": 1, "epochs": 2}}
    assert (base, amendment) == ({"fit": {"lr": 1}}, {"fit": {"epochs": 2}})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("128", 128),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("none", "none"),
        ("flat_nce", "flat_nce"),
        ("'12'", "12"),
        ("2020-01-01", "2020-01-01"),
        ('["mask","crop"]', ["mask", "crop"]),
        ("[mask, .5]", ["mask", 0.5]),
        ("[]", []),
        ("{kind=mask, ratio=.3}", {"kind": "mask", "ratio": 0.3}),
        ("[{kind=mask,ratio=.3},keep]", [{"kind": "mask", "ratio": 0.3}, "keep"]),
        ("'a,b'", "a,b"),
        ("runs/it's", "runs/it's"),
    ],
)
def test_a_setting_is_read_as_toml_where_it_is_toml(text: str, value: Any) -> None:
    [(name, amendment)] = settings([f"key={text}"])
    assert (name, amendment) == ("", {"key": value})
    assert type(amendment["key"]) is type(value)


def test_no_setting_is_one_point_without_a_name() -> None:
    assert settings([]) == [("", {})]


def test_dots_nest_and_later_settings_join_earlier_ones() -> None:
    [(_, amendment)] = settings(["contrast=info_nce", "contrast.temperature=.5", "rows.max_len=200"])
    assert amendment == {"contrast": {"kind": "info_nce", "temperature": 0.5}, "rows": {"max_len": 200}}


def test_a_comma_sweeps_and_names_each_point_by_what_was_swept() -> None:
    grid = settings(["dim=64,128", "heads=2", "fit.lr=.1,.01"])
    assert [point.name for point in grid] == [
        "dim=64,fit.lr=.1",
        "dim=64,fit.lr=.01",
        "dim=128,fit.lr=.1",
        "dim=128,fit.lr=.01",
    ]
    assert grid[1].amendment == {"dim": 64, "heads": 2, "fit": {"lr": 0.01}}


def test_a_comma_in_brackets_does_not_sweep() -> None:
    grid = settings(['views=["mask","crop"],[keep,keep]'])
    assert [point.amendment["views"] for point in grid] == [["mask", "crop"], ["keep", "keep"]]


def test_a_swept_path_names_one_folder() -> None:
    assert [point.name for point in settings(["start_from=runs/a,runs/b"])] == [
        "start_from=runs_a",
        "start_from=runs_b",
    ]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["dim"], "--set wants key=value; 'dim' came"),
        (["=3"], "--set wants key=value"),
        (["a..b=3"], "--set wants key=value"),
        (["dim="], "--set dim wants different values between commas; '' came"),
        (["dim=1,"], "different values"),
        (["dim=1,1"], "different values"),
        (["dim=1", "dim=2"], "each key once; dim came twice"),
    ],
)
def test_a_setting_that_says_nothing_is_refused(words: list[str], line: str) -> None:
    with pytest.raises(RecipeError, match=line.replace("'", ".")):
        settings(words)


def test_recipes_add_up_from_left_to_right() -> None:
    assert recipe_names("paper+ma+beauty") == ["paper", "ma", "beauty"]
    for text in ("", "paper+", "paper++ma"):
        with pytest.raises(RecipeError, match="between them"):
            recipe_names(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "paper": "dropout = .5",
        "released": "dropout = 0.1",
        "ma": 'views = ["mask", "keep"]',
        "beauty": 'md5 = ["cb03", "ffff"]\nvariant = "ma"\nrows.max_len = 60',
        "office": 'md5 = ["fd6b"]',
    }.items():
        (tmp_path / f"{name}.toml").write_text(text.replace("= .", "= 0."))
    return tmp_path


def test_a_recipe_is_found_by_name_and_best_may_be_absent(folder: Path) -> None:
    assert amendments(recipe_file(folder, "contrastvae", "paper")) == {"dropout": 0.5}
    assert amendments(recipe_file(folder, "contrastvae", "best")) == {}


@pytest.mark.parametrize("name", ["papr", "../paper", ""])
def test_an_unknown_recipe_is_answered_with_those_that_exist(folder: Path, name: str) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe_file(folder, "contrastvae", name)
    assert f"contrastvae has no recipe '{name}'; it has beauty, best, ma, office, paper, released" in str(
        caught.value
    )


def test_a_file_that_is_no_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"absent\.toml; No such file"):
        amendments(tmp_path / "absent.toml")
    for content in (b"dim 3", b"a = '\xff'"):
        (tmp_path / "broken.toml").write_bytes(content)
        with pytest.raises(RecipeError, match=r"in toml was wanted at .*broken\.toml"):
            amendments(tmp_path / "broken.toml")


def test_paper_alone_finds_its_variant_and_set_and_says_so(folder: Path) -> None:
    names, sentence = completed(["paper"], "cb03", folder)
    assert names == ["paper", "ma", "beauty"]
    assert sentence == "recipe paper+ma+beauty: the md5 of the log's source is that of beauty"
    assert completed(["released"], "fd6b", folder)[0] == ["released", "office"]


def test_what_was_asked_for_by_name_is_left_alone(folder: Path) -> None:
    assert completed(["paper", "ma"], "cb03", folder) == (["paper", "ma"], "")
    assert completed(["best"], "unknown", folder) == (["best"], "")


def test_an_unknown_log_is_told_which_sets_there_are(folder: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"md5; 1234 came; there are beauty \(cb03, ffff\), office \(fd6b\)"
    ):
        completed(["paper"], "1234", folder)


def test_a_model_without_sets_completes_nothing(tmp_path: Path) -> None:
    (tmp_path / "paper.toml").write_text("dim = 50")
    assert completed(["paper"], "1234", tmp_path) == (["paper"], "")


class Rows(Part):
    max_len: int = 50


class Config(Part):
    dropout: float = 0.2
    dim: int = 64
    views: tuple[str, ...] = ()


def test_a_sum_of_files_and_settings_becomes_one_recipe(folder: Path) -> None:
    files = [amendments(recipe_file(folder, "contrastvae", name)) for name in recipe_names("paper+ma+beauty")]
    [point] = settings(["dim=128"])
    whole = resolved(Config, {"rows": Rows}, *files, point.amendment)
    assert whole.model == Config(dropout=0.5, views=("mask", "keep"), dim=128)
    assert whole.rows.max_len == 60
