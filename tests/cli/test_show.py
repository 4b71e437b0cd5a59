"""`kerneltrail show`: a model for people, and as JSON."""

import json
import math
from dataclasses import replace

import pytest

from cli.invoke import refused, run
from kerneltrail.report.explanation import explain
from kerneltrail.trajectory.model import save
from trajectory.lines import after, lines, person
from trajectory.small import small_model


def test_graph_users_alternatives_and_words_in_data_units(tmp_path):
    save(small_model(), tmp_path / "m.trail")
    result = run("show", tmp_path / "m.trail", "--kernels")
    assert result.exit_code == 0, result.output
    for words in (
        "mood from hour, steps; 3 pilot users",
        "root\n└─ 3/3 SE[hour]\n",
        "pilot 2  SE[hour] ×1 → LIN[steps] + PER[hour]*SE[steps] ×2",
        "1. log joint 0.75 below the chosen graph; 3 nodes, 4 edges; sampled once",
        "This is what the kernel allows, in general, of any user.",
        "similar hour, within about",
        "2 chains of 6 sweeps",
    ):
        assert words in result.stdout
    # A lengthscale of the scaled hour, in hours: the range is nearly a day.
    said = float(result.stdout.split("within about ")[1].split(" hours")[0])
    model = small_model()
    assert said == pytest.approx(math.exp(model.nodes[0].group.mean[1]) * model.scaler.length("hour", 1.0), rel=0.01)


def test_one_of_a_kind_is_counted_as_one(tmp_path):
    model = small_model()
    alone = replace(model.structures[1], nodes=1, edges=1)
    save(replace(model, structures=(model.structures[0], alone, *model.structures[2:])), tmp_path / "m.trail")
    assert (
        "1. log joint 0.75 below the chosen graph; 1 node, 1 edge; sampled once"
        in run("show", tmp_path / "m.trail").stdout
    )


def test_what_was_found_of_the_pilot_users_comes_first(tmp_path):
    save(lines(), tmp_path / "m.trail")
    told = run("show", tmp_path / "m.trail").stdout
    assert told.index("As x goes from 2") < told.index("Graph\n")
    assert "y rises for 3 of 4 pilot users (by" in told
    assert "typically" not in told
    save(small_model(), tmp_path / "m.trail")  # as of a version that kept no effects
    assert "This file keeps nothing of it" in run("show", tmp_path / "m.trail").stdout


def test_a_saved_user_in_words(tmp_path):
    model, file = lines(), tmp_path / "ann.user"
    save(model, tmp_path / "m.trail")
    user = after(model, person("ann", 0.8, seed=7))
    user.save(file)
    result = run("show", tmp_path / "m.trail", "--user", file)
    assert result.exit_code == 0, result.output
    lead, *sentences = (sentence.text for sentence in explain(user))
    assert result.stdout.splitlines() == [lead, *(f"• {text}" for text in sentences)]
    refused(run("show", tmp_path / "m.trail", "--user", tmp_path / "m.trail"), "holds a trajectory model, not")
    refused(run("show", tmp_path / "m.trail", "--user", tmp_path / "bob.user"), "there is no file")
    both = run("show", tmp_path / "m.trail", "--user", file, "--dot")
    assert "give one of them" in both.stderr


def test_dot_is_the_graph_alone(tmp_path):
    save(small_model(), tmp_path / "m.trail")
    result = run("show", tmp_path / "m.trail", "--dot")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("digraph kernels {\n")
    assert 'n0 -> n1 [label="3/3"' in result.stdout
    both = run("show", tmp_path / "m.trail", "--dot", "--json")
    assert both.exit_code == 2
    assert "give one of them" in both.stderr


def test_json_is_strict_and_holds_everything(tmp_path):
    save(small_model(allow_empty=True), tmp_path / "m.trail")
    result = run("show", tmp_path / "m.trail", "--json")
    told = json.loads(result.stdout, parse_constant=pytest.fail)
    assert told["edges"][0] == {"parent": None, "child": "SE[hour]", "count": 3, "total": 3}
    assert told["users"]["pilot 0"] == ["SE[hour]", *["LIN[steps] + SE[hour]"] * 2]
    assert told["nodes"][0]["users"] == ["pilot 0", "pilot 1", "pilot 2"]
    assert set(told["nodes"][0]["hyperparameters"]) == {"SE[hour].amplitude", "SE[hour].lengthscale", "noise"}
    assert told["diagnostics"]["rhat"] == {"log_joint": 1.01, "edges": None}
    assert len(told["structures"]) == 2
    assert told["pilot_effects"] == told["words"] == []


def test_noise_alone_and_models_without_alternatives(tmp_path):
    model = small_model(allow_empty=True)
    save(replace(model, structures=model.structures[1:]), tmp_path / "m.trail")
    said = run("show", tmp_path / "m.trail").stdout
    assert "1/3 (noise alone)" in said
    assert "none: every sample of the chains' later half has this graph" in said


def test_an_alternative_may_be_more_probable_than_the_simplest(tmp_path):
    model = small_model()
    save(replace(model, structures=model.structures[::-1]), tmp_path / "m.trail")
    assert "1. log joint 0.75 above the chosen graph" in run("show", tmp_path / "m.trail").stdout


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "m.trail"
    refused(run("show", path), "there is no file")
    save(small_model(), path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    refused(run("show", path), "m.trail is cut short")
    path.write_bytes(data.replace(b'\\"schema\\": 1', b'\\"schema\\": 7'))
    refused(run("show", path), "schema version 7", "reads schema version 1")
    path.write_text("a,b\n")
    refused(run("show", path), "not a file that kerneltrail wrote")
