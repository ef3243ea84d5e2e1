from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine import Schema
from oop_engine.operators.in_order.opib_join import OPIBJoin
from oop_engine.operators.in_order.opob_join import OPOBJoin
from oop_engine.operators.joining.bands import AsOf, Band, TumblingBand, WindowIdBand
from oop_engine.operators.multi_way_join import MultiJoin
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.values.flush import Slow
from tests.cases import Case, Row
from tests.naive.joins import Times, as_of, band, joined, multi_joined, tumbling, window_ids, window_join

LEFT = Schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int32()}, "ts", "s")
RIGHT = Schema({"ts": pa.int64(), "key": pa.string(), "n": pa.int32(), "x": pa.float64()}, "ts", "s")
ONE, TWO, NO_KEYS = (("k", "key"),), (("k", "key"), ("n", "n")), ()


def more_right(joined: pa.RecordBatch) -> NDArray[np.bool_]:
    return joined.column("n").fill_null(0).to_numpy() < joined.column("n_right").fill_null(0).to_numpy()


def pairs(keys: tuple[tuple[str, str], ...], times: Times, residual=lambda row: True):
    return lambda inputs: window_join(inputs[0], inputs[1], keys, times, residual)


def of_kind(kind: str, keys: tuple[tuple[str, str], ...], times: Times, residual=lambda row: True):
    names = LEFT.names, RIGHT.names
    return lambda inputs: joined(kind, inputs[0], inputs[1], keys, times, residual, names)


def latest(kind: str, keys: tuple[tuple[str, str], ...], within: int | None = None):
    return lambda inputs: as_of(kind, inputs[0], inputs[1], keys, (LEFT.names, RIGHT.names), within)


def all_of(keys: Sequence[Sequence[str]], **bands: Times):
    return lambda inputs: multi_joined(inputs, keys, bands)


def less(row: Row) -> bool | None:
    return None if None in (row["n"], row["x"]) else row["n"] < row["x"]


def zero_if_null(value: int | None) -> int:
    return value or 0


