"""One file to which epochs are appended, wherever a process dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema, UsageError
from oop_engine.connectors.by_name import sink_of
from oop_engine.errors import SetupError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import OneFile

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")


def page(ts: int) -> Page:
    return Page.of(SCHEMA, {"ts": [ts], "key": ['a,"é']})


async def opened(path: Path, *prepared: Any) -> OneFile:
    sink = OneFile(path)
    await sink.open(SCHEMA, "run", prepared)
    return sink


async def epoch(sink: OneFile, number: int) -> Any:
    await sink.write(number, page(number))
    return await sink.prepare(number)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
@pytest.mark.parametrize("torn", [0, 1, 7, None])
def test_a_process_that_dies_in_a_commit_leaves_each_row_once(
    suffix: str, torn: int | None, tmp_path: Path
) -> None:
    path = tmp_path / f"out.{suffix}"

    async def main() -> None:
        sink = await opened(path)
        await sink.commit(await epoch(sink, 1))
        whole = path.read_bytes()
        second = json.loads(json.dumps(await epoch(sink, 2)))
        if torn is None:
            await sink.commit(second)
        else:
            path.write_bytes(whole + second[1].encode()[:torn])
        await sink.close()
        again = await opened(path, second)
        for _ in range(2):
            await again.commit(second)
        await again.commit(await again.prepare(3))  # no results
        await again.commit(await epoch(again, 4))
        await again.close()

    run_async(main())
    header = ["ts,key"] if suffix == "csv" else []
    assert lines(path)[: len(header)] == header
    assert len(lines(path)) == len(header) + 3
    assert [json.loads(line)["ts"] for line in lines(path)] == [1, 2, 4] if suffix == "jsonl" else True


def test_a_file_that_is_there_is_appended_to_and_its_torn_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text('{"ts": 0}\n{"ts"')

    async def main() -> None:
        sink = await opened(path)
        await sink.commit(await epoch(sink, 1))
        await sink.close()

    run_async(main())
    assert lines(path)[:2] == ['{"ts": 0}', '{"ts"']
    assert json.loads(lines(path)[2])["ts"] == 1


def test_what_does_not_fit_is_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(UsageError, match="format must be one of jsonl, csv; got 'parquet'"):
        sink_of(f"file:{tmp_path / 'out.parquet'}")
    with pytest.raises(SetupError, match="there is no folder"):
        run_async(opened(tmp_path / "none" / "out.jsonl"))
    with pytest.raises(SetupError, match="has 0 bytes, and a checkpoint 40: restore the file"):
        run_async(opened(path, [40, ""]))

    async def two() -> None:
        first = await opened(path)
        try:
            await opened(path)
        finally:
            await first.close()

    with pytest.raises(SetupError, match="another service writes to it"):
        run_async(two())


@pytest.mark.parametrize("event", ["removed", "renamed", "replaced", "cut"])
def test_a_file_that_others_take_away_while_a_service_writes_is_told(event: str, tmp_path: Path) -> None:
    """No result goes to a file that no reader finds, nor behind a hole."""
    path = tmp_path / "out.jsonl"

    async def main() -> None:
        sink = await opened(path)
        await sink.commit(await epoch(sink, 1))
        if event == "cut":
            path.write_bytes(b"")
        else:
            path.rename(tmp_path / "old")
            if event == "replaced":
                path.write_bytes((tmp_path / "old").read_bytes())
        second = await epoch(sink, 2)
        words = (
            "was cut to 0 bytes, and a checkpoint has"
            if event == "cut"
            else "was removed, renamed or replaced: put it"
        )
        with pytest.raises(SetupError, match=words):
            await sink.commit(second)
        await sink.close()

    run_async(main())
