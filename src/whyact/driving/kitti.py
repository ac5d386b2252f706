"""Scenes of the KITTI Vision Benchmark Suite: LIDAR scans, and the car's measured motion (GPS and IMU, "oxts").

Two layouts are known, as they come out of the official archives:

    tracking   ROOT/training/velodyne/0011/000000.bin       ROOT/training/oxts/0011.txt, one line per frame
    raw        2011_09_26_drive_0001_sync/velodyne_points/data/0000000000.bin, .../oxts/data/0000000000.txt

KITTI lacks the scans of a few frames (177 to 180 of sequence 0001, for instance). Such frames are left out, and the
scene says which. Nothing that is read here can run: scans are plain numbers, everything else is text.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from whyact.errors import WhyactError, list_names

SAMPLE_FREQUENCY = 10.0  # of the LIDAR, in Hz
OXTS_COLUMNS = (
    "lat", "lon", "alt", "roll", "pitch", "yaw", "vn", "ve", "vf", "vl", "vu", "ax", "ay", "az", "af", "al", "au",
    "wx", "wy", "wz", "wf", "wl", "wu", "pos_accuracy", "vel_accuracy", "navstat", "numsats", "posmode", "velmode",
    "orimode",
)  # fmt: skip

LARGEST_FILE = 64 * 2**20  # bytes; a scan of the HDL-64E has 2 MB
LARGEST_DISTANCE = 1000.0  # in metres; the LIDAR sees 120
BYTES_PER_POINT = 16
SPLITS = ("training", "testing")
DRIVE = re.compile(r"(\d{4}_\d{2}_\d{2})_drive_(\d{4})(_\w+)?")
N_FOLDERS_SEARCHED = 2000  # for the right folder, before giving up
N_SHOWN = 30  # names in a message


class KittiError(WhyactError, ValueError):
    """KITTI data that cannot be used; the message names the file.

    Examples
    --------
    >>> from whyact.driving.kitti import KittiError, find_scene
    >>> try:
    ...     find_scene("nowhere", 11)
    ... except KittiError as error:
    ...     print(error)
    there is no folder nowhere.
    """


@dataclass(frozen=True)
class Scene:
    """One sequence of scans, with the motion of the car.

    Attributes
    ----------
    name : str
        "0011", or the folder of a raw drive.
    layout : str
        "tracking" or "raw".
    scans : dict of int to Path
        Files by the number of their frame, in chronological order.
    oxts : ndarray of shape (n_frames, 30)
        Row n belongs to frame n, whether or not that has a scan; columns are `OXTS_COLUMNS`.
    missing : tuple of int
        Frames without a scan.
    damaged : dict of int to str
        Frames whose scan was skipped, and why.
    sample_frequency : float
        In Hz.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from whyact.driving.kitti import Scene
    >>> scans = {0: Path("000000.bin"), 2: Path("000002.bin")}
    >>> Scene("0011", "tracking", scans, np.zeros((3, 30)), missing=(1,)).describe()
    'Scene 0011: 2 scans of 3 frames; 1 without a scan (1).'
    """

    name: str
    layout: str
    scans: dict[int, Path] = field(repr=False)
    oxts: np.ndarray = field(repr=False)
    missing: tuple[int, ...] = ()
    damaged: dict[int, str] = field(default_factory=dict)
    sample_frequency: float = SAMPLE_FREQUENCY

    @property
    def frames(self) -> np.ndarray:
        """Numbers of the frames that have a usable scan."""
        return np.array(list(self.scans), dtype=np.int64)

    def describe(self) -> str:
        """Say in one sentence how many scans there are and what was left out."""
        left_out = [f"{len(self.missing)} without a scan"] if self.missing else []
        left_out += [f"{len(self.damaged)} with a damaged scan that was skipped"] if self.damaged else []
        numbers = f" ({shorten_numbers(sorted({*self.missing, *self.damaged}))})" if left_out else ""
        because = f"; {' and '.join(left_out)}{numbers}" if left_out else ""
        return f"Scene {self.name}: {len(self.scans)} scans of {len(self.oxts)} frames{because}."


def read_scan(path: Path | str) -> np.ndarray:
    """Read a scan.

    Parameters
    ----------
    path : Path or str
        Binary file of the Velodyne.

    Returns
    -------
    ndarray of float32 of shape (n_points, 4)
        x (forward), y (left) and z (up) in metres, and the reflectance.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from whyact.driving.kitti import read_scan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "000000.bin"
    ...     np.array([[12.0, 0.5, -1.0, 0.25]], dtype="<f4").tofile(path)
    ...     print(read_scan(path))
    [[12.    0.5  -1.    0.25]]
    """
    path = Path(path)
    size = check_scan_size(path)
    try:
        values = np.fromfile(path, dtype="<f4")
    except OSError as error:
        raise KittiError(f"{path} cannot be read: {error.strerror}.") from None
    if values.nbytes != size:
        raise KittiError(f"{path} changed while it was read; try again.")
    points = values.reshape(-1, 4).astype(np.float32, copy=False)
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise KittiError(f"{path} holds a value that is not finite, in point {row}.")
    if np.abs(points[:, :3]).max() > LARGEST_DISTANCE:
        raise KittiError(f"{path} is not a scan: it has points farther away than {LARGEST_DISTANCE:g} m.")
    return points


def check_scan_size(path: Path) -> int:
    """Size of a scan in bytes; an error if no whole scan has it."""
    size = check_file(path)
    if size == 0:
        raise KittiError(f"{path} is empty.")
    if size % BYTES_PER_POINT:
        raise KittiError(
            f"{path} is cut short: {size} bytes are not a multiple of {BYTES_PER_POINT}, the size of a point."
        )
    return size


def check_file(path: Path) -> int:
    """Size of a file in bytes; an error for pipes, devices and huge files."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise KittiError(f"there is no file {path}.") from None
    except OSError as error:
        raise KittiError(f"{path} cannot be read: {error.strerror}.") from None
    if not path.is_file():
        raise KittiError(f"{path} is not a file.")
    if size > LARGEST_FILE:
        raise KittiError(f"{path} is too large for KITTI data: {size / 2**20:.0f} of {LARGEST_FILE / 2**20:.0f} MB.")
    return size


