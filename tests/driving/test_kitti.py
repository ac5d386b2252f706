"""Reading KITTI: what is there is found in every layout, what is wrong is named, what is left out is counted."""

import os
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tests.support.kitti_scenes import find_real_data, make_line, make_points, make_raw, make_tracking
from whyact.driving import kitti
from whyact.driving.kitti import OXTS_COLUMNS, KittiError, find_scene, read_oxts, read_scan


def test_scan_has_its_points(tmp_path):
    points = make_points(0, 7)
    points.tofile(tmp_path / "a.bin")
    read = read_scan(tmp_path / "a.bin")
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, points)


def test_scan_is_little_endian(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes.fromhex("0000803f 00000040 00004040 0000003f"))
    np.testing.assert_array_equal(read_scan(tmp_path / "a.bin"), [[1, 2, 3, 0.5]])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (make_points(0).tobytes()[:-1], "cut short: 79 bytes are not a multiple of 16"),
        (np.array([[1, 2, 3, 4], [1, np.nan, 3, 4]], "<f4").tobytes(), "not finite, in point 1"),
        (np.array([[1, 2, np.inf, 4]], "<f4").tobytes(), "not finite, in point 0"),
        (np.array([[1, 2, 1e9, 4]], "<f4").tobytes(), "farther away than 1000 m"),
        (make_points(0).astype(">f4").tobytes(), "not"),
    ],
)
def test_damaged_scan_is_named(tmp_path, content, sentence):
    path = tmp_path / "000007.bin"
    path.write_bytes(content)
    with pytest.raises(KittiError, match=rf"000007\.bin .*{sentence}.*\.$"):
        read_scan(path)


def test_missing_scan_is_named(tmp_path):
    with pytest.raises(KittiError, match=r"there is no file .*000007\.bin\.$"):
        read_scan(tmp_path / "000007.bin")


def test_huge_scan_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.bin"
    with path.open("wb") as file:
        file.truncate(kitti.LARGEST_FILE + 16)  # sparse: takes no space
    with pytest.raises(KittiError, match=r"huge\.bin is too large"):
        read_scan(path)


def test_pipe_is_no_scan(tmp_path):
    """Reading it would wait for ever."""
    os.mkfifo(tmp_path / "pipe.bin")
    with pytest.raises(KittiError, match="is not a file"):
        read_scan(tmp_path / "pipe.bin")


def test_oxts_has_its_columns(tmp_path):
    (tmp_path / "a.txt").write_text(f"{make_line(3)}\n{make_line(4)}\n\n")
    oxts = read_oxts(tmp_path / "a.txt")
    assert oxts.shape == (2, 30)
    assert len(set(OXTS_COLUMNS)) == 30
    np.testing.assert_array_equal(oxts[:, OXTS_COLUMNS.index("vf")], [3, 4])
    assert OXTS_COLUMNS.index("af") == 14


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", " is empty"),
        ("\n \n", " is empty"),
        (f"{make_line(0)}\n1 2 3\n", ", line 2, has 3 columns instead of 30"),
        (f"{make_line(0)} 7\n", ", line 1, has 31 columns"),
        (f"{make_line(0)}\n\n{make_line(1)}\n", ", line 2, has 0 columns"),
        (make_line(0).replace("0.0", "fast", 1), ", line 1, is not numeric: .*'fast'"),
        (f"{make_line(0)}\n{make_line(1).replace('1.0', 'nan')}", ", line 2, .* not finite in the column vf"),
        (b"\xff\xfe", " is not text in UTF-8"),
    ],
)
def test_damaged_oxts_is_named(tmp_path, text, sentence):
    path = tmp_path / "0011.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(KittiError, match=rf"0011\.txt{sentence}"):
        read_oxts(path)


@pytest.mark.parametrize("scene", [11, "11", "0011"])
@pytest.mark.parametrize("level", ["", "training"])
def test_tracking_sequence_is_found(tmp_path, scene, level):
    make_tracking(tmp_path, "0011", 4)
    found = find_scene(tmp_path / level, scene)
    assert (found.name, found.layout, found.missing, found.damaged) == ("0011", "tracking", (), {})
    assert found.frames.tolist() == [0, 1, 2, 3]
    assert found.oxts[:, 8].tolist() == [0, 1, 2, 3]
    assert found.sample_frequency == 10
    np.testing.assert_array_equal(read_scan(found.scans[2]), make_points(2))
    assert found.describe() == "Scene 0011: 4 scans of 4 frames."
    with pytest.raises(FrozenInstanceError):
        found.name = "0012"


def test_testing_is_used_where_it_is_alone_or_asked_for(tmp_path):
    make_tracking(tmp_path / "a")
    (tmp_path / "a" / "training").rename(tmp_path / "a" / "testing")
    assert len(find_scene(tmp_path / "a", 11).scans) == 4
    make_tracking(tmp_path / "a", n_frames=2)
    assert len(find_scene(tmp_path / "a", 11).scans) == 2
    assert len(find_scene(tmp_path / "a" / "testing", 11).scans) == 4


