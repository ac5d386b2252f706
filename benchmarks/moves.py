"""Do moves of whole features help chains mix? Effective draws per second with them and without, side by side.

    python benchmarks/moves.py --problems paper,iris,wine --n-chains 4

"paper" is a data set of the paper's design (K = 9, 15 dB) under the mixture; the others are tables of
`experiments.decisions`, under the product, with the noise held at a tolerance. Each chain has the usual burn-in and
then `--n-sweeps` sweeps, of which every tenth is kept. Given are effective draws within the chains, summed and divided
by the seconds of the process, and R-hat over the chains, of the number of features and of the sum of all substates.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`
from experiments.decisions.tables import DATA, load_tables
from whyact.model import Demonstrations, Priors, Target, make_target
from whyact.sampler.chain import anneal, run_segment
from whyact.sampler.exact import EXACT, start_from_prior
from whyact.sampler.sweep import run_sweeps
from whyact.scaling import Scaling, find_unit, hold_noise, scale_by_range
from whyact.simulation import draw_ground_truth

N_BURN_IN = 1500
THIN = 10
MOST_ROWS = 400


def make_problem(name: str, tolerance: float, n_whole_moves: int) -> tuple[Demonstrations, Target, Priors]:
    """What to sample from."""
    if name == "paper":
        truth = draw_ground_truth(np.random.default_rng(4), 9, 15.0)
        data = Scaling(find_unit(truth.observations)).to_sampler(truth.observations, truth.actions)
        options: dict[str, Any] = {"n_actions": int(truth.actions.max()) + 1}
        priors = Priors()
    else:
        table = load_tables((name,), DATA)[0][name]
        rows = np.random.default_rng(0).permutation(len(table.X))[:MOST_ROWS]
        scaling = scale_by_range(table.X[rows])
        observations = scaling.scale_columns(table.X[rows])
        unit = find_unit(observations)
        available = None if table.available is None else table.available[rows]
        data = Scaling(unit).to_sampler(observations, table.actions[rows], available)
        options = {"n_actions": len(table.classes), "combination": "product"}
        priors = hold_noise(Priors(), tolerance / unit)
    n_dimensions = data.observations.shape[1]
    return data, make_target(priors, n_dimensions=n_dimensions, n_whole_moves=n_whole_moves, **options), priors


def run(name: str, tolerance: float, n_whole_moves: int, n_chains: int, n_sweeps: int) -> tuple[np.ndarray, float]:
    """Number of features and sum of substates, (2, chains, draws), and the seconds of all sweeps after the burn-in."""
    data, target, priors = make_problem(name, tolerance, n_whole_moves)
    traces = np.empty((2, n_chains, n_sweeps // THIN))
    seconds = 0.0
    for chain in range(n_chains):
        rng = np.random.Generator(np.random.PCG64([chain, 15]))
        state = start_from_prior(rng, data, target, priors)
        rng, state, _ = run_segment(rng, state, anneal(N_BURN_IN, 1.0), 0, N_BURN_IN, 1, data, target, EXACT)
        start = time.process_time()
        for i in range(n_sweeps // THIN):
            state, _ = run_sweeps(rng, state, np.ones(THIN), data, target)
            traces[:, chain, i] = len(state.features), state.substates.sum()
        seconds += time.process_time() - start
    return traces, seconds


def main() -> None:
    """Run both and print a line for each."""
    import arviz_stats

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="paper,iris,wine,modechoice")
    parser.add_argument("--tolerance", type=float, default=0.1)
    parser.add_argument("--n-chains", type=int, default=4)
    parser.add_argument("--n-sweeps", type=int, default=4000)
    options = parser.parse_args()
    print("problem      moves  seconds  K: draws/s  R-hat  mean   substates: draws/s  R-hat")
    for name in options.problems.split(","):
        for n_whole_moves in (0, 1):
            traces, seconds = run(name, options.tolerance, n_whole_moves, options.n_chains, options.n_sweeps)
            numbers = []
            for trace in traces:
                effective = [
                    float(arviz_stats.ess(one[None], method="bulk")) if np.ptp(one) > 0 else np.nan for one in trace
                ]
                numbers += [np.nansum(effective) / seconds, float(arviz_stats.rhat(trace))]
            k_rate, k_rhat, use_rate, use_rhat = numbers
            print(
                f"{name:12s} {n_whole_moves:5d} {seconds:8.1f} {k_rate:12.1f} {k_rhat:6.2f} {traces[0].mean():5.1f} "
                f"{use_rate:20.1f} {use_rhat:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
