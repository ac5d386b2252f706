"""Simulated traffic (highway-env): scenes, what the driver sees in them, and demonstrations of an IDM/MOBIL driver.

highway-env's IDM/MOBIL drivers take no meta-actions, so each step of one second is labelled with what the driver did in
it: a new target lane, otherwise a change of speed by more than `SPEED_CHANGE`, otherwise nothing (IDLE).

Traffic travels in platoons, slower than the driver wants to, and every episode starts in a scene of its own: cars close
ahead or far away, neighbouring lanes taken or free, a slow or a fast driver. This balances the actions: left alone for
long, an IDM driver settles behind another car and does nothing any more. It also shows what to do in states that the
expert soon leaves, but to which a learned driver may return.

An observation is what is seen now, what was seen a second before, and the speed:

- Three lanes, each cell with how much of a car is in it, so that motion by less than a cell shows. A car hides the cars
  behind it. Cells off the road are `ROADSIDE`: one cannot go there either, but full cells all along a lane would
  outshine the few cells of the cars.
- A speedometer with a needle a few cells wide. Whether a free road calls for FASTER depends on the driver's own speed,
  which the positions of other cars do not tell.

All values are between 0 and 1. As one image (`TrafficGrid.image_shape`) the rows are, from right to left as in
`grids.py`: now right, own, left; before right, own, left; speed. highway-env is an extra
(`pip install whyact[driving]`), imported when first needed.
"""

import copy
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

ACTIONS = ("LANE_LEFT", "IDLE", "LANE_RIGHT", "FASTER", "SLOWER")  # in the order of highway-env's numbers
IDLE = ACTIONS.index("IDLE")
SPEED_CHANGE = 0.75  # m/s in a step of one second
WANTED_SPEED = 18.0  # of the expert, in m/s
TARGET_SPEEDS = (0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0)  # that FASTER and SLOWER choose from
ROADSIDE = 0.4  # a cell off the road; a car is 1
N_FRAMES = 10  # simulated frames a second
LANE_WIDTH, CAR_LENGTH, CAR_WIDTH = 4.0, 5.0, 2.0  # highway-env's, in metres
START = 300.0  # where on the road the driver starts, in metres


