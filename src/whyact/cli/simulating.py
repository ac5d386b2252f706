"""`whyact simulate`: demonstrations whose true features and policies are known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whyact.cli.arguments import RandomState, Refusal, check_output, out_option, say, user_errors

if TYPE_CHECKING:
    import numpy as np

    from whyact.simulation import GroundTruth


def simulate(
    out: Annotated[Path, out_option("CSV or NPZ file")],
    n_rows: Annotated[int, typer.Option(min=2, help="Number of demonstrations.")] = 200,
    n_columns: Annotated[int, typer.Option(min=2, help="Number of observed columns.")] = 30,
    n_features: Annotated[int, typer.Option(min=2, help="Number of features, each of which favours one action.")] = 5,
    n_actions: Annotated[int, typer.Option(min=2, help="Number of actions to choose from.")] = 4,
    snr: Annotated[float, typer.Option(help="Signal-to-noise ratio in dB.")] = 20.0,
    peak: Annotated[float, typer.Option(help="Probability of each feature's favourite action.")] = 0.95,
    truth: Annotated[
        Path | None,
        typer.Option(help="NPZ file to write, with the true features, substates and policies.", show_default=False),
    ] = None,
    random_state: RandomState = 0,
) -> None:
    """Simulate demonstrations as in Sec. 5 of the paper, to try things out.

    The column with the action is called action. The teacher always takes the most probable action.
    """
    check_output(out, endings=(".csv", ".npz"))
    if truth is not None:
        check_output(truth, option="--truth", endings=(".npz",))
        if truth.absolute() == out.absolute():
            raise Refusal(f"--truth: {truth} is also the file of --out; give another name.")
    if n_features > n_columns:
        raise Refusal(f"--n-features: {n_features} features need at least as many columns, not {n_columns}.")
    if not -100 <= snr <= 200:
        raise Refusal(f"--snr: {snr:g} dB is not between -100 and 200 dB.")
    if not 1 / n_actions < peak <= 1:
        raise Refusal(f"--peak: {peak:g} is not between {1 / n_actions:g}, where no action is a favourite, and 1.")
    with user_errors():
        # numpy comes in only when a command runs
        import numpy as np

        from whyact.simulation import draw_ground_truth

        drawn = draw_ground_truth(
            np.random.default_rng(random_state), n_features, snr,
            n_rows=n_rows, n_dimensions=n_columns, n_actions=n_actions, peak=peak,
        )  # fmt: skip
        names = np.array([f"action {u}" for u in range(drawn.policies.shape[1])])
        write_demonstrations(out, drawn.observations, names[drawn.actions])
        if truth is not None:
            write_truth(truth, drawn, names)
    say(f"Written: {out if truth is None else f'{out}, {truth}'}")


def write_demonstrations(path: Path, observations: "np.ndarray", labels: "np.ndarray") -> None:
    """Write demonstrations as CSV or NPZ, by the ending of the name."""
    # pandas comes in only when a command runs
    import pandas

    from whyact.storage.atomic import write_whole
    from whyact.tables.numpy import write_arrays

    if path.suffix.lower() == ".npz":
        write_arrays(path, {"observations": observations, "actions": labels})
        return
    frame = pandas.DataFrame(observations, columns=[f"x{d}" for d in range(observations.shape[1])])
    frame["action"] = labels
    write_whole(path, frame.to_csv(index=False))


def write_truth(path: Path, drawn: "GroundTruth", names: "np.ndarray") -> None:
    """Write what the demonstrations were made from."""
    from whyact.tables.numpy import write_arrays  # numpy comes in only when a command runs

    write_arrays(
        path,
        {"features": drawn.features, "substates": drawn.substates, "policies": drawn.policies, "actions": names},
    )
