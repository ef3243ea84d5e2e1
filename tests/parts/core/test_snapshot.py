from __future__ import annotations

import pickle
import zlib
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Operator, Schema
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import pack, unpack
from oop_engine.errors import SnapshotError

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(-9, 9), inner, max_size=3)
    ),
    max_leaves=8,
)
BATCH = pa.record_batch({"n": [1, None, 3], "s": ["a", "b", None], "l": [[1.0], None, []]})
STATE: dict[str, Any] = {"linear": np.arange(4), "keys": BATCH, "rest": [None, 2**70, "x", {3: b"y"}]}


@given(st.dictionaries(st.text(max_size=4), PLAIN, max_size=4))
def test_plain_values_come_back(state: dict[str, Any]) -> None:
    assert unpack("Meld", pack("Meld", state)) == state


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3)[:, ::2],
        np.zeros((0, 3)),
        np.array(7),
        np.array([True, False]),
        np.array([1.5, float("nan")], ">f4"),
        np.array(["a", "bcd"]),
        np.array([3], "M8[ms]"),
    ],
    ids=lambda a: f"{a.dtype}{a.shape}",
)
def test_arrays_come_back_and_those_of_getters_are_the_callers_own(array: np.ndarray) -> None:
    state = unpack("Meld", pack("Meld", {"array": array}))
    found = state["array"]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
    assert not found.flags.writeable  # it reads the snapshot, as it is
    if array.dtype.kind in "biuf":
        own = state.numbers("array", array.shape, array.dtype)
        assert own.flags.writeable
        assert own.flags.aligned


@pytest.mark.parametrize(
    "batch",
    [
        BATCH,
        BATCH.slice(1),
        BATCH.slice(0, 0),
        BATCH.select([]),
        pa.record_batch({"d": pa.array(["a", None]).dictionary_encode()}),
        pa.RecordBatch.from_pylist([], schema=pa.schema([("t", pa.timestamp("ns", "UTC"))])),
    ],
    ids=["whole", "slice", "no rows", "no columns", "dictionary", "empty"],
)
def test_record_batches_come_back(batch: pa.RecordBatch) -> None:
    found = unpack("Meld", pack("Meld", {"batch": batch}))["batch"]
    assert found.equals(batch)
    assert found.num_rows == batch.num_rows
    found.validate(full=True)


def test_numpy_scalars_become_plain() -> None:
    state = unpack(
        "Meld", pack("Meld", {"n": np.int64(3), "f": np.float32(0.5), "b": np.bool_(True), "t": (1, 2)})
    )
    assert state == {"n": 3, "f": 0.5, "b": True, "t": [1, 2]}
    assert type(state["b"]) is bool


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, np.array([object()]), print], ids=["object", "set", "objects", "code"]
)
def test_what_is_no_state_is_refused(value: Any) -> None:
    with pytest.raises(SnapshotError, match=r"cannot put .* into a snapshot"):
        pack("Meld", {"value": value})


def test_the_snapshot_of_another_operator_or_version_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r"snapshot of Sort: expected one of 'Sort', got one of 'Meld'"):
        unpack("Sort", pack("Meld", {}))
    with pytest.raises(SnapshotError, match=r"snapshot of Meld: must begin with .*is it of another version"):
        unpack("Meld", b"oop-engine/2" + pack("Meld", {})[len(b"oop-engine/2") :])


def test_a_state_of_an_older_version_is_migrated_step_by_step() -> None:
    migrations = {2: lambda state: {**state, "y": state["x"] + 1}, 3: lambda state: {"z": state["y"]}}
    assert unpack("Meld", pack("Meld", {"x": 1}, 2), 4, migrations) == {"z": 2}
    assert unpack("Meld", pack("Meld", {"y": 5}, 3), 4, migrations) == {"z": 5}
    assert unpack("Meld", pack("Meld", {"z": 5}, 4), 4, migrations) == {"z": 5}
    assert unpack("Meld", summed(["Meld", {"x": 1}]), 2, {1: lambda state: {"of": state}}) == {"of": {"x": 1}}


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (1, "is of version 1, an older one, from which there is no migration; this program's is 4"),
        (5, "is of version 5, a newer one; this program's is 4: use the program that wrote it"),
        (2, r"its state of version 2 cannot be migrated \(KeyError\('y'\)\)"),
    ],
)
def test_a_version_that_cannot_be_migrated_is_refused_in_one_line(version: int, reason: str) -> None:
    migrations = {2: lambda state: {"x": state["y"]}, 3: dict}
    with pytest.raises(SnapshotError, match=f"snapshot of Meld: {reason}") as told:
        unpack("Meld", pack("Meld", {}, version), 4, migrations)
    assert "\n" not in str(told.value)


