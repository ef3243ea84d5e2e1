"""The intrinsics of kernels as Python, where nothing is compiled."""

from oop_engine.operators.kernels.in_python.states import at as at
from oop_engine.operators.kernels.in_python.states import both as both
from oop_engine.operators.kernels.in_python.states import cell as cell
from oop_engine.operators.kernels.in_python.states import chosen as chosen
from oop_engine.operators.kernels.in_python.states import cut as cut
from oop_engine.operators.kernels.in_python.states import fill as fill
from oop_engine.operators.kernels.in_python.states import less as less
from oop_engine.operators.kernels.in_python.states import more as more
from oop_engine.operators.kernels.in_python.states import put as put
from oop_engine.operators.kernels.in_python.states import rows as rows
from oop_engine.operators.kernels.in_python.states import sliced as sliced
from oop_engine.operators.kernels.in_python.states import wraps as wraps