@dataclass(frozen=True)
class TrafficGrid:
    """What the driver sees: cells of three lanes, and a speedometer.

    Lengths are in metres, speeds in m/s; x is forward and y to the right, as in highway-env.

    Parameters
    ----------
    grid_size : ((x from, x to), (y from, y to)), default=((-20, 80), (-6, 6))
        Where the grid begins and ends, as in highway-env.
    grid_step : (float, float), default=(10, 4)
        Size of a cell along and across the road, as in highway-env.
    highest_speed : float, default=20
        Speed at the end of the speedometer.
    needle : float, default=4
        Half the width of the speedometer's needle.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.traffic import TrafficGrid
    >>> grid = TrafficGrid()
    >>> grid.image_shape, grid.column_names[12]
    ((7, 10), 'now own 0..10 m')
    >>> np.round(grid.draw_cars(np.array([[11.5, 0.0]])), 1)  # a car in the driver's lane, 11.5 m ahead
    array([[0. , 0. , 0. , 0. , 0. , 0. , 0. , 0. , 0. , 0. ],
           [0. , 0. , 0.2, 0.8, 0. , 0. , 0. , 0. , 0. , 0. ],
           [0. , 0. , 0. , 0. , 0. , 0. , 0. , 0. , 0. , 0. ]])
    """

    grid_size: tuple[tuple[float, float], tuple[float, float]] = ((-20.0, 80.0), (-6.0, 6.0))
    grid_step: tuple[float, float] = (10.0, LANE_WIDTH)
    highest_speed: float = 20.0
    needle: float = 4.0

    @property
    def frame_shape(self) -> tuple[int, int]:
        """Number of lanes, and of cells along the road."""
        n_x, n_y = (
            round((high - low) / step) for (low, high), step in zip(self.grid_size, self.grid_step, strict=True)
        )
        return n_y, n_x

    @property
    def image_shape(self) -> tuple[int, int]:
        """Rows and columns of an observation as one image."""
        return 2 * self.frame_shape[0] + 1, self.frame_shape[1]

    @property
    def x_edges(self) -> np.ndarray:
        """Limits of the cells along the road."""
        return np.linspace(*self.grid_size[0], self.frame_shape[1] + 1)

    @property
    def y_edges(self) -> np.ndarray:
        """Limits of the lanes, from right to left."""
        return np.linspace(*self.grid_size[1], self.frame_shape[0] + 1)[::-1]

    @property
    def speed_edges(self) -> np.ndarray:
        """Limits of the cells of the speedometer."""
        return np.linspace(0, self.highest_speed, self.frame_shape[1] + 1)

    @property
    def column_names(self) -> list[str]:
        """Name of each column of the observations."""
        lanes = ["right", "own", "left"]
        cells = [f"{low:g}..{high:g} m" for low, high in zip(self.x_edges[:-1], self.x_edges[1:], strict=True)]
        speeds = [
            f"{low:g}..{high:g} m/s" for low, high in zip(self.speed_edges[:-1], self.speed_edges[1:], strict=True)
        ]
        seen = [f"{time} {lane} {cell}" for time in ("now", "before") for lane in lanes for cell in cells]
        return [*seen, *(f"speed {speed}" for speed in speeds)]

    def draw_cars(self, places: np.ndarray) -> np.ndarray:
        """Draw how much of a car is in each cell.

        Parameters
        ----------
        places : ndarray of shape (n_cars, 2)
            Centres of the cars relative to the driver's car, x and y.

        Returns
        -------
        ndarray of shape (lanes, cells)
            Shares between 0 and 1.
        """
        places = np.asarray(places, dtype=float).reshape(-1, 2)
        places = places[~find_hidden(places)]
        along = overlap(places[:, :1], CAR_LENGTH, self.x_edges) / min(self.grid_step[0], CAR_LENGTH)
        across = overlap(places[:, 1:], CAR_WIDTH, self.y_edges[::-1])[:, ::-1] / CAR_WIDTH
        cars: np.ndarray = np.minimum(across.T @ along, 1.0)
        return cars

    def draw_roadsides(self, y: float, n_lanes: int) -> np.ndarray:
        """Draw how much of each cell is off the road, seen from y; the centre of the leftmost lane is at 0."""
        left, right = -LANE_WIDTH / 2 - y, (n_lanes - 0.5) * LANE_WIDTH - y
        high, low = self.y_edges[:-1], self.y_edges[1:]
        on_road = np.clip(np.minimum(high, right) - np.maximum(low, left), 0, None) / (high - low)
        roadsides: np.ndarray = np.repeat(1 - on_road[:, None], self.frame_shape[1], axis=1)
        return roadsides

    def draw_speed(self, speed: float) -> np.ndarray:
        """Draw the speedometer."""
        middles = (self.speed_edges[:-1] + self.speed_edges[1:]) / 2
        distances: np.ndarray = np.abs(np.clip(speed, middles[0], middles[-1]) - middles)
        return np.clip(1 - distances / self.needle, 0, 1)

    def draw_frame(self, places: np.ndarray, y: float, n_lanes: int) -> np.ndarray:
        """Draw cars and roadsides."""
        frame: np.ndarray = np.maximum(self.draw_cars(places), ROADSIDE * self.draw_roadsides(y, n_lanes))
        return frame


def find_hidden(places: np.ndarray) -> np.ndarray:
    """Find cars that a nearer one hides: both ahead or both behind, and less than a car's width apart to the side."""
    is_ahead, distance = places[:, 0] >= 0, np.abs(places[:, 0])
    is_in_line = np.abs(places[:, None, 1] - places[None, :, 1]) < CAR_WIDTH
    is_nearer = (is_ahead[:, None] == is_ahead) & (distance < distance[:, None])
    is_hidden: np.ndarray = (is_in_line & is_nearer).any(axis=1)
    return is_hidden


def overlap(middles: np.ndarray, length: float, edges: np.ndarray) -> np.ndarray:
    """Length of the part of each thing that lies between two successive edges, which increase."""
    ends = np.minimum(middles + length / 2, edges[1:]) - np.maximum(middles - length / 2, edges[:-1])
    lengths: np.ndarray = np.clip(ends, 0, None)
    return lengths


