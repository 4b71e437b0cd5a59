"""The description of the service: committed, and kept by the service whatever is sent."""

import json
from pathlib import Path

import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from kerneltrail.trial.service import CallLimits, create_app, in_thread, openapi, openapi_text

from ..running import Time, agreed, begun, enrol
from .calls import SCOPES

COMMITTED = Path(__file__).parents[3] / "docs" / "openapi.json"


def test_the_committed_description_is_that_of_the_service():
    assert COMMITTED.read_text(encoding="utf-8") == openapi_text(), (
        "make it anew: kerneltrail trial openapi --out docs/openapi.json"
    )


def test_every_refusal_is_described_as_a_problem():
    described = openapi()
    assert "HTTPValidationError" not in json.dumps(described)
    for operations in described["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"]


def test_the_application_hands_out_the_same_description(call):
    assert call("GET", "/v1/openapi.json", scope=None).json() == openapi()
    for path in ("/docs", "/redoc"):
        assert call("GET", path, scope=None).status_code == 404


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    time = Time()
    trial = begun(tmp_path_factory.mktemp("described") / "ledger.db", time, protocol=agreed(), warm=False)
    enrol(trial, "p01", "p02")
    limits = CallLimits(rate=1e6, burst=10**6, refusals=1e6)
    app = create_app(trial, name="walks", limits=limits, clock=time, interval=0, threads=2)
    with in_thread(app) as address:
        yield schemathesis.openapi.from_url(f"{address}/v1/openapi.json"), trial.create_key([*SCOPES]).token
    trial.close()


OPERATIONS = [(method.upper(), path) for path, each in openapi()["paths"].items() for method in each]
WANTED = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda value: value)
def test_whatever_is_sent_is_answered_as_described(described, method, path, mode):
    schema, token = described
    checks = [CHECKS.get_one(name) for name in WANTED]
    operation = schema[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.headers):
        pytest.skip("there is nothing in it that could be wrong but its path")

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=8)
    def kept(case):
        parameters = case.path_parameters or {}
        if "trial" in parameters:
            parameters["trial"] = "walks"
        if len(str(parameters.get("participant", "x"))) % 2 == 0:  # every other call is about somebody who is there
            parameters["participant"] = "p01"
            parameters.update({name: "walk" for name in parameters if name == "kind"})
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=checks)

    kept()
