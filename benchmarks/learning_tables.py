"""The tables of docs/learning.md, from the records of silent_failure, learning_digits and mirrored_chains."""

from __future__ import annotations

from typing import Any

from paramagnet.sweeps.text_tables import pipe_table

_STARTS = {"paper": "no biases", "data": "biases of the data"}
_WAYS = {"constant": "constant rate, no guard", "guarded": "constant rate, guard", "default": "defaults"}
_SEPARATE = ("plain", "plain, centred start", "centred")
_MIRRORED = ("persistent chains", "1000 Gibbs sweeps", "200 rounds of tempering")


def _table(head: list[str], rows: list[list[str]]) -> str:
    return pipe_table(head, rows, right=range(1, len(head)))


def _value(summary: dict[str, float], digits: int = 2) -> str:
    return f"{summary['mean']:.{digits}f} ({summary['error']:.{digits}f})"


def silent_failure(results: Any) -> str:
    """Held-out log-likelihoods at the end of the runs, one number for each seed."""
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in results["runs"]:
        cells = rows.setdefault((row["set"], row["start"]), {way: [] for way in _WAYS})
        cells[row["way"]].append(f"{row['end']['held_out']:.1f}")
    table = [
        [f"{name}, {_STARTS[start]}", *(", ".join(cells[way]) for way in _WAYS)]
        for (name, start), cells in rows.items()
    ]
    return _table(["units and start", *_WAYS.values()], table)


def centring(results: Any) -> str:
    """Plain and centred learning at two rates."""
    rows = [
        [name, _value(found["plain"]), _value(found["centred"]), _value(found["gain"])]
        for name, found in results["compare_centring"].items()
    ]
    return _table(["held out, 64 x 12, exact gradients", "plain", "centred", "gain"], rows)


def centred_start(results: Any) -> str:
    """Plain learning from two starts, and centred learning."""
    rows = [
        [f"{name}, hidden bit, c = -1", *(_value(found[way]) for way in _SEPARATE)]
        for name, found in results["separate_start"].items()
    ]
    head = ["held out, 64 x 12, rate 0.001", "plain", "plain, from the centred start", "centred"]
    return _table(head, rows)


def penalties(results: Any) -> str:
    """Zeros and likelihoods with penalties."""
    rows = [
        [name, _value(found["zero_percent"], 1), _value(found["held_out"])]
        for name, found in results["compare_penalties"].items()
    ]
    return _table(["penalty", "weights that are zero, %", "held-out log-likelihood"], rows)


def mirrored(results: Any) -> str:
    """Shares of mirrored chains on MNIST."""
    rows = []
    for name, found in results.items():
        shares = [found["mirrored"][kind] for kind in _MIRRORED]
        cells = [f"{100 * share['share']:.0f} ({100 * share['error']:.0f})" for share in shares]
        likelihood = f"{found['log_likelihood']:.0f}"
        if "held_out" in found:  # the three runs without biases were made before it was measured
            likelihood += f", held out {found['held_out']:.0f}"
        name = name.replace("as usual", "biases of the data, default rate")
        rows.append([name, *cells, likelihood, str(found["idle_hidden"])])
    head = ["training", *(f"{kind}, %" for kind in _MIRRORED), "log-likelihood", "idle units of 500"]
    return _table(head, rows)