@pytest.mark.parametrize("level", [".", "2011_09_26", "2011_09_26/2011_09_26_drive_0005_sync"])
@pytest.mark.parametrize("scene", [5, "0005", "2011_09_26_drive_0005_sync"])
def test_raw_drive_is_found(tmp_path, level, scene):
    make_raw(tmp_path / "2011_09_26", 5, 3)
    make_raw(tmp_path / "2011_09_26", 6, 2)
    found = find_scene(tmp_path / level, scene)
    assert (found.name, found.layout) == ("2011_09_26_drive_0005_sync", "raw")
    assert found.frames.tolist() == [0, 1, 2]
    assert found.oxts[:, 8].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(read_scan(found.scans[1]), make_points(1))


def test_timestamps_give_the_sample_frequency(tmp_path):
    """KITTI leaves lines of lost frames empty, and writes nanoseconds."""
    drive = make_raw(tmp_path, 5, 5)
    times = [f"2011-09-26 13:02:2{seconds}000000\n" for seconds in ("5.000", "5.125", "5.250", "5.375")]
    path = drive / "oxts" / "timestamps.txt"
    path.write_text("".join([*times[:2], "\n", *times[2:]]))
    assert find_scene(tmp_path, 5).sample_frequency == pytest.approx(8)
    path.write_text("yesterday\n")
    with pytest.raises(KittiError, match=r"timestamps\.txt, line 1, is not a time"):
        find_scene(tmp_path, 5)
    path.write_text("".join(times[::-1]))
    with pytest.raises(KittiError, match=r"timestamps\.txt does not go forward"):
        find_scene(tmp_path, 5)
    path.write_text("".join(times * 2))
    with pytest.raises(KittiError, match=r"timestamps\.txt has 8 lines, but there are 5 frames"):
        find_scene(tmp_path, 5)


def test_drives_of_the_same_number_are_told_apart_by_name(tmp_path):
    make_raw(tmp_path / "2011_09_26", 5, 2)
    make_raw(tmp_path / "2011_09_28", 5, 3, date="2011_09_28")
    with pytest.raises(KittiError, match=r"more than one drive 5.*2011_09_26_drive_0005_sync, 2011_09_28_drive"):
        find_scene(tmp_path, 5)
    assert len(find_scene(tmp_path, "2011_09_28_drive_0005_sync").scans) == 3


@pytest.mark.parametrize("make", [make_tracking, make_raw])
def test_frames_without_a_scan_are_left_out_and_reported(tmp_path, make):
    make(tmp_path, n_frames=8, lacking=(2, 3, 7))
    found = find_scene(tmp_path, 11 if make is make_tracking else 1)
    assert found.frames.tolist() == [0, 1, 4, 5, 6]
    assert found.missing == (2, 3, 7)
    assert found.oxts[:, 8].tolist() == list(range(8))
    assert "5 scans of 8 frames; 3 without a scan (2-3, 7)." in found.describe()


def test_truncated_scan_is_an_error_unless_it_may_be_skipped(tmp_path):
    scans = make_tracking(tmp_path, n_frames=5, lacking=(4,))
    (scans / "000001.bin").write_bytes(b"123")
    with pytest.raises(KittiError, match=r"000001\.bin is cut short.*skip_damaged"):
        find_scene(tmp_path, 11)
    (scans / "000003.bin").write_bytes(np.full(4, np.nan, "<f4").tobytes())
    found = find_scene(tmp_path, 11, skip_damaged=True)
    assert found.frames.tolist() == [0, 2]
    assert found.missing == (4,)
    assert list(found.damaged) == [1, 3]
    assert "cut short" in found.damaged[1]
    assert "not finite" in found.damaged[3]
    assert found.describe().endswith("1 without a scan and 2 with a damaged scan that was skipped (1, 3-4).")


def test_all_scans_damaged_is_an_error_all_the_same(tmp_path):
    scans = make_tracking(tmp_path, n_frames=1)
    (scans / "000000.bin").write_bytes(b"123")
    with pytest.raises(KittiError, match="no undamaged scan"):
        find_scene(tmp_path, 11, skip_damaged=True)


@pytest.mark.parametrize("scene", [12, "x", "../0011", -1, ""])
def test_wrong_sequence_lists_those_that_exist(tmp_path, scene):
    make_tracking(tmp_path, "0011")
    make_tracking(tmp_path, "0020")
    with pytest.raises(KittiError, match=r"has no sequence .*; there are 0011, 0020\.$"):
        find_scene(tmp_path, scene)


