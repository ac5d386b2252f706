"""Ctrl-C leaves the estimator as it was, and no process behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

CODE = """
import sys, threading, time
import numpy as np
from whyact import FeaturePolicyClassifier, load_demo
demo = load_demo()
model = FeaturePolicyClassifier(n_burn_in=5, n_draws=5, n_chains=2, n_jobs={n_jobs}, random_state=0).fit(demo.X, demo.y)
before = dict(vars(model))
model.set_params(n_burn_in=10_000_000)
before["n_burn_in"] = 10_000_000
print("started", flush=True)
try:
    model.fit(demo.X[:, :5], demo.y)
except KeyboardInterrupt:
    print("interrupted", vars(model) == before, flush=True)
"""


def children_of_group(group):
    """Processes of a process group that are still there and not zombies."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(name))
    return found


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes in /proc")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("whole_group", [False, True], ids=["parent", "group"])
def test_ctrl_c(n_jobs, whole_group):
    process = subprocess.Popen(
        [sys.executable, "-c", CODE.format(n_jobs=n_jobs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline().strip() == "started"
        time.sleep(2.0)
        if whole_group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert out.strip() == "interrupted True", err
        deadline = time.monotonic() + 20
        while children_of_group(process.pid) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert children_of_group(process.pid) == []
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
