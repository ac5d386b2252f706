"""Speed and memory of a sweep, as ratios taken side by side in one process (make bench).

A sweep against its own two matrix products (Z F' and S'Z), against the paper's conditionals written literally with
NumPy, for ten times the levels, and for ten times the rows. One thread. Peak memory of a fit in a process of its own.
"""

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import literal
import numpy as np
from threadpoolctl import threadpool_limits

from whyact.model import Demonstrations, Priors, State, Target, make_demonstrations, make_target
from whyact.sampler.chain import run_chains
from whyact.sampler.exact import start_combining
from whyact.sampler.sweep import run_sweeps
from whyact.simulation import draw_ground_truth

SIZES = ((80, 30, 9, 100), (300, 2730, 31, 100))


COMBINATIONS: dict[str, dict[str, str | float]] = {
    "decisiveness learned": {"decisiveness": "drawn"},
    "decisiveness 10": {"decisiveness": 10.0},
    "product": {"combination": "product"},
}
Setting = tuple[np.random.Generator, State, Demonstrations, Target]


def settle(n_rows: int, n_dimensions: int, n_features: int, n_levels: int, n_sweeps: int = 60) -> Setting:
    """Data of the paper's design at 20 dB, and the state of a chain near the truth."""
    rng = np.random.default_rng(0)
    truth = draw_ground_truth(rng, n_features, 20, n_rows=n_rows, n_dimensions=n_dimensions)
    unit = np.sqrt(np.mean(truth.observations**2)) / 0.25
    data = make_demonstrations(truth.observations / unit, truth.actions)
    target = make_target(Priors(), n_actions=4, n_dimensions=n_dimensions, n_levels=n_levels)
    state = State(
        substates=np.ascontiguousarray(np.rint(truth.substates.T * (n_levels - 1)) / (n_levels - 1)),
        features=truth.features / unit,
        policies=truth.policies,
        noise_variance=truth.noise_variance / unit**2,
        noise_shape=1000.0,
        noise_rate=1.0,
        weight_scale=1.0 / unit,
        ibp_mass=2.0,
        ibp_concentration=1.0,
        policy_concentration=0.1,
    )
    state, _ = run_sweeps(rng, state, np.ones(n_sweeps), data, target)
    return rng, state, data, target


def seconds(function: Callable[[], object], n_repeats: int) -> float:
    """Time one call, from a loop long enough for the clock."""
    start = time.perf_counter()
    for _ in range(n_repeats):
        function()
    return (time.perf_counter() - start) / n_repeats


def alternate(
    first: Callable[[], object], second: Callable[[], object], n_rounds: int, first_repeats: int, second_repeats: int
) -> tuple[float, float, float]:
    """Time two functions in turn; return the medians of both and of their ratio."""
    pairs = np.array([(seconds(first, first_repeats), seconds(second, second_repeats)) for _ in range(n_rounds)])
    ours, theirs = np.median(pairs, axis=0).tolist()
    return ours, theirs, float(np.median(pairs[:, 0] / pairs[:, 1]))


def make_sweeper(
    rng: np.random.Generator, state: State, data: Demonstrations, target: Target, n_sweeps: int
) -> Callable[[], object]:
    """A function that runs `n_sweeps` sweeps from the same state."""
    weights = np.ones(n_sweeps)
    return lambda: run_sweeps(rng, state, weights, data, target)


def compare_sizes() -> None:
    """A sweep against its matrix products, and against literal NumPy."""
    for size in SIZES:
        rng, state, data, target = settle(*size)
        small = size[1] < 100
        n_sweeps = 20 if small else 3
        run = make_sweeper(rng, state, data, target, n_sweeps)
        ours, theirs, ratio = alternate(run, make_products(state, data), 15, 5 if small else 1, 500 if small else 5)
        print(f"(N, D, K, L) = {size}, K = {len(state.features)} at the start")
        quick = 1e3 * ours / n_sweeps
        print(f"  sweep {quick:.3f} ms, its two products {1e3 * theirs:.4f} ms: {ratio / n_sweeps:.1f} times")
        slow, _, ratio = alternate(make_literal(rng, state, data, size[3]), run, 5 if small else 1, 1, 1)
        print(f"  literal NumPy {1e3 * slow:.1f} ms: {ratio * n_sweeps:.0f} times the sweep")


def make_literal(rng: np.random.Generator, state: State, data: Demonstrations, n_levels: int) -> Callable[[], None]:
    """A function that runs one sweep of the literal version."""

    def sweep() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            literal.sweep(rng, state, data.observations, data.actions, n_levels)

    return sweep


