"""The page in a real browser: clicks, keys, files, three panels, training, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")
pytest.importorskip("fastapi", reason="the web extra is not installed")

from playwright import sync_api

from diconet.problems.catalog import built_in, find_problem
from diconet.web.app import create_app
from tests.web.browser import CHROMIUM, FLAGS, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

PICTURES = Path("build/screenshots")
"""Kept as an artefact; git does not see it."""

expect = sync_api.expect
SOON = 60_000


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    shown = [*built_in().values(), find_problem("examples/two_means.py:TwoMeans")]
    with served(create_app(shown)) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A fresh page on which nothing may go wrong unseen."""
    context = browser.new_context(viewport={"width": 1240, "height": 1000}, color_scheme="light")
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda sent: wrong.append(sent.url) if address not in sent.url else None)
    opened.goto(f"{address}/?n=12")
    expect(opened.locator("#status")).to_have_text("12 points", timeout=SOON)
    yield opened
    context.close()
    assert [line for line in wrong if not line.startswith(("data:", "blob:"))] == []


def dots(page: Any, panel: str = "learned") -> Any:
    return page.locator(f"#panel-{panel} .part")


@pytest.mark.parametrize("task", [name for name, one in built_in().items() if one.page])
def test_every_problem_in_three_panels(page: Any, address: str, task: str) -> None:
    page.goto(f"{address}/?task={task}&n=40")
    expect(page.locator("#status")).to_contain_text("divi", timeout=SOON)
    for panel in ("learned", "random", "none"):
        expect(dots(page, panel)).to_have_count(40)
        expect(page.locator(f"#panel-{panel} .value")).to_contain_text(re.compile(r"\d"))
    expect(page.locator("#caption")).to_contain_text("Answer:")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#caption")).to_contain_text(re.compile("Divide:|Conquer:"))
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{task}.png", full_page=True)
    page.click("#theme")
    page.screenshot(path=PICTURES / f"{task}_dark.png", full_page=True)


def test_points_are_added_moved_deleted_and_had_back(page: Any) -> None:
    plane = page.locator("#panel-random svg")
    box = plane.bounding_box()
    page.mouse.click(box["x"] + 9, box["y"] + 9)
    expect(dots(page)).to_have_count(13)
    added = page.locator("#panel-random .part[data-i='12']")
    before = added.get_attribute("cx")
    page.mouse.move(box["x"] + 9, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 30, steps=4)
    page.mouse.up()
    assert float(added.get_attribute("cx")) > float(before) + 50
    page.click("#undo")
    assert added.get_attribute("cx") == before
    page.locator("#panel-none .part[data-i='12']").click(modifiers=["Shift"])
    expect(dots(page)).to_have_count(12)
    page.keyboard.press("Control+z")
    expect(dots(page)).to_have_count(13)


def test_keys_alone_choose_move_add_and_delete(page: Any) -> None:
    page.locator("#panel-learned svg").focus()
    page.keyboard.press("n")
    first = page.locator("#panel-learned .part[data-i='0']")
    before = float(first.get_attribute("cx"))
    page.keyboard.press("ArrowRight")
    assert float(first.get_attribute("cx")) == pytest.approx(before + 10, abs=0.1)
    page.keyboard.press("Delete")
    expect(dots(page)).to_have_count(11)
    page.keyboard.press("a")
    expect(dots(page)).to_have_count(12)
    page.keyboard.press("s")
    expect(page.locator("#status")).to_contain_text("divi", timeout=SOON)


def test_play_becomes_pause(page: Any) -> None:
    page.fill("#n", "40")
    page.click("#draw")
    page.click("#solve")  # which waits for the points
    expect(page.locator("#status")).to_contain_text("divi", timeout=SOON)
    expect(page.locator("#play")).to_have_text("play")
    page.click("#play")
    expect(page.locator("#play")).to_have_text("pause")
    expect(page.locator("#caption")).to_contain_text("Step 1")
    page.click("#play")
    expect(page.locator("#play")).to_have_text("play")


def test_points_come_from_files_and_go_there(page: Any, tmp_path: Path) -> None:
    file = tmp_path / "places.csv"
    file.write_text("name,x,y\nA,100,200\nB,300,250\nC,150,420\n")
    page.set_input_files("#upload", file)
    expect(dots(page)).to_have_count(3)
    with page.expect_download() as saved:
        page.click("#download")
    assert saved.value.path().read_text() == "x,y\n100,200\n300,250\n150,420\n"
    file.write_text("nothing here")
    page.set_input_files("#upload", file)
    expect(page.locator("#status")).to_contain_text("places.csv: the file must have lines")


def test_a_dark_machine_gets_a_dark_page(browser: Any, address: str) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        opened = context.new_page()
        opened.goto(address)
        shade = opened.evaluate("() => getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(map(int, re.findall(r"\d+", shade)[:3]))
        context.close()
    assert shades["light"] > 700
    assert shades["dark"] < 120


def test_every_control_has_a_name(page: Any) -> None:
    """What a screen reader would say of each button, box and picture."""
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, svg")].filter(one =>
        !one.closest("label") && !one.textContent.trim() && !one.getAttribute("aria-label")
        ).map(one => one.outerHTML)"""
    )
    assert nameless == []


def test_training_shows_scores_and_cuts_and_stops(page: Any) -> None:
    """A problem of another package, which has no weights yet: the page trains it."""
    page.select_option("#task", "twomeans")
    page.click("#draw")
    page.click("#solve")
    expect(page.locator("#status")).to_contain_text("model must be given", timeout=SOON)
    page.click("#train")
    expect(page.locator("#train")).to_have_text("stop")
    expect(page.locator("#trained")).to_contain_text("score", timeout=SOON)
    expect(page.locator("#panel-learned .value")).to_contain_text("reward", timeout=SOON)
    expect(page.locator("#curve path")).to_have_count(1, timeout=SOON)
    page.click("#train")
    expect(page.locator("#train")).to_have_text("train", timeout=SOON)
    expect(page.locator("#trained")).to_contain_text("stopped")
