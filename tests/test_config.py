"""What a part can be told, and what is answered when it is told something else."""

import tomllib
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, model_validator
from typing_extensions import TypeAliasType

from twoview.config import Part
from twoview.error import RecipeError
from twoview.recipe import Recipe, resolved

OWNER = __name__.rpartition(".")[2]


class Flat(Part):
    kind: Literal["flat_nce"] = "flat_nce"
    temperature: float = 0.5


class Info(Part):
    kind: Literal["info_nce"] = "info_nce"
    temperature: float = 0.1
    symmetric: bool = True


class Keep(Part):
    kind: Literal["keep"] = "keep"


class Crop(Part):
    kind: Literal["crop"] = "crop"
    ratio: float = 0.6


class Mask(Part):
    kind: Literal["mask"] = "mask"
    ratio: float = 0.3


class Encoder(Part):
    dim: int = 64
    heads: int = 2

    @model_validator(mode="after")
    def _heads_divide(self) -> "Encoder":
        if self.dim % self.heads:
            raise ValueError(f"dim wants to be a multiple of heads; {self.dim} and {self.heads} came")
        return self


Contrast = TypeAliasType("Contrast", Annotated[Flat | Info, Field(discriminator="kind")])
View = Annotated[Keep | Crop | Mask, Field(discriminator="kind")]


class Config(Part):
    dropout: float = Field(0.2, ge=0, lt=1)
    clip: float | None = None
    label: str = "plain"
    reading: Literal["mean", "upper"] = "mean"
    width: int | Literal["auto"] = "auto"
    encoder: Encoder = Encoder(dim=128)
    contrast: Contrast | None = Flat(temperature=0.7)
    views: tuple[View, View] = (Mask(ratio=0.2), Mask())
    extra_views: list[View] = Field(default_factory=list)


class Rows(Part):
    kind: Literal["last", "windows"] = "windows"
    max_len: int = 50


class Fit(Part):
    lr: float = 1e-3
    epochs: int = 100
    average: float | None = 0.999


SECTIONS: dict[str, type[Part]] = {"rows": Rows, "fit": Fit}


def recipe(*given: dict[str, Any]) -> Recipe:
    return resolved(Config, SECTIONS, *given)


