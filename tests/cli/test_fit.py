"""`kerneltrail fit`: what it says and writes, and what is refused; also of a newcomer's own table."""

import re
from dataclasses import replace

import numpy as np
import pytest

from cli.conftest import QUICK, fit
from cli.invoke import COLUMNS, refused, run
from kerneltrail.cli.fit import chain_lines
from kerneltrail.errors import DataError
from kerneltrail.trajectory.model import load
from trajectory.small import averaged_model


def test_it_says_what_was_read_and_learnt_and_where_it_is(fitted):
    said = (fitted / "said.txt").read_text()
    assert "100 rows read, 100 kept" in said
    assert "y from x" in said  # the only column of numbers without another role
    assert re.search(r"root\n[├└]─ \d/4", said)
    assert "R-hat: log joint" in said
    assert str(fitted / "m.trail") in said


def test_labels_and_names_of_values_are_kept(fitted):
    names = ("--label", "x=the hour", "--label", "y=mood", "--level", "x=0=midnight,12=noon")
    assert fit(fitted, *names, out="named.trail").exit_code == 0
    schema = load(fitted / "named.trail").schema
    assert schema.labels == {"x": "the hour", "y": "mood"}
    assert schema.name_of("x", 12.0) == "noon"
    refused(fit(fitted, "--label", "z=what"), "labels= names 'z', which is not in use")
    for wrong in ("x=noon", "x=a=noon", "x=1=noon,1=night", "x=1="):
        assert "expected NAME=0=morning,1=evening" in " ".join(fit(fitted, "--level", wrong).stderr.split())


def test_options_stand_above_the_file_and_the_file_above_the_preset(fitted):
    settings = load(fitted / "m.trail").settings
    assert (settings.chains, settings.sweeps, settings.seed) == (2, 40, 1)
    assert (settings.largest, settings.maps.screen) == (2, 8)
    assert fit(fitted, "--preset", "published", out="p.trail").exit_code == 0
    published = load(fitted / "p.trail").settings
    assert (published.evidence, published.selection, published.largest) == ("empirical", "greedy", 2)
    assert fit(fitted, "--paths", "constant", "--structure", "averaged", out="c.trail").exit_code == 0
    constant = load(fitted / "c.trail")
    assert (constant.settings.paths, constant.settings.structure) == ("constant", "averaged")
    assert constant.averaged is not None


def test_the_same_seed_gives_the_same_model_also_from_parquet_and_from_a_checkpoint(fitted):
    pytest.importorskip("polars").read_csv(fitted / "pilot.csv").write_parquet(fitted / "pilot.parquet")
    first = load(fitted / "m.trail")
    for more in ((), ("--checkpoint", fitted / "kept"), ("--checkpoint", fitted / "kept")):
        result = fit(fitted, "--seed", 1, "--covariates", "x", *more, data="pilot.parquet", out="again.trail")
        assert result.exit_code == 0, result.output
        again = load(fitted / "again.trail")
        assert again.structures == first.structures
        assert np.array_equal(again.nodes[0].thetas, first.nodes[0].thetas)


def test_the_stages_are_counted_from_reading_to_sampling(fitted, heard):
    assert fit(fitted, out="counted.trail").exit_code == 0
    assert heard.titles == [
        "stage 1 of 4: reading pilot.csv",
        "stage 2 of 4: fitting candidates",
        "stage 3 of 4: sampling paths",
        "stage 4 of 4: learning what users share",
    ]