CASES = [
    Case("oa_join-band", OAJoin(ONE, Band(2, "5 s")), (LEFT, RIGHT), pairs(ONE, band(2, 5))),
    Case(
        "oa_join-two_keys-both",
        OAJoin(TWO, Band(9, -4), punctuation="both"),
        (LEFT, RIGHT),
        pairs(TWO, band(9, -4)),
    ),
    Case("oa_join-tumbling", OAJoin(ONE, TumblingBand(7, 3)), (LEFT, RIGHT), pairs(ONE, tumbling(7, 3))),
    Case(
        "oa_join-no_keys",
        OAJoin(NO_KEYS, Band(0, 1), punctuation="both"),
        (LEFT, RIGHT),
        pairs(NO_KEYS, band(0, 1)),
    ),
    Case(
        "oa_join-expression",
        OAJoin(ONE, Band(10, 10), residual=pc.field("n") < pc.field("x"), punctuation="joint"),
        (LEFT, RIGHT),
        pairs(ONE, band(10, 10), less),
    ),
    Case(
        "oa_join-function",
        OAJoin(ONE, TumblingBand(10), residual=more_right, punctuation="both"),
        (LEFT, RIGHT),
        pairs(ONE, tumbling(10), lambda row: zero_if_null(row["n"]) < zero_if_null(row["n_right"])),
    ),
    Case("opob_join-band", OPOBJoin(ONE, Band(2, 5)), (LEFT, RIGHT), pairs(ONE, band(2, 5))),
    Case("opob_join-tumbling", OPOBJoin(TWO, TumblingBand(7)), (LEFT, RIGHT), pairs(TWO, tumbling(7))),
    Case("opib_join-band", OPIBJoin(ONE, Band(2, 5)), (LEFT, RIGHT), pairs(ONE, band(2, 5))),
    Case("opib_join-ahead", OPIBJoin(NO_KEYS, Band(-3, 5)), (LEFT, RIGHT), pairs(NO_KEYS, band(-3, 5))),
    Case("opib_join-tumbling", OPIBJoin(ONE, TumblingBand(7)), (LEFT, RIGHT), pairs(ONE, tumbling(7))),
    Case(
        "oa_join-left", OAJoin(ONE, Band(2, 5), how="left"), (LEFT, RIGHT), of_kind("left", ONE, band(2, 5))
    ),
    Case(
        "oa_join-left-two_keys-residual",
        OAJoin(TWO, TumblingBand(7), residual=pc.field("n") < pc.field("x"), punctuation="both", how="left"),
        (LEFT, RIGHT),
        of_kind("left", TWO, tumbling(7), less),
    ),
    Case(
        "oa_join-full",
        OAJoin(ONE, Band(3, -1), punctuation="both", how="full"),
        (LEFT, RIGHT),
        of_kind("full", ONE, band(3, -1)),
    ),
    Case(
        "oa_join-full-function",
        OAJoin(TWO, TumblingBand(9), residual=more_right, how="full"),
        (LEFT, RIGHT),
        of_kind("full", TWO, tumbling(9), lambda row: zero_if_null(row["n"]) < zero_if_null(row["n_right"])),
    ),
    Case(
        "oa_join-semi", OAJoin(ONE, Band(2, 5), how="semi"), (LEFT, RIGHT), of_kind("semi", ONE, band(2, 5))
    ),
    Case(
        "oa_join-semi-residual",
        OAJoin(TWO, Band(9, 9), residual=pc.field("n") < pc.field("x"), how="semi"),
        (LEFT, RIGHT),
        of_kind("semi", TWO, band(9, 9), less),
    ),
    Case(
        "oa_join-anti", OAJoin(TWO, Band(2, 5), how="anti"), (LEFT, RIGHT), of_kind("anti", TWO, band(2, 5))
    ),
    Case(
        "oa_join-anti-residual",
        OAJoin(ONE, TumblingBand(7), residual=pc.field("n") < pc.field("x"), how="anti"),
        (LEFT, RIGHT),
        of_kind("anti", ONE, tumbling(7), less),
    ),
    Case(
        "opob_join-full",
        OPOBJoin(TWO, Band(3, 2), how="full"),
        (LEFT, RIGHT),
        of_kind("full", TWO, band(3, 2)),
    ),
    Case(
        "opob_join-anti",
        OPOBJoin(ONE, Band(3, 2), how="anti"),
        (LEFT, RIGHT),
        of_kind("anti", ONE, band(3, 2)),
    ),
    Case(
        "opib_join-left",
        OPIBJoin(ONE, Band(3, 2), how="left"),
        (LEFT, RIGHT),
        of_kind("left", ONE, band(3, 2)),
    ),
    Case(
        "opib_join-full",
        OPIBJoin(ONE, Band(3, 2), how="full"),
        (LEFT, RIGHT),
        of_kind("full", ONE, band(3, 2)),
    ),
    Case(
        "opib_join-semi",
        OPIBJoin(ONE, Band(3, 2), how="semi"),
        (LEFT, RIGHT),
        of_kind("semi", ONE, band(3, 2)),
    ),
    Case(
        "oa_join-window_ids",
        OAJoin(ONE, WindowIdBand(9, 4, 3, 1), punctuation="both"),
        (LEFT, RIGHT),
        pairs(ONE, window_ids(9, 4, 3, 1)),
    ),
    Case("oa_join-as_of", OAJoin(TWO, AsOf(4), punctuation="both"), (LEFT, RIGHT), latest("inner", TWO, 4)),
    Case("oa_join-as_of-left", OAJoin(ONE, AsOf(), how="left"), (LEFT, RIGHT), latest("left", ONE)),
    Case("opob_join-as_of", OPOBJoin(ONE, AsOf(), how="left"), (LEFT, RIGHT), latest("left", ONE)),
    Case("opib_join-as_of", OPIBJoin(ONE, AsOf(3)), (LEFT, RIGHT), latest("inner", ONE, 3)),
    Case(
        "oa_join-full-slow",
        OAJoin(TWO, Band(3, -1), punctuation="both", how="full", flush=Slow(every=3, within=2)),
        (LEFT, RIGHT),
        of_kind("full", TWO, band(3, -1)),
    ),
    Case(
        "oa_join-left-slow-joint",
        OAJoin(ONE, Band(3, -1), punctuation="joint", how="left", flush=Slow(every=3, within=2)),
        (LEFT, RIGHT),
        of_kind("left", ONE, band(3, -1)),
    ),
    Case(
        "oa_join-as_of-slow",
        OAJoin(ONE, AsOf(), how="left", flush=Slow(every=1)),
        (LEFT, RIGHT),
        latest("left", ONE),
    ),
    Case(
        "oa_join-left-speculative",
        OAJoin(TWO, Band(2, 5), punctuation="both", how="left", speculative=True),
        (LEFT, RIGHT),
        of_kind("left", TWO, band(2, 5)),
    ),
    Case(
        "oa_join-anti-speculative",
        OAJoin(ONE, TumblingBand(7), residual=pc.field("n") < pc.field("x"), how="anti", speculative=True),
        (LEFT, RIGHT),
        of_kind("anti", ONE, tumbling(7), less),
    ),
    Case(
        "oa_join-full-speculative",
        OAJoin(ONE, Band(3, -1), how="full", speculative=True),
        (LEFT, RIGHT),
        of_kind("full", ONE, band(3, -1)),
    ),
    Case(
        "oa_join-as_of-speculative",
        OAJoin(TWO, AsOf(4), punctuation="both", speculative=True),
        (LEFT, RIGHT),
        latest("inner", TWO, 4),
    ),
    Case(
        "oa_join-as_of-left-speculative",
        OAJoin(ONE, AsOf(), how="left", speculative=True),
        (LEFT, RIGHT),
        latest("left", ONE),
    ),
    Case(
        "multi_join-bands",
        MultiJoin("a", {"b": Band(2, 5), "c": Band(4, -1)}, [("k", "key", "k")]),
        (LEFT, RIGHT, LEFT),
        all_of([("k", "key", "k")], b=band(2, 5), c=band(4, -1)),
    ),
    Case(
        "multi_join-two_keys",
        MultiJoin(
            "a",
            {"b": TumblingBand(7, 3), "c": Band(9, 9), "d": WindowIdBand(9, 4, 3)},
            [("k", "k", "key", "k"), ("n",) * 4],
        ),
        (LEFT, LEFT, RIGHT, LEFT),
        all_of([("k", "k", "key", "k"), ("n",) * 4], b=tumbling(7, 3), c=band(9, 9), d=window_ids(9, 4, 3)),
    ),
    Case(
        "multi_join-no_keys",
        MultiJoin("a", {"b": Band(1, 1), "c": TumblingBand(3)}, NO_KEYS),
        (LEFT, RIGHT, LEFT),
        all_of(NO_KEYS, b=band(1, 1), c=tumbling(3)),
    ),
]
