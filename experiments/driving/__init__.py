"""Predict a driver's action in KITTI scenes (Sec. 6), and drive in simulated traffic."""