def test_stopped_with_a_checkpoint_it_says_how_to_go_on(fitted, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("kerneltrail.trajectory.fit.fit", interrupted)
    result = fit(fitted, "--checkpoint", fitted / "half", out="half.trail")
    assert result.exit_code == 130
    assert "100 rows read, 100 kept" in result.stdout  # before the wait, not after it
    assert "half: the same command goes on from there.\nStopped.\n" in result.stderr
    assert fit(fitted, out="half.trail").stderr == "Stopped.\n"  # nothing was kept, nothing is promised


def test_priors_and_scaling_by_default(fitted):
    result = run(
        "fit", fitted / "pilot.csv", *COLUMNS, "--chains", 1, "--sweeps", 20, "--workers", 1,
        "--config", fitted / "quick.yaml", "--target-scaling", "standard", "--out", fitted / "g.trail",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    model = load(fitted / "g.trail")
    assert model.priors.of("period").mean == -1.0  # HeartSteps': covariates are in [0, 1]
    assert model.schema.target_scaling == "standard"
    assert load(fitted / "m.trail").priors.of("period").mean == 1.0


def test_levels_actions_and_missing_values(fitted, tmp_path):
    lines = ["who,day,mood,hour,place,sent,note"]
    rng = np.random.default_rng(0)
    for who in "ab":
        for day in range(12):
            hour = "" if (who, day) == ("a", 3) else f"{rng.uniform(0, 24):.2f}"
            lines.append(f"{who},{day},{rng.normal():.3f},{hour},{rng.choice(['home', 'work'])},{day % 2},text")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    words = (
        "fit", tmp_path / "t.csv", "--user", "who", "--order", "day", "--target", "mood", "--batch-size", 6,
        "--levels", "place=home,work", "--action", "sent", "--chains", 1, "--sweeps", 16, "--workers", 1,
        "--config", tmp_path / "c.yaml", "--out", tmp_path / "m.trail",
    )  # fmt: skip
    (tmp_path / "c.yaml").write_text("settings: {largest: 1, check: 8, maps: {starts: 1, screen: 4}}\nreward: {}")
    refused(run(*words), "column 'hour' of t.csv is missing in row 4 (line 5)")
    result = run(*words, "--missing", "drop")
    assert result.exit_code == 0, result.output
    assert "dropped, hour missing: 1 row (a 1)" in result.stdout
    model = load(tmp_path / "m.trail")
    assert model.covariates == ("hour", "place")
    assert model.reward is not None
    result = run(*words, "--missing", "drop", "--features", "hour")
    assert result.exit_code == 0, result.output
    assert load(tmp_path / "m.trail").reward.features == ("hour",)
    refused(run(*words, "--missing", "drop", "--features", "hours"), "'hours', which is not known; did you mean 'hour'")


@pytest.mark.parametrize("config", ["quick.yaml", "reward.yaml"])
def test_a_reward_model_without_an_action_is_refused_before_anything_is_read(fitted, config):
    (fitted / "reward.yaml").write_text(QUICK + "\nreward: {}")
    more = ("--features", "none") if config == "quick.yaml" else ()
    refused(fit(fitted, *more, data="nowhere.csv", config=config), "--action", "needs the column of the action")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("--user", "usr"), "pilot.csv has no column 'usr'; did you mean 'user'?"),
        (("--target", "why"), "has no column 'why'"),
        (("--covariates", "x,z"), "has no column 'z'"),
        (("--covariates", ","), "name at least one column"),
        (("--batch-size", "5"), "in one way"),
        (("--unit", "x"), "expected NAME=…, got 'x'"),
        (("--unit", "z=hours"), "units= names 'z'"),
        (("--config", "none.yaml"), "there is no file none.yaml"),
        (("--preset", "fast"), "'fast'"),
        (
            ("--preset", "published", "--paths", "constant"),
            "--paths constant does not go with --preset published, which",
        ),
        (
            ("--preset", "published", "--structure", "averaged"),
            "--structure averaged does not go with --preset published",
        ),
        (("--chains", "0"), "--chains"),
    ],
)
def test_bad_input_is_refused_in_words(fitted, tmp_path, changed, said):
    result = fit(fitted, *changed, out=tmp_path / "bad.trail")
    refused(result, said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [(("--user", "usr"), "no column 'usr'; did you mean 'user'?"), (("--action", "sned"), "no column 'sned'")],
)
def test_a_misspelt_column_is_named_before_anything_is_said_of_batches(fitted, changed, said):
    """Without any way to cut batches both are wrong; the misspelling is what people cannot see."""
    words = {"--user": "user", "--order": "order", "--target": "y", changed[0]: changed[1]}
    options = [part for pair in words.items() for part in pair]
    refused(run("fit", fitted / "pilot.csv", *options, "--out", fitted / "bad.trail"), said)
    plain = ["--user", "user", "--order", "order", "--target", "y", "--out", fitted / "bad.trail"]
    refused(run("fit", fitted / "pilot.csv", *plain), "in one way")


