"""Simulated traffic (highway-env): scenes, what the driver sees in them, and demonstrations of an IDM/MOBIL driver.

highway-env's IDM/MOBIL drivers take no meta-actions, so each step of one second is labelled with what the driver did in
it: a new target lane, else a change of speed by more than `SPEED_CHANGE`, else nothing (IDLE).

Traffic travels in platoons, slower than the driver wants to, and every episode starts in a scene of its own: cars close
ahead or far away, lanes beside that are taken or free, a driver who is slow or fast. This is what balances the actions:
left alone for long, an IDM driver settles behind somebody and does nothing any more. It also shows what to do in states
that the expert leaves soon, and a learned driver may come back to.

An observation is what is seen now, what was seen a second before, and the speed:

- Three lanes, each cell with how much of a car is in it, so that motion shows below the size of a cell. A car hides the
  cars behind it. Where there is no road, cells are `ROADSIDE`: one cannot go there either, but full cells all along a
  lane would outshine the few cells of the cars.
- A speedometer with a needle a few cells wide. Whether a free road says FASTER depends on the driver's own speed, which
  the positions of others do not tell.

All values are between 0 and 1. As one image (`TrafficGrid.image_shape`) the rows are, as in `grids.py` from right to
left: now right, own, left; before right, own, left; speed. highway-env is an extra, imported when first needed.
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

Interval = tuple[float, float]


@dataclass(frozen=True)
class TrafficGrid:
    """What is seen. Metres and m/s; x is forward and y to the right, as in highway-env, from which the names are."""

    grid_size: tuple[Interval, Interval] = ((-20.0, 80.0), (-6.0, 6.0))
    grid_step: tuple[float, float] = (10.0, LANE_WIDTH)
    highest_speed: float = 20.0  # at the end of the speedometer
    needle: float = 4.0  # half its width

    @property
    def frame_shape(self) -> tuple[int, int]:
        """Lanes, cells along the road."""
        n_x, n_y = (
            round((high - low) / step) for (low, high), step in zip(self.grid_size, self.grid_step, strict=True)
        )
        return n_y, n_x

    @property
    def image_shape(self) -> tuple[int, int]:
        return 2 * self.frame_shape[0] + 1, self.frame_shape[1]

    @property
    def x_edges(self) -> np.ndarray:
        return np.linspace(*self.grid_size[0], self.frame_shape[1] + 1)

    @property
    def y_edges(self) -> np.ndarray:
        """From right to left."""
        return np.linspace(*self.grid_size[1], self.frame_shape[0] + 1)[::-1]

    @property
    def speed_edges(self) -> np.ndarray:
        return np.linspace(0, self.highest_speed, self.frame_shape[1] + 1)

    @property
    def column_names(self) -> list[str]:
        """A name for each column of the observations."""
        lanes = ["right", "own", "left"]
        cells = [f"{low:g}..{high:g} m" for low, high in zip(self.x_edges[:-1], self.x_edges[1:], strict=True)]
        speeds = [
            f"{low:g}..{high:g} m/s" for low, high in zip(self.speed_edges[:-1], self.speed_edges[1:], strict=True)
        ]
        seen = [f"{time} {lane} {cell}" for time in ("now", "before") for lane in lanes for cell in cells]
        return [*seen, *(f"speed {speed}" for speed in speeds)]

    def draw_cars(self, places: np.ndarray) -> np.ndarray:
        """How much of a car is in each cell.

        Parameters
        ----------
        places : (n_cars, 2)
            Middles of the cars relative to the driver's car, x and y.
        """
        places = np.asarray(places, dtype=float).reshape(-1, 2)
        places = places[~find_hidden(places)]
        along = overlap(places[:, :1], CAR_LENGTH, self.x_edges) / min(self.grid_step[0], CAR_LENGTH)
        across = overlap(places[:, 1:], CAR_WIDTH, self.y_edges[::-1])[:, ::-1] / CAR_WIDTH
        return np.minimum(across.T @ along, 1.0)

    def draw_roadsides(self, y: float, n_lanes: int) -> np.ndarray:
        """How much of each cell is off the road, seen from y; the leftmost lane's middle is at 0."""
        left, right = -LANE_WIDTH / 2 - y, (n_lanes - 0.5) * LANE_WIDTH - y
        high, low = self.y_edges[:-1], self.y_edges[1:]
        on_road = np.clip(np.minimum(high, right) - np.maximum(low, left), 0, None) / (high - low)
        return np.repeat(1 - on_road[:, None], self.frame_shape[1], axis=1)

    def draw_speed(self, speed: float) -> np.ndarray:
        middles = (self.speed_edges[:-1] + self.speed_edges[1:]) / 2
        return np.clip(1 - np.abs(np.clip(speed, middles[0], middles[-1]) - middles) / self.needle, 0, 1)

    def draw_frame(self, places: np.ndarray, y: float, n_lanes: int) -> np.ndarray:
        """Cars and roadsides."""
        return np.maximum(self.draw_cars(places), ROADSIDE * self.draw_roadsides(y, n_lanes))


def find_hidden(places: np.ndarray) -> np.ndarray:
    """Cars that a nearer one hides: on the same side, ahead or behind, and less than a car's width to its side."""
    is_ahead, distance = places[:, 0] >= 0, np.abs(places[:, 0])
    is_in_line = np.abs(places[:, None, 1] - places[None, :, 1]) < CAR_WIDTH
    is_nearer = (is_ahead[:, None] == is_ahead) & (distance < distance[:, None])
    return (is_in_line & is_nearer).any(axis=1)


