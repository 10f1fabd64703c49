"""Arrays that are used again once nobody else holds them.

A large array that is made anew for every update costs more than the arithmetic in it: the system hands out
its pages one by one, and clears each. An array of a `Recycled` store is handed out as a read-only view, whose
`base` it is. While that view, or any view of it, is alive the array stays as it is; afterwards it is handed
out again.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

_COUNTS_REFERENCES = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
_MOST = 3  # arrays of a store: the state before, the one after, and one that somebody looks at


def count_references(holder: list[Any]) -> int:
    """How many references there are to the one object in ``holder``, that of ``holder`` included, as
    `sys.getrefcount` counts them here.
    """
    return sys.getrefcount(holder[0])


# Versions of Python differ in which references they count: this is the count of an object that a list holds.
HELD_ONCE = count_references([object()])


class Recycled:
    """A store of arrays of one shape and type; where references are not counted, every array is a new one."""

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._shape, self._dtype = shape, dtype
        self._holders: list[list[npt.NDArray[Any]]] = []

    def take(self) -> npt.NDArray[Any]:
        """An array that nobody else holds; its numbers are arbitrary."""
        for holder in self._holders:
            if count_references(holder) == HELD_ONCE:
                return holder[0]
        array = np.empty(self._shape, self._dtype)
        if _COUNTS_REFERENCES:
            self._holders = [*self._holders[1 - _MOST :], [array]]  # the oldest are left to who holds them
        return array

    def is_free_but_for(self, view: npt.NDArray[Any]) -> bool:
        """Whether ``view`` is the only view of one of the store's arrays."""
        for holder in self._holders:
            if view.base is holder[0]:
                return count_references(holder) == HELD_ONCE + 1
        return False


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view, which keeps ``array`` from being handed out again."""
    view = array.view()
    view.setflags(write=False)
    return view
