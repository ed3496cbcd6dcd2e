"""Reports in headless Chromium: rendered, quiet, alone, readable on a phone, accessible.

Needs selenium, a Chromium with its driver (Debian: chromium and chromium-driver, or
TACIT_BROWSER and TACIT_DRIVER), and, for two tests, axe-core: TACIT_AXE with the path of
axe.min.js, or npm (TACIT_NPM), with which it is installed for the run. Skipped, with the reason,
where absent.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.additive import AdditiveClassifier
from tacit.descriptive import Description
from tacit.ledger import Ledger
from tacit.privacy import Budget, Gaussian, Guarantee, PureEpsilon
from tacit.report import (
    AccuracyPicture,
    AccuracyPoint,
    ReportFacts,
    facts_of,
    write_description,
    write_ledger,
    write_report,
)
from tacit.report.facts import Coefficient, Coefficients, PlannedMechanism, PublicFact
from tacit.schema import Category, ClassTarget, Number, Schema
from tests.additive.test_estimators import made
from tests.additive.test_estimators import table as columns
from tests.report.helpers import facts, picture, table_model

DESKTOP, PHONE = 900, 360
LONG = "w" * 500
AXE = "axe-core@4.14.0"


def _program(variable: str, *names: str) -> str:
    found = os.environ.get(variable) or next(filter(None, map(shutil.which, names)), None)
    if not found:
        pytest.skip(f"none of {', '.join(names)} is installed, and {variable} is not set")
    return found


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    if "TACIT_AXE" in os.environ:
        return Path(os.environ["TACIT_AXE"]).read_text(encoding="utf-8")
    npm, folder = _program("TACIT_NPM", "npm"), tmp_path_factory.mktemp("axe")
    quiet = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
    try:
        subprocess.run([npm, "install", *quiet, AXE], check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as why:
        pytest.skip(f"npm cannot install {AXE}: {why}")
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    binary = _program("TACIT_BROWSER", "chromium", "chromium-browser", "google-chrome")
    driver = _program("TACIT_DRIVER", "chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--no-first-run"):
        options.add_argument(argument)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses its sandbox to root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    try:
        found = webdriver.Chrome(options=options, service=service)
    except Exception as why:
        pytest.skip(f"{binary} does not start: {str(why).splitlines()[0]}")
    yield found
    with contextlib.suppress(OSError):
        found.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    found = {
        "everything": facts(),
        "table": facts_of(table_model(unconfirmed=("age",)), accuracy=picture()),
        "void": facts_of(table_model(random_state=1)),
        "long": long_facts(),
        "additive": facts_of(made("two").fit(columns(8_000))),
        "long additive": long_terms(),
    }
    for name, content in found.items():
        write_report(folder / f"{name}.html", content)
    for name in ("ledger", "long ledger"):
        write_ledger(folder / f"{name}.html", ledger(folder / name, LONG if "long" in name else ""))
    for name in ("description", "long description"):
        described = description(LONG if "long" in name else "ward")
        write_description(folder / f"{name}.html", described, title="Patients")
    return {name: folder / f"{name}.html" for name in PAGES}


def description(name: str) -> Description:
    """Return a description by groups; ``name`` is that of a column and of one of its levels."""
    schema = Schema((Number("age", 0, 100), Category(name, (name, "b", "c"))))
    table = {"age": [float(i % 100) for i in range(3000)], name: [name, "b", "c"] * 1000}
    return tacit.describe(table, schema, epsilon=2.0, by=name)


def ledger(path: Path, text: str) -> Ledger:
    """Return a ledger with a history; ``text`` is in every place that takes one."""
    made = Ledger.create(path, Budget(3.0, 1e-6), label=text or "Survey", purpose=text)
    name = text[:200]
    made.add_analyst(name or "ann", 2.0)
    for part in ("2025", name or "2026"):
        made.add_partition(part)
    mine = made.bound(analyst=name or "ann", label=text, purpose=text, who=text)
    mine = mine.bound(release=text or "model", table=text or "people.csv")
    for multiplier in (12.0, 9.0, 30.0):
        paid = mine.charge(Gaussian(multiplier))
        made.add_file(paid.booking, "ab" * 32, text or "m.tacit")
        mine.bound(partition="2025").charge(PureEpsilon(0.1))
    return made


def long_terms() -> ReportFacts:
    """Return an additive model whose columns, words and classes have no place to break."""
    words = (f"a{LONG}"[:200], f"b{LONG}"[:200])
    schema = Schema((Category(LONG[:200], words), Number("age", 0, 100)), ClassTarget("y", words))
    drawn = [words[i % 3 == 0] for i in range(6000)]
    table = {LONG[:200]: drawn, "age": [float(i % 100) for i in range(6000)], "y": drawn}
    return facts_of(AdditiveClassifier(schema, 2.0, 1e-6).fit(table))


def long_facts() -> ReportFacts:
    """Return facts in which no text has a place to break."""
    schema = Schema(
        (Number(LONG, 0, 1), Category("x", (LONG, "b"))),
        ClassTarget("y", (LONG, "z")),
        unconfirmed=(LONG,),
    )
    points = tuple(AccuracyPoint(LONG + name, 1.0, 0.5, 0.1) for name in "abcdef")
    return ReportFacts(
        title=LONG,
        privacy=Guarantee(Gaussian(4.0), 1e-6, (LONG,), (LONG,)),
        schema=schema,
        public=(PublicFact(LONG, LONG, LONG),),
        mechanisms=(
            PlannedMechanism(LONG, 1e-5, LONG, True, ((LONG, 1e-5),)),
            PlannedMechanism(LONG, None, LONG),
        ),
        about_mechanisms=LONG,
        coefficients=Coefficients(
            tuple(Coefficient(LONG, float(i), 3.0, LONG) for i in range(20)), LONG, LONG
        ),
        accuracy=AccuracyPicture(points, LONG, LONG, 0.1, 0.9),
        made_by=LONG,
        made_on=LONG,
    )


PAGES = ["everything", "table", "void", "long", "ledger", "long ledger"]
PAGES += ["description", "long description", "additive", "long additive"]


def show(browser: Any, page: Path, width: int = DESKTOP, dark: bool = False) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    logs(browser)
    browser.get(page.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")


def logs(browser: Any) -> tuple[list[str], list[str]]:
    """Return what the console said and which addresses were asked for, since the last time."""
    console = [entry["message"] for entry in browser.get_log("browser")]
    asked = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    return console, asked


def value(browser: Any, script: str) -> Any:
    return browser.execute_script(f"return {script}")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_and_alone(browser: Any, pages: dict[str, Path], name: str) -> None:
    show(browser, pages[name])
    assert value(browser, "document.readyState") == "complete"
    assert value(browser, "document.querySelector('h1').getBoundingClientRect().height") > 0
    console, asked = logs(browser)
    assert console == []
    assert [url for url in asked if not url.startswith("data:")] == [pages[name].as_uri()]


def test_noise_and_requests_would_be_noticed(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text('<p>bad<img src="http://127.0.0.1:9/x.png"><script>nothing()</script>')
    show(browser, page)
    console: list[Any] = []
    asked: list[Any] = []
    for _ in range(50):  # the browser's logs come when they come
        more = logs(browser)
        console, asked = console + more[0], asked + more[1]
        if console and "http://127.0.0.1:9/x.png" in asked:
            break
        time.sleep(0.1)
    assert any("nothing is not defined" in line for line in console)
    assert "http://127.0.0.1:9/x.png" in asked


def test_the_policy_stops_what_should_get_in(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    write_report(page, facts())
    text = page.read_text(encoding="utf-8")
    bad = '<img src="http://127.0.0.1:9/x.png"><script>document.title = "mine"</script></body>'
    page.write_text(text.replace("</body>", bad), encoding="utf-8")
    show(browser, page)
    assert browser.title != "mine"
    assert len(logs(browser)[0]) == 2  # both refused, and said so


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [PHONE, 600, DESKTOP])
def test_nothing_scrolls_sideways(
    browser: Any, pages: dict[str, Path], name: str, width: int
) -> None:
    show(browser, pages[name], width)
    assert value(browser, "window.innerWidth") == width
    assert value(browser, "document.documentElement.scrollWidth") <= width
    beyond = value(
        browser,
        "[...document.querySelectorAll('main *:not(thead *, thead)')]"
        ".filter(e => e.getBoundingClientRect().right > window.innerWidth + 1)"
        ".map(e => e.outerHTML.slice(0, 80))",
    )
    assert beyond == []


def test_each_width_has_its_own_chart_and_letters_large_enough(
    browser: Any, pages: dict[str, Path]
) -> None:
    for width, shown in ((PHONE, "narrow"), (DESKTOP, "wide")):
        show(browser, pages["everything"], width)
        charts = value(
            browser,
            "[...document.querySelectorAll('svg.chart')]"
            ".filter(s => s.getBoundingClientRect().width > 0).map(s => s.classList[1])",
        )
        assert charts == [shown, shown]
        least = value(
            browser,
            "Math.min(...[...document.querySelectorAll('svg.chart text')]"
            ".map(t => t.getBoundingClientRect().height).filter(h => h > 0))",
        )
        assert least >= 11
        outside = value(
            browser,
            "[...document.querySelectorAll('svg.chart text')].filter(t => {"
            "const a = t.getBoundingClientRect(), b = t.closest('svg').getBoundingClientRect();"
            "return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 3;"
            "}).map(t => t.textContent)",
        )
        assert outside == []


def test_a_meter_is_as_full_as_the_budget_is_spent(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["ledger"])
    share = value(
        browser,
        "document.querySelector('.meter span').getBoundingClientRect().width"
        " / document.querySelector('.meter').clientWidth",
    )
    said = value(browser, "document.querySelector('.meter').getAttribute('aria-label')")
    assert 0.05 < share < 0.5
    assert float(said.split()[0]) == pytest.approx(share * 100, abs=0.2)
    assert value(browser, "document.querySelectorAll('#entries ~ .table tbody tr').length") == 10
    assert value(browser, "document.querySelectorAll('svg.chart').length") == 2


def test_light_and_dark(browser: Any, pages: dict[str, Path]) -> None:
    grounds = []
    for dark in (False, True):
        show(browser, pages["everything"], dark=dark)
        ground = value(browser, "getComputedStyle(document.body).backgroundColor")
        grounds.append([int(part) for part in ground.removeprefix("rgb(").rstrip(")").split(",")])
    light, dark_ground = grounds
    assert min(light) > 240
    assert max(dark_ground) < 60


def test_a_fold_opens_by_hand_and_is_printed_open(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["long"])
    height = "document.documentElement.scrollHeight"
    opened = value(browser, height)
    browser.execute_script("document.querySelector('details').open = false")
    closed = value(browser, height)
    assert closed < opened
    browser.execute_script("document.querySelector('summary').focus()")
    assert value(browser, "document.activeElement.tagName") == "SUMMARY"
    browser.execute_script("document.activeElement.click()")
    assert value(browser, height) == opened
    browser.execute_script("document.querySelector('details').open = false")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = value(browser, "document.querySelector('details table').checkVisibility()")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown


def test_paper_is_white_on_a_dark_screen_too(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["everything"], dark=True)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        white = value(browser, "getComputedStyle(document.body).backgroundColor")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert white == "rgb(255, 255, 255)"
    assert len(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False)])
def test_axe_finds_nothing_serious(
    browser: Any, axe: str, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    show(browser, pages[name], width, dark)
    browser.execute_script(axe)
    report = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run().then(r => done({passes: r.passes.length, found: r.violations.map("
        "v => [v.id, v.impact, v.nodes[0].html.slice(0, 120)])}))"
        ".catch(e => done({passes: 0, found: [[String(e), 'critical', '']]}))"
    )
    assert report["passes"] > 10
    assert [v for v in report["found"] if v[1] in ("serious", "critical")] == []


def test_axe_would_notice(browser: Any, axe: str, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text('<html><body><p style="color:#ccc;background:#fff">faint</p></body></html>')
    show(browser, page)
    browser.execute_script(axe)
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run().then(r => done(r.violations.map(v => v.id)))"
    )
    assert {"color-contrast", "html-has-lang"} <= set(found)
