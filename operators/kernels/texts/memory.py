"""Memory: kernels that read and write words at addresses, and the hash of two words; whoever imports this loads Numba.

A load from an array begins at a whole number of its items; texts begin anywhere.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["byte", "hashed", "integer", "put", "word"]


def _load(number):
    """Return a kernel that reads a number of a type at an address, in one load."""

    @intrinsic
    def read(context, place):
        def load(target, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], ir.IntType(number.bitwidth).as_pointer())
            return builder.load(pointer, align=1)

        return number(types.uint64), load

    return read


word, integer, byte = _load(types.uint64), _load(types.int32), _load(types.uint8)


@intrinsic
def put(context, place, given):
    """Write a word as eight bytes to an address, in one store."""

    def store(target, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store(arguments[1], pointer, align=1)
        return target.get_dummy_value()

    return types.void(types.uint64, types.uint64), store


@intrinsic
def hashed(context, first, second):
    """Return the hash of two words: both halves of a product, one over the other."""

    def product(target, builder, signature, arguments):
        wide, narrow = ir.IntType(128), ir.IntType(64)
        keys = (narrow(0x9E3779B97F4A7C15), narrow(0xD6E8FEB86659FD93))
        one, other = (
            builder.zext(builder.xor(given, key), wide) for given, key in zip(arguments, keys, strict=True)
        )
        both = builder.mul(one, other)
        high = builder.trunc(builder.lshr(both, wide(64)), narrow)
        return builder.xor(high, builder.trunc(both, narrow))

    return types.uint64(types.uint64, types.uint64), product