def read_oxts(path: Path | str) -> np.ndarray:
    """Read measurements of GPS and IMU.

    Parameters
    ----------
    path : Path or str
        Text file with one line per frame.

    Returns
    -------
    ndarray of shape (n_frames, 30)
        Columns as named in `OXTS_COLUMNS`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from whyact.driving.kitti import OXTS_COLUMNS, read_oxts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "0011.txt"
    ...     _ = path.write_text(" ".join(["49.0", "8.4", *["0"] * 6, "13.2", *["0"] * 21]))
    ...     oxts = read_oxts(path)
    >>> oxts.shape, float(oxts[0, OXTS_COLUMNS.index("vf")])  # forward velocity in m/s
    ((1, 30), 13.2)
    """
    path = Path(path)
    lines = read_lines(path)
    if not lines:
        raise KittiError(f"{path} is empty.")
    rows = []
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if len(fields) != len(OXTS_COLUMNS):
            raise KittiError(f"{path}, line {number}, has {len(fields)} columns instead of {len(OXTS_COLUMNS)}.")
        try:
            row = [float(value) for value in fields]
        except ValueError as error:
            raise KittiError(f"{path}, line {number}, is not numeric: {error}.") from None
        if not np.isfinite(row).all():
            column = OXTS_COLUMNS[int(np.flatnonzero(~np.isfinite(row))[0])]
            raise KittiError(f"{path}, line {number}, holds a value that is not finite in the column {column}.")
        rows.append(row)
    return np.array(rows)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file without the empty ones at its end."""
    check_file(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise KittiError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise KittiError(f"{path} is not text in UTF-8.") from None
    return text.rstrip().splitlines()


def find_scene(root: Path | str, scene: int | str, *, skip_damaged: bool = False) -> Scene:
    """Find a sequence of the tracking benchmark, or a raw drive, and read the car's motion.

    Parameters
    ----------
    root : Path or str
        The folder that holds `training` (preferred, if both exist) or `testing`, or one of these two. For raw drives
        the drive itself, the folder of its date, or the one above.
    scene : int or str
        Number of the sequence or drive, or the name of the drive's folder.
    skip_damaged : bool, default=False
        Leave damaged scans out and list them in `Scene.damaged` instead of raising an error. This reads all scans;
        otherwise only their sizes are checked here, and their values when they are used.

    Returns
    -------
    Scene
        Files of the scans, and the motion of the car.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from whyact.driving.kitti import find_scene
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scans, oxts = Path(folder, "training", "velodyne", "0011"), Path(folder, "training", "oxts")
    ...     for made in (scans, oxts):
    ...         made.mkdir(parents=True)
    ...     for name in ("000000.bin", "000001.bin"):
    ...         np.array([[12.0, 0.5, -1.0, 0.25]], dtype="<f4").tofile(scans / name)
    ...     np.savetxt(oxts / "0011.txt", np.zeros((3, 30)))
    ...     scene = find_scene(folder, 11)
    >>> scene.describe()
    'Scene 0011: 2 scans of 3 frames; 1 without a scan (2).'
    """
    root = Path(root)
    if not root.is_dir():
        raise KittiError(f"there is no folder {root}.")
    split = find_split(root)
    drives = [] if split else find_drives(root)
    if split:
        name, scan_folder, oxts = find_sequence(split, scene)
        frequency = SAMPLE_FREQUENCY
    elif drives:
        drive = choose_drive(root, drives, scene)
        name, scan_folder = drive.name, drive / "velodyne_points" / "data"
        oxts = read_oxts_folder(drive / "oxts" / "data")
        frequency = read_frequency(drive / "oxts" / "timestamps.txt", len(oxts))
    else:
        raise KittiError(f"{root} holds no KITTI sequence{suggest_folder(root)}")
    found = list_frames(scan_folder, "bin")
    beyond = [frame for frame in found if frame >= len(oxts)]
    if beyond:
        raise KittiError(f"{found[beyond[0]]} has no line in oxts, which ends with frame {len(oxts) - 1}.")
    missing = tuple(frame for frame in range(len(oxts)) if frame not in found)
    scans, damaged = check_scans(found, skip_damaged)
    if not scans:
        raise KittiError(f"{scan_folder} has no undamaged scan.")
    return Scene(name, "tracking" if split else "raw", scans, oxts, missing, damaged, frequency)


def check_scans(found: dict[int, Path], skip_damaged: bool) -> tuple[dict[int, Path], dict[int, str]]:
    """Sort scans into usable ones, and what is wrong with the others."""
    scans = {}
    damaged = {}
    for frame, path in found.items():
        try:
            if skip_damaged:
                read_scan(path)
            else:
                check_scan_size(path)
        except KittiError as error:
            if not skip_damaged:
                raise KittiError(f"{str(error)[:-1]}; damaged scans can be skipped (skip_damaged).") from None
            damaged[frame] = str(error)
        else:
            scans[frame] = path
    return scans, damaged


def find_split(root: Path) -> Path | None:
    """Find the folder with `velodyne` and `oxts` of the tracking benchmark."""
    folders = [*(root / split for split in SPLITS), root]
    return next((folder for folder in folders if (folder / "velodyne").is_dir()), None)


def find_sequence(split: Path, scene: int | str) -> tuple[str, Path, np.ndarray]:
    """Find the name, the folder of scans and the motion of a sequence."""
    sequences = sorted(folder.name for folder in list_folders(split / "velodyne"))
    name = pad(scene)
    if name not in sequences:
        raise KittiError(f"{split / 'velodyne'} has no sequence {name}; there are {list_names(sequences, N_SHOWN)}.")
    path = split / "oxts" / f"{name}.txt"
    if not path.exists():
        raise KittiError(f"there is no file {path}; the motion of the car comes with KITTI's archive of GPS/IMU data.")
    return name, split / "velodyne" / name, read_oxts(path)


def pad(scene: int | str) -> str:
    """Write the number of a sequence as KITTI does."""
    return str(scene).zfill(4)


def find_drives(root: Path) -> list[Path]:
    """Find raw drives: the folder itself, or one or two levels below."""
    if (root / "velodyne_points").is_dir():
        return [root]
    folders = list_folders(root)
    candidates = [*folders, *(inner for folder in folders for inner in list_folders(folder))]
    return [folder for folder in candidates if (folder / "velodyne_points").is_dir()]


def choose_drive(root: Path, drives: list[Path], scene: int | str) -> Path:
    """Pick the drive by its number or name."""

    def is_asked_for(drive: Path) -> bool:
        match = DRIVE.fullmatch(drive.name)
        return str(scene) == drive.name or (match is not None and pad(scene) == match[2])

    # the name of the folder given may be hidden by a dot or a link
    asked_for = [drive for drive in drives if is_asked_for(drive) or is_asked_for(drive.resolve())]
    names = list_names([drive.resolve().name for drive in asked_for or drives], N_SHOWN)
    if not asked_for:
        raise KittiError(f"{root} has no drive {scene}; there are {names}.")
    if len(asked_for) > 1:
        raise KittiError(f"{root} has more than one drive {scene}; give the name of the folder: {names}.")
    return asked_for[0]


def read_oxts_folder(folder: Path) -> np.ndarray:
    """Read the motion of a raw drive, which has a file for each frame."""
    rows = []
    for number, (frame, path) in enumerate(list_frames(folder, "txt").items()):
        if frame != number:
            raise KittiError(f"{folder} has a gap: there is no file for frame {number}.")
        row = read_oxts(path)
        if len(row) != 1:
            raise KittiError(f"{path} has {len(row)} lines instead of one.")
        rows.append(row)
    return np.concatenate(rows)


def read_frequency(path: Path, n_frames: int) -> float:
    """Find the frames per second of a raw drive; timestamps may be absent, and KITTI leaves a few lines empty."""
    if not path.exists():
        return SAMPLE_FREQUENCY
    lines = read_lines(path)
    if len(lines) > n_frames:
        raise KittiError(f"{path} has {len(lines)} lines, but there are {n_frames} frames.")
    times = np.full(n_frames, np.nan)
    for number, line in enumerate(lines):
        try:
            if line.strip():
                times[number] = datetime.fromisoformat(line.strip()[:26]).replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise KittiError(f"{path}, line {number + 1}, is not a time.") from None
    steps = np.diff(times)
    steps = steps[np.isfinite(steps)]
    if not len(steps):
        return SAMPLE_FREQUENCY
    if np.median(steps) <= 0:
        raise KittiError(f"{path} does not go forward in time.")
    return float(1 / np.median(steps))


def list_frames(folder: Path, ending: str) -> dict[int, Path]:
    """Find files by the number of their frame, in order."""
    if not folder.is_dir():
        raise KittiError(f"there is no folder {folder}.")
    files: dict[int, Path] = {}
    for path in sorted(folder.glob(f"[!.]*.{ending}")):
        if not re.fullmatch(r"[0-9]+", path.stem):
            raise KittiError(f"{path} is not named after the number of a frame.")
        if int(path.stem) in files:
            raise KittiError(f"{path} and {files[int(path.stem)].name} are both frame {int(path.stem)}.")
        files[int(path.stem)] = path
    if not files:
        raise KittiError(f"{folder} has no .{ending} files.")
    return dict(sorted(files.items()))


def list_folders(folder: Path) -> list[Path]:
    """Folders in a folder, without hidden ones; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / entry.name for entry in entries if entry.is_dir() and entry.name[0] != ".")
    except OSError:
        return []


def suggest_folder(root: Path) -> str:
    """End a sentence about a wrong folder with the right one, if it is near."""
    root = root.absolute()
    near = [*root.parents[:3], *walk(root, n_levels=3)]
    for folder in near:
        if find_split(folder) or (folder / "velodyne_points").is_dir():
            # a split goes by the name of the folder above it, as everywhere
            return f"; did you mean {folder.parent if folder.name in SPLITS else folder}?"
    return ": neither training/velodyne nor a folder with velodyne_points."


def walk(root: Path, n_levels: int) -> Iterator[Path]:
    """Go through the folders below, level by level."""
    level = [root]
    n_left = N_FOLDERS_SEARCHED
    for _ in range(n_levels):
        inner = [folder for outer in level[:n_left] for folder in list_folders(outer)][:n_left]
        n_left -= len(inner)
        yield from inner
        level = inner


def shorten_numbers(numbers: list[int]) -> str:
    """List numbers, with runs written as "177-180"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return list_names([str(first) if first == last else f"{first}-{last}" for first, last in runs], N_SHOWN)
