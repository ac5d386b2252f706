"""Driving (Sec. 6): KITTI scans, occupancy grids, action labels and simulated traffic."""
