"""`oop-engine sql`, and files of SQL for the other commands."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oop_engine import UsageError, open_trace, scan
from oop_engine.cli.app import app
from oop_engine.cli.running.sql_prompt import Sitting
from oop_engine.formats import CsvFormat

LINES = [
    "ts,host",
    "2026-01-01T00:00:01Z,a",
    "2026-01-01T00:00:03Z,b",
    "2026-01-01T00:00:02Z,a",
    "2026-01-01T00:01:02Z,a",
]
SCRIPT = """
CREATE TABLE access (ts TIMESTAMPTZ, host VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
INSERT INTO counts SELECT host, window_end, count(*) AS n
FROM TUMBLE(access, ts, INTERVAL '1' MINUTE) GROUP BY ALL;
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "access.csv").write_text("\n".join(LINES) + "\n")
    (tmp_path / "query.sql").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_query_over_a_file(folder: Path) -> None:
    done = called(
        "sql", "SELECT host, count(*) AS n FROM 'access.csv' GROUP BY host ORDER BY n DESC", "--json"
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"host": "a", "n": 3},
        {"host": "b", "n": 1},
    ]
    assert "records come up to 1 s out of order" in done.stderr
    assert "4 rows read, 2 results; no tuples were late" in done.stderr


def test_an_integer_event_time_has_the_unit_that_is_given(folder: Path) -> None:
    (folder / "n.csv").write_text("at,host\n1,a\n12,b\n")
    text = "SELECT host, window_end FROM TUMBLE('n.csv', at, INTERVAL '10 seconds') GROUP BY ALL"
    assert "the event time 'at' is an integer: give its unit, --unit s" in called("sql", text).stderr
    done = called("sql", text, "--unit", "ms", "--json")
    assert [json.loads(line)["window_end"] for line in done.stdout.splitlines()] == [10_000, 10_000]
    assert (
        len(called("sql", "SELECT host FROM 'access.csv'", "--unit", "s", "--json").stdout.splitlines()) == 4
    )


def test_of_several_columns_of_times_the_one_that_is_named_so_or_asked_for(folder: Path) -> None:
    (folder / "days.csv").write_text("day;time;n\n01.03.2026;2026-03-01T08:00:01;2\n")
    (folder / "two.csv").write_text("made,seen,n\n2026-03-01T08:00:00,2026-03-01T08:00:01,2\n")
    found = called("sql", "SELECT n, lag(n) OVER (ORDER BY time) AS l FROM 'days.csv'", "--json")
    assert json.loads(found.stdout) == {"n": 2, "l": None}
    assert "--time" in called("sql", "SELECT n FROM 'two.csv'").stderr
    assert json.loads(called("sql", "SELECT n FROM 'two.csv'", "--time", "seen", "--json").stdout) == {"n": 2}


def test_results_go_into_a_file(folder: Path) -> None:
    text = "SELECT host, window_end, count(*) AS n FROM TUMBLE(log, ts, INTERVAL '1 minute') GROUP BY ALL"
    done = called("sql", text, "--table", "log=access.csv", "--out", "counts.parquet")
    assert done.exit_code == 0, done.stderr
    assert sum(map(len, open_trace("counts.parquet", time="window_end").pages())) == 3


def test_a_file_of_json_is_one_list_and_another_suffix_is_refused_before_the_query_runs(folder: Path) -> None:
    text = "SELECT host, max(ts) AS t FROM 'access.csv' GROUP BY host ORDER BY host"
    assert called("sql", text, "--out", "found.json").exit_code == 0
    rows = json.loads(Path("found.json").read_text())
    assert rows == [
        {"host": "a", "t": "2026-01-01T00:01:02.000000Z"},
        {"host": "b", "t": "2026-01-01T00:00:03.000000Z"},
    ]
    refused = called("sql", text, "--out", "found.xyz")
    assert refused.exit_code != 0
    assert "rows read" not in refused.stderr


def test_the_line_that_profile_proposes_runs(folder: Path) -> None:
    """Also where the column's name is a word of SQL."""
    Path("visits.csv").write_text("\n".join(["when,order", *LINES[1:]]) + "\n")
    shown = called("profile", "visits.csv", "--time", "when").stdout
    [line] = [one for one in shown.splitlines() if "oop-engine sql" in one]
    text = shlex.split(line)[2]
    assert '"order"' in text
    done = called("sql", text, "--json")
    assert sum(json.loads(one)["n"] for one in done.stdout.splitlines()) == 4, done.stderr


def test_a_result_without_a_name_has_its_text(folder: Path) -> None:
    assert called("sql", "SELECT count(*), max(host) FROM 'access.csv'", "--json").stdout == (
        '{"count(*)": 4, "max(host)": "b"}\n'
    )


def test_the_plan(folder: Path) -> None:
    done = called("sql", "--explain", "SELECT count(*) FROM 'access.csv'")
    assert "WindowAggregate(Global()" in done.stdout
    assert "without an end: a GROUP BY without a window" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["SELECT hots FROM 'access.csv'"],
            "did you mean host?\n  SELECT hots FROM 'access.csv'\n         ^",
        ),
        (["SELECT * FROM 'nowhere.csv'"], "nowhere.csv"),
        (
            [
                "SELECT window_end, count(*) FROM TUMBLE('access.csv', host, INTERVAL '1' MINUTE) GROUP BY window_end"
            ],
            "such as 'a': write 2024-05-01T12:00:00Z, or name another column, such as ts",
        ),
        (["SELECT 1", "--table", "log"], "must be NAME=FILE"),
        (
            ["CREATE TABLE log (ts TIMESTAMP, WATERMARK FOR ts AS INTERVAL '9' SECOND); SELECT ts FROM log"],
            "column 14: a watermark reads ts - INTERVAL '90' SECOND; got INTERVAL '9' SECOND",
        ),
        ([], "the prompt needs a terminal"),
    ],
)
def test_mistakes(folder: Path, arguments: list[str], words: str) -> None:
    done = called("sql", *arguments)
    assert done.exit_code == 2
    assert words in done.stderr


