"""Decisions of controllers: rules that steer a cart, a car and an acrobot in gymnasium.

The action on record is the one that the rule wants. Now and then another one, chosen at random, is executed: so the
states are more varied than those of a rule left alone, and every row still tells what the rule does there.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from experiments.decisions.decision_table import DecisionTable, import_extra

N_EPISODES = 30
N_ROWS = 500  # kept of all episodes, at random
SHARE_RANDOM = 0.1  # of the actions that are executed
SEED = 0  # the demonstrations are the same in all studies; only splits differ


class Controller(NamedTuple):
    """A rule and the environment that it acts in."""

    environment: str
    rule: Callable[[np.ndarray], int]  # observation -> number of the action in the environment
    actions: dict[int, str]
    columns: list[str]
    about: str


def balance_pole(observation: np.ndarray) -> int:
    """Push to where the pole falls, and a little towards the middle."""
    position, speed, angle, turning = observation
    return int(angle + 0.3 * turning + 0.03 * position + 0.06 * speed > 0)


def climb_hill(observation: np.ndarray) -> int:
    """Push along with the motion, which adds energy; coast once there is enough of it to reach the flag."""
    position, speed = observation
    # the slope's pull is 0.0025 cos(3 x), so this is the height as energy; the flag is at 0.5
    energy, needed = speed**2 / 2 + 0.0025 * np.sin(3 * position) / 3, 0.0025 * np.sin(1.5) / 3
    return 1 if speed > 0 and energy > 1.1 * needed else 2 if speed > 0 else 0


def swing_up(observation: np.ndarray) -> int:
    """Turn the joint against the motion of the upper link, which pumps energy into it; rest where it is slow."""
    turning = observation[4]
    return 1 if abs(turning) < 0.3 else 0 if turning > 0 else 2


NOTE = f"a rule's actions; {SHARE_RANDOM:.0%} of those executed are random, those on record never; split by episode."
CONTROLLERS = {
    "cartpole": Controller(
        "CartPole-v1", balance_pole, {0: "left", 1: "right"},
        ["position", "speed", "angle", "turning"], f"A cart balances a pole (CartPole-v1): {NOTE}",
    ),
    "mountaincar": Controller(
        "MountainCar-v0", climb_hill, {0: "left", 1: "coast", 2: "right"},
        ["position", "speed"], f"A weak car gets up a hill by swinging (MountainCar-v0): {NOTE}",
    ),
    "acrobot": Controller(
        "Acrobot-v1", swing_up, {0: "negative", 1: "none", 2: "positive"},
        ["cos upper", "sin upper", "cos lower", "sin lower", "turning upper", "turning lower"],
        f"A double pendulum swings up (Acrobot-v1): {NOTE}",
    ),
}  # fmt: skip


def record_controller(name: str) -> DecisionTable:
    """Some rows of the episodes of a controller."""
    controller = CONTROLLERS[name]
    rng = np.random.default_rng(SEED)
    gymnasium = import_extra("gymnasium", "driving")  # an extra, which other data sets do without
    with gymnasium.make(controller.environment) as environment:
        steps = [
            (episode, *step)
            for episode in range(N_EPISODES)
            for step in play_episode(environment, controller, episode, rng)
        ]
    kept = np.sort(rng.choice(len(steps), min(N_ROWS, len(steps)), replace=False))
    episodes, observations, actions = zip(*(steps[i] for i in kept), strict=True)
    y = np.array([controller.actions[action] for action in actions])
    return DecisionTable(np.array(observations, float), y, controller.columns, controller.about, np.array(episodes))


def play_episode(
    environment: Any, controller: Controller, episode: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, int]]:
    """Observations, and what the rule wants to do; what is done may differ."""
    observation, _ = environment.reset(seed=episode)
    is_over = False
    while not is_over:
        wanted = controller.rule(observation)
        yield observation, wanted
        is_random = rng.random() < SHARE_RANDOM
        executed = int(rng.integers(environment.action_space.n)) if is_random else wanted
        observation, _, terminated, truncated, _ = environment.step(executed)
        is_over = terminated or truncated


def load_simulated_driver() -> DecisionTable:
    """The traffic that ships with whyact."""
    from whyact.driving.datasets import load_traffic  # readers of tables, which the page of results need not load

    traffic = load_traffic()
    about = "A driver in simulated traffic (highway-env), as shipped with whyact; split by episode."
    return DecisionTable(traffic.observations, traffic.actions, traffic.grid.column_names, about, traffic.episode)
