"""Memory: kernels that read and write words of bytes behind a pointer, and the hash of two words.

A load from an array begins at a whole number of its items; texts begin anywhere.
"""

# Not obvious  A place in memory is a pointer and a distance in bytes, never one integer.  Numba links a kernel into its
#              callers as it is after code generation, where LLVM has written ``base + distance`` of integers as a
#              pointer to ``distance``, displaced by ``base``.  Where a caller knows the distance to be 0 that is a
#              null pointer, so LLVM removes the load and all that follows from it: the caller's copy of the kernel
#              computes something else than the kernel.

from __future__ import annotations

from oop_engine.system.kernel import Intrinsic

__all__ = ["byte", "hashed", "integer", "memory", "put", "word"]


@Intrinsic
def memory(typing, array):
    """Return a pointer to the first item of an array, which the caller must hold as long as the pointer is used."""
    from numba import types

    def first(context, builder, signature, arguments):
        items = context.make_array(array)(context, builder, arguments[0]).data
        return builder.bitcast(items, context.get_value_type(types.voidptr))

    return types.voidptr(array), first


def _load(name):
    """Return a kernel that reads a number of a type behind a pointer, in one load."""

    @Intrinsic
    def read(typing, base, distance):
        from numba import types

        number = getattr(types, name)

        def load(context, builder, signature, arguments):
            return builder.load(_behind(builder, arguments, number), align=1)

        return number(types.voidptr, types.uint64), load

    return read


word, integer, byte = _load("uint64"), _load("int32"), _load("uint8")


@Intrinsic
def put(typing, base, distance, given):
    """Write a word as eight bytes behind a pointer, in one store."""
    from numba import types

    def store(context, builder, signature, arguments):
        builder.store(arguments[2], _behind(builder, arguments, types.uint64), align=1)
        return context.get_dummy_value()

    return types.void(types.voidptr, types.uint64, types.uint64), store


def _behind(builder, arguments, number):
    """Return a pointer to a number of a type at a distance behind another one."""
    from llvmlite import ir

    place = builder.gep(arguments[0], [arguments[1]])
    return builder.bitcast(place, ir.IntType(number.bitwidth).as_pointer())


@Intrinsic
def hashed(typing, first, second):
    """Return the hash of two words: both halves of a product, one over the other."""
    from llvmlite import ir
    from numba import types

    def product(context, builder, signature, arguments):
        wide, narrow = ir.IntType(128), ir.IntType(64)
        keys = (narrow(0x9E3779B97F4A7C15), narrow(0xD6E8FEB86659FD93))
        left, right = (
            builder.zext(builder.xor(given, key), wide) for given, key in zip(arguments, keys, strict=True)
        )
        both = builder.mul(left, right)
        high = builder.trunc(builder.lshr(both, wide(64)), narrow)
        return builder.xor(high, builder.trunc(both, narrow))

    return types.uint64(types.uint64, types.uint64), product
