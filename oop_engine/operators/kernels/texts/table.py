"""Kernels of text keys: the code of a text, looked up and added in one pass over Arrow's offsets and bytes.

table: words uint64 (room, 2), the words of each text by code (``words.py``), those of null any; heap uint64
(room,), the longer texts; places int32, a power of two, more than words: a code, or -1, found by hashing and linear
probing.  sizes int64 (3,): how many codes there are, that of null or -1, and how much of the heap is used.

Columns are read where they lie: offsets int32 or int64 (rows + 1,), data uint8 (bytes,), valid bool (rows,), false
where the value is null, or (0,) if nowhere.  Called by ``oop_engine.operators.keys.text_table``.
"""

# Layout       words[code] two words of a text (``words.py``)     heap longer texts     places[hash] a code, or -1
#              sizes[CODES | NULL | USED]
# Invariant    places is never full, so each search ends; a code is never moved nor taken away.
#              Texts are added in the order of rows: codes do not depend on blocks.
# Not obvious  A block is looked up without branches on the outcome: texts at their first place have their code at once,
#              and the rows of all others are noted for the slow way (probing, adding, null).
#              A kernel that finds no room returns the row; the caller makes room, which moves the arrays, and goes on.
#              Dictionaries are looked up by index, each text that occurs once: ``known`` keeps that from page to page.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.texts.memory import hashed, memory, put, word
from oop_engine.operators.kernels.texts.words import (
    EIGHT,
    LONG,
    ONE,
    SEVEN,
    SHORT,
    START,
    WORD,
    code_of,
    hash_of,
    in_heap,
    last_bytes,
    place_of,
    words_of,
)
from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = ["BLOCK", "encode", "encode_indexes", "fill", "find", "find_indexes", "lengths", "write"]

BLOCK = kernel_knob(__name__, "BLOCK", 512)
"""Texts at a time: notes about them stay in the nearest cache."""
_FULL = np.int64(-2)
CODES, NULL, USED = range(3)  # of ``sizes``


