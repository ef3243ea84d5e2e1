"""LLVM in this process, with all that machine code of Numba calls."""

from __future__ import annotations

import ctypes
import io
import pickle
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from typing import Any, NamedTuple

from oop_engine.system.ready.cache_file import StandIn, UnknownError, unpickled
from oop_engine.system.ready.numba_here import home
from oop_engine.system.ready.object_file import undefined

__all__ = ["process"]

_unpickled: dict[int, Any] = {}  # by where the pickle is in code, which stays loaded


@ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)  # type: ignore[untyped-decorator]
def _unpickle(address: int, size: int, _: int) -> Any:
    """Return an object that code has in itself, such as the type of an array that it returns.

    In place of Numba's own function, which imports all of Numba.  The pickle is part of the machine code, and no less
    to be relied on.
    """
    if address not in _unpickled:
        _unpickled[address] = pickle.loads(ctypes.string_at(address, size))
    return _unpickled[address]


class _Process(NamedTuple):
    """LLVM in this process: the machine that it makes code for, and the engine that code is loaded into."""

    machine: tuple[str, str, str]
    engine: Any
    helpers: Any
    kept: list[Any]

    def load(self, function: Callable[..., Any], data: bytes) -> Callable[..., Any]:
        """Return machine code of Numba's as a function of Python."""
        import llvmlite.binding as llvm

        library, description, environment, _, objects, lifted, _, at_start, others = unpickled(
            io.BytesIO(data)
        )
        _, form, (code, _) = library
        if form != "object" or objects or lifted or at_start:
            raise UnknownError
        for name in undefined(code):
            if llvm.address_of_symbol(name) is None:
                raise UnknownError
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        state = description.state[1]
        made = [self._environment(each) for each in (environment, *others)]
        mangled = state["mangled_name"]
        if not mangled.startswith("_ZN"):
            raise UnknownError
        address = self.engine.get_function_address(f"_ZN7cpython{mangled[3:]}")
        if not address:
            raise UnknownError
        self.kept.append((code, made))
        words = f"compiled {function.__qualname__}"
        module = sys.modules[function.__module__]
        loaded: Callable[..., Any] = self.helpers.make_function(
            module, function.__name__, words, address, made[0], (made,)
        )
        return loaded

    def _environment(self, stand_in: StandIn) -> Any:
        """Return the object that code refers to as its module and its Python objects, and point the code at it."""
        module, constants, name = stand_in.made_of
        made = self.helpers.Environment({"__name__": module})
        made.consts.extend(constants)
        if not (place := self.engine.get_global_value_address(name)):
            raise UnknownError
        ctypes.c_void_p.from_address(place).value = id(made)
        return made


@cache
def process() -> _Process:
    """Return LLVM with all that Numba's code calls, as Numba itself makes it ready."""
    import builtins

    import llvmlite.binding as llvm

    helpers = _extension("_helperlib"), _extension("_dynfunc")
    memory = _extension("core.runtime._nrt_python")
    memory.memsys_use_cpython_allocator()  # as Numba does, which may come later and free these arrays
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.add_symbol("_Py_NoneStruct", id(None))
    for module in helpers:
        for name, address in module.c_helpers.items():
            llvm.add_symbol(f"numba_{name}", address)
    unpickle = ctypes.cast(_unpickle, ctypes.c_void_p).value
    llvm.add_symbol("numba_unpickle", unpickle)  # Numba, if it comes, puts in its own
    for kind in vars(builtins).values():
        if isinstance(kind, type) and issubclass(kind, BaseException):
            llvm.add_symbol(f"PyExc_{kind.__name__}", id(kind))
    for name, address in memory.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)
    module = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(module, machine)
    return _Process((llvm.get_process_triple(), cpu, features), engine, helpers[1], [machine, module])


def _extension(name: str) -> Any:
    """Load an extension of Numba that is written in C, without its packages; Numba finds it loaded."""
    folder = home()
    assert folder is not None
    (path,) = folder.glob(
        f"{name.replace('.', '/')}.cpython-{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}-*.so"
    )
    loader = ExtensionFileLoader(f"numba.{name}", str(path))
    module = module_from_spec(ModuleSpec(loader.name, loader, origin=str(path)))
    loader.exec_module(module)
    return module
