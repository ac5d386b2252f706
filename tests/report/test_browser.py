"""The report in a browser: what its JavaScript computes, and that nothing else runs or loads."""

import os
import shutil

import numpy as np
import pytest

from tests.support.stand_in import make_model
from whyact.report import write_report
from whyact.report.explorer import find_substates

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "'\"><img src=https://example.org/x onerror=window.hacked=1>",
    "{{7*7}}`${window.hacked=1}`",
    "שלום עולם",
    "long " * 100,
    "javascript:window.hacked=1",
]


A4_WIDTH = 718  # pixels between margins of one centimetre


def find_browser():
    """Chromium and Playwright, or the reason why there is no browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None, "playwright is not installed"
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return (sync_playwright, path) if path else (None, "no chromium is on the path")


@pytest.fixture(scope="module")
def browser():
    start, found = find_browser()
    if start is None:
        if os.environ.get("CI"):
            pytest.fail(f"{found}, and CI must not skip the tests of the page")
        pytest.skip(found)
    with start() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(browser, tmp_path):
    """Open the report of a model, and check afterwards that nothing complained and nothing was loaded."""
    contexts, complaints, requests = [], [], []

    def record(route):
        address = route.request.url
        if address.startswith(("file:", "data:")):
            route.continue_()
        else:
            requests.append(address)
            route.abort()

    def show(model, scheme="light", width=1200, javascript=True, **options):
        path = write_report(model, tmp_path / "report.html", **options)
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=javascript
        )
        contexts.append(context)
        context.route("**/*", record)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.goto(path.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert complaints == []
    assert requests == []


def read_probabilities(page):
    return [float(row.get_attribute("data-probability")) for row in page.locator("#probabilities .bar-row").all()]


def read_sliders(page, n_features):
    return [float(page.locator(f"[data-feature='{k}']").input_value()) for k in range(n_features)]


def assert_sliders(page, substates):
    # Chromium keeps fifteen digits of a slider; the page computes with the substates themselves until one is moved
    np.testing.assert_allclose(read_sliders(page, len(substates)), substates, rtol=0, atol=1e-14)


def move_slider(page, feature, value):
    page.locator(f"[data-feature='{feature}']").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", repr(float(value))
    )


VOICES = {
    "the paper's": {},
    "tau 0.4": {"decisiveness": 0.4},
    "tau 10": {"decisiveness": 10.0},
    "tau learned": {"decisiveness": "auto"},
    "product": {"combination": "product"},
}


@pytest.mark.parametrize("name", VOICES)
def test_sliders_give_the_probabilities_of_the_model(show, name):
    model = make_model(n_features=10, labels=list("abcd"), **VOICES[name])
    page = show(model)
    rng = np.random.default_rng(0)
    substates_of_first = find_substates(model, np.array([0]))
    first, n = model.policy(substates_of_first)[0], model.n_components_
    np.testing.assert_allclose(read_probabilities(page), first, rtol=0, atol=1e-9)
    for substates in (rng.random(n), (rng.random(n) < 0.3) * rng.random(n), np.zeros(n), np.eye(n)[4] * 1e-7):
        for k in range(n):
            move_slider(page, k, substates[k])
        np.testing.assert_allclose(read_probabilities(page), model.policy(substates[None])[0], rtol=0, atol=1e-9)
    page.locator("#reset").click()
    assert_sliders(page, substates_of_first[0])
    np.testing.assert_allclose(read_probabilities(page), first, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["the paper's", "tau 0.4", "tau learned", "product"])
def test_what_is_not_available_has_no_probability(show, name):
    available = np.random.default_rng(0).random((30, 4)) < 0.5
    model = make_model(labels=list("abcd"), available=available, **VOICES[name])
    assert not model.available_.all()
    assert_page_knows_what_is_available(show(model), model, n_rows=5)


@pytest.mark.parametrize("combination", ["mixture", "product"])
def test_what_is_not_available_leaves_the_others_their_odds(show, combination):
    """Beside an action that would have been taken with near certainty, to the power of tau or in a sharp product."""
    policies = np.tile([1 - 2e-12, 1.5e-12, 5e-13], (3, 1))
    model = make_model(
        labels=list("abc"), available=np.tile([False, True, True], (30, 1)), policies=policies,
        combination=combination, decisiveness=30.0,
    )  # fmt: skip
    if combination == "product":
        model._result.cut.chosen_base[:] = [2000.0, 0.0, -3.0]
    assert_page_knows_what_is_available(show(model), model, n_rows=10)
    probabilities = model.policy(np.eye(3), np.tile([False, True, True], (3, 1)))
    assert (probabilities[:, 1] > probabilities[:, 2]).all()


def assert_page_knows_what_is_available(page, model, n_rows):
    for row in range(n_rows):
        here = np.array([row])
        expected = model.policy(find_substates(model, here), model.available_[here])[0]
        np.testing.assert_allclose(read_probabilities(page), expected, rtol=0, atol=1e-9)
        page.get_by_role("button", name="Next demonstration").click()


def test_a_product_starts_from_what_it_predicts(show):
    model = make_model(labels=list("abcd"), combination="product", prediction="map")
    page = show(model)
    np.testing.assert_allclose(
        read_probabilities(page), model.judge_demonstrations([0]).probabilities[0], rtol=0, atol=1e-9
    )


def test_the_keyboard_walks_through_demonstrations_and_moves_sliders(show):
    model = make_model()
    page = show(model)
    page.locator("#pick").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator("#parts-title").inner_text() == "Row 3, taken apart"
    assert "row 3" in page.locator("#pick").get_attribute("aria-valuetext")
    assert_sliders(page, model.substates_[3])
    page.keyboard.press("End")
    assert page.locator("#parts-title").inner_text() == "Row 29, taken apart"
    page.get_by_role("button", name="Previous demonstration").press("Enter")
    assert_sliders(page, model.substates_[28])
    page.locator("[data-feature='1']").focus()
    page.keyboard.press("Home")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    moved = np.array(read_sliders(page, 3))
    assert 0 < moved[1] < 1
    np.testing.assert_allclose(read_probabilities(page), model.policy(moved[None])[0], rtol=0, atol=1e-9)
    live = page.locator("[aria-live=polite]")
    live.filter(has_text="Most probable now").wait_for(state="attached", timeout=5000)


def test_a_click_on_the_timeline_picks_a_demonstration(show):
    page = show(make_model(n_rows=10))
    lanes = page.locator(".lanes")
    lanes.click(position={"x": 0.55 * lanes.bounding_box()["width"], "y": 5})
    assert page.locator("#parts-title").inner_text() == "Row 5, taken apart"


def test_hostile_names_are_shown_and_nothing_runs(show):
    names = [f"{name} {i}" for i, name in enumerate(HOSTILE)]
    model = make_model(names=names, n_columns=len(names), labels=sorted(HOSTILE), n_rows=40)
    page = show(model, title=HOSTILE[0], source=HOSTILE[1])
    for _ in range(5):
        page.get_by_role("button", name="Next demonstration").click()
    assert page.evaluate("window.hacked") is None
    assert page.title() == HOSTILE[0]
    assert page.locator("h1").inner_text() == HOSTILE[0]
    shown = page.locator("#probabilities .name").all_inner_texts()
    assert [name.rstrip("…") for name in shown] == [
        name[: len(s.rstrip("…"))] for name, s in zip(sorted(HOSTILE), shown, strict=True)
    ]
    assert page.locator("#parts .bar-row .name").all_inner_texts()[0] == names[0]
    assert page.locator("img").count() == 0


CASES = {
    "bars": ({"n_columns": 40, "share_missing": 0.1, "n_unknown": 3}, {}),
    "long names": (
        {"n_columns": 6, "names": ["x" * 300 + str(d) for d in range(6)], "labels": ["y" * 200, "z" * 200]},
        {},
    ),
    "many": ({"n_columns": 60, "n_features": 40, "labels": list(range(20)), "n_rows": 200}, {"shape": (2, 5, 6)}),
    "curves": ({"n_columns": 60, "feature_values": "real", "share_missing": 0.1}, {"kind": "curve", "shape": (2, 30)}),
    "no feature": ({"n_features": 0}, {}),
    "product": ({"combination": "product", "n_columns": 40, "labels": ["y" * 200, "z" * 200, "a"]}, {}),
    "product, no feature": ({"combination": "product", "n_features": 0}, {}),
    "no action": ({"labels": ()}, {}),
    "no action, images": ({"labels": ()}, {"shape": (2, 3)}),
    "numbers apart": ({"n_features": 60, "numbers": [1, 9, 20, 40, 58, 60]}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_pages_fit_every_width_theme_and_paper(show, name):
    parameters, options = CASES[name]
    model = make_model(**parameters)
    for scheme, width in (("light", 1200), ("dark", 375)):
        page = show(model, scheme, width, **options)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("#explorer-body").is_visible()
    page.emulate_media(media="print")
    page.set_viewport_size({"width": A4_WIDTH, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") <= A4_WIDTH
    assert not page.locator("#pick").is_visible()
    assert page.locator(".sliders:visible").count() == 0


def test_long_names_with_the_same_beginning_can_be_told_apart(show):
    labels = [f"turn at the next crossing {way}" for way in ("left", "nowhere", "right")]
    for width in (1200, 375):
        page = show(make_model(labels=labels), width=width)
        for place in ("article .policy .name", "#probabilities .name", ".confusion th bdi"):
            assert not page.locator(place).evaluate_all(
                "names => names.some(name => name.scrollHeight > name.clientHeight + 1)"
            ), place
        assert page.locator(".lane-names .name").all_inner_texts() == ["…left", "…nowhere", "…right"]


def test_no_line_ends_with_a_sign(show):
    for width in (1200, 375):
        page = show(make_model(n_features=12, n_columns=6), width=width, shape=(2, 3))
        terms = page.locator("#parts .term")
        assert terms.count() > 2
        for term in terms.all():
            sign, picture = term.locator(".sign").bounding_box(), term.locator("figure").bounding_box()
            assert sign["x"] < picture["x"]
            assert picture["y"] < sign["y"] < picture["y"] + picture["height"]


def test_sliders_of_features_that_are_not_there_are_folded_away(show):
    model = make_model(n_features=30)
    page = show(model)
    present = np.count_nonzero(model.substates_[0])
    shown = page.locator("#what-if .sliders input:visible")
    assert shown.count() == present
    page.get_by_text(f"{model.n_components_ - present} absent features").click()
    assert shown.count() == model.n_components_ > present
    list_ = page.locator("#what-if .sliders").first
    assert list_.evaluate("list => list.scrollHeight <= list.clientHeight")  # nothing is cut


def test_without_javascript_all_but_the_explorer_is_there(show):
    page = show(make_model(), javascript=False)
    assert page.locator("article.card").count() == 3
    assert page.locator("article.card .bar-row").first.is_visible()
    assert page.locator(".confusion").is_visible()
    assert page.locator("noscript p").is_visible()
    assert not page.locator("#explorer-body").is_visible()
