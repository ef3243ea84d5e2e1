"""Hot loops in Numba, and nothing else: arrays and scalars in, arrays out.

A kernel is compiled for the types it is first called with, and kept in Numba's cache beside its file, or in the
cache folder of the user, or where ``NUMBA_CACHE_DIR`` says.  Where none of them can be written it is kept for this
process alone.  What that takes is told to ``oop_engine.system.stopwatch``.  Numba is imported with the first call of a
kernel (``oop_engine/system/kernel.py``).

Arrays are copied in a loop, never as ``a[i:j] = b``: with that comes code that makes a text of both shapes, for the
error of arrays that do not fit, and takes seconds to compile.  A number that is handed to another kernel begins as
``np.int64(0)``: a literal is a type of its own, for which that kernel is compiled once more.
"""

__all__: list[str] = []