def make_products(state: State, data: Demonstrations) -> Callable[[], object]:
    """A function that computes the two matrix products of a sweep."""

    def products() -> object:
        return data.observations @ state.features.T, state.substates @ data.observations

    return products


def compare_combinations() -> None:
    """A decisive mixture and a product against the plain mixture, on the same data, from the same features."""
    for size in SIZES:
        rng, state, data, target = settle(*size)
        n_sweeps, n_rounds = (50, 15) if size[1] < 100 else (3, 9)
        plain = make_sweeper(rng, state, data, target, n_sweeps)
        for name, options in COMBINATIONS.items():
            other = make_target(Priors(), n_actions=4, n_dimensions=size[1], n_levels=size[3], **options)
            settled, _ = run_sweeps(rng, start_combining(state, other), np.ones(40), data, other)
            ratio = alternate(make_sweeper(rng, settled, data, other, n_sweeps), plain, n_rounds, 1, 1)[2]
            print(f"{name}, (N, D, K, L) = {size}: {ratio:.2f} times a sweep of the plain mixture")


def compare_levels() -> None:
    """Ten times the levels."""
    few, many = (make_sweeper(*settle(80, 30, 9, n_levels), 50) for n_levels in (100, 1000))
    print(f"L = 1000 against L = 100, (N, D, K) = (80, 30, 9): {alternate(many, few, 15, 3, 3)[2]:.2f} times the time")
    few, many = (make_sweeper(*settle(300, 2730, 31, n_levels), 3) for n_levels in (100, 1000))
    print(
        f"L = 1000 against L = 100, (N, D, K) = (300, 2730, 31): {alternate(many, few, 7, 1, 1)[2]:.2f} times the time"
    )


def compare_rows() -> None:
    """Ten times the rows."""
    few, many = (make_sweeper(*settle(n_rows, 30, 9, 100), 20) for n_rows in (80, 800))
    print(f"800 rows against 80, (D, K, L) = (30, 9, 100): {alternate(many, few, 15, 1, 5)[2]:.2f} times the time")
    few, many = (make_sweeper(*settle(n_rows, 30, 9, 100), 5) for n_rows in (1000, 10000))
    print(f"10000 rows against 1000, (D, K, L) = (30, 9, 100): {alternate(many, few, 7, 1, 1)[2]:.2f} times the time")


def measure_memory(n_rows: int, n_dimensions: int, n_features: int, n_sweeps: int) -> None:
    """Fit in this process, and print its peak memory above what it had before, in units of the data."""
    rng, _, data, target = settle(40, 20, 3, 100)
    run_chains(np.random.SeedSequence(0), data, target, Priors(), n_chains=2, n_burn_in=10, n_draws=10, thin=1)
    truth = draw_ground_truth(rng, n_features, 20, n_rows=n_rows, n_dimensions=n_dimensions)
    X = truth.observations
    actions = truth.actions
    unit = 4 * float(np.sqrt(np.vdot(X, X) / X.size))
    del truth
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the peak so far
    before = resident("VmRSS")
    data = make_demonstrations(X, actions, unit)
    target = make_target(Priors(), n_actions=4, n_dimensions=n_dimensions)
    chains = run_chains(
        np.random.SeedSequence(0), data, target, Priors(), n_chains=1, n_burn_in=n_sweeps, n_draws=n_sweeps, thin=1
    ).chains
    peak = resident("VmHWM") - before
    draws = sum(chain.features.nbytes + chain.policies.nbytes + chain.levels.nbytes for chain in chains)
    size = X.nbytes / 1e6
    print(f"peak memory of a fit at ({n_rows}, {n_dimensions}), X itself not counted: {peak / 1e6:.0f} MB")
    print(f"  = {(peak - draws) / 1e6 / size:.2f} times the data ({size:.0f} MB) plus the draws ({draws / 1e6:.0f} MB)")


def resident(name: str) -> int:
    """Bytes of memory of this process, now ("VmRSS") or at the peak ("VmHWM")."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def main() -> None:
    """Print all ratios, then the memory of fits in processes of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", nargs=4, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        measure_memory(*options.memory)
        return
    with threadpool_limits(limits=1):
        compare_sizes()
        compare_combinations()
        compare_levels()
        compare_rows()
    sys.stdout.flush()
    for size in (("300", "2730", "31", "60"), ("1500", "2730", "31", "60"), ("100000", "60", "5", "10")):
        subprocess.run([sys.executable, __file__, "--memory", *size], check=True)


if __name__ == "__main__":
    main()
