"""The progress bar: silence unless asked for, lines for a pipe."""

from whyact.progress import N_LINES, open_bar


def test_nothing_is_shown_unless_asked_for(capfd):
    with open_bar(0, 3, "fits") as show:
        show(1, "first")
    assert capfd.readouterr() == ("", "")


def test_a_pipe_gets_a_line_now_and_then(capfd):
    with open_bar(1, 1000, "runs") as show:
        for n_done in range(1, 1001):
            show(n_done, f"[red]run {n_done}")
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == N_LINES
    assert lines[0] == "50/1000 runs  [red]run 50"
    assert lines[-1] == "1000/1000 runs  [red]run 1000"


def test_no_step_is_lost_where_steps_are_few(capfd):
    with open_bar(1, 3, "fits") as show:
        for n_done in (1, 2, 3):
            show(n_done, "done")
    assert capfd.readouterr().err.splitlines() == ["1/3 fits  done", "2/3 fits  done", "3/3 fits  done"]
    with open_bar(1, 100, "sweeps") as show:
        show(42, "resumed")  # several milestones at once
        show(43, "not another one")
    assert capfd.readouterr().err == "42/100 sweeps  resumed\n"
