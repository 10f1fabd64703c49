"""Every public name called with arguments that it does not want: an answer, or an error in words.

The values are in `hostile_values`, one valid call of each name in `hostile_calls`. Each argument is replaced
by each of the values. Where the call fails, the error must have been raised by this package for this reason:
it names the argument in backticks and says what was wrong with it. Where it succeeds, the kind of the
parameter must allow the value.
"""

import inspect
import operator
import signal
import threading
import time
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import paramagnet as pm
from hostile_adapter_calls import adapter_calls
from hostile_calls import NOT_CALLED, data_calls, learning_calls, machine_calls, public_calls, theory_calls
from hostile_values import MAY_TAKE, make_values
from public_names import public_names

ROOT = str(Path(pm.__file__).parent)
SECONDS = 5.0  # that no call may take
FEWEST_CALLS = 2000
LONGEST_MESSAGE = 700
REFUSALS = (ValueError, TypeError, FileNotFoundError, PermissionError, IndexError)
TOLD = (
    "got",
    "found",
    "not exist",
    "regular file",
    "is None",
    "is not",
    "is no ",
    "has no ",
)  # what was wrong
ALWAYS = {"None", "text", "masked array", "nan array", "object", "2**70", "tensor with gradient"}
SHARE = 6  # in the fast tests one value in so many, other ones for every argument, and those above
GROUPS = {
    "theory": theory_calls,
    "machine": machine_calls,
    "learning": learning_calls,
    "data": data_calls,
    "adapters": adapter_calls,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def values(folder):
    return make_values(folder)


def allowed(kind):
    """The values that a parameter of this kind may take."""
    names = set().union(*(MAY_TAKE[part] for part in kind.rstrip("?").split("|")))
    return names | {"None"} if kind.endswith("?") else names


class TooLate(BaseException):
    """The call took longer than `SECONDS`."""


@contextmanager
def limited(seconds):
    """Ends what takes longer, where there are alarms."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number, frame):
        raise TooLate

    former = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, former)


def complaint(call, argument, name, make):
    """What is wrong with the answer to one hostile value; None if nothing is."""
    kind = call.arguments[argument][0]
    arguments = {key: value for key, (_, value) in call.arguments.items()}
    arguments[argument] = make()
    where = f"{call.name}({argument}={name})"
    began = time.perf_counter()
    try:
        with limited(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")  # of NumPy: overflows, complex numbers cast to real ones
            warnings.simplefilter("ignore", UserWarning)  # our own, about results
            call.function(**arguments)
    except TooLate:
        return f"{where} took more than {SECONDS:g} s"
    except (pm.DivergenceError, pm.theory.ConvergenceError):
        pass  # an answer about numbers that can be tried
    except Exception as error:
        return judge(error, (argument, *call.also.get(argument, ())), where)
    else:
        if name not in allowed(kind):
            return f"{where} was accepted"
    return f"{where} took too long" if time.perf_counter() - began > SECONDS else None


def judge(error, names, where):
    """What is wrong with an error; None if it is one in words."""
    if type(error) is ArithmeticError and "failed" in str(error):
        return None  # of all runs of a comparison
    message, origin = str(error), traceback.extract_tb(error.__traceback__)[-1]
    raw = f"{where} raised {type(error).__name__}: {message[:200]!r} at {origin.filename}:{origin.lineno}"
    ours = isinstance(error, REFUSALS) and origin.filename.startswith(ROOT)
    named = any(f"`{name}`" in message for name in names)
    told = any(word in message for word in TOLD)
    lined = "\n" not in message or "\n  " in message  # a list of columns has a line for each
    return None if ours and named and told and len(message) < LONGEST_MESSAGE and lined else raw


def complaints(calls, values, *, share=1):
    """All of them, and the number of calls; with one value in ``share`` for every argument."""
    found, n_calls = [], 0
    for call in calls:
        call.function(**{key: value for key, (_, value) in call.arguments.items()})
        for place, (argument, (kind, _)) in enumerate(call.arguments.items()):
            first = sum(map(ord, call.name)) + place
            chosen = {name for i, name in enumerate(values) if (i + first) % share == 0} | ALWAYS
            if share > 1 and call.heavy:
                chosen -= allowed(kind)
            for name in [name for name in values if name in chosen]:
                found.append(complaint(call, argument, name, values[name]))
                n_calls += 1
    return [text for text in found if text is not None], n_calls


@pytest.mark.parametrize("group", GROUPS)
def test_errors_in_words(group, values, folder, monkeypatch):
    monkeypatch.chdir(folder)  # texts are names of files, too
    found, n_calls = complaints(GROUPS[group](folder), values, share=SHARE)
    assert not found, "\n".join([f"{len(found)} of {n_calls} calls", *found[:50]])


@pytest.mark.slow
def test_all_errors_in_words(values, folder, monkeypatch):
    monkeypatch.chdir(folder)
    if "meta tensor" in values:  # the first use of this device imports much of PyTorch
        values["meta tensor"]().normal_()
    calls = [call for calls in GROUPS.values() for call in calls(folder)]
    found, n_calls = complaints(calls, values)
    assert n_calls >= FEWEST_CALLS
    assert not found, "\n".join([f"{len(found)} of {n_calls} calls", *found[:50]])


def test_the_table_has_every_public_name_and_parameter(folder):
    calls, public = [*public_calls(folder)], public_names()
    called = {plain(call) for call in calls}
    assert {name.partition(".")[0] for name in called} >= set(public) - NOT_CALLED
    for name in {name for name in called if "." not in name}:
        parameters = set(inspect.signature(public[name]).parameters)
        tabled = {key for call in calls if plain(call) == name for key in call.arguments}
        assert parameters == tabled, name
    for owner in (pm.RBM, pm.TrainState, pm.data.Binarizer, pm.data.Preparation):
        methods = {
            f"{owner.__name__}.{name}"
            for name, member in vars(owner).items()
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod))
        }
        wanted = {name for name in methods if not takes_nothing(owner, name.partition(".")[2])}
        assert wanted <= called | {
            "Binarizer.partition", "Binarizer.levels_of",  # test_data_checks.py
            "Preparation.encode", "Preparation.encode_known", "Preparation.known_cells",  # of checked tables
        }  # fmt: skip


def plain(call):
    """The public name without what tells two calls of it apart."""
    return call.name.split(",")[0].split(" ")[0]


def takes_nothing(owner, name):
    parameters = inspect.signature(getattr(owner, name)).parameters
    return not set(parameters) - {"self"}


def test_the_table_is_large_enough(values, folder):
    n_calls = sum(len(call.arguments) for call in public_calls(folder)) * len(values)
    assert n_calls >= FEWEST_CALLS


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (lambda: pm.RBM.load(3).nothing, None),
        (lambda: np.zeros(3) + np.zeros(4), "broadcast"),
        (lambda: operator.index("x"), "interpreted"),
        (lambda: [].nothing, "attribute"),
        (lambda: 1 / 0, "zero"),
    ],
)
def test_the_judge_tells_raw_errors_from_words(error, words):
    """A planted raw error must be seen."""
    with pytest.raises(Exception) as caught:
        error()
    found = judge(caught.value, ("path",), "here")
    assert found is None if words is None else words in found
