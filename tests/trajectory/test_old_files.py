"""Files that version 0.1.0 wrote are read to the same bits, and followed further to the same numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

from kerneltrail.trajectory.model import from_bytes, load
from kerneltrail.trajectory.model_file import to_bytes
from kerneltrail.trajectory.new_user import NewUser
from support.identical import difference

FIXTURES = Path(__file__).parents[1] / "fixtures"
THEN = json.loads((FIXTURES / "user-0.1.0.json").read_text())
"""What version 0.1.0 said: of the model, and of the user after one more batch."""


@pytest.fixture
def model():
    return load(FIXTURES / "model-0.1.0.trail")


@pytest.fixture
def user(model):
    return model.load_user(FIXTURES / "user-0.1.0.user")


def test_the_model_is_what_it_was_to_the_bit(model):
    assert [node.composition.text for node in model.nodes] == THEN["nodes"]
    assert [list(path) for path in model.paths] == THEN["paths"]
    assert [[[value.hex() for value in row] for row in node.thetas.tolist()] for node in model.nodes] == THEN["thetas"]
    assert difference(from_bytes(to_bytes(model)), model) is None


@pytest.mark.filterwarnings("ignore:.*far outside those of the pilot users")
def test_the_user_goes_on_to_the_same_numbers(user):
    """To rounding: sums depend on the machine in their last bits."""
    step = user.update(THEN["batch"]["X"], THEN["batch"]["y"], action=THEN["batch"]["action"])
    # Version 0.1.0 averaged predictions by the probabilities after the batch, as if nobody moved before the next.
    vars(user.model)["transitions"] = np.vstack([user.model.transitions[:1], np.eye(len(user.model.nodes))])
    said = user.predict(THEN["ask"]["X"], action=THEN["ask"]["action"])
    assert (user.name, user.batches, user.rows) == ("ann", THEN["batches"], THEN["rows"])
    assert step.composition.text == THEN["composition"]
    close = {"rel": 1e-9, "abs": 1e-12}
    for name in ("log_evidence", "probabilities"):
        found = {kernel.text: value for kernel, value in getattr(step, name).items()}
        assert found == pytest.approx(THEN[name], **close)
    for name in ("mean", "variance", "noise"):
        assert np.asarray(getattr(said, name)) == pytest.approx(np.array(THEN[name]), **close)


def test_written_again_it_is_the_same_user(model, user):
    assert difference(NewUser.from_bytes(user.to_bytes(), model), user) is None
