"""The command line."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Learn why a teacher acts.", no_args_is_help=True, add_completion=False)


@app.callback()
def main() -> None:
    """Learn why a teacher acts."""


@app.command()
def version() -> None:
    """Print the version."""
    from whyact import __version__

    typer.echo(__version__)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to draw what was learned (PNG or SVG).")] = Path("whyact-demo.png"),
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0,
) -> None:
    """Learn from a driver's demonstrations that come with whyact, and show what was learned."""
    if not out.parent.is_dir():
        raise typer.BadParameter(f"the folder {out.parent} does not exist.", param_hint="--out")
    run_demo(out, seed)


def run_demo(out: Path, seed: int) -> None:
    from rich.console import Console

    from whyact import FeaturePolicyClassifier, load_demo
    from whyact.demo import GRID
    from whyact.explain import describe

    console = Console()
    data = load_demo()
    n_train = 80
    console.print(
        f"A driver, {len(data.X)} moments: what is seen in {data.X.shape[1]} cells in front of the car, and the action "
        f"taken. {n_train} of them to learn from; nobody says how many things matter, or which.\n",
        highlight=False,
        soft_wrap=True,
    )
    model = FeaturePolicyClassifier(random_state=seed, n_jobs=2, verbose=1)
    model.fit(data.X[:n_train], data.y[:n_train])
    explanation = describe(model, column_names=data.column_names, n_entries=3)
    console.print(f"\n{explanation}\n", highlight=False, markup=False, soft_wrap=True)
    accuracy = model.score(data.X[n_train:], data.y[n_train:])
    console.print(f"Accuracy on the {len(data.X) - n_train} moments it has not seen: {accuracy:.2f}", highlight=False)
    try:
        from whyact.plotting import plot_features
    except ImportError:
        console.print("No picture: install whyact\\[plot].")
        return
    figure = plot_features(model, GRID, "What makes the driver act (top: the cells ahead, bottom: the policy)")
    figure.savefig(out, dpi=110)
    console.print(f"Drawn to {out}", highlight=False)
