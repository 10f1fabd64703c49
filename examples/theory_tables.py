"""The paper's table of beta_max beside ours, and the layer-correlation curves."""

from __future__ import annotations

from pathlib import Path

from paramagnet.cli.curve_command import draw_curves
from paramagnet.cli.schemes_command import schemes
from paramagnet.cli.table_command import table


def main() -> None:
    table()
    schemes(visible_units=784, hidden_units=500)
    out = Path("demo-output")
    out.mkdir(exist_ok=True)
    for hidden in ("bit", "spin"):
        path = out / f"layer_correlation_{hidden}.png"
        draw_curves(path, hidden)
        print(f"layer correlation, {hidden} hidden units: {path}")


if __name__ == "__main__":
    main()
