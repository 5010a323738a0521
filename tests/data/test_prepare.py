"""From a source to a folder: what is asked is done, what is wrong is one line, nothing is half-written."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from twoview.data import sources
from twoview.data.log import Log
from twoview.data.prepare import Options, prepare
from twoview.data.synthetic import Dials
from twoview.error import DataError

ROWS = "".join(f"u{k % 40},i{k % 7},{1 + k % 5},{1_400_000_000 + k}\n" for k in range(400))
CSV = "user_id,item_id,rating,timestamp\n" + ROWS


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def told(log: Log) -> list[tuple[str, str]]:
    pairs = zip(log.owners.tolist(), log.items.tolist(), strict=True)
    return [(log.user_ids[u], log.item_ids[i]) for u, i in pairs]


def test_the_folder_holds_the_log_that_is_returned(tmp_path):
    log, verdict = prepare(file(tmp_path, "a.csv", CSV), tmp_path / "log")
    assert Log.open(tmp_path / "log").arrays_md5 == log.arrays_md5
    wanted = "user=user_id item=item_id time=timestamp rating=rating (seconds)"
    assert verdict == f"comma-separated text with header; {wanted}"


def test_the_issue_s_verdict_for_tabs(tmp_path):
    path = file(tmp_path, "a.tsv", "user_id\titem_id\ttime\n1\tx\t1400000000\n")
    assert (
        sources.read(path)[1]
        == "tab-separated text with header; user=user_id item=item_id time=time (seconds)"
    )


def test_nothing_is_filtered_unless_asked(tmp_path):
    path = file(tmp_path, "a.csv", CSV)
    assert prepare(path, tmp_path / "all")[0].n_events == 400
    rated, _ = prepare(path, tmp_path / "rated", options=Options(min_rating=4))
    assert rated.n_events == 160 and rated.notes == ("240 events rated below 4 were left out",)
    cored, _ = prepare(path, tmp_path / "cored", options=Options(min_rating=4, min_count=10))
    assert cored.lengths.min() >= 10 and "10-core" in cored.notes[1]


def test_ids_are_numbered_by_first_appearance_among_what_was_kept(tmp_path):
    path = file(tmp_path, "a.csv", "user,item,rating\nb,x,1\na,y,5\nb,z,5\n")
    log, _ = prepare(path, tmp_path / "log", options=Options(min_rating=2))
    assert (log.user_ids, log.item_ids) == (["a", "b"], ["y", "z"])


def test_interleaved_users_are_grouped_and_equal_times_keep_the_file_s_order(tmp_path):
    rows = "user,item,time\na,1,5\nb,2,5\na,3,5\na,4,4\n"
    log, _ = prepare(file(tmp_path, "a.csv", rows), tmp_path / "log")
    assert told(log) == [("a", "4"), ("a", "1"), ("a", "3"), ("b", "2")]


def test_named_columns_override_the_sniffed_ones(tmp_path):
    path = file(
        tmp_path, "a.csv", "user_id,item_id,buyer,when\n1,x,p,2014-05-31\n2,x,p,2014-05-30T10:00:00Z\n"
    )
    log, verdict = prepare(path, tmp_path / "log", options=Options(user="buyer", time="when"))
    assert log.user_ids == ["p"] and log.times is not None
    assert log.times.tolist() == [1_401_444_000, 1_401_494_400] and "(dates)" in verdict


def test_columns_without_a_header_are_named_by_their_number(tmp_path):
    path = file(tmp_path, "a.csv", "x,1400000000,p\ny,1400000001,p\n")
    log, _ = prepare(path, tmp_path / "log", options=Options(user="3", item="1", time="2"))
    assert told(log) == [("p", "x"), ("p", "y")]


@pytest.mark.parametrize("header", ["", "user item timestamp\n"])
def test_blanks_separate_columns_too_and_a_line_that_ends_in_a_time_is_no_history(header, tmp_path):
    path = file(tmp_path, "a.txt", header + "7 x 1400000001\n8 y 1400000000\n")
    log, verdict = prepare(path, tmp_path / "log")
    assert told(log) == [("7", "x"), ("8", "y")] and log.times is not None and "blank-separated" in verdict


def test_pairs_with_a_header_are_columns(tmp_path):
    log, _ = prepare(file(tmp_path, "a.txt", "user item\n7 x\n8 y\n"), tmp_path / "log")
    assert told(log) == [("7", "x"), ("8", "y")]


@pytest.mark.parametrize(("third", "timed"), [("1400000000", True), ("4.5", False)])
def test_a_nameless_third_column_is_a_time_when_it_is_large_enough(third, timed, tmp_path):
    log, _ = prepare(file(tmp_path, "a.csv", f"u1,i1,{third}\nu1,i2,{third}\n"), tmp_path / "log")
    assert (log.times is not None) is timed


@pytest.mark.parametrize(
    ("unit", "factor"), [("seconds", 1), ("milli", 10**3), ("micro", 10**6), ("nano", 10**9)]
)
def test_units_of_time_are_told_apart_and_order_is_finer_than_a_second(unit, factor, tmp_path):
    late, early = 1_400_000_000 * factor + factor // 2, 1_400_000_000 * factor
    log, verdict = prepare(
        file(tmp_path, "a.csv", f"user,item,time\nu,late,{late}\nu,early,{early}\n"), tmp_path / "l"
    )
    assert log.times is not None and log.times.tolist() == [1_400_000_000] * 2 and unit in verdict
    assert told(log) == [("u", "late"), ("u", "early")] if factor == 1 else [("u", "early"), ("u", "late")]


def test_text_ids_are_never_numbers(tmp_path):
    log, _ = prepare(file(tmp_path, "a.csv", "user,item\n007,1.0\n7,1\n1e3,0x1\n"), tmp_path / "log")
    assert (log.user_ids, log.item_ids) == (["007", "7", "1e3"], ["1.0", "1", "0x1"])


def test_whole_floats_of_a_parquet_file_are_the_numbers_they_were(tmp_path):
    pl.DataFrame({"user": [1.0, None, 2.0], "item": [3, 4, 5]}).write_parquet(tmp_path / "a.parquet")
    log, _ = prepare(tmp_path / "a.parquet", tmp_path / "log")
    assert (log.user_ids, log.item_ids) == (["1", "2"], ["3", "5"])
    assert log.notes == ("1 events without a user or an item were left out",)


@pytest.mark.parametrize("place", ["parts", "parts/*.parquet"])
def test_parquet_in_parts_is_one_log(place, tmp_path):
    (tmp_path / "parts").mkdir()
    for part, rows in enumerate([{"user": ["a"], "item": ["x"]}, {"user": ["a"], "item": ["y"]}]):
        pl.DataFrame(rows).write_parquet(tmp_path / "parts" / f"{part}.parquet")
    log, verdict = prepare(tmp_path / place, tmp_path / "log")
    assert told(log) == [("a", "x"), ("a", "y")] and "2 files" in verdict and len(log.source_md5) == 32


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_parquet_dates_are_seconds_ordered_at_their_resolution(unit, tmp_path):
    times = pl.Series([1_400_000_000_900, 1_400_000_000_100]).cast(pl.Datetime("ms")).cast(pl.Datetime(unit))
    categories = pl.Series(["b", "a"], dtype=pl.Categorical)
    pl.DataFrame({"user": ["u", "u"], "item": categories, "time": times}).write_parquet(
        tmp_path / "a.parquet"
    )
    log, _ = prepare(tmp_path / "a.parquet", tmp_path / "log")
    assert told(log) == [("u", "a"), ("u", "b")]
    assert log.times is not None and log.times.tolist() == [1_400_000_000] * 2


def test_titles_and_attributes_come_from_beside_the_source(tmp_path):
    path = file(tmp_path, "Shop.txt", "1 10 20 30\n2 20 30\n")
    file(tmp_path, "Shop_item2attributes.json", json.dumps({"20": [5, 7, 5], "10": [7], "99": [1]}))
    titles = file(tmp_path, "names.tsv", "id\ttitle\n30\tPaper  filters\n10\tKäse\n")
    log, _ = prepare(path, tmp_path / "log", options=Options(titles=titles))
    assert log.titles == ["Käse", "", "Paper filters"] and log.attribute_ids == ["7", "5"]
    assert log.attributes is not None
    assert [column.tolist() for column in log.attributes] == [[0, 1, 3, 3], [0, 1, 0]]


@pytest.mark.parametrize(
    ("name", "content"), [("t.csv", '20,"Beans, dark"\n'), ("t.txt", "20 Beans, dark\n")]
)
def test_titles_are_two_columns_of_any_kind(name, content, tmp_path):
    path = file(tmp_path, "a.txt", "1 10 20 30\n2 20 30\n")
    log, _ = prepare(path, tmp_path / "log", options=Options(titles=file(tmp_path, name, content)))
    assert log.titles == ["", "Beans, dark", ""]


def test_recbole_s_item_file_gives_titles_and_attributes(tmp_path):
    path = file(
        tmp_path,
        "m.inter",
        "user_id:token\titem_id:token\ttimestamp:float\n1\t10\t881250949.0\n1\t20\t881250950\n",
    )
    header = "item_id:token\tmovie_title:token_seq\tyear:token\tclass:token_seq\tprice:float\n"
    file(tmp_path, "m.item", header + "20\tToy Story\t1995\tComedy Drama\t3.5\n10\t\t\tDrama\t1\n")
    log, _ = prepare(path, tmp_path / "log", options=Options(user="user_id"))
    assert log.titles == ["", "Toy Story"]
    assert log.attribute_ids == ["class=Drama", "year=1995", "class=Comedy"]


@pytest.mark.parametrize("name", ["ratings.dat", "ratings.csv", "u.data"])
def test_movielens_titles_and_genres_lie_beside_the_ratings(name, tmp_path):
    flags = "|".join("1" if place in (1, 5) else "0" for place in range(19))
    movies = {
        "ratings.dat": ("movies.dat", "1::Misérables, Les (1995)::Action|Comedy\n".encode("latin-1")),
        "ratings.csv": (
            "movies.csv",
            'movieId,title,genres\n1,"Misérables, Les (1995)",Action|Comedy\n'.encode(),
        ),
        "u.data": ("u.item", f"1|Misérables, Les (1995)|01-Jan-1995||http://x|{flags}\n".encode("latin-1")),
    }
    ratings = {
        "ratings.dat": "7::1::5::881250949\n7::2::5::881250950\n",
        "ratings.csv": "userId,movieId,rating,timestamp\n7,1,5,881250949\n7,2,4,881250950\n",
        "u.data": "7\t1\t5\t881250949\n7\t2\t5\t881250950\n",
    }
    file(tmp_path, *movies[name])
    file(tmp_path, name, ratings[name])
    log, _ = prepare(tmp_path, tmp_path / "log")
    assert log.titles == ["Misérables, Les (1995)", ""] and log.attribute_ids == ["Action", "Comedy"]


def test_the_synthetic_shop_is_prepared_by_name(tmp_path):
    log, verdict = prepare("synthetic", tmp_path / "log", options=Options(dials=Dials(users=30), min_count=2))
    assert log.titles and "synthetic shop" in verdict and Log.open(tmp_path / "log").titles == log.titles
    with pytest.raises(DataError, match="--min-rating came"):
        prepare("synthetic", tmp_path / "other", options=Options(min_rating=3))


def test_nobody_with_three_events_is_no_error(tmp_path):
    log, _ = prepare(file(tmp_path, "a.csv", "user,item\na,x\nb,y\n"), tmp_path / "log")
    assert "nobody has three events" in (tmp_path / "log" / "card.json").read_text() and log.n_events == 2


BAD = {
    "a file that is not there": ("nowhere.csv", None, {}, "there is no file or folder"),
    "a name that is not in the catalogue": (
        "beuty",
        None,
        {},
        r"no set of the catalogue: .*did you mean beauty\?",
    ),
    "a glob that matches nothing": ("*.nothing", None, {}, "no file matches"),
    "an unknown format": ("a.csv", CSV, {"format": "cvs"}, r"no format 'cvs'; .*did you mean csv\?"),
    "prose": (
        "a.doc",
        "Dear mother,\nhow are you?\n\nYours\n",
        {},
        "no format known here; name one with --format",
    ),
    "a column that is not there": (
        "a.csv",
        CSV,
        {"user": "usr_id"},
        r"no column 'usr_id'; it has user_id, item_id",
    ),
    "columns without known names": (
        "a.csv",
        "p,q\nx,1\ny,2\n",
        {},
        r"wants its user column named \(--user\); it has p, q",
    ),
    "no rating to filter by": ("a.csv", "user,item\na,x\n", {"min_rating": 3}, "wants a rating column"),
    "a rating that is no number": (
        "a.csv",
        "user,item,rating\na,x,good\n",
        {"min_rating": 3},
        "rating wants.*good",
    ),
    "bytes that are no UTF-8": ("a.csv", CSV.encode() + b"\xff\xfe,x,1,1\n", {}, "wants UTF-8"),
    "half a gz": ("a.csv.gz", gzip.compress(ROWS.encode())[:-200], {}, "cut short"),
    "half a parquet": ("a.parquet", b"PAR1" + bytes(100), {}, "cut short"),
    "an empty file": ("a.csv", "", {}, "is empty"),
    "a header alone": ("a.csv", "user_id,item_id,timestamp\n", {}, "has no events"),
    "users without items": ("a.csv", "user,item\na,\nb,\n", {}, "no events: 2 events without"),
    "times that are no times": (
        "a.csv",
        "user,item,time\na,x,soon\na,y,later\n",
        {},
        "number or an ISO date.*event 1",
    ),
    "one time that is no time": (
        "a.csv",
        "user,item,time\na,x,5\na,y,later\n",
        {},
        "number or an ISO date.*event 2",
    ),
    "one time that is missing": (
        "a.csv",
        "user,item,time\na,x,5\na,y,\n",
        {},
        "number or an ISO date.*event 2",
    ),
    "an id with a line break": ("a.csv", 'user,item\n"a\nb",x\n"c",y\n', {"format": "csv"}, "line break"),
    "a core of nothing": (
        "a.csv",
        "user,item\na,x\n",
        {"min_count": 5},
        "--min-count 5 leaves none of 1 events",
    ),
    "columns named for histories": (
        "a.txt",
        "1 2 3\n2 3\n",
        {"user": "x"},
        "no columns to name; --user x came",
    ),
    "lines of many lengths as csv": ("a.csv", "a,b\nc\nd,e,f\n", {"format": "csv"}, "equally many cells"),
    "more cells further down": ("a.csv", CSV + "a,b,1,1,1,1\n", {"format": "csv"}, "could not be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(case, tmp_path):
    name, content, asked, said = BAD[case]
    path = tmp_path / name if content is None else file(tmp_path, name, content)
    source = name if name == "beuty" else path
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError, match=said) as caught:
        prepare(source, tmp_path / "log", options=Options(**asked))
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before


def test_half_a_zst_is_refused(tmp_path):
    whole = tmp_path / "a.csv.zst"
    pl.DataFrame({"user": [f"u{k * 7919 % 1000}" for k in range(3000)], "item": range(3000)}).write_csv(
        whole, compression="zstd", check_extension=False
    )
    whole.write_bytes(whole.read_bytes()[:-500])
    with pytest.raises(DataError, match="cut short"):
        prepare(whole, tmp_path / "log")


@pytest.mark.parametrize(
    ("harm", "said"), [("[1]", "wants json of the form"), ('{"1": 2}', "is no list"), ("{", "json")]
)
def test_attributes_that_are_none_are_refused(harm, said, tmp_path):
    path, attributes = file(tmp_path, "a.csv", CSV), file(tmp_path, "a.json", harm)
    with pytest.raises(DataError, match=said):
        prepare(path, tmp_path / "log", options=Options(attributes=attributes))


def test_extras_that_are_not_there_are_refused(tmp_path):
    path = file(tmp_path, "a.csv", CSV)
    for asked in ({"titles": tmp_path / "t.csv"}, {"attributes": tmp_path / "t.json"}):
        with pytest.raises(DataError, match=r"t\.(csv|json) could not be read"):
            prepare(path, tmp_path / "log", options=Options(**asked))
    with pytest.raises(DataError, match="two columns"):
        prepare(path, tmp_path / "log", options=Options(titles=file(tmp_path, "t.txt", "alone\n")))


def test_folders_that_could_be_several_sources_or_none_are_refused(tmp_path):
    with pytest.raises(DataError, match="holds no file of a format known here; it holds nothing"):
        sources.read(tmp_path)
    file(tmp_path, "a.csv", CSV), file(tmp_path, "b.csv", CSV)
    with pytest.raises(DataError, match=r"2 files that could be the source; name one of a\.csv, b\.csv"):
        sources.read(tmp_path)
    prepare(tmp_path / "a.csv", tmp_path / "log")
    with pytest.raises(DataError, match="is a prepared log already"):
        sources.read(tmp_path / "log")


def test_an_out_that_exists_is_refused_before_anything_is_read(tmp_path):
    prepare(file(tmp_path, "a.csv", CSV), tmp_path / "log")
    with pytest.raises(DataError, match=r"exists.*--force"):
        prepare(tmp_path / "nowhere.csv", tmp_path / "log")
    assert prepare(tmp_path / "a.csv", tmp_path / "log", options=Options(force=True))[0].n_events == 400


def test_a_prepared_log_opens_without_polars_or_torch(tmp_path):
    prepare(file(tmp_path, "a.csv", CSV), tmp_path / "log")
    script = (
        "import sys; from twoview.data.log import Log; import twoview.data.prepare; Log.open(sys.argv[1]); "
        "print(sorted({'polars', 'torch', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "log")], capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