@njit(cache=True, nogil=True)
def _add_text(first, second, place, text, at, size, words, heap, places, sizes):
    """Return the next code, given to the text with these two words at a free place; ``_FULL``: there is no room."""
    code = sizes[CODES]
    if code == len(words):
        return _FULL
    if second == LONG:
        # A longer text goes to the heap, behind its size.
        start, rest = sizes[USED] + 1, size & SEVEN
        stop = start + np.int64((size + SEVEN) // EIGHT)
        if stop > len(heap):
            return _FULL
        heap[start - 1] = size
        for i in range(np.int64(size // EIGHT)):
            heap[start + i] = word(text, at + np.uint64(8 * i))
        if rest:
            heap[stop - 1] = last_bytes(text, at + size, rest)
        second, sizes[USED] = second | np.uint64(start), stop
    words[code, 0], words[code, 1] = first, second
    places[place], sizes[CODES] = code, code + 1
    return code


@njit(cache=True, nogil=True)
def _bits(places):
    """Return of how many bits the number of a place is."""
    bits = 0
    while (1 << bits) < len(places):
        bits += 1
    return np.uint64(bits)


@njit(cache=True, nogil=True)
def _null(sizes, room):
    """Return the code of null, which gets the next one if it has none; ``_FULL``: there is no room."""
    if sizes[NULL] < 0:
        if sizes[CODES] == room:
            return _FULL
        sizes[NULL] = sizes[CODES]
        sizes[CODES] += 1
    return sizes[NULL]


@njit(cache=True, nogil=True)
def _at_once(offsets, data, table, bits, rows, codes):
    """Write the codes of texts that are at their first place, -1 of all others; return how many these are.

    ``rows`` uint64 (BLOCK,), written: which ones these are.
    """
    words, heap, places = table
    left, nothing, one = np.uint64(0), np.uint64(0), ONE
    text, texts, last, shift = memory(data), memory(heap), len(data) - 16, WORD - bits
    for i in range(np.uint64(len(codes))):  # unsigned: no index is below 0
        at, size = np.int64(offsets[i]), np.uint64(offsets[i + one] - offsets[i])
        code = np.int64(-1)
        if size > SHORT:
            # A longer text: its hash, then its bytes in the heap.
            first = hash_of(text, np.uint64(at), size)
            row_there = places[hashed(first, LONG) >> shift]
            row = np.uint64(row_there)
            where = (words[row, 1] & START) * EIGHT if row_there >= 0 and words[row, 1] > LONG else nothing
            if where and words[row, 0] == first and in_heap(texts, where, text, np.uint64(at), size):
                code = np.int64(row_there)
        elif at <= last:
            # A short one with 16 bytes to read: two loads, and the bytes behind it masked away.
            first, second = word(text, np.uint64(at)), word(text, np.uint64(at + 8))
            wide = size * EIGHT
            if wide < WORD:
                first, second = first & ((one << wide) - one), nothing
            else:
                second &= (one << (wide - WORD)) - one
            second |= size << np.uint64(56)
            row_there = places[hashed(first, second) >> shift]
            row = np.uint64(row_there)
            if row_there >= 0 and words[row, 0] == first and words[row, 1] == second:
                code = np.int64(row_there)
        codes[i], rows[left] = code, i
        left += np.uint64(code < 0)
    return left


@njit(cache=True, nogil=True)
def find(offsets, data, valid, table, sizes, codes):
    """Write the code of each text into ``codes`` int64 (rows,); -1 if it has none.  O(bytes)."""
    words, heap, places = table
    rows, bits, text = np.empty(BLOCK, np.uint64), _bits(places), memory(data)
    where = memory(words), memory(heap), memory(places), bits
    for start in range(0, len(codes), BLOCK):
        block_codes = codes[start : start + BLOCK]
        ends = offsets[start : start + len(block_codes) + 1]
        for k in range(_at_once(ends, data, table, bits, rows, block_codes)):
            i = rows[k]
            at = np.uint64(ends[i])
            block_codes[i] = code_of(text, at, np.uint64(ends[i + ONE]) - at, *where)
    for i in range(len(valid)):
        codes[i] = codes[i] if valid[i] else sizes[NULL]


@njit(cache=True, nogil=True)
def encode(offsets, data, valid, table, sizes, codes, begin):
    """Write codes as ``find`` does, from row ``begin`` on; new texts get the next code.  Return where it stopped.

    It stops before a text for which there is no room.
    """
    words, heap, places = table
    rows, bits, text = np.empty(BLOCK, np.uint64), _bits(places), memory(data)
    where = memory(words), memory(heap), memory(places), bits
    # By blocks: first all that are known at their first place, then the others in the order of rows.
    for start in range(begin, len(codes), BLOCK):
        block_codes, block_valid = codes[start : start + BLOCK], valid[start : start + BLOCK]
        ends = offsets[start : start + len(block_codes) + 1]
        left = _at_once(ends, data, table, bits, rows, block_codes)
        if len(block_valid):
            left = _marked(block_valid, block_codes, rows)
        for k in range(left):
            i = rows[k]
            at = np.uint64(ends[i])
            size = np.uint64(ends[i + ONE]) - at
            if len(block_valid) and not block_valid[i]:
                code = _null(sizes, len(words))
            else:
                first, second = words_of(text, at, size)
                code, place = place_of(first, second, text, at, size, *where)
                if code < 0:
                    code = _add_text(first, second, place, text, at, size, words, heap, places, sizes)
            if code == _FULL:
                return start + np.int64(i)
            block_codes[i] = code
    return len(codes)


@njit(cache=True, nogil=True)
def _marked(valid, codes, rows):
    """Note the rows that are null or have no code; return how many."""
    left = np.uint64(0)
    for i in range(np.uint64(len(codes))):
        rows[left] = i
        left += np.uint64(codes[i] < 0 or not valid[i])
    return left


@njit(cache=True, nogil=True)
def find_indexes(indexes, valid, offsets, data, known, table, sizes, codes):
    """Write codes of the texts of a dictionary, given as to ``encode_indexes``.  O(rows), and O(bytes) of new ones."""
    words, heap, places = table
    row, text = _seen(indexes, valid, known, codes, np.int64(0)), memory(data)
    where = memory(words), memory(heap), memory(places), _bits(places)
    while row < len(codes):
        if len(valid) and not valid[row]:
            codes[row] = sizes[NULL]
        else:
            index = np.int64(indexes[row])
            at = np.uint64(offsets[index])
            known[index] = code_of(text, at, np.uint64(offsets[index + 1]) - at, *where)
            codes[row] = known[index]
        row = _seen(indexes, valid, known, codes, row + 1)


@njit(cache=True, nogil=True)
def encode_indexes(indexes, valid, offsets, data, known, table, sizes, codes, begin):
    """Write codes as ``encode`` does, of the texts of a dictionary; each that occurs is looked up once.

    ``offsets, data``: the dictionary; indexes (rows,) into it.  known int64 (values,), updated: codes, or -1.
    """
    words, heap, places = table
    row, text = _seen(indexes, valid, known, codes, np.int64(begin)), memory(data)
    where = memory(words), memory(heap), memory(places), _bits(places)
    while row < len(codes):
        if len(valid) and not valid[row]:
            code = _null(sizes, len(words))
        else:
            index = np.int64(indexes[row])
            at = np.uint64(offsets[index])
            size = np.uint64(offsets[index + 1]) - at
            first, second = words_of(text, at, size)
            code, place = place_of(first, second, text, at, size, *where)
            if code < 0:
                code = _add_text(first, second, place, text, at, size, words, heap, places, sizes)
            if code != _FULL:
                known[index] = code
        if code == _FULL:
            return row
        codes[row] = code
        row = _seen(indexes, valid, known, codes, row + 1)
    return row


@njit(cache=True, nogil=True)
def _seen(indexes, valid, known, codes, begin):
    """Write the codes of rows from ``begin`` on; return the first one that is null, or not known."""
    # The quick way along a page: an index, its code, and on, as long as all is known.
    whole = len(valid) == 0
    for i in range(np.uint64(begin), np.uint64(len(codes))):  # unsigned: no index is below 0
        if not (whole or valid[i]):
            return np.int64(i)
        code = known[np.uint64(indexes[i])]
        if code < 0:
            return np.int64(i)
        codes[i] = code
    return len(codes)


@njit(cache=True, nogil=True)
def fill(words, places, sizes):
    """Put all texts but null, which has none, to their places, ``places`` being free."""
    shift, last = WORD - _bits(places), np.uint64(len(places) - 1)
    # No two texts are equal, so the first free place is right: nothing is compared.
    for code in range(sizes[CODES]):
        if code != sizes[NULL]:
            second = words[code, 1] if words[code, 1] < LONG else LONG
            place = hashed(words[code, 0], second) >> shift
            while places[place] >= 0:
                place = (place + np.uint64(1)) & last
            places[place] = code


@njit(cache=True, nogil=True)
def lengths(words, heap, null, codes, offsets):
    """Write where the text of each code begins if they lie one behind the other, and where the last one ends.

    offsets int64 (codes + 1,); the code of null is ``null``, which has no bytes.
    """
    offsets[0] = 0
    for i in range(len(codes)):
        code, size = codes[i], np.int64(0)
        if code != null:
            second = words[code, 1]
            size = np.int64(heap[np.int64(second & START) - 1] if second > LONG else second >> np.uint64(56))
        offsets[i + 1] = offsets[i] + size


@njit(cache=True, nogil=True)
def write(words, heap, codes, offsets, data):
    """Write the bytes of the text of each code to its offset (``lengths``); data uint8, 16 bytes more than they need.

    The bytes behind one text are overwritten by the next one.
    """
    out = memory(data)
    for i in range(len(codes)):
        # A short text is written as two whole words, whatever its size: the next one begins over their end.
        at, size, code = np.uint64(offsets[i]), offsets[i + 1] - offsets[i], codes[i]
        if size <= np.int64(SHORT):
            put(out, at, words[code, 0])
            put(out, at + EIGHT, words[code, 1])
        else:
            start = np.int64(words[code, 1] & START)
            for k in range((size + 7) // 8):
                put(out, at + np.uint64(8 * k), heap[start + k])