def refusal(*given: dict[str, Any]) -> str:
    with pytest.raises(RecipeError) as caught:
        recipe(*given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_said_is_the_defaults() -> None:
    assert recipe() == Recipe(model=Config(), sections={"rows": Rows(), "fit": Fit()})


def test_a_part_is_frozen_and_has_only_its_own_keys() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Rows().max_len = 3
    with pytest.raises(ValidationError, match="Extra"):
        Rows(maxlen=3)


def test_the_right_amendment_wins_and_the_rest_stays() -> None:
    both = recipe({"dropout": 0.5, "fit": {"lr": 0.1, "epochs": 3}}, {"fit": {"lr": 0.2}})
    assert both.model.dropout == 0.5
    assert both.fit == Fit(lr=0.2, epochs=3)
    assert both.rows == Rows()


def test_a_nested_table_keeps_what_the_default_part_says() -> None:
    assert recipe({"encoder": {"heads": 4}}).model.encoder == Encoder(dim=128, heads=4)
    assert recipe({"contrast": {"temperature": 0.1}}).model.contrast == Flat(temperature=0.1)


def test_another_kind_drops_the_settings_of_the_first() -> None:
    assert recipe({"contrast": {"kind": "info_nce", "symmetric": False}}).model.contrast == Info(
        symmetric=False
    )


def test_the_same_kind_keeps_the_settings_of_the_first() -> None:
    assert recipe({"contrast": "flat_nce"}).model.contrast == Flat(temperature=0.7)


def test_a_word_for_a_part_is_its_kind() -> None:
    assert recipe({"contrast": "info_nce"}).model.contrast == Info()
    assert recipe({"contrast": "info_nce"}, {"contrast": {"temperature": 0.3}}).model.contrast == Info(
        temperature=0.3
    )


def test_a_list_of_parts_takes_words_and_tables() -> None:
    assert recipe({"views": ["keep", {"kind": "crop", "ratio": 0.1}]}).model.views == (
        Keep(),
        Crop(ratio=0.1),
    )
    assert recipe({"extra_views": ["mask"]}).model.extra_views == [Mask()]


def test_a_lone_part_stands_for_each_place_of_a_list() -> None:
    assert recipe({"views": "crop"}).model.views == (Crop(), Crop())
    assert recipe({"views": {"ratio": 0.9}}).model.views == (Mask(ratio=0.9), Mask(ratio=0.9))
    assert recipe({"extra_views": "crop"}).model.extra_views == [Crop()]
    assert recipe({"extra_views": ["crop", "keep"]}, {"extra_views": "mask"}).model.extra_views == [
        Mask(),
        Mask(),
    ]


def test_none_is_none_where_a_field_may_be_none_and_a_word_elsewhere() -> None:
    said = recipe({"contrast": "none", "clip": "none", "label": "none", "fit": {"average": "none"}})
    assert (said.model.contrast, said.model.clip, said.fit.average) == (None, None, None)
    assert said.model.label == "none"


def test_what_was_none_can_become_a_part_again() -> None:
    assert recipe({"contrast": "none"}, {"contrast": "info_nce"}).model.contrast == Info()
    assert "wants contrast.kind" in refusal({"contrast": "none"}, {"contrast": {"temperature": 1.0}})


def test_an_unknown_key_is_answered_with_the_right_ones() -> None:
    assert refusal({"dropuot": 0.1}) == (
        f"{OWNER} has no 'dropuot'; it has dropout, clip, label, reading, width, encoder, contrast, views, "
        "extra_views, start_from, rows, fit (did you mean dropout?)"
    )


def test_an_unknown_nested_key_is_named_by_its_whole_path() -> None:
    assert refusal({"encoder": {"hedas": 1}}) == (
        f"{OWNER} has no 'encoder.hedas'; encoder has dim, heads (did you mean encoder.heads?)"
    )
    assert refusal({"contrast": {"temprature": 1}}) == (
        f"{OWNER} has no 'contrast.temprature'; contrast (flat_nce) has kind, temperature "
        "(did you mean contrast.temperature?)"
    )
    assert refusal({"views": ["keep", {"kind": "crop", "rato": 1}]}) == (
        f"{OWNER} has no 'views.1.rato'; views.1 (crop) has kind, ratio (did you mean views.1.ratio?)"
    )
    assert refusal({"fit": {"lrr": 1}}).endswith(
        "has no 'fit.lrr'; fit has lr, epochs, average (did you mean fit.lr?)"
    )


def test_a_key_in_the_wrong_table_is_pointed_to_its_own() -> None:
    assert refusal({"max_len": 20}).endswith("(did you mean rows.max_len?)")


def test_an_unknown_kind_is_answered_with_those_that_exist() -> None:
    assert refusal({"contrast": "flatnce"}) == (
        f"{OWNER} has no contrast 'flatnce'; there are flat_nce, info_nce (did you mean flat_nce?)"
    )
    assert f"{OWNER} has no views.0 'msk'; there are crop, keep, mask" in refusal({"views": ["msk", "keep"]})


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"dropout": "much"}, "wants dropout to be a valid number; 'much' came"),
        ({"dropout": 1.5}, "wants dropout to be less than 1; 1.5 came"),
        ({"encoder": {"dim": 3.5}}, "wants encoder.dim to be a valid integer; 3.5 came"),
        ({"encoder": {"dim": True}}, "wants encoder.dim to be a valid integer; True came"),
        ({"encoder": 3}, "wants encoder to be a table; 3 came"),
        ({"reading": "median"}, "wants reading to be 'mean' or 'upper'; 'median' came"),
        ({"width": 1.5}, "wants width to be a valid integer or 'auto'; 1.5 came"),
        ({"encoder": {"heads": 3}}, ": encoder: dim wants to be a multiple of heads; 128 and 3 came"),
        ({"rows": 5}, "wants rows to be a table; 5 came"),
        ({"views": 5}, "wants views to be a valid tuple; 5 came"),
        ({"views": ["keep"]}, "wants views.1; nothing came"),
        ({"rows": {"kind": "lsat"}}, "wants rows.kind to be 'last' or 'windows'; 'lsat' came"),
        ({"start_from": 3}, "wants start_from to be the name of a run or a recipe; 3 came"),
    ],
)
def test_a_wrong_value_says_what_was_wanted_and_what_came(said: dict[str, Any], line: str) -> None:
    assert line in refusal(said)


def test_a_config_may_not_take_the_names_of_the_house() -> None:
    class Greedy(Part):
        fit: int = 3

    with pytest.raises(RecipeError, match="other names than fit"):
        resolved(Greedy, SECTIONS)


def test_what_a_set_says_of_itself_is_no_setting() -> None:
    assert recipe({"md5": ["a"], "variant": "ma"}) == recipe()


def test_the_start_is_kept_beside_the_settings() -> None:
    assert recipe({"start_from": "pretext"}).start_from == "pretext"
    assert recipe({"start_from": "pretext"}, {"start_from": "none"}).start_from is None
    assert recipe().start_from is None


numbers = st.floats(allow_nan=False)


@given(
    dropout=st.floats(0, 1, exclude_max=True),
    clip=st.none() | numbers,
    label=st.text().filter(lambda text: text != "none"),
    contrast=st.none() | st.builds(Flat, temperature=numbers) | st.builds(Info, symmetric=st.booleans()),
    views=st.tuples(st.builds(Keep), st.builds(Crop, ratio=numbers)),
    start=st.none() | st.just("before"),
)
def test_a_recipe_survives_its_own_toml(start: str | None, **said: Any) -> None:
    before = Recipe(
        model=Config(**said), sections={"rows": Rows(), "fit": Fit(average=None)}, start_from=start
    )
    assert recipe(tomllib.loads(before.to_toml())) == before


def test_toml_shows_every_setting_and_writes_none_as_a_word() -> None:
    shown = tomllib.loads(recipe({"contrast": "none"}).to_toml())
    assert set(shown) == {*Config.model_fields, "rows", "fit", "start_from"}
    assert (shown["contrast"], shown["clip"], shown["start_from"]) == ("none", "none", "none")
