"""A set is found where it lies, fetched when it does not, and never kept when it is another one."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from twoview.data import catalogue
from twoview.data.catalogue import Entry, Remote
from twoview.data.prepare import prepare
from twoview.error import DataError

TEXT = b"1 10 20 30\n2 20 30\n"


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


@pytest.fixture
def public(tmp_path, monkeypatch) -> Path:
    """A folder that stands for the network, an empty cache, and nothing in $TWOVIEW_DATA."""
    folder = tmp_path / "public"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TWOVIEW_DATA", raising=False)
    return folder


def known(monkeypatch, public: Path, **facts: object) -> Entry:
    """A catalogue of one set, `shop`, whose file is the folder's."""
    (public / "Shop.txt").write_bytes(TEXT)
    remote = {
        "path": "Shop.txt",
        "address": (public / "Shop.txt").as_uri(),
        "size": len(TEXT),
        "md5": md5(TEXT),
    }
    entry = Entry(name="shop", what="a shop", licence="ours", files=(Remote(**{**remote, **facts}),))
    monkeypatch.setattr(catalogue, "entries", lambda: {"shop": entry})
    return entry


def test_a_set_is_fetched_once_and_kept(public, monkeypatch, tmp_path):
    known(monkeypatch, public)
    path = catalogue.find("shop")
    assert path.read_bytes() == TEXT and path == tmp_path / "cache" / "twoview" / "shop" / "Shop.txt"
    (public / "Shop.txt").unlink()
    assert catalogue.find("shop") == path
    assert prepare("shop", tmp_path / "log")[0].source_md5 == md5(TEXT)


def test_an_archive_is_unpacked(public, monkeypatch):
    with zipfile.ZipFile(public / "shop.zip", "w") as packed:
        packed.writestr("shop/ratings.dat", "1::2::3::881250949\n")
        packed.writestr("shop/movies.dat", "2::Beans::Food\n")
    entry = Entry(
        name="shop",
        what="a shop",
        licence="ours",
        files=(Remote(path="shop.zip", address=(public / "shop.zip").as_uri()),),
        opens="shop/ratings.dat",
    )
    monkeypatch.setattr(catalogue, "entries", lambda: {"shop": entry})
    path = catalogue.find("shop")
    assert path.name == "ratings.dat" and sorted(p.name for p in path.parent.parent.iterdir()) == ["shop"]


@pytest.mark.parametrize("wrong", [{"md5": "0" * 32}, {"size": 3}])
def test_what_is_not_the_set_is_dropped(wrong, public, monkeypatch, tmp_path):
    known(monkeypatch, public, **wrong)
    with pytest.raises(DataError, match="came and were dropped"):
        catalogue.find("shop")
    assert list((tmp_path / "cache" / "twoview").iterdir()) == []


def test_without_a_network_one_line_says_where_it_was_looked_for(public, monkeypatch, tmp_path):
    known(monkeypatch, public, address="http://127.0.0.1:9/Shop.txt")
    with pytest.raises(
        DataError, match=r"shop is neither below \$TWOVIEW_DATA nor in .*could not be reached"
    ) as caught:
        catalogue.find("shop")
    assert "\n" not in str(caught.value) and list((tmp_path / "cache" / "twoview").iterdir()) == []


def test_a_file_below_the_user_s_data_is_taken_first_if_it_is_the_one(public, monkeypatch, tmp_path):
    known(monkeypatch, public, address="http://127.0.0.1:9/Shop.txt")
    for folder, content in (("another", b"1 2 3\n"), ("deep/down", TEXT)):
        (tmp_path / "mine" / folder).mkdir(parents=True)
        (tmp_path / "mine" / folder / "Shop.txt").write_bytes(content)
    monkeypatch.setenv("TWOVIEW_DATA", str(tmp_path / "mine"))
    assert catalogue.find("shop") == tmp_path / "mine" / "deep" / "down" / "Shop.txt"


def test_a_path_that_exists_goes_before_a_name(public, monkeypatch, tmp_path):
    known(monkeypatch, public)
    monkeypatch.chdir(tmp_path)
    Path("shop").mkdir()
    Path("shop", "Mine.txt").write_bytes(b"1 2 3 4\n2 3\n")
    assert prepare("shop", "log")[0].n_events == 4


def test_every_entry_is_whole():
    for name, entry in catalogue.entries().items():
        assert entry.name == name and entry.what and entry.licence
        for file in entry.files:
            assert file.address.startswith("https://")
            assert file.md5 is None or len(file.md5) == 32
        assert entry.opens or not entry.files[0].path.endswith(".zip")


def test_the_paper_s_sets_are_pinned_to_the_paper_s_bytes():
    pinned = {name: catalogue.entries()[name].files[0].md5 for name in ("beauty", "toys", "tools", "office")}
    assert pinned == {
        "beauty": "cb03635343187f36526ed4ba48102b53",
        "toys": "b139ecacfc81d0fb642bc2f448f13843",
        "tools": "7eb8e7bbb8d42bfab6bb4b85df5061ec",
        "office": "fd6bbdc6129c7865213e22e4516dfa3b",
    }


def test_the_list_of_sets_names_them_all():
    listed = catalogue.describe()
    assert [row["name"] for row in listed] == catalogue.names() and listed[0]["name"] == "synthetic"
    assert all({"what", "licence", "files"} <= row.keys() for row in listed)