@dataclass(frozen=True)
class Traffic:
    """The distribution that scenes are drawn from.

    Lengths are in metres, speeds in m/s. Pairs are limits of uniform distributions.

    Parameters
    ----------
    n_lanes : int, default=3
        Number of lanes.
    speed : (float, float), default=(7, 9)
        Mean speed of the traffic in a scene.
    speed_spread : float, default=0.5
        Standard deviation of the cars' speeds around it.
    kinds : (float, float, float, float), default=(0.7, 0.1, 0.1, 0.1)
        Probabilities of IDM, linear, aggressive and defensive drivers.
    close_ahead : (float, float), default=(15, 25)
        Distance of the first car ahead in a lane, where it is close; `between_platoons` otherwise.
    share_close_ahead : float, default=0.6
        Probability that it is close.
    beside : (float, float), default=(-4, 10)
        Distance behind the driver of the car that takes a neighbouring lane.
    share_beside : float, default=0.35
        Probability that a neighbouring lane is taken.
    behind : (float, float), default=(30, 60)
        Distance of the first car behind otherwise.
    in_platoon : (float, float), default=(18, 26)
        Distance from car to car within a platoon.
    share_in_platoon : float, default=0.6
        Probability that the next car belongs to the same platoon.
    between_platoons : (float, float), default=(90, 140)
        Distance from platoon to platoon.
    reach : (float, float), default=(-60, 160)
        Where there is traffic, relative to the driver.
    slow_driver, fast_driver : (float, float), default=(7, 10) and (13, 17)
        Speed at which a slow or a fast driver starts.
    share_slow : float, default=0.5
        Probability of a slow driver.

    Examples
    --------
    >>> from whyact.driving.traffic import Simulator, Traffic
    >>> simulator = Simulator(Traffic(n_lanes=2))
    >>> observation, _ = simulator.reset(seed=0)
    >>> observation.shape
    (70,)
    """

    n_lanes: int = 3
    speed: tuple[float, float] = (7.0, 9.0)
    speed_spread: float = 0.5
    kinds: tuple[float, float, float, float] = (0.7, 0.1, 0.1, 0.1)
    close_ahead: tuple[float, float] = (15.0, 25.0)
    share_close_ahead: float = 0.6
    beside: tuple[float, float] = (-4.0, 10.0)
    share_beside: float = 0.35
    behind: tuple[float, float] = (30.0, 60.0)
    in_platoon: tuple[float, float] = (18.0, 26.0)
    share_in_platoon: float = 0.6
    between_platoons: tuple[float, float] = (90.0, 140.0)
    reach: tuple[float, float] = (-60.0, 160.0)
    slow_driver: tuple[float, float] = (7.0, 10.0)
    fast_driver: tuple[float, float] = (13.0, 17.0)
    share_slow: float = 0.5


class TrafficRecording(NamedTuple):
    """A `whyact.tables.Recording` of simulated traffic, with the time of each row and the grid.

    Attributes
    ----------
    observations : ndarray of shape (N, D)
        What the driver saw, between 0 and 1.
    actions : ndarray of shape (N,)
        What the driver did, as named in `ACTIONS`.
    episode : ndarray of shape (N,)
        Number of the episode.
    step : ndarray of shape (N,)
        Seconds since the episode began.
    grid : TrafficGrid
        What the columns of the observations are.

    Examples
    --------
    >>> from whyact.driving.datasets import load_traffic
    >>> traffic = load_traffic()
    >>> traffic.actions[4:7].tolist(), traffic.episode[4:7].tolist(), traffic.step[4:7].tolist()
    (['SLOWER', 'IDLE', 'LANE_RIGHT'], [2, 2, 3], [1, 2, 1])
    """

    observations: np.ndarray
    actions: np.ndarray
    episode: np.ndarray
    step: np.ndarray
    grid: TrafficGrid


