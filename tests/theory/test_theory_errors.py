"""Errors of the theory travel: through pickle, copies and a pool of processes."""

import copy
import inspect
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.theory.response import overlap_response
from paramagnet.theory.scale import beta_max
from public_names import public_names

REFUSED = {
    pm.theory.NoMaximumError: (
        beta_max,
        (1.0,),
        {"visible": "gaussian", "hidden": "gaussian", "c": pm.Biases([1, 2])},
    ),
    pm.theory.ConvergenceError: (
        overlap_response,
        (9.0128, 1.0006e-12),
        {"hidden": "gaussian", "b": -0.172296, "c": -0.837458},
    ),
}


def refusal(kind):
    function, positional, named = REFUSED[kind]
    with pytest.raises(kind) as caught:
        function(*positional, **named)
    return caught.value


def same(first, second):
    """All that an error carries."""
    assert type(first) is type(second)
    assert str(first) == str(second)
    assert first.args == second.args
    assert getattr(first, "__notes__", None) == getattr(second, "__notes__", None)
    one, two = vars(first.result), vars(second.result)
    assert one.keys() == two.keys()
    for name, value in one.items():
        if isinstance(value, pm.Biases):
            assert np.array_equal(value.values, two[name].values)
        else:
            assert value == two[name] or (np.isnan(value) and np.isnan(two[name])), name
    return True


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(kind, protocol):
    error = refusal(kind)
    error.add_note("of the user's own")
    assert same(error, pickle.loads(pickle.dumps(error, protocol)))


@pytest.mark.parametrize("kind", REFUSED)
def test_copies(kind):
    error = refusal(kind)
    assert same(error, copy.deepcopy(error))
    assert copy.copy(error).result is error.result


def test_a_pool_of_processes():
    """A pool hung on an exception that could not be made again."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {kind: pool.submit(call, *args, **named) for kind, (call, args, named) in REFUSED.items()}
        for kind, future in futures.items():
            assert same(refusal(kind), future.exception(timeout=120))
        assert pool.submit(beta_max, 1.0).result(timeout=120) == beta_max(1.0)


def test_every_exception_of_more_than_one_argument_says_how_it_is_made_again():
    kinds = [value for value in public_names().values() if inspect.isclass(value)]
    kinds = [kind for kind in kinds if issubclass(kind, Exception) and "__init__" in vars(kind)]
    assert set(REFUSED) <= set(kinds)
    for kind in kinds:
        required = [
            parameter
            for parameter in list(inspect.signature(kind.__init__).parameters.values())[1:]
            if parameter.default is parameter.empty
        ]
        if kind is not pm.DivergenceError:
            assert len(required) <= 1 or "__reduce__" in vars(kind), kind


def test_a_convergence_error_names_the_machine():
    error = refusal(pm.theory.ConvergenceError)
    assert "`beta` = 9.0128, `alpha` = 1.0006e-12, `b` = -0.172296, `c` = -0.837458" in str(error)
    assert "Choose a smaller `beta`" in str(error)
    with pytest.raises(pm.theory.ConvergenceError, match=r"`beta` = 9.0128, .* `b` = `Biases\(...\)`"):
        overlap_response([0.5, 9.0128], 1.0006e-12, hidden="gaussian", b=pm.Biases([0.1, 0.2]), c=0.8)
