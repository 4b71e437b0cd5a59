"""One small trial that has ended, for all tests of its analysis; whoever changes it takes a copy."""

import shutil

import pytest

from kerneltrail.trial.analysis.analysis import analyse
from kerneltrail.trial.analysis.record import read_record
from kerneltrail.trial.folder import MODELS, Folder
from kerneltrail.trial.models import Models

from .study import finished, read


@pytest.fixture(scope="session")
def ended(tmp_path_factory):
    """Its folder."""
    return finished(tmp_path_factory.mktemp("ended") / "walks")


@pytest.fixture
def copied(ended, tmp_path):
    """A copy of the folder that a test may change."""
    shutil.copytree(ended.path, tmp_path / "walks")
    return Folder(tmp_path / "walks")


@pytest.fixture(scope="session")
def state(ended):
    return read(ended)[0]


@pytest.fixture(scope="session")
def record(ended):
    return read_record(*read(ended))


@pytest.fixture(scope="session")
def models(ended):
    return Models(ended.path / MODELS)


@pytest.fixture(scope="session")
def analysis(ended, models):
    return analyse(*read(ended), models)
