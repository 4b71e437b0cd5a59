"""The desk in a real browser: log in, read every page on a desk and on a telephone, acknowledge, roll back."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from kerneltrail.trial.service import create_app, in_thread
from report.browser import Browser, needed

from .conftest import LIMITS
from .living import LONG, lived

PAGES = (
    "",
    "/participants",
    "/participants/p01",
    f"/participants/{LONG}",
    "/cohort",
    "/policies",
    "/incidents",
    "/data",
)
WIDTHS = (1280, 390)
AXE = Path(find_spec("axe_core_python").origin).with_name("axe.min.js")
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
VIOLATIONS = """axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
  .filter(each => ["serious", "critical"].includes(each.impact))
  .map(each => `${each.id}: ${each.help} (${each.nodes.slice(0, 3).map(node => node.html).join(" ")})`))"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a desk, its trial, and its clock."""
    needed()
    trial, time = lived(tmp_path_factory.mktemp("browser") / "desk.db")
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with in_thread(app) as address:
        yield address, trial
    trial.close()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    needed()
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def logged_in(browser, served, *scopes):
    address, trial = served
    browser.forget()
    browser.size(1280)
    browser.go(f"{address}/")
    browser.type("#key", trial.create_key(scopes, note="browser").token)
    browser.follow("button.main")
    assert browser.run("location.pathname") == "/desk"
    return browser, address, trial


@pytest.fixture
def team(chromium, served):
    return logged_in(chromium, served, "operator", "analyst", "monitor")


def accessible(browser):
    """What axe-core finds serious or critical on the page, folded parts unfolded."""
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    browser.run(AXE.read_text(encoding="utf-8") + "\n;0")
    return browser.run(VIOLATIONS)


def test_the_log_in_page_is_sound_and_its_cookie_is_not_for_scripts(chromium, served):
    address, _ = served
    chromium.forget()
    for width in WIDTHS:
        chromium.size(width)
        chromium.go(f"{address}/")
        assert chromium.run("location.pathname") == "/desk/login"
        assert chromium.problems(address) == []
        assert chromium.run(OVERFLOW) == 0
    assert accessible(chromium) == []
    chromium.run("document.querySelector('label').remove()")
    assert any(found.startswith("label:") for found in accessible(chromium))  # it does find what is amiss
    chromium.type("#key", "kt_00000000_wrong")
    chromium.follow("button.main")
    assert "opens nothing" in chromium.run("document.querySelector('[role=alert]').innerText")
    logged_in(chromium, served, "monitor")
    cookie = chromium.cookies()["kerneltrail_desk"]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/desk")
    assert chromium.run("document.cookie") == ""
    chromium.follow(".out button")
    assert chromium.run("location.pathname") == "/desk/login"
    chromium.go(f"{address}/desk")
    assert chromium.run("location.pathname") == "/desk/login"


def test_every_page_is_sound_at_both_widths(team):
    browser, address, _ = team
    for path in PAGES:
        for width in WIDTHS:
            browser.size(width)
            browser.go(f"{address}/desk{path}")
            assert browser.status() == 200
            assert browser.problems(address) == []
            assert browser.run(OVERFLOW) == 0, (path, width)
            broken = "[...document.images].filter(each => !each.complete || !each.naturalWidth).length"
            assert browser.run(broken) == 0, (path, width)
            assert browser.run("document.querySelectorAll('h1').length") == 1
            assert accessible(browser) == [], (path, width)
            assert browser.run(OVERFLOW) == 0, (path, width)  # with all parts unfolded
    # The style of the page applies, and that of a figure inside it: no policy of ours forbids either.
    browser.size(1280)
    browser.go(f"{address}/desk")
    assert browser.run("getComputedStyle(document.querySelector('.light')).display") == "flex"


def test_headings_of_participants_are_not_broken_inside_words(team):
    browser, address, _ = team
    browser.size(1280)
    browser.go(f"{address}/desk/participants")
    broken = """[...document.querySelectorAll('.people thead a')].flatMap(link => {
        const node = link.firstChild, found = [...node.data.matchAll(/[^ ]+/g)];
        return found.filter(word => {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            return range.getClientRects().length !== 1;
        }).map(word => word[0]);
    }).join()"""
    assert browser.run(broken) == ""
    browser.run("document.querySelector('.people thead').style.cssText = 'word-break: break-all; line-break: anywhere'")
    browser.run("document.querySelectorAll('.people thead th').forEach(each => { each.style.maxWidth = '2rem'; }); 0")
    assert browser.run(broken) != ""  # it does find them
    sides = "[...document.querySelectorAll('.people tbody tr:first-child td')].map(e => getComputedStyle(e).textAlign)"
    assert browser.run(f"{sides}.join()").split(",")[:3] == ["left", "left", "right"]