def overlap(middles: np.ndarray, length: float, edges: np.ndarray) -> np.ndarray:
    """Length of what lies between each two (rising) edges, of things of one length."""
    ends = np.minimum(middles + length / 2, edges[1:]) - np.maximum(middles - length / 2, edges[:-1])
    return np.clip(ends, 0, None)


@dataclass(frozen=True)
class Traffic:
    """From what scenes are drawn. Metres and m/s, uniform in each interval."""

    n_lanes: int = 3
    speed: Interval = (7.0, 9.0)  # of the traffic; each car differs from it a little
    speed_spread: float = 0.5
    kinds: tuple[float, float, float, float] = (0.7, 0.1, 0.1, 0.1)  # IDM, linear, aggressive, defensive drivers
    close_ahead: Interval = (15.0, 25.0)  # the first car of a lane, where it is close
    share_close_ahead: float = 0.6
    beside: Interval = (-4.0, 10.0)  # behind the driver, where a lane beside is taken
    share_beside: float = 0.35
    behind: Interval = (30.0, 60.0)  # the first car behind otherwise
    in_platoon: Interval = (18.0, 26.0)  # from car to car
    share_in_platoon: float = 0.6
    between_platoons: Interval = (90.0, 140.0)
    reach: Interval = (-60.0, 160.0)  # where there is traffic, seen from the driver
    slow_driver: Interval = (7.0, 10.0)
    fast_driver: Interval = (13.0, 17.0)
    share_slow: float = 0.5


class TrafficDemonstrations(NamedTuple):
    """What a driver saw and did."""

    observations: np.ndarray  # (N, D), between 0 and 1
    actions: np.ndarray  # (N,), of `ACTIONS`
    episode: np.ndarray  # (N,)
    step: np.ndarray  # (N,), seconds since the episode began
    grid: TrafficGrid


class Simulator:
    """The driver's car in a scene, Gymnasium-style: `reset`, then `step` by step of one second.

    Parameters
    ----------
    traffic : Traffic
    grid : TrafficGrid
    n_steps : int
        Length of an episode.
    """

    def __init__(self, traffic: Traffic | None = None, grid: TrafficGrid | None = None, n_steps: int = 20):
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

    def reset(self, seed: int, episode: int = 0, *, self_driving: bool = False) -> tuple[np.ndarray, dict]:
        """Begin an episode.

        The expert drives through the first second, without changing lanes, so that there are two frames to see and
        every driver takes over in the same state.

        Parameters
        ----------
        seed, episode : int
            The scene is a function of both.
        self_driving : bool
            The expert stays at the wheel, and `step` takes no action.
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
        """Put another vehicle in the place of the driver's; what observes and what acts must change with it."""
        self.env.road.vehicles[0] = vehicle
        self.env.vehicle = vehicle
        self.env.define_spaces()
        self.env.observation_type.observer_vehicle = vehicle
        self.env.action_type.controlled_vehicle = vehicle

    def look(self) -> np.ndarray:
        """What is seen now, (lanes, cells)."""
        own = self.vehicle
        places = [other.position - own.position for other in self.env.road.vehicles if other is not own]
        return self.grid.draw_frame(np.array(places), own.position[1], self.traffic.n_lanes)

    def observe(self, frame: np.ndarray) -> np.ndarray:
        return np.concatenate([frame.ravel(), self.before.ravel(), self.grid.draw_speed(self.vehicle.speed)])

    def step(self, action: int | None) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Drive for a second; `info["action"]` is the meta-action that names what the car did."""
        if hasattr(self.vehicle, "timer"):  # an expert: MOBIL decides at the beginning of the step
            self.vehicle.timer = self.vehicle.LANE_CHANGE_DELAY + 1
        lane, speed = self.vehicle.target_lane_index[2], self.vehicle.speed
        self.before = self.look()
        _, reward, terminated, _, info = self.env.step(action)
        self.time += 1
        info["action"] = name_action(lane, speed, self.vehicle)
        return self.observe(self.look()), float(reward), bool(terminated), self.time >= self.n_steps, info

    def ask_expert(self) -> str:
        """What the expert would do in the next second, in this very state: it drives through a copy of the scene."""
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
    """The meta-action that names what a vehicle did since it had this target lane and this speed."""
    if vehicle.target_lane_index[2] != lane:
        return "LANE_LEFT" if vehicle.target_lane_index[2] < lane else "LANE_RIGHT"
    change = vehicle.speed - speed
    return "FASTER" if change > SPEED_CHANGE else "SLOWER" if change < -SPEED_CHANGE else "IDLE"


def make_environment(traffic: Traffic, grid: TrafficGrid) -> Any:
    """highway-env's highway, without cars yet."""
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
    """highway-env's IDM/MOBIL driver, in the state of another vehicle."""
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
            car.collecting_data = False  # what linear drivers would keep of every step
            road.vehicles.append(car)


def place_cars(is_own_lane: bool, traffic: Traffic, rng: np.random.Generator) -> list[float]:
    """Where the cars of a lane are, seen from the driver."""

    def draw(share: float, then: Interval, otherwise: Interval) -> float:
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
) -> TrafficDemonstrations:
    """Record what the expert sees and does; the first episodes are the same for every `n_episodes`.

    Parameters
    ----------
    n_episodes : int
    seed : int
    n_steps : int
        Steps of each episode, unless it ends in a crash.
    traffic : Traffic or None
    grid : TrafficGrid or None
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
    return TrafficDemonstrations(
        np.array(observations).reshape(-1, np.prod(simulator.grid.image_shape)),
        np.array(actions, dtype=str), np.array(episodes, dtype=int), np.array(steps, dtype=int), simulator.grid,
    )  # fmt: skip
