"""`whyact demo`: learn from the traffic that ships with whyact, in a minute."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import whyact
from whyact.cli.arguments import PICTURES, RandomState, check_output, out_option, say, user_errors, write_picture
from whyact.errors import DoubtfulFitWarning

if TYPE_CHECKING:
    import numpy as np

    from whyact.driving.traffic import TrafficGrid
    from whyact.estimators.feature_policy import FeaturePolicyClassifier

# Few enough features to look at, and short chains; docs/driving.md says why they start from rows. Cells of one grid are
# of one kind, and so few features leave noise that must be free.
DEMO_OPTIONS: dict[str, Any] = {
    "n_burn_in": 200,
    "n_draws": 200,
    "n_chains": 2,
    "start": "rows",
    "max_features": 12,
    "scale_columns": False,
}


def demo(
    out: Annotated[Path, out_option("Picture", " (PNG, SVG or PDF)", default=True)] = Path("whyact-demo.png"),
    random_state: RandomState = 0,
) -> None:
    """Learn from a driver in simulated traffic, which ships with whyact, and show what was learned."""
    check_output(out, endings=PICTURES)
    # numpy and scikit-learn come in only when a command runs
    from whyact.driving.datasets import load_traffic
    from whyact.explanation.describe import describe

    traffic = load_traffic()
    X, y = traffic.observations, traffic.actions
    new = traffic.episode % 4 == 0  # whole episodes, so that no moment has a neighbour among those learned from
    say(
        f"A driver in simulated traffic (highway-env), {len(X)} moments: the cars around it now and a second ago, its "
        f"own speed, and what the driver did next. {(~new).sum()} are for learning; nobody says which situations "
        "matter.",
        "",
    )
    with user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulFitWarning)  # the description says so
        model = whyact.FeaturePolicyClassifier(**DEMO_OPTIONS, random_state=random_state, n_jobs=2, verbose=1)
        model.fit(X[~new], y[~new])
    say("", *describe(model, column_names=traffic.grid.column_names, n_entries=3).split("\n"), "")
    say(
        f"Accuracy on the {new.sum()} moments of {len(set(traffic.episode[new]))} episodes it has not seen: "
        f"{model.score(X[new], y[new]):.2f} {say_usual(y[~new], y[new])}"
    )
    draw(model, traffic.grid, out)


def say_usual(learned: "np.ndarray", new: "np.ndarray") -> str:
    """How often the most frequent action would have been right."""
    import numpy as np  # comes in only when a command runs

    names, counts = np.unique(learned, return_counts=True)
    usual = names[counts.argmax()]
    return f"(always {usual}: {np.mean(new == usual):.2f})"


def draw(model: "FeaturePolicyClassifier", grid: "TrafficGrid", out: Path) -> None:
    """Draw what was learned, if matplotlib is installed."""
    try:
        from whyact.driving.pictures import plot_traffic_features  # needs matplotlib, an extra

        figure = plot_traffic_features(model, grid, "What makes the driver act")
    except ImportError:
        say("No picture was drawn: install whyact[plot] to get one.")
        return
    with user_errors():
        write_picture(figure, out)
    say(f"Written: {out}")