def test_the_pages_need_no_script_and_print_without_forms(team):
    browser, address, _ = team
    browser.go(f"{address}/desk", scripts=False)
    assert "p02" in browser.run("document.querySelector('#calls').parentElement.innerText")
    browser.media("print")
    browser.go(f"{address}/desk/policies")
    assert browser.run("getComputedStyle(document.querySelector('main form')).display") == "none"
    browser.media()


def test_the_keyboard_finds_the_content_first(team):
    browser, address, _ = team
    browser.go(f"{address}/desk")
    browser.press("Tab")
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    assert browser.run("document.activeElement.id") == "main"


def test_a_coordinator_finds_who_needs_a_call_and_acknowledges_the_incident(team):
    browser, _, trial = team
    browser.follow("#calls ~ .wide tbody tr:nth-child(2) a")
    assert "Needs a call: today" in browser.run("document.querySelector('main').innerText")
    browser.follow("nav a[href='/desk/incidents']")
    before = sum(each.is_open for each in trial.incidents())
    browser.click("li.open summary")
    browser.type("li.open input[name=by]", "Ann")
    browser.type("li.open input[name=note]", "called p02")
    browser.follow("li.open form button")
    assert "The incident was acknowledged." in browser.run("document.querySelector('[role=status]').innerText")
    assert sum(each.is_open for each in trial.incidents()) == before - 1


def test_the_page_of_today_looks_again_by_itself(team):
    browser, address, trial = team
    browser.before("window.setInterval = (look) => { window.look = look; }")
    browser.go(f"{address}/desk")
    browser.run("window.mark = 1")
    trial.incident("conflict", "something new came up", key="fresh")
    assert "something new" not in browser.run("document.body.innerText")
    browser.run("look()")
    assert "something new came up" in browser.run("document.body.innerText")
    assert browser.run("window.mark") == 1  # it is the same page
    # Whoever is reading with the keyboard is not thrown out of what they read.
    browser.run("document.querySelector('#live a').focus()")
    trial.incident("conflict", "another thing came up", key="fresher")
    browser.run("look()")
    assert "another thing" not in browser.run("document.body.innerText")
    assert browser.problems(address) == []


def test_a_policy_is_rolled_back(team):
    browser, address, trial = team
    browser.go(f"{address}/desk/policies")
    browser.type("#reason", "too many messages")
    browser.type("#by", "Ann")
    browser.run("document.querySelector('#version').value = '2'")
    browser.follow("form[action='/desk/policies'] button")
    assert "Policy 2 serves now" in browser.run("document.querySelector('.serving h3').innerText")
    assert [each.version for each in trial.policies() if each.active] == ["2"]
    trial.activate("3", reason="as before")


def test_outcomes_by_action_are_refused_to_a_key_that_is_blinded(team, served):
    browser, address, trial = team
    browser.go(f"{address}/desk/cohort")
    assert browser.run("document.querySelector('.look')") is None
    looks = len(trial.snapshot().looks)
    # Somebody who knows the address sends the form all the same.
    browser.run(
        """(token => { const form = document.createElement("form"); form.method = "post"; form.action = "/desk/cohort";
        for (const [name, value] of [["token", token], ["reason", "curious"]]) {
          const field = document.createElement("input"); field.name = name; field.value = value; form.append(field); }
        form.id = "forged"; const button = document.createElement("button"); button.textContent = "go";
        form.append(button); document.querySelector("main").prepend(form); })(
        document.querySelector("[name=token]").value)"""
    )
    browser.follow("#forged button")
    assert browser.status() == 403
    assert "unblinded" in browser.run("document.querySelector('main').innerText")
    assert len(trial.snapshot().looks) == looks
    logged_in(browser, served, "monitor", "unblinded")
    browser.go(f"{address}/desk/cohort")
    browser.type("#reason", "meeting of the board")
    browser.follow(".look button")
    assert "Student's t over participants" in browser.run("document.querySelector('main').innerText")
    assert accessible(browser) == []
    assert len(trial.snapshot().looks) == looks + 1
