"""OpenDP's integer samplers, called without its Python layer: 13 us per draw instead of 120.

The draw is the same Rust function that `measurement(0)` reaches. It skips the conversion of
arguments and results between Python and C, which takes nine tenths of the time of a scalar. The
four C functions are those that OpenDP's own binding calls. The project's dependency pins OpenDP
0.16, and the statistical tests run through this module.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import opendp.prelude as dp
from opendp._convert import py_to_c
from opendp._lib import AnyObjectPtr, FfiResult, lib

dp.enable_features("contrib")

# PyDLL keeps the GIL: a draw takes less time than reacquiring the GIL.
_library = ctypes.PyDLL(lib._name)


class _Slice(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _function(name: str, arguments: int) -> Any:
    function = _library[name]
    function.argtypes = [ctypes.c_void_p] * arguments
    function.restype = FfiResult
    return function


_invoke = _function("opendp_core__measurement_invoke", 2)
_object_as_slice = _function("opendp_data__object_as_slice", 1)
_slice_free = _function("opendp_data__slice_free", 1)
_object_free = _function("opendp_data__object_free", 1)


_ATOM = dp.atom_domain(T="i64")
_VECTOR = dp.vector_domain(_ATOM)
_ABSOLUTE, _L1, _L2 = (
    dp.absolute_distance(T="i64"),
    dp.l1_distance(T="i64"),
    dp.l2_distance(T="i64"),
)


class OnWholeNumbers:
    """Measurement of one scale; draws noise around zero."""

    def __init__(self, scalar: Any, vector: Callable[[], Any]) -> None:
        self._scalar, self._make_vector = scalar, vector
        self._vector: Any = None  # made at first use: making one takes longer than a draw
        # must live as long as this object
        self._zero = py_to_c(0, c_type=AnyObjectPtr, type_name="i64")
        self._zero_address = ctypes.cast(self._zero, ctypes.c_void_p).value
        self._scalar_address = ctypes.cast(self._scalar, ctypes.c_void_p).value

    def draw(self) -> int:
        released = _ok(_invoke(self._scalar_address, self._zero_address))
        try:
            piece = _ok(_object_as_slice(released))
            try:
                value: int = ctypes.c_int64.from_address(_Slice.from_address(piece).address).value
                return value
            finally:
                _slice_free(piece)
        finally:
            _object_free(released)

    def draw_many(self, size: int) -> list[int]:
        if self._vector is None:
            self._vector = self._make_vector()
        # An array, because the binding checks a list element by element.
        draws: list[int] = list(self._vector(np.zeros(size, dtype=np.int64)))
        return draws


class LaplaceOnWholeNumbers(OnWholeNumbers):
    def __init__(self, scale: float) -> None:
        super().__init__(
            dp.m.make_laplace(_ATOM, _ABSOLUTE, scale=scale),
            lambda: dp.m.make_laplace(_VECTOR, _L1, scale=scale),
        )


class GaussianOnWholeNumbers(OnWholeNumbers):
    def __init__(self, scale: float) -> None:
        super().__init__(
            dp.m.make_gaussian(_ATOM, _ABSOLUTE, scale=scale),
            lambda: dp.m.make_gaussian(_VECTOR, _L2, scale=scale),
        )


def _ok(result: Any) -> Any:
    if result.tag != 0:
        raise ArithmeticError("the sampler failed")
    return result.payload.Ok