def test_outcomes_that_are_an_exact_function_of_the_covariates_are_fitted(fitted, tmp_path):
    """Without any noise sums lose their digits, and the mixed model of what users share had no solution."""
    rng = np.random.default_rng(0)
    rows = [(f"u{user}", row, rng.uniform(0, 10), row % 2) for user in range(4) for row in range(24)]
    lines = [f"{user},{row},{2 + 3 * x + send!r},{x!r},{send}" for user, row, x, send in rows]
    (tmp_path / "exact.csv").write_text("user,order,y,x,send\n" + "\n".join(lines) + "\n")
    roles = ("--user", "user", "--order", "order", "--target", "y", "--covariates", "x", "--action", "send")
    more = ("--features", "x", "--batch-size", 12, "--config", fitted / "quick.yaml", "--workers", 1)
    result = run("fit", tmp_path / "exact.csv", *roles, *more, "--out", tmp_path / "exact.trail")
    assert result.exit_code == 0, result.output
    assert load(tmp_path / "exact.trail").takes_action


def test_a_config_with_an_unknown_key_is_refused_before_the_data_are_read(fitted, tmp_path):
    (tmp_path / "c.yaml").write_text("settings: {chain: 3}")
    refused(
        fit(fitted, data="none.csv", config=tmp_path / "c.yaml"),
        "c.yaml: unknown key 'chain' in settings; did you mean 'chains'?",
    )


def test_a_path_that_cannot_be_written_is_refused_before_fitting(fitted, monkeypatch):
    monkeypatch.setattr("kerneltrail.trajectory.fit.fit", lambda *a, **k: pytest.fail("fitted"))
    refused(fit(fitted, out="m.trail/inside"), "cannot be written")


def test_a_table_without_numbers_left(tmp_path):
    (tmp_path / "t.csv").write_text("user,order,y,batch\na,1,2.0,1\n")
    refused(run("fit", tmp_path / "t.csv", *COLUMNS, "--out", tmp_path / "m"), "no column of numbers left")


def test_chains_that_disagree_are_told(fitted):
    model = load(fitted / "m.trail")
    bad = replace(model, diagnostics=replace(model.diagnostics, rhat={"log_joint": 1.4}))
    assert "do not agree yet" in chain_lines(bad)[-1]


LIGHT = "settings: {largest: 1, chains: 1, sweeps: 16, check: 8, maps: {starts: 1, screen: 4}}\n"


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["user,time,hour,send,log_steps"]
    for who, rows in (("ann", 24), ("bob", 5), ("cleo", 16)):
        for day in range(rows):
            lines.append(f"{who},{day},{rng.uniform(8, 20):.2f},{day % 2},{rng.normal():.3f}")
    (tmp_path / "pilot.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "light.yaml").write_text(LIGHT)
    return tmp_path


def fit_study(study, **changed):
    options = {
        "user": "user", "order": "time", "target": "log_steps", "covariates": "hour", "batch-size": 8,
        "config": study / "light.yaml", "workers": 1, "out": study / "m.trail", **changed,
    }  # fmt: skip
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    return run("fit", study / "pilot.csv", *words)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"user": "usr"}, "no column 'usr'; did you mean 'user'?"),
        ({"covariates": "hours"}, "no column 'hours'; did you mean 'hour'?"),
        ({"target": "log_step"}, "no column 'log_step'; did you mean 'log_steps'?"),
        ({"action": "sent"}, "no column 'sent'; did you mean 'send'?"),
    ],
)
def test_the_nearest_column_is_suggested(study, changed, said):
    result = fit_study(study, **changed)
    assert result.exit_code == 2
    assert said in result.output
    assert not (study / "m.trail").exists()


def test_a_reward_model_without_an_action_column_is_refused(study):
    (study / "reward.yaml").write_text(f"{LIGHT}reward: {{features: [hour]}}\n")
    result = fit_study(study, config=study / "reward.yaml")
    assert result.exit_code == 2
    assert "needs the column of the action" in result.output
    assert "--action" in result.output
    assert fit_study(study, config=study / "reward.yaml", action="send").exit_code == 0


@pytest.fixture
def randomised(study):
    """The study with the probability of each prompt, which is empty where nobody could be prompted."""
    lines = (study / "pilot.csv").read_text().splitlines()
    body = [line.split(",") for line in lines[1:]]
    table = [f"{lines[0]},free,chance"]
    for number, (who, day, hour, send, steps) in enumerate(body):
        free = number % 5 > 0
        table.append(f"{who},{day},{hour},{send if free else 0},{steps},{int(free)},{0.3 if free else ''}")
    (study / "pilot.csv").write_text("\n".join(table) + "\n")
    return study