def test_wrong_drive_lists_those_that_exist(tmp_path):
    make_raw(tmp_path, 5)
    with pytest.raises(KittiError, match=r"has no drive 6; there are 2011_09_26_drive_0005_sync\.$"):
        find_scene(tmp_path, 6)


@pytest.mark.parametrize("given", [".", "kitti/tracking/training/velodyne", "kitti/tracking/training/velodyne/0011"])
def test_folder_at_the_wrong_level_names_the_right_one(tmp_path, given):
    make_tracking(tmp_path / "kitti" / "tracking")
    right = re.escape(str(tmp_path / "kitti" / "tracking"))
    with pytest.raises(KittiError, match=rf"holds no KITTI sequence; did you mean {right}\?$"):
        find_scene(tmp_path / given, 11)


def test_raw_folder_at_the_wrong_level_names_the_right_one(tmp_path):
    drive = make_raw(tmp_path / "a" / "2011_09_26", 5)
    right = re.escape(str(drive))
    for given in (tmp_path, drive / "velodyne_points" / "data"):
        with pytest.raises(KittiError, match=rf"did you mean {right}\?$"):
            find_scene(given, 5)


def test_folder_without_kitti_says_what_is_lacking(tmp_path):
    (tmp_path / "music").mkdir()
    with pytest.raises(KittiError, match=r"holds no KITTI sequence: neither training/velodyne nor"):
        find_scene(tmp_path, 11)
    with pytest.raises(KittiError, match=r"there is no folder .*nowhere\.$"):
        find_scene(tmp_path / "nowhere", 11)


def test_more_scans_than_lines_of_oxts_is_an_error(tmp_path):
    scans = make_tracking(tmp_path, n_frames=3)
    make_points(0).tofile(scans / "000003.bin")
    with pytest.raises(KittiError, match=r"000003\.bin has no line in oxts, which ends with frame 2\.$"):
        find_scene(tmp_path, 11)


def test_gap_in_oxts_is_an_error(tmp_path):
    drive = make_raw(tmp_path, n_frames=4)
    (drive / "oxts" / "data" / "0000000001.txt").unlink()
    with pytest.raises(KittiError, match=r"has a gap: there is no file for frame 1\.$"):
        find_scene(tmp_path, 1)


def test_two_lines_in_one_frame_are_an_error(tmp_path):
    drive = make_raw(tmp_path)
    (drive / "oxts" / "data" / "0000000001.txt").write_text(f"{make_line(1)}\n{make_line(2)}")
    with pytest.raises(KittiError, match=r"0000000001\.txt has 2 lines instead of one"):
        find_scene(tmp_path, 1)


def test_sequence_without_motion_names_the_file(tmp_path):
    make_tracking(tmp_path)
    (tmp_path / "training" / "oxts" / "0011.txt").unlink()
    with pytest.raises(KittiError, match=r"there is no file .*0011\.txt; the motion"):
        find_scene(tmp_path, 11)


def test_other_files_among_the_scans(tmp_path):
    scans = make_tracking(tmp_path)
    (scans / "._000000.bin").write_bytes(b"left by a Mac")
    (scans / "readme.txt").write_text("hello")
    assert find_scene(tmp_path, 11).frames.tolist() == [0, 1, 2, 3]
    make_points(0).tofile(scans / "1.bin")
    with pytest.raises(KittiError, match=r"1\.bin and 000001\.bin are both frame 1"):
        find_scene(tmp_path, 11)
    (scans / "1.bin").rename(scans / "copy.bin")
    with pytest.raises(KittiError, match=r"copy\.bin is not named after the number of a frame"):
        find_scene(tmp_path, 11)


def test_sequence_without_scans_is_an_error(tmp_path):
    make_tracking(tmp_path, lacking=range(4))
    with pytest.raises(KittiError, match=r"0011 has no \.bin files"):
        find_scene(tmp_path, 11)


def test_links_are_followed(tmp_path):
    make_tracking(tmp_path / "disk")
    (tmp_path / "kitti").symlink_to(tmp_path / "disk")
    assert len(find_scene(tmp_path / "kitti", 11).scans) == 4


def test_real_sequence_is_whole():
    scene = find_scene(find_real_data() / "kitti-tracking", 0)
    assert scene.frames.tolist() == list(range(154))
    assert scene.oxts.shape == (154, 30)
    assert scene.missing == ()
    points = read_scan(scene.scans[0])
    assert len(points) > 10_000
    assert np.median(points[points[:, 2] < -1.55, 2]) == pytest.approx(-1.72, abs=0.1)
    # the speed is what the positions say: a degree of latitude has 111.2 km
    latitude, longitude = scene.oxts[:, 0], scene.oxts[:, 1]
    north = np.gradient(latitude) * 111_200
    east = np.gradient(longitude) * 111_200 * np.cos(np.radians(latitude))
    np.testing.assert_allclose(np.hypot(north, east) * 10, scene.oxts[:, 8], atol=0.5)
