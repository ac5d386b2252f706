"""`whyact demo`: learn from the traffic that ships with whyact."""

import re

from tests.support.command_line import call


def test_demo_shows_what_was_learned(tmp_path):
    picture = tmp_path / "demo.png"
    output = call("demo", "--out", picture)
    assert "12 features explain 630 demonstrations." in output
    assert "Both chains find all of them; draws have 12 features;" in output
    accuracy = re.search(r"Accuracy on the 210 moments of 105 episodes it has not seen: (0\.\d\d) ", output)
    assert float(accuracy[1]) >= 0.76
    assert f"Written: {picture}" in output
    assert picture.read_bytes().startswith(b"\x89PNG")
