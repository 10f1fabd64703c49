"""Arrays that are used again, once nobody else holds them."""

from __future__ import annotations

import numpy as np

from paramagnet._recycled import Recycled, read_only


def test_an_array_is_used_again_when_its_views_are_gone():
    store = Recycled((5,), np.float64)
    view = read_only(store.take())
    owner = view.base
    address, part = view.ctypes.data, view[2:]
    del view, owner
    assert store.take().ctypes.data != address  # a part is still held
    del part
    assert any(store.take().ctypes.data == address for _ in range(2))


def test_whether_a_view_is_the_only_one():
    store = Recycled((5,), np.float64)
    view = read_only(store.take())
    assert store.is_free_but_for(view)
    part = view[1:]
    assert not store.is_free_but_for(view)
    del part
    assert store.is_free_but_for(view)
    assert not store.is_free_but_for(read_only(np.empty(5)))


def test_arrays_that_are_held_stay_with_their_holders():
    store, held = Recycled((3,), np.float64), []
    for value in range(20):
        array = store.take()
        array[:] = value
        held.append(read_only(array))
    assert [view[0] for view in held] == list(range(20))
    assert len(store._holders) == 3
