"""A small trial after six days: who answers, is silent, paused, removed, or never began, and whose name is a script."""

from datetime import timedelta
from html import unescape
from re import findall

from ..running import BEGIN, Time, agreed, asked, begun, enrol, outcome

NASTY = "<script>alert(1)</script>"
LONG = "a-name-that-has-no-end-" * 6
DAYS = 6


def lived(location):
    """The trial and its clock, at the end of the sixth day."""
    time = Time()
    trial = begun(location, time, protocol=agreed(), warm=False)
    enrol(trial, "p01", "p02", "p03", "p04", NASTY, LONG)
    for index in range(2 * DAYS):
        time.now = BEGIN + timedelta(hours=12 * index)
        if index == 6:
            trial.update(reason="three days are over", by="test")
        for person in ("p01", "p02", "p03", "p04", NASTY):
            if (person == "p02" and index > 4) or (person == "p04" and index > 7):
                continue
            _decide(trial, person, index, time)
    trial.event("p04", "pause", at=BEGIN + timedelta(days=4), reason="on holiday & <away>")
    trial.remove("p03", reason="asked by letter")
    time.go(hours=4)
    trial.update(reason="six days are over", by="test")
    trial.watch()
    return trial, time


def _decide(trial, person, index, time):
    hour = float(8 + (5 * index) % 12)
    available = index % 5 != 4
    answer = trial.decide(
        asked(person, index, hour=hour, steps=40.0 * index, at=time.now, available=available,
              reasons=() if available else ("driving",))
    )  # fmt: skip
    if answer.value["action"]:
        lost = index == 7
        status, action = ("not_delivered", 0) if lost else ("delivered", 1)
        trial.deliver(answer.value["decision_id"], status=status, at=time.now, delivered_action=action)
    if index != 3:
        value = 1.0 + 0.1 * index + 0.8 * answer.value["action"]
        trial.outcomes([outcome(answer, value, name=f"o{index}", observed_at=time.now.isoformat())])


class Visitor:
    """Somebody at the desk, without a browser: follows redirects, keeps cookies, fills in forms."""

    def __init__(self, client, trial):
        self.client, self.trial = client, trial
        client.cookies.clear()

    def key(self, *scopes, **options):
        return self.trial.create_key(scopes, note="test", **options)

    def log_in(self, *scopes, token=None, goal=None, **headers):
        """The answer to the log-in form with a key of these scopes, not followed."""
        page = self.get("/desk/login" + (f"?next={goal}" if goal else ""))
        fields = {"token": token_of(page.text), "key": token or self.key(*scopes).token, "next": goal or "/desk"}
        return self.client.post("/desk/login", data=fields, headers=headers, follow_redirects=False)

    def get(self, path, **options):
        return self.client.get(path, **{"follow_redirects": False, **options})

    def send(self, path, page=None, **fields):
        """Send a form as the page that holds it does."""
        shown = self.get(page or path)
        data = {"token": token_of(shown.text), **fields}
        return self.client.post(path, data=data, follow_redirects=False)


def token_of(html):
    """The token of the page's last form."""
    return unescape(findall(r'name="token" value="([^"]*)"', html)[-1])