def test_the_action_s_probability_makes_the_coding_centred(randomised):
    asked = {"action": "send", "availability": "free", "features": "hour"}
    result = fit_study(randomised, probability="chance", **asked)
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stdout.splitlines() if "coding" in line]
    assert "(centred coding), as chance is given" in line
    assert "Typical probability: 0.30. Rows at which nobody could act (9) inform the baseline only." in line
    assert "chance missing where the user was not available, taken as 0: 9 rows" in result.stdout
    model = load(randomised / "m.trail")
    assert (model.schema.probability, model.reward.typical) == ("chance", pytest.approx(0.3))
    result = fit_study(randomised, **asked)
    assert "(plain coding), as no column of its probability is given (--probability)." in result.stdout
    assert load(randomised / "m.trail").reward.typical is None


def test_all_other_columns_of_numbers_do_not_include_the_probability(randomised):
    words = ["--user", "user", "--order", "time", "--target", "log_steps", "--batch-size", 8, "--action", "send"]
    words += ["--availability", "free", "--probability", "chance", "--config", randomised / "light.yaml"]
    result = run("fit", randomised / "pilot.csv", *words, "--workers", 1, "--out", randomised / "m.trail")
    assert result.exit_code == 0, result.output
    assert load(randomised / "m.trail").covariates == ("hour",)
    assert "send is read but not used; a reward model (--features, or" in result.stdout


def test_a_probability_without_an_action_or_that_is_none_is_refused(randomised):
    refused(fit_study(randomised, probability="chance"), "--probability: it is the probability of the action")
    text = (randomised / "pilot.csv").read_text()
    (randomised / "pilot.csv").write_text(text.replace(",0.3", ",1.3", 1))
    asked = {"action": "send", "availability": "free", "features": "hour", "probability": "chance"}
    refused(fit_study(randomised, **asked), "probability 'chance' of pilot.csv must lie in [0, 1], is 1.3 in row 2")
    (randomised / "pilot.csv").write_text(text.replace(",0.3", ",1.0", 2))
    result = fit_study(randomised, **asked)
    assert "suspicious, probability exactly 0 or 1 although the user was available" in result.stdout


def test_users_with_a_single_batch_take_part(study):
    result = fit_study(study)
    assert result.exit_code == 0, result.output
    model = load(study / "m.trail")
    assert [len(path) for path in model.paths] == [3, 1, 2]
    (study / "new.csv").write_text("user,time,hour,send,log_steps\ndora,1,9.5,0,0.3\ndora,2,10.5,1,0.1\n")
    words = ["select", str(study / "m.trail"), str(study / "new.csv"), "--out", str(study / "s.csv")]
    result = run(*words)
    assert result.exit_code == 0, result.output
    rows = (study / "s.csv").read_text().splitlines()
    assert len(rows) == 2
    assert rows[1].startswith("dora,1,2,2,2,")  # batch, time and table row of its last row, rows
    words = ["report", str(study / "m.trail"), "--data", str(study / "new.csv"), "--out", str(study / "r.html")]
    assert run(*words).exit_code == 0


def test_only_users_with_a_single_batch(study):
    result = fit_study(study, **{"batch-size": 40})
    assert result.exit_code == 0, result.output
    assert {len(path) for path in load(study / "m.trail").paths} == {1}


def test_one_user_one_chain_and_one_kernel_are_counted_as_one(study, monkeypatch):
    lines = (study / "pilot.csv").read_text().splitlines()
    (study / "pilot.csv").write_text("\n".join(line for line in lines if line.startswith(("user", "bob"))))
    monkeypatch.setattr("kerneltrail.trajectory.fit.fit", no_fit)
    assert fit_study(study).stdout.startswith("1 user; log_steps from hour\n5 rows read, 5 kept\n")
    model = averaged_model()
    traces = {name: trace[:1] for name, trace in model.diagnostics.traces.items()}
    alone = replace(model.diagnostics, traces=traces, cut={"kernels": 1.0, "share": 0.2})
    said = chain_lines(replace(model, diagnostics=alone))
    assert said[0].startswith(f"1 chain of {alone.sweeps} sweeps; ")
    assert any("1 further kernel was promising" in line and "; it had 20.0% of" in line for line in said)


def no_fit(*_, **__):
    raise DataError("it stops before it fits")


def test_an_average_of_structures_says_what_is_in_it_and_what_is_not():
    (said,) = [line for line in chain_lines(averaged_model()) if "average" in line]
    assert "further kernels in it: LIN[hour]; 1.2% of the pilot users' batches" in said
