"""`whyact demo`: learn from traffic that comes with whyact, in a minute."""

from pathlib import Path
from typing import Annotated

import typer

# Few enough features to look at; see docs/driving.md for what each of the others does.
DEMO_OPTIONS: dict = {
    "n_burn_in": 200,
    "n_draws": 200,
    "n_chains": 2,
    "start": "rows",
    "max_features": 12,
    "decisiveness": 10.0,
}


def demo(
    out: Annotated[Path, typer.Option(help="Where to draw what was learned (PNG or SVG).")] = Path("whyact-demo.png"),
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0,
) -> None:
    """Learn from a driver in simulated traffic that comes with whyact, and show what was learned."""
    if not out.parent.is_dir():
        raise typer.BadParameter(f"the folder {out.parent} does not exist.", param_hint="--out")
    run_demo(out, seed)


def run_demo(out: Path, seed: int) -> None:
    import warnings

    import numpy as np
    from rich.console import Console

    from whyact import ChainsDisagreeWarning, FeaturePolicyClassifier
    from whyact.driving.datasets import load_traffic
    from whyact.explanation.describe import describe

    console = Console()

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    traffic = load_traffic()
    X, y = traffic.observations, traffic.actions
    new = traffic.episode % 4 == 0  # whole episodes, so that no moment has a neighbour among those learned from
    say(
        f"A driver in simulated traffic (highway-env), {len(X)} moments: the cars around, now and a second ago, the "
        f"own speed, and what the driver did next. {(~new).sum()} of them to learn from; nobody says which situations "
        "matter.\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainsDisagreeWarning)  # the explanation says it
        model = FeaturePolicyClassifier(**DEMO_OPTIONS, random_state=seed, n_jobs=2, verbose=1).fit(X[~new], y[~new])
    say(f"\n{describe(model, column_names=traffic.grid.column_names, n_entries=3)}\n")
    names, counts = np.unique(y[~new], return_counts=True)
    usual = np.mean(y[new] == names[counts.argmax()])
    say(
        f"Accuracy in the {new.sum()} moments of {len(np.unique(traffic.episode[new]))} episodes it has not seen: "
        f"{model.score(X[new], y[new]):.2f} (always {names[counts.argmax()]}: {usual:.2f})"
    )
    try:
        from whyact.driving.pictures import plot_traffic_features

        figure = plot_traffic_features(model, traffic.grid, "What makes the driver act")
    except ImportError:
        say("No picture: install whyact[plot].")
        return
    figure.savefig(out, dpi=110)
    say(f"Drawn to {out}")
