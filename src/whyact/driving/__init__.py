"""Driving (Sec. 6): from measured drives to observations and actions, and simulated traffic to drive in.

- `kitti.py`: scenes of the KITTI benchmark
- `grids.py`: occupancy grids of their scans
- `labels.py`: actions by the car's measured motion
- `traffic.py`: simulated traffic, recorded (highway-env)
- `datasets.py`: the traffic that ships with whyact
- `agent.py`: learned and other drivers in simulated traffic
- `pictures.py`: figures of all of it (matplotlib)
"""