def test_dates_of_two_meanings_are_read_as_an_option_has_them(folder: Path) -> None:
    (folder / "visits.log").write_text("day;n\n03/04/2026;1\n04/04/2026;2\n05/05/2026;4\n")
    query = "SELECT date_trunc('month', day) AS m, sum(n) AS n FROM 'visits.csv' GROUP BY m ORDER BY m"
    (folder / "visits.csv").write_bytes((folder / "visits.log").read_bytes())
    done = called("sql", query, "--time", "day")
    assert done.exit_code == 2
    assert 'CsvFormat(dates="%d/%m/%Y") reads it: --csv "dates=%d/%m/%Y" or ' in done.stderr
    for dates, counts in (("%d/%m/%Y", [3, 4]), ("%m/%d/%Y", [1, 2, 4])):
        for name in ("visits.csv", "visits.log"):
            done = called("sql", query.replace("visits.csv", name), "--csv", f"dates={dates}", "--json")
            assert [json.loads(line)["n"] for line in done.stdout.splitlines()] == counts, done.stderr
        read = scan("visits.log", csv=CsvFormat(dates=dates)).event_time("day", "60 d")
        assert read.columns == ["day", "n"]
        assert read.run().table.num_rows == 3
    with pytest.raises(UsageError, match="csv tells how a CSV file is written; this is jsonl"):
        scan("visits.jsonl", csv=CsvFormat())


def test_a_file_that_cannot_have_a_column_is_refused_before_the_run(folder: Path) -> None:
    (folder / "nested.jsonl").write_text('{"ts": "2026-01-01T00:00:00Z", "o": {"a": 1}}\n')
    done = called("sql", "SELECT * FROM 'nested.jsonl'", "--out", "x.csv")
    assert done.exit_code == 2
    assert (
        "column 'o', struct<a: int64>, has no text form: write .parquet, .arrow or .json, or SELECT"
        in done.stderr
    )
    assert not Path("x.csv").exists()
    for query, out in (("SELECT * EXCLUDE (o)", "x.csv"), ("SELECT o.a", "y.csv"), ("SELECT *", "x.json")):
        assert called("sql", f"{query} FROM 'nested.jsonl'", "--out", out).exit_code == 0
    assert Path("y.csv").read_text().splitlines()[0] == '"a"'


def test_a_file_of_sql_is_a_graph(folder: Path) -> None:
    assert "WindowAggregate" in called("explain", "query.sql").stdout
    done = called("run", "query.sql", "access.csv", "--json")
    assert [json.loads(line)["n"] for line in done.stdout.splitlines()] == [2, 1, 1]


def test_a_file_of_sql_is_a_service(folder: Path) -> None:
    source = "tail:access.csv?follow=no"
    done = called("run", "query.sql", "--source", source, "--sink", "jsonl:out", "--checkpoint", "state")
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for file in Path("out").iterdir() for line in file.read_text().splitlines()]
    assert sorted(row["n"] for row in rows) == [1, 1, 2]


def test_a_service_needs_a_state_with_an_end(folder: Path) -> None:
    text = SCRIPT.replace(
        "FROM TUMBLE(access, ts, INTERVAL '1' MINUTE) GROUP BY ALL", "FROM access GROUP BY host"
    )
    Path("query.sql").write_text(text.replace("window_end, ", ""))
    done = called("run", "query.sql", "--source", "tail:access.csv", "--sink", "jsonl:out")
    assert done.exit_code == 2
    assert "has a state without an end over a live source" in done.stderr


def test_the_prompt_remembers_views(folder: Path) -> None:
    session = Sitting({"log": "access.csv"})
    assert list(session.answer("CREATE VIEW a AS SELECT * FROM log WHERE host = 'a';")) == ["declared"]
    [query] = session.answer("SELECT count(*) AS n FROM a;")
    assert not isinstance(query, str)
    assert query.run().table.to_pylist() == [{"n": 3}]
    assert list(session.answer("\\tables")) == ["log: access.csv"]
    assert "event time ts" in str(*session.answer("\\profile access.csv"))
    assert "agg" in str(*session.answer("\\explain SELECT count(*) FROM a;"))
    assert "ends with" in str(*session.answer("\\h"))


def test_an_order_is_refused_where_results_are_emitted_one_by_one(folder: Path) -> None:
    (folder / "query.sql").write_text(SCRIPT.replace("GROUP BY ALL", "GROUP BY ALL ORDER BY n LIMIT 1"))
    live = ("--source", "access=tail:access.csv", "--sink", "counts=parquet:out", "--checkpoint", "state")
    for arguments in (("access.csv",), live):
        done = called("run", "query.sql", *arguments)
        assert done.exit_code == 2
        assert "ORDER BY and LIMIT of 'counts' need all results" in done.stderr
