"""The texts and figures of ``paramagnet data``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramagnet.data.datasets import Dataset
    from paramagnet.data.sources import Source
    from paramagnet.data.summary import Summary
    from paramagnet.data.table import Table


def facts(source: Source) -> dict[str, Any]:
    """What is known of a set without loading it."""
    return {
        "name": source.name,
        "title": source.title,
        "points": source.n_points,
        "selected": source.chosen,
        "features": source.n_features,
        "classes": source.n_classes,
        "licence": source.licence,
    }


def where(source: Source, data_dir: Path | None) -> str:
    """Where the files of a set are."""
    from paramagnet.data.download import find_local, is_cached

    if not source.files:
        return source.place
    try:
        found = [find_local(source, file, data_dir) for file in source.files]
    except FileNotFoundError:
        found = [None]
    if all(path is not None for path in found):
        return f"in {Path(str(found[0])).parent}"
    return "in the cache" if is_cached(source) else f"to be downloaded: paramagnet data fetch {source.name}"


def one_line(dataset: Dataset) -> str:
    """A data set in one line."""
    return repr(dataset).removeprefix("Dataset(").removesuffix(")").replace("'", "", 2).replace(",", ":", 1)


def describe(name: str, content: Dataset | Table, summary: Summary) -> list[str]:
    """What ``info`` prints."""
    from paramagnet.data.datasets import Dataset

    lines = []
    if isinstance(content, Dataset):
        lines.append(one_line(content))
        if content.provenance is not None:
            lines.append(
                f"source: {content.provenance.title}; {content.provenance.reference}; "
                f"licence {content.provenance.licence}"
            )
    else:
        lines.append(f"{name}: {summary.n_points} points of {summary.n_features} features")
        if content.found:
            lines.append(f"found: {', '.join(content.found)}")
    lines.append(f"values: {_values(summary)}")
    lines.append(f"missing: {summary.n_missing}")
    lines.append(f"constant columns: {_constant(content.feature_names, summary)}")
    lines.append(f"duplicate points: {summary.n_duplicates}")
    if content.labels is not None:
        import numpy as np

        counts = np.bincount(content.labels, minlength=len(content.class_names))
        shown = [f"{title} {count}" for title, count in zip(content.class_names, counts, strict=True)]
        lines.append(f"classes: {len(shown)} ({', '.join(shown[:12])}{', ...' if len(shown) > 12 else ''})")
    if summary.bounds is not None:
        lines.append(f"log-likelihood of independent bits: {summary.bounds.independent:.4f} nats per point")
        lines.append(f"upper bound, the entropy of the data: {summary.bounds.entropy:.4f} nats per point")
    return lines


def _values(summary: Summary) -> str:
    if summary.values:
        return ", ".join(f"{value:g}" for value in summary.values)
    return f"{summary.lowest:g} to {summary.highest:g}"


def _constant(names: tuple[str, ...], summary: Summary) -> str:
    if not summary.constant:
        return "0"
    shown = ", ".join(names[i] for i in summary.constant[:8])
    return f"{len(summary.constant)} ({shown}{', ...' if len(summary.constant) > 8 else ''})"


def as_json(name: str, content: Dataset | Table, summary: Summary) -> dict[str, Any]:
    """What ``info --json`` prints."""
    from paramagnet.data.datasets import Dataset

    result: dict[str, Any] = {
        "name": name,
        "n_points": summary.n_points,
        "n_features": summary.n_features,
        "lowest": None if math.isnan(summary.lowest) else summary.lowest,
        "highest": None if math.isnan(summary.highest) else summary.highest,
        "n_missing": summary.n_missing,
        "constant": [content.feature_names[i] for i in summary.constant],
        "n_duplicates": summary.n_duplicates,
    }
    if content.labels is not None:
        import numpy as np

        counts = np.bincount(content.labels, minlength=len(content.class_names)).tolist()
        result["classes"] = dict(zip(content.class_names, counts, strict=True))
    if summary.bounds is not None:
        result["log_likelihood_independent"] = summary.bounds.independent
        result["log_likelihood_entropy"] = summary.bounds.entropy
    if isinstance(content, Dataset):
        result["n_held_out"] = content.n_held_out
        if content.binarizer is not None:
            result["binarized"] = content.binarizer.describe()
    else:
        result["found"] = list(content.found)
    return result


def draw(content: Dataset | Table, plot: Path) -> None:
    """Write the figure that ``info --plot`` asks for."""
    from paramagnet.plots import plot_data, save_figure

    shape = content.image_shape
    n_features = content.data.shape[1]
    side = math.isqrt(n_features)
    # Features without names whose number is a square are taken for pixels.
    if shape is None and side >= 8 and side**2 == n_features and content.feature_names[0] == "x0":
        shape = (side, side)
    save_figure(plot_data(content.data, names=content.feature_names, image_shape=shape), plot)
