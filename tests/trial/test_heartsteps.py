"""A dry run: HeartSteps' decisions replayed through the service, beside the same rows followed without it."""

from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from gp import oracle
from kerneltrail.data import load_heartsteps, paper_split
from kerneltrail.data.assignment import Assignment
from kerneltrail.data.heartsteps import PROBABILITY
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.model_file import fingerprint
from kerneltrail.trajectory.settings import Settings
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.versions import Versions

from .running import BEGIN, Time, begun
from .study import DRAWS

pytest.importorskip("fastapi", reason="needs kerneltrail[trial]")
from .service.calls import PERSON
from .service.conftest import served

TABLE = Path(__file__).parents[3] / "shared" / "data" / "heartsteps_v1" / "heartsteps_v1_paper21.csv"
pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason=f"the rebuilt HeartSteps table is not at {TABLE}")

COVARIATES = ("hour", "log_steps30pre", "temperature")
PEOPLE, BATCHES = 2, 3
EXACT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(scope="module")
def study():
    """A model of a few pilot users, and people of the paper's test users in data units."""
    pilots, others = paper_split(load_heartsteps(TABLE, covariates=COVARIATES))
    settings = Settings(
        evidence="laplace", largest=2, chains=2, sweeps=24, check=8, maps=MapSettings(starts=1, screen=4)
    )
    model = fit(
        pilots.subset(pilots.names[:5]),
        pool=Pool.of("LIN[log_steps30pre]", "SE[hour]", "SE[temperature]"),
        reward=Reward(("log_steps30pre",)),
        settings=settings,
        workers=1,
    )
    assert model.reward.centred
    return model, others.raw[:PEOPLE]


@pytest.fixture
def dry_run(study, tmp_path):
    """The service on the model, its trial, and its clock."""
    model, _ = study
    agreed = Protocol.from_model(
        model,
        trial="walks",
        commitment=DRAWS.commitment,
        decisions={"walk": {}},
        updates={"by_hand": True},
        deadline_ms=60000,
    )
    time = Time()
    trial = begun(tmp_path / "dry.db", time, models={fingerprint(model): model}, protocol=agreed, warm=False)
    with contextmanager(served)(trial, time) as call:
        yield call, trial, time
    trial.close()


def test_the_service_comes_to_what_the_rows_alone_come_to(study, dry_run):
    model, people = study
    call, trial, time = dry_run
    alone = {person.name: model.new_user(person.name) for person in people}
    for person in people:
        assert call("PUT", f"participants/{person.name}", {**PERSON, "ends_on": None}).status_code == 201
    for t in range(1, BATCHES + 1):
        for person in people:
            replayed(call, time, person, t)
            rows = person.batch(t)
            alone[person.name].update(rows.X, rows.y, action=logged(rows))
        updated(call)
        for person in people:
            ahead = person.batch(t + 1).X
            theirs = state_of(trial, person.name).advantage(ahead)
            expected = alone[person.name].advantage(ahead)
            np.testing.assert_allclose(theirs.weights, expected.weights, **EXACT)
            np.testing.assert_allclose(theirs.means, expected.means, **EXACT)
            np.testing.assert_allclose(theirs.variances, expected.variances, **EXACT)
            if t <= 2:  # the naive inverse takes long, and loses digits, with more rows
                compare_with_dense(alone[person.name], theirs, ahead)
    for person in people:  # and what an app is told
        row = person.batch(BATCHES + 1)
        index = person.ends[BATCHES - 1]
        time.now = at(index)
        answer = call.decide(person.name, index, context=context(row.X[0]), decided_at=at(index).isoformat()).json()
        expected = alone[person.name].advantage(row.X[:1])
        assert answer["rung"] == "policy"
        assert answer["advantage"]["mean"] == pytest.approx(expected.mean[0], rel=1e-9, abs=1e-9)
        assert answer["advantage"]["sd"] == pytest.approx(expected.sd[0], rel=1e-9, abs=1e-9)
    assert trial.replay().same


def at(index):
    """Five decision points a day, as in the study."""
    return BEGIN + timedelta(hours=24 * (index // 5) + 3 * (index % 5))


def context(row):
    return dict(zip(COVARIATES, map(float, row), strict=True))


def logged(rows):
    """What was assigned, with the study's probability."""
    n = rows.rows
    return Assignment(np.asarray(rows.action, dtype=float), np.full(n, PROBABILITY), np.ones(n))


def replayed(call, time, person, t):
    """A batch of the table through the service: decisions as they were drawn, and their outcomes."""
    rows, items = person.batch(t), []
    first = person.ends[t - 2] if t > 1 else 0
    for row in range(rows.rows):
        index = first + row
        time.now = at(index)
        drawn = {
            "drawn_by": "app",
            "action": int(rows.action[row]),
            "probability": PROBABILITY,
            "reason": "drawn in the study",
        }
        body = {"decided_at": at(index).isoformat(), "context": context(rows.X[row]), **drawn}
        answer = call("PUT", f"participants/{person.name}/decisions/walk/{index}", body)
        assert answer.status_code == 201, answer.text
        items.append(
            {
                "client_id": str(index),
                "participant": person.name,
                "decision": answer.json()["decision_id"],
                "value": float(rows.y[row]),
                "observed_at": (at(index) + timedelta(minutes=30)).isoformat(),
            }
        )
    stored = call("POST", "outcomes", {"items": items}).json()
    assert stored["stored"] == rows.rows, stored


def updated(call):
    started = call("POST", "updates", {"reason": "a batch of each"}, scope="operator").json()
    path = f"updates/{started['id']}"
    done = call.until(
        lambda: (found := call("GET", path, scope="operator").json())["state"] != "running" and found, 120.0
    )
    assert (done["state"], done["held"]) == ("done", []), done


def state_of(trial, name):
    """A participant as the policy that serves has them."""
    with trial.reading() as state:
        versions = Versions(state)
        return trial._core.user(state.participants[name], versions, versions.active)


def compare_with_dense(user, found, ahead):
    """Mean and variance of the advantage at every node that counts, with all matrices written out."""
    _, posteriors = user._counted(ahead=True)
    reward, scaler = user.model.reward, user._scaler
    points = scaler.transform(ahead)
    for node, (mean, variance) in zip(posteriors, zip(found.means, found.variances, strict=True), strict=True):
        rows, block, hyper = node.rows, node.block, node.fit.hyperparameters
        G = oracle.covariance(rows, hyper.composition, np.array(hyper.unconstrained), block)
        inverse = np.linalg.inv(G)
        cross = block.covariance @ block.features.T
        weights = cross @ inverse @ rows.y
        spread = block.covariance - cross @ inverse @ cross.T
        begin = block.names.index("action")  # then the feature's; those of the probability come after them
        for i, point in enumerate(points):
            phi = [1.0, point[COVARIATES.index(reward.features[0])]]
            full = np.zeros(len(weights))
            full[begin : begin + len(phi)] = phi
            assert mean[i] == pytest.approx(scaler.scale * (full @ weights), rel=1e-9, abs=1e-9)
            assert variance[i] == pytest.approx(scaler.scale**2 * (full @ spread @ full), rel=1e-9, abs=1e-9)