def checked(body: bytes) -> bytes:
    """Return what is a snapshot as far as its checksum goes."""
    return b"oop-engine/1" + zlib.crc32(body).to_bytes(4, "little") + body


def summed(body: object) -> bytes:
    return checked(msgpack.packb(body))


class Trap:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("the pickle was opened",))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a snapshot",
        pickle.dumps(Trap()),
        summed(5),
        summed(["Meld"]),
        summed(["Meld", [1]]),
        summed(["Meld", {"x": msgpack.ExtType(9, b"")}]),
        summed(["Meld", {}, 0]),
        summed(["Meld", {}, True]),
        summed(["Meld", {}, 1, 1]),
        summed(
            [
                "Meld",
                {"x": msgpack.ExtType(1, msgpack.packb(["|O", [1], pickle.dumps(Trap())]))},
            ]
        ),
        summed(["Meld", {"x": msgpack.ExtType(1, msgpack.packb(["<i8", [2**40], b"12345678"]))}]),
        summed(["Meld", {"x": msgpack.ExtType(1, msgpack.packb(["(((", [1], b""]))}]),
        summed(["Meld", {"x": msgpack.ExtType(1, msgpack.packb(["<i8", [1], b"123456789"]))}]),
        summed(["Meld", {"x": msgpack.ExtType(1, msgpack.packb(["<i8", [-1], b"12345678"]))}]),
        summed(["Meld", {"x": msgpack.ExtType(1, msgpack.packb(["<i8", [1]]))}]),
        summed(["Meld", {"x": msgpack.ExtType(1, msgpack.packb(["<i8", [1] * 600, b"12345678"]))}]),
        summed(["Meld", {"x": msgpack.ExtType(1, msgpack.packb(["<i8", [1], b"1", b"12345678"]))}]),
        summed(["Meld", {"x": msgpack.ExtType(2, b"ARROW1")}]),
        summed(["Meld", {"x": msgpack.ExtType(2, b"")}]),
        summed(["Meld", {"x": msgpack.ExtType(3, b"one")}]),
        checked(b"\x91" * 5000),
        pack("Meld", STATE) + b"more",
    ],
    ids=range(23),
)
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError, match="snapshot of Meld"):
        unpack("Meld", data)


def test_a_batch_without_rows_written_is_refused() -> None:
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, BATCH.schema).close()
    data = summed(["Meld", {"x": msgpack.ExtType(2, sink.getvalue().to_pybytes())}])
    with pytest.raises(SnapshotError, match="snapshot of Meld: not readable"):
        unpack("Meld", data)


def test_truncated_bytes_are_refused() -> None:
    data = pack("Meld", STATE)
    for length in range(len(data)):
        with pytest.raises(SnapshotError):
            unpack("Meld", data[:length])


@settings(max_examples=400)
@given(st.integers(0, len(pack("Meld", STATE)) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found(place: int, change: int) -> None:
    data = bytearray(pack("Meld", STATE))
    data[place] ^= change
    with pytest.raises(SnapshotError, match="snapshot of Meld: "):
        unpack("Meld", bytes(data))


@settings(max_examples=400)
@given(st.integers(0, len(pack("Meld", STATE)) - 17), st.integers(1, 255))
def test_with_the_right_checksum_it_is_refused_or_gives_values_that_can_be_read(
    place: int, change: int
) -> None:
    body = bytearray(pack("Meld", STATE)[16:])
    body[place] ^= change
    try:
        found = unpack("Meld", checked(bytes(body)))
    except SnapshotError:
        return
    for value in found.values():
        assert [c.to_pylist() for c in value.columns] if isinstance(value, pa.RecordBatch) else repr(value)


class Half(Operator):
    """Keeps two numbers, the second of which may be missing."""

    def open(self) -> None:
        self.numbers = [0, 0]

    def save(self) -> dict[str, Any]:
        return {"one": 1}

    def load(self, state: Saved) -> None:
        self.numbers[0] = state.integer("one")
        self.numbers[1] = state.integer("two")


def test_a_snapshot_is_taken_as_a_whole_or_not_at_all() -> None:
    operator = Half().opened(Schema({"ts": pa.int64()}, "ts", "s"))
    with pytest.raises(SnapshotError, match=r"snapshot of Half: .*there must be 'two'; got 'one'"):
        operator.restore(operator.snapshot())
    assert operator.numbers == [0, 0]
