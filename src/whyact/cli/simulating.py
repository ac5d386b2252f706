"""`whyact simulate`: demonstrations of which everything is known."""

from pathlib import Path
from typing import Annotated

import typer

from whyact.cli.arguments import Refusal, check_output, user_errors


def simulate(
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV or NPZ file to write.", show_default=False)],
    rows: Annotated[int, typer.Option(min=2, help="Demonstrations.")] = 200,
    columns: Annotated[int, typer.Option(min=2, help="Observed columns.")] = 30,
    features: Annotated[int, typer.Option(min=2, help="Features, each of which speaks for one action.")] = 5,
    actions: Annotated[int, typer.Option(min=2, help="Actions that the teacher has.")] = 4,
    snr: Annotated[float, typer.Option(help="Signal-to-noise ratio in dB.")] = 20.0,
    peak: Annotated[float, typer.Option(help="Probability of each feature's favourite action.")] = 0.95,
    truth: Annotated[
        Path | None, typer.Option(help="NPZ file for the true features, substates and policies.", show_default=False)
    ] = None,
    random_state: Annotated[int, typer.Option(min=0, metavar="SEED", help="Seed of the random numbers.")] = 0,
) -> None:
    """Make demonstrations as in the paper's simulations (Sec. 5), to try things on.

    The column with the action is called action; the teacher takes the most probable one.
    """
    check_output(out)
    if truth is not None:
        check_output(truth, out, option="--truth")
    if out.suffix.lower() not in (".csv", ".npz"):
        raise Refusal(f"--out: {out} does not end with .csv or .npz.")
    if features > columns:
        raise Refusal(f"--features: {features} features need at least as many columns, not {columns}.")
    if not -100 <= snr <= 200:
        raise Refusal(f"--snr: {snr:g} dB is not between -100 and 200 dB.")
    if not 1 / actions < peak <= 1:
        raise Refusal(f"--peak: {peak:g} is not between {1 / actions:g}, where no action is a favourite, and 1.")
    with user_errors():
        written = write_simulation(out, truth, rows, columns, features, actions, snr, peak, random_state)
    typer.echo(f"Written: {', '.join(str(path) for path in written)}")


def write_simulation(out, truth, n_rows, n_columns, n_features, n_actions, snr, peak, seed) -> list[Path]:
    import numpy as np
    import pandas

    from whyact.simulation import draw_ground_truth
    from whyact.storage.atomic import write_whole
    from whyact.tables.numpy import write_arrays

    drawn = draw_ground_truth(
        np.random.default_rng(seed), n_features, snr,
        n_rows=n_rows, n_dimensions=n_columns, n_actions=n_actions, peak=peak,
    )  # fmt: skip
    names = np.array([f"action {u}" for u in range(drawn.policies.shape[1])])
    labels = names[drawn.actions]
    if out.suffix.lower() == ".npz":
        write_arrays(out, {"observations": drawn.observations, "actions": labels})
    else:
        frame = pandas.DataFrame(drawn.observations, columns=[f"x{d}" for d in range(n_columns)])
        frame["action"] = labels
        write_whole(out, frame.to_csv(index=False))
    if truth is None:
        return [out]
    arrays = {"features": drawn.features, "substates": drawn.substates, "policies": drawn.policies, "actions": names}
    write_arrays(truth, arrays)
    return [out, truth]