class Simulator:
    """The driver's car in a scene, in the manner of Gymnasium: `reset`, then one `step` per second.

    Parameters
    ----------
    traffic : Traffic or None, default=None
        What scenes are drawn from. None: `Traffic()`.
    grid : TrafficGrid or None, default=None
        What the driver sees. None: `TrafficGrid()`.
    n_steps : int, default=20
        Length of an episode.

    Examples
    --------
    >>> from whyact.driving.traffic import ACTIONS, Simulator
    >>> simulator = Simulator(n_steps=2)
    >>> observation, _ = simulator.reset(seed=0)
    >>> simulator.ask_expert()
    'IDLE'
    >>> observation, _, crashed, is_over, info = simulator.step(ACTIONS.index("FASTER"))
    >>> crashed, is_over, info["action"]
    (False, False, 'FASTER')
    """

    def __init__(self, traffic: Traffic | None = None, grid: TrafficGrid | None = None, n_steps: int = 20) -> None:
        self.traffic = traffic or Traffic()
        self.grid = grid or TrafficGrid()
        self.n_steps = n_steps
        self.env = make_environment(self.traffic, self.grid)
        self.before = np.zeros(self.grid.frame_shape)
        self.time = 0

    @property
    def vehicle(self) -> Any:
        """The driver's car."""
        return self.env.vehicle

    def reset(self, seed: int, episode: int = 0, *, self_driving: bool = False) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        The expert drives through the first second, without changing lanes, so that there are two frames to see and
        every driver takes over in the same state.

        Parameters
        ----------
        seed : int
        episode : int, default=0
            The scene is a function of seed and episode.
        self_driving : bool, default=False
            The expert stays at the wheel, and `step` takes no action.

        Returns
        -------
        observation : ndarray of shape (D,)
        info : dict
            Empty.
        """
        self.env.reset(seed=0)
        fill_road(self.env.road, self.traffic, np.random.default_rng([seed, episode]))
        expert = make_expert(self.env.road.vehicles[0])
        expert.enable_lane_change = False
        self.take_wheel(expert)
        self.before = self.look()
        self.env.step(None)
        expert.enable_lane_change = True
        if not self_driving:
            self.take_wheel(self.env.action_type.vehicle_class(
                self.env.road, expert.position, expert.heading, expert.speed, expert.target_lane_index
            ))  # fmt: skip
        self.time = 0
        return self.observe(self.look()), {}

    def take_wheel(self, vehicle: Any) -> None:
        """Put another vehicle in the driver's place; what observes and what acts must change with it."""
        self.env.road.vehicles[0] = vehicle
        self.env.vehicle = vehicle
        self.env.define_spaces()
        self.env.observation_type.observer_vehicle = vehicle
        self.env.action_type.controlled_vehicle = vehicle

    def look(self) -> np.ndarray:
        """Draw what is seen now, (lanes, cells)."""
        own = self.vehicle
        places = [other.position - own.position for other in self.env.road.vehicles if other is not own]
        return self.grid.draw_frame(np.array(places), own.position[1], self.traffic.n_lanes)

    def observe(self, frame: np.ndarray) -> np.ndarray:
        """Join this frame, the one before and the speed."""
        return np.concatenate([frame.ravel(), self.before.ravel(), self.grid.draw_speed(self.vehicle.speed)])

    def step(self, action: int | None) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Drive for a second.

        Parameters
        ----------
        action : int or None
            Number of a meta-action; None if the expert is at the wheel.

        Returns
        -------
        observation : ndarray of shape (D,)
        reward : float
            highway-env's.
        terminated : bool
            Whether the car crashed.
        truncated : bool
            Whether the episode is over.
        info : dict
            highway-env's, with the meta-action that names what the car did in "action".
        """
        if hasattr(self.vehicle, "timer"):  # an expert: MOBIL decides at the start of the step
            self.vehicle.timer = self.vehicle.LANE_CHANGE_DELAY + 1
        lane, speed = self.vehicle.target_lane_index[2], self.vehicle.speed
        self.before = self.look()
        _, reward, terminated, _, info = self.env.step(action)
        self.time += 1
        info["action"] = name_action(lane, speed, self.vehicle)
        return self.observe(self.look()), float(reward), bool(terminated), self.time >= self.n_steps, info

    def ask_expert(self) -> str:
        """Name what the expert would do in the next second from this state: it drives through a copy of the scene."""
        road = copy.deepcopy(self.env.road)
        expert = make_expert(road.vehicles[0])
        expert.timer = expert.LANE_CHANGE_DELAY + 1
        road.vehicles[0] = expert
        lane, speed = expert.target_lane_index[2], expert.speed
        for _ in range(N_FRAMES):
            road.act()
            road.step(1 / N_FRAMES)
        return name_action(lane, speed, expert)


def name_action(lane: int, speed: float, vehicle: Any) -> str:
    """Name what a vehicle did since it had this target lane and this speed."""
    if vehicle.target_lane_index[2] != lane:
        return "LANE_LEFT" if vehicle.target_lane_index[2] < lane else "LANE_RIGHT"
    change = vehicle.speed - speed
    return "FASTER" if change > SPEED_CHANGE else "SLOWER" if change < -SPEED_CHANGE else "IDLE"


def make_environment(traffic: Traffic, grid: TrafficGrid) -> Any:
    """Make highway-env's highway, without cars."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        from highway_env.envs.highway_env import HighwayEnv
    except ImportError:
        raise ImportError("simulated traffic needs highway-env: install whyact[driving].") from None
    sizes = {"grid_size": grid.grid_size, "grid_step": grid.grid_step}
    return HighwayEnv({
        "observation": {"type": "OccupancyGrid", "features": ["presence"], **sizes},
        "action": {"type": "DiscreteMetaAction", "target_speeds": list(TARGET_SPEEDS)},
        "lanes_count": traffic.n_lanes,
        "vehicles_count": 0,
        "simulation_frequency": N_FRAMES,
        "policy_frequency": 1,
        "duration": float("inf"),
    })  # fmt: skip


