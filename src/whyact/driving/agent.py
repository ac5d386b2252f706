"""Close the loop: a learned policy drives in simulated traffic, against the expert, a random and an idle driver.

All drivers drive through the same scenes, which no demonstration has shown, and take over in the same state. Measured
are crashes, speed, and agreement: the share of steps in which the driver took the action that the expert would have
taken in that very state, which is found by letting the expert drive on in a copy of the scene. So it is agreement in
the states that the driver itself gets into, not in those of the expert.

The expert steers and brakes freely; the others have meta-actions only, which brake by one level of speed a second. How
much of a difference this alone makes is shown by "expert's meta-actions": what the expert would do, done by them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas
from scipy import stats

from whyact.driving.traffic import ACTIONS, IDLE, Simulator, Traffic
from whyact.errors import ArgumentError

FIRST_UNSEEN = 1_000_000  # episodes from here on are in no demonstration
N_STEPS = 20
LONG_TRAFFIC = Traffic(reach=(-60.0, 330.0))  # enough to meet for the length of an episode


class Driver(Protocol):
    """Whoever can act."""

    def reset(self) -> None: ...

    def act(self, observation: np.ndarray) -> int:
        """The number of a meta-action."""
        ...


class PolicyAgent:
    """Drive as a model predicts.

    Parameters
    ----------
    model : fitted classifier
        Its classes must be meta-actions: names as in `traffic.ACTIONS`, or their numbers.
    """

    def __init__(self, model: Any):
        self.model = model
        self.numbers = {label: number_action(label) for label in model.classes_.tolist()}

    def reset(self) -> None:
        """Nothing is remembered: the previous frame is part of the observation."""

    def act(self, observation: np.ndarray) -> int:
        return self.numbers[self.model.predict(np.reshape(observation, (1, -1)))[0]]


def number_action(label: object) -> int:
    if label in ACTIONS:
        return ACTIONS.index(str(label))
    if isinstance(label, int) and 0 <= label < len(ACTIONS):
        return label
    raise ArgumentError("model", f"the model's action {label!r} is no meta-action; there are {', '.join(ACTIONS)}.")


class RandomDriver:
    """Any meta-action, with equal probabilities."""

    def __init__(self, seed: int = 0):
        self.rng = np.random.default_rng(seed)

    def reset(self) -> None:
        """Goes on with its random numbers."""

    def act(self, observation: np.ndarray) -> int:
        return int(self.rng.integers(len(ACTIONS)))


class IdleDriver:
    """Never does anything."""

    def reset(self) -> None:
        """Nothing to forget."""

    def act(self, observation: np.ndarray) -> int:
        return IDLE


class Expert(NamedTuple):
    """highway-env's IDM/MOBIL driver; or, with only meta-actions, a driver who does what it would do."""

    only_meta_actions: bool = False


class EpisodeResults(NamedTuple):
    """What became of each episode."""

    crashed: np.ndarray  # (E,), bool
    mean_speed: np.ndarray  # (E,), m/s
    agreement: np.ndarray  # (E,), share of the steps
    n_steps: np.ndarray  # (E,)


def drive(
    driver: Driver | Expert,
    n_episodes: int = 50,
    seed: int = 0,
    *,
    n_steps: int = N_STEPS,
    traffic: Traffic = LONG_TRAFFIC,
) -> EpisodeResults:
    """Let a driver drive; scenes depend on the seed, not on the driver.

    Parameters
    ----------
    driver : Driver or Expert
        Anything with `act(observation)` and `reset()`, or the expert.
    n_episodes : int
    seed : int
    n_steps : int
        Seconds of an episode, unless it ends in a crash.
    traffic : Traffic
    """
    simulator = Simulator(traffic, n_steps=n_steps)
    episodes = [drive_episode(driver, simulator, seed, FIRST_UNSEEN + number) for number in range(n_episodes)]
    return EpisodeResults(*(np.array(column) for column in zip(*episodes, strict=True)))


def drive_episode(driver: Driver | Expert, simulator: Simulator, seed: int, episode: int) -> tuple:
    """Whether it crashed, mean speed, agreement, number of steps."""
    drives_itself = isinstance(driver, Expert) and not driver.only_meta_actions
    observation, _ = simulator.reset(seed, episode, self_driving=drives_itself)
    if not isinstance(driver, Expert):
        driver.reset()
    speeds, agreed = [], []
    while True:
        action = None
        if not drives_itself:
            advice = ACTIONS.index(simulator.ask_expert())
            action = advice if isinstance(driver, Expert) else driver.act(observation)
            agreed.append(action == advice)
        observation, _, terminated, truncated, info = simulator.step(action)
        speeds.append(info["speed"])
        if terminated or truncated:
            return terminated, np.mean(speeds), 1.0 if drives_itself else np.mean(agreed), len(speeds)


def make_drivers(model: Any, seed: int = 0) -> dict[str, Driver | Expert]:
    """The learned driver and those to compare it with."""
    return {
        "learned": PolicyAgent(model),
        "expert": Expert(),
        "expert's meta-actions": Expert(only_meta_actions=True),
        "random": RandomDriver(seed),
        "idle": IdleDriver(),
    }


def compare_drivers(
    drivers: Mapping[str, Driver | Expert], n_episodes: int = 50, seed: int = 0, *, n_steps: int = N_STEPS
) -> pandas.DataFrame:
    """Let each driver drive through the same scenes.

    Returns
    -------
    DataFrame
        A row for each driver: `crash_rate`, `mean_speed` (m/s) and `agreement`, each with its 95% interval in `..._low`
        and `..._high`: Wilson's for the rate; Student's for the means over episodes, which are what is independent.
    """
    rows = {}
    for name, driver in drivers.items():
        results = drive(driver, n_episodes, seed, n_steps=n_steps)
        rows[name] = {
            "n_episodes": n_episodes,
            **spread("crash_rate", wilson_interval(int(results.crashed.sum()), n_episodes)),
            **spread("mean_speed", mean_interval(results.mean_speed)),
            **spread("agreement", mean_interval(results.agreement, 0.0, 1.0)),
        }
    return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("driver")


class Estimate(NamedTuple):
    """A figure and its 95% interval."""

    value: float
    low: float
    high: float


def spread(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def wilson_interval(n_hits: int, n_trials: int, level: float = 0.95) -> Estimate:
    """A rate, with Wilson's interval."""
    interval = stats.binomtest(n_hits, n_trials).proportion_ci(level, method="wilson")
    return Estimate(n_hits / n_trials, float(interval.low), float(interval.high))


def mean_interval(
    values: np.ndarray, lowest: float = -np.inf, highest: float = np.inf, level: float = 0.95
) -> Estimate:
    """A mean, with Student's interval, cut to what is possible; unknown (NaN) for a single value."""
    mean, n_values = float(np.mean(values)), len(values)
    if n_values < 2:
        return Estimate(mean, np.nan, np.nan)
    half = stats.t.ppf((1 + level) / 2, n_values - 1) * np.std(values, ddof=1) / np.sqrt(n_values)
    return Estimate(mean, max(mean - half, lowest), min(mean + half, highest))
