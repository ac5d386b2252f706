"""Close the loop: a learned policy drives in simulated traffic, beside the expert, a random and an idle driver.

All drivers drive through the same scenes, which are in no demonstration, and take over in the same state. We measure
crashes, speed, and agreement: the share of steps in which the driver took the action that the expert would have taken
in that very state. To find it, the expert drives on in a copy of the scene. So agreement is measured in the states that
the driver itself gets into, not in those of the expert.

The expert steers and brakes freely. The others only have meta-actions, which brake by one level of speed per second.
The driver "expert's meta-actions" shows how much difference this alone makes: it does what the expert would do, with
meta-actions.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas
from numpy.typing import ArrayLike

from whyact.driving.traffic import ACTIONS, IDLE, Simulator, Traffic
from whyact.errors import ArgumentError
from whyact.estimators.available import predict_available
from whyact.intervals import Interval, mean_interval, wilson_interval

FIRST_UNSEEN = 1_000_000  # episodes from this number are in no demonstration
N_STEPS = 20
LONG_TRAFFIC = Traffic(reach=(-60.0, 330.0))  # enough cars for the length of an episode


class Classifier(Protocol):
    """A fitted classifier, of whyact or of scikit-learn."""

    classes_: np.ndarray

    def predict(self, X: Any) -> np.ndarray:
        """Predict the action of each row."""


class Driver(Protocol):
    """Anyone who can act.

    Examples
    --------
    >>> from whyact.driving.agent import drive
    >>> from whyact.driving.traffic import ACTIONS
    >>> class HastyDriver:
    ...     def reset(self):
    ...         pass
    ...
    ...     def act(self, observation):
    ...         return ACTIONS.index("FASTER")
    >>> drive(HastyDriver(), n_episodes=2, n_steps=3).agreement.round(2).tolist()
    [0.0, 0.0]
    """

    def reset(self) -> None:
        """Get ready for a new episode."""

    def act(self, observation: np.ndarray) -> int:
        """Choose a meta-action, by its number."""


class PolicyAgent:
    """A driver who does what a model predicts.

    Parameters
    ----------
    model : fitted classifier
        Its classes must be meta-actions: names as in `traffic.ACTIONS`, or their numbers.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from whyact.driving.agent import PolicyAgent
    >>> from whyact.driving.datasets import load_traffic
    >>> from whyact.driving.traffic import ACTIONS
    >>> traffic = load_traffic()
    >>> tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(traffic.observations, traffic.actions)
    >>> agent = PolicyAgent(tree)
    >>> ACTIONS[agent.act(traffic.observations[0])]
    'IDLE'
    """

    def __init__(self, model: Classifier) -> None:
        self.model = model
        self.numbers = {label: number_action(label) for label in model.classes_.tolist()}

    def reset(self) -> None:
        """Do nothing: the agent remembers nothing, as the previous frame is part of the observation."""

    def act(self, observation: np.ndarray, available: ArrayLike | None = None) -> int:
        """Choose the meta-action that the model predicts.

        Parameters
        ----------
        observation : ndarray (D,)
            What the driver sees.
        available : array-like of bool, one for each of `traffic.ACTIONS`, or None, default=None
            Which meta-actions can be taken. None: all.

        Returns
        -------
        int
            The number of the meta-action.
        """
        row = np.reshape(observation, (1, -1))
        if available is None:
            return self.numbers[self.model.predict(row)[0]]
        mask = np.asarray(available, dtype=bool)
        if mask.shape != (len(ACTIONS),):
            raise ArgumentError(
                "available", f"available must say of each of {', '.join(ACTIONS)} whether it can be taken."
            )
        numbers = np.array(list(self.numbers.values()))
        if not mask[numbers].any():
            raise ArgumentError("available", "the model knows none of the meta-actions that can be taken.")
        return int(numbers[np.argmax(predict_available(self.model, row, mask[None, numbers])[0])])


def number_action(label: object) -> int:
    """Number of a meta-action that is given by name or number."""
    if label in ACTIONS:
        return ACTIONS.index(str(label))
    if isinstance(label, int) and 0 <= label < len(ACTIONS):
        return label
    raise ArgumentError("model", f"the model's action {label!r} is not a meta-action; there are {', '.join(ACTIONS)}.")


class RandomDriver:
    """A driver who takes every meta-action with the same probability.

    Parameters
    ----------
    seed : int, default=0
        Seed of the random numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.agent import RandomDriver
    >>> driver = RandomDriver(seed=0)
    >>> [driver.act(np.zeros(70)) for _ in range(5)]
    [4, 3, 2, 1, 1]
    """

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def reset(self) -> None:
        """Do nothing: the random numbers continue."""

    def act(self, observation: np.ndarray) -> int:
        """Draw a meta-action."""
        return int(self.rng.integers(len(ACTIONS)))


class IdleDriver:
    """A driver who never does anything.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.agent import IdleDriver
    >>> from whyact.driving.traffic import ACTIONS
    >>> ACTIONS[IdleDriver().act(np.zeros(70))]
    'IDLE'
    """

    def reset(self) -> None:
        """Do nothing."""

    def act(self, observation: np.ndarray) -> int:
        """Choose the meta-action IDLE."""
        return IDLE


class Expert(NamedTuple):
    """highway-env's IDM/MOBIL driver.

    Attributes
    ----------
    only_meta_actions : bool, default=False
        The driver does what the expert would do, but with meta-actions.

    Examples
    --------
    >>> from whyact.driving.agent import Expert
    >>> Expert(only_meta_actions=True)
    Expert(only_meta_actions=True)
    """

    only_meta_actions: bool = False


class EpisodeResults(NamedTuple):
    """Outcomes of E episodes.

    Attributes
    ----------
    crashed : ndarray of bool of shape (E,)
        Whether the episode ended in a crash.
    mean_speed : ndarray of shape (E,)
        In m/s.
    agreement : ndarray of shape (E,)
        Share of the steps in which the expert would have done the same.
    n_steps : ndarray of shape (E,)
        Length of the episode in seconds.

    Examples
    --------
    >>> from whyact.driving.agent import IdleDriver, drive
    >>> results = drive(IdleDriver(), n_episodes=2, n_steps=2)
    >>> results.crashed.any(), results.n_steps.tolist()
    (np.False_, [2, 2])
    """

    crashed: np.ndarray
    mean_speed: np.ndarray
    agreement: np.ndarray
    n_steps: np.ndarray


def drive(
    driver: Driver | Expert,
    n_episodes: int = 50,
    seed: int = 0,
    *,
    n_steps: int = N_STEPS,
    traffic: Traffic = LONG_TRAFFIC,
) -> EpisodeResults:
    """Let a driver drive.

    Parameters
    ----------
    driver : Driver or Expert
        Anything with `act(observation)` and `reset()`, or the expert.
    n_episodes : int, default=50
        Number of scenes.
    seed : int, default=0
        Seed of the scenes, which do not depend on the driver.
    n_steps : int, default=20
        Seconds of an episode, unless it ends in a crash.
    traffic : Traffic
        What the scenes are drawn from. By default there are cars for the length of an episode.

    Returns
    -------
    EpisodeResults
        Crashes, speeds and agreement with the expert.

    Examples
    --------
    >>> from whyact.driving.agent import Expert, drive
    >>> results = drive(Expert(), n_episodes=2, n_steps=3)
    >>> results.crashed.tolist(), results.agreement.tolist()
    ([False, False], [1.0, 1.0])
    """
    simulator = Simulator(traffic, n_steps=n_steps)
    episodes = [drive_episode(driver, simulator, seed, FIRST_UNSEEN + number) for number in range(n_episodes)]
    return EpisodeResults(*(np.array(column) for column in zip(*episodes, strict=True)))


def drive_episode(driver: Driver | Expert, simulator: Simulator, seed: int, episode: int) -> tuple[Any, ...]:
    """Drive through one episode; returns a row of `EpisodeResults`."""
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


def make_drivers(model: Classifier, seed: int = 0) -> dict[str, Driver | Expert]:
    """Make the learned driver and those to compare it with.

    Parameters
    ----------
    model : fitted classifier
        Its classes must be meta-actions: names as in `traffic.ACTIONS`, or their numbers.
    seed : int, default=0
        Seed of the random driver.

    Returns
    -------
    dict of str to Driver or Expert
        "learned", "expert", "expert's meta-actions", "random" and "idle".

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from whyact.driving.agent import make_drivers
    >>> from whyact.driving.datasets import load_traffic
    >>> traffic = load_traffic()
    >>> tree = DecisionTreeClassifier(max_depth=5).fit(traffic.observations, traffic.actions)
    >>> list(make_drivers(tree))
    ['learned', 'expert', "expert's meta-actions", 'random', 'idle']
    """
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

    Parameters
    ----------
    drivers : mapping of str to Driver or Expert
        Drivers by name.
    n_episodes : int, default=50
        Number of scenes.
    seed : int, default=0
        Seed of the scenes.
    n_steps : int, default=20
        Seconds of an episode, unless it ends in a crash.

    Returns
    -------
    DataFrame
        A row for each driver: `crash_rate`, `mean_speed` (m/s) and `agreement`, each with its 95% interval in `..._low`
        and `..._high`: Wilson's for the rate, Student's over episodes, which are independent, for the means.

    Examples
    --------
    >>> from whyact.driving.agent import Expert, IdleDriver, compare_drivers
    >>> table = compare_drivers({"expert": Expert(), "idle": IdleDriver()}, n_episodes=2, n_steps=2)
    >>> table["agreement"].to_dict()
    {'expert': 1.0, 'idle': 0.0}
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


def spread(name: str, interval: Interval) -> dict[str, float]:
    """Columns for a number and the ends of its interval."""
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