def make_expert(vehicle: Any) -> Any:
    """Make highway-env's IDM/MOBIL driver, in the state of another vehicle."""
    from highway_env.vehicle.behavior import IDMVehicle

    expert = IDMVehicle.create_from(vehicle)
    expert.target_speed = WANTED_SPEED
    return expert


def fill_road(road: Any, traffic: Traffic, rng: np.random.Generator) -> None:
    """Draw a scene; the driver's car comes first."""
    from highway_env.vehicle import behavior

    kinds = [behavior.IDMVehicle, behavior.LinearVehicle, behavior.AggressiveVehicle, behavior.DefensiveVehicle]
    own_lane = int(rng.integers(traffic.n_lanes))
    own_speed = rng.uniform(*(traffic.slow_driver if rng.random() < traffic.share_slow else traffic.fast_driver))
    speed = rng.uniform(*traffic.speed)
    road.vehicles[:] = [behavior.IDMVehicle.make_on_lane(road, ("0", "1", own_lane), START, own_speed)]
    for lane in range(traffic.n_lanes):
        for x in place_cars(lane == own_lane, traffic, rng):
            kind = kinds[rng.choice(len(kinds), p=traffic.kinds)]
            own = max(rng.normal(speed, traffic.speed_spread), 1.0)
            car = kind.make_on_lane(road, ("0", "1", lane), START + x, own)
            car.target_speed = own + 1.0
            car.enable_lane_change = False
            car.check_collisions = False  # among each other
            car.collecting_data = False  # linear drivers would store every step
            road.vehicles.append(car)


def place_cars(is_own_lane: bool, traffic: Traffic, rng: np.random.Generator) -> list[float]:
    """Draw where the cars of a lane are, relative to the driver."""

    def draw(share: float, then: tuple[float, float], otherwise: tuple[float, float]) -> float:
        return rng.uniform(*(then if rng.random() < share else otherwise))

    ahead = [draw(traffic.share_close_ahead, traffic.close_ahead, traffic.between_platoons)]
    behind = [-draw(0.0 if is_own_lane else traffic.share_beside, traffic.beside, traffic.behind)]
    while ahead[-1] < traffic.reach[1]:
        ahead.append(ahead[-1] + draw(traffic.share_in_platoon, traffic.in_platoon, traffic.between_platoons))
    while behind[-1] > traffic.reach[0]:
        behind.append(behind[-1] - draw(traffic.share_in_platoon, traffic.in_platoon, traffic.between_platoons))
    return [*ahead[:-1], *behind[:-1]]


def record_demonstrations(
    n_episodes: int, seed: int = 0, *, n_steps: int = 2, traffic: Traffic | None = None, grid: TrafficGrid | None = None
) -> TrafficRecording:
    """Record what the expert sees and does.

    Parameters
    ----------
    n_episodes : int
        Number of episodes; the first ones are the same for every number.
    seed : int, default=0
        Seed of the scenes.
    n_steps : int, default=2
        Steps of each episode, unless it ends in a crash.
    traffic : Traffic or None, default=None
        What scenes are drawn from. None: `Traffic()`.
    grid : TrafficGrid or None, default=None
        What the driver sees. None: `TrafficGrid()`.

    Returns
    -------
    TrafficRecording
        One row for each step.

    Examples
    --------
    >>> from whyact.driving.traffic import record_demonstrations
    >>> traffic = record_demonstrations(3, seed=1)
    >>> traffic.observations.shape, traffic.actions.tolist()
    ((6, 70), ['FASTER', 'IDLE', 'IDLE', 'LANE_RIGHT', 'FASTER', 'FASTER'])
    """
    simulator = Simulator(traffic, grid, n_steps)
    rows = []
    for episode in range(n_episodes):
        observation, _ = simulator.reset(seed, episode, self_driving=True)
        is_over = False
        while not is_over:
            following, _, terminated, truncated, info = simulator.step(None)
            rows.append((observation, info["action"], episode, simulator.time))
            observation, is_over = following, terminated or truncated
    observations, actions, episodes, steps = zip(*rows, strict=True) if rows else ([], [], [], [])
    return TrafficRecording(
        np.array(observations).reshape(-1, np.prod(simulator.grid.image_shape)),
        np.array(actions, dtype=str), np.array(episodes, dtype=int), np.array(steps, dtype=int), simulator.grid,
    )  # fmt: skip
