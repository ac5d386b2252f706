"""Drive in simulated traffic, where the paper (Sec. 6) stops at prediction: the learned driver beside others.

`python -m experiments.driving.traffic --out results/driving/traffic.csv`
"""

import warnings
from pathlib import Path
from typing import Annotated, Any

import pandas
import typer
from rich.console import Console
from rich.table import Table

from experiments.harness.commands import make_app, run_app
from whyact import DoubtfulFitWarning, FeaturePolicyClassifier
from whyact.cli.arguments import RandomState, check_output
from whyact.driving.agent import compare_drivers, make_drivers
from whyact.driving.datasets import load_traffic
from whyact.storage.atomic import write_whole

# More features than in the demo, which wants few enough to look at.
OPTIONS: dict[str, Any] = {
    "n_burn_in": 200,
    "n_draws": 200,
    "n_chains": 2,
    "start": "rows",
    "max_features": 20,
    "combination": "mixture",
    "decisiveness": 10.0,
    "scale_columns": False,
    "max_prediction_draws": 20,  # a decision a second, five drivers, 50 episodes
}
# How the measures of `compare_drivers` begin in the table.
MEASURES = {"crash_rate": "crash", "mean_speed": "speed", "agreement": "agreement"}

app = make_app()


@app.command()
def main(
    out: Annotated[
        Path,
        typer.Option(
            help="CSV file for the results. Called traffic.csv in the folder of a driving study, it is shown on the "
            "study's page.",
            show_default=False,
        ),
    ],
    episodes: Annotated[int, typer.Option(min=2, help="Episodes that each driver drives through.")] = 50,
    random_state: RandomState = 0,
) -> None:
    """Learn from the shipped traffic, then let the learned driver drive in the simulator beside other drivers."""
    check_output(out, endings=(".csv",))
    run_traffic(out, episodes, random_state)


def run_traffic(out: Path, n_episodes: int, seed: int) -> None:
    """Learn from the shipped traffic, let all drivers drive, write the table and print it."""
    console = Console()
    shipped = load_traffic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulFitWarning)
        model = FeaturePolicyClassifier(**OPTIONS, random_state=seed, n_jobs=2, verbose=1)
        model.fit(shipped.observations, shipped.actions)
    drivers = compare_drivers(make_drivers(model, seed), n_episodes, seed + 1)
    table = drivers.rename(columns=rename_column).reset_index()
    write_whole(out, table.to_csv(index=False, float_format="%.6g"))
    console.print(make_table(table))
    console.print(f"Written: {out}", highlight=False, soft_wrap=True)


def rename_column(name: str) -> str:
    """The names of the page: crash_rate, crash_low, crash_high, speed, speed_low and so on."""
    for old, new in MEASURES.items():
        for end in ("_low", "_high"):
            if name == old + end:
                return new + end
    return {"mean_speed": "speed"}.get(name, name)


def make_table(drivers: pandas.DataFrame) -> Table:
    """A line for each driver."""
    table = Table("driver", "crashes", "speed [m/s]", "agreement with the expert")
    for _, row in drivers.iterrows():
        table.add_row(
            row["driver"],
            *(
                f"{row[name]:.2f} [{row[f'{short}_low']:.2f}, {row[f'{short}_high']:.2f}]"
                for name, short in (("crash_rate", "crash"), ("speed", "speed"), ("agreement", "agreement"))
            ),
        )
    return table


if __name__ == "__main__":
    run_app(app)
