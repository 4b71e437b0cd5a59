import csv
import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from kerneltrail.cli.app import app
from kerneltrail.cli.terminal import _standing, fit_bar, user_bar
from kerneltrail.data import Cohort, simulate
from kerneltrail.trajectory.model import load, save
from kerneltrail.trajectory.sampler.chains import FitProgress
from trajectory.small import rewarded_model, rows, small_model

QUICK = "settings: {largest: 2, check: 10, maps: {starts: 1, screen: 8}}"
COLUMNS = ("--user", "user", "--order", "order", "--target", "y", "--batch-column", "batch")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(result, *said):
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    text = " ".join(result.stderr.split())
    for words in said:
        assert words in text


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of simulated users, a quick configuration, and a model fitted by the command line."""
    folder = tmp_path_factory.mktemp("commands")
    simulated = simulate.paper(4, 3, seed=0, batches=(5, 10, 10))
    simulated.train.write_csv(folder / "pilot.csv")
    simulated.test.write_csv(folder / "new.csv")
    (folder / "quick.yaml").write_text(QUICK)
    result = fit(folder, "--unit", "x=hours", "--seed", 1)
    assert result.exit_code == 0, result.output
    (folder / "said.txt").write_text(result.stdout)
    assert result.stderr == ""  # no progress bar where nobody watches
    return folder


def fit(folder, *more, data="pilot.csv", out="m.trail", config="quick.yaml"):
    return run(
        "fit", folder / data, *COLUMNS, "--scaling", "none", "--chains", 2, "--sweeps", 40, "--workers", 1,
        "--config", folder / config, "--out", folder / out, *more,
    )  # fmt: skip


class TestFit:
    def test_it_says_what_was_read_and_learnt_and_where_it_is(self, folder):
        said = (folder / "said.txt").read_text()
        assert "100 rows read, 100 kept" in said
        assert "y from x" in said  # the only column of numbers without another role
        assert "root\n├─ 2/4" in said
        assert "R-hat: log joint" in said
        assert str(folder / "m.trail") in said

    def test_options_stand_above_the_file_and_the_file_above_the_preset(self, folder):
        settings = load(folder / "m.trail").settings
        assert (settings.chains, settings.sweeps, settings.seed) == (2, 40, 1)
        assert (settings.largest, settings.maps.screen) == (2, 8)
        assert fit(folder, "--preset", "published", out="p.trail").exit_code == 0
        published = load(folder / "p.trail").settings
        assert (published.evidence, published.selection, published.largest) == ("empirical", "greedy", 2)

    def test_the_same_seed_gives_the_same_model_also_from_parquet_and_from_a_checkpoint(self, folder):
        pytest.importorskip("polars").read_csv(folder / "pilot.csv").write_parquet(folder / "pilot.parquet")
        first = load(folder / "m.trail")
        for more in ((), ("--checkpoint", folder / "kept"), ("--checkpoint", folder / "kept")):
            result = fit(folder, "--seed", 1, "--covariates", "x", *more, data="pilot.parquet", out="again.trail")
            assert result.exit_code == 0, result.output
            again = load(folder / "again.trail")
            assert again.structures == first.structures
            assert np.array_equal(again.nodes[0].thetas, first.nodes[0].thetas)

    def test_stopped_with_a_checkpoint_it_says_how_to_go_on(self, folder, monkeypatch):
        def interrupted(*arguments, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr("kerneltrail.trajectory.fit.fit", interrupted)
        result = fit(folder, "--checkpoint", folder / "half", out="half.trail")
        assert result.exit_code == 130
        assert "100 rows read, 100 kept" in result.stdout  # before the wait, not after it
        assert "half: the same command goes on from there.\nStopped.\n" in result.stderr
        assert fit(folder, out="half.trail").stderr == "Stopped.\n"  # nothing was kept, nothing is promised

    def test_priors_and_scaling_by_default(self, folder):
        result = run(
            "fit", folder / "pilot.csv", *COLUMNS, "--chains", 1, "--sweeps", 20, "--workers", 1,
            "--config", folder / "quick.yaml", "--target-scaling", "standard", "--out", folder / "g.trail",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        model = load(folder / "g.trail")
        assert model.priors.of("period").mean == -1.0  # HeartSteps': covariates are in [0, 1]
        assert model.schema.target_scaling == "standard"
        assert load(folder / "m.trail").priors.of("period").mean == 1.0

    def test_levels_actions_and_missing_values(self, folder, tmp_path):
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
        refused(
            run(*words, "--missing", "drop", "--features", "hours"), "'hours', which is not known; did you mean 'hour'"
        )

    @pytest.mark.parametrize("config", ["quick.yaml", "reward.yaml"])
    def test_a_reward_model_without_an_action_is_refused_before_anything_is_read(self, folder, config):
        (folder / "reward.yaml").write_text(QUICK + "\nreward: {}")
        more = ("--features", "none") if config == "quick.yaml" else ()
        refused(fit(folder, *more, data="nowhere.csv", config=config), "--action", "needs the column of the action")

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
            (("--chains", "0"), "--chains"),
        ],
    )
    def test_bad_input_is_refused_in_words(self, folder, tmp_path, changed, said):
        result = fit(folder, *changed, out=tmp_path / "bad.trail")
        refused(result, said)
        assert list(tmp_path.iterdir()) == []

    def test_a_config_with_an_unknown_key_is_refused_before_the_data_are_read(self, folder, tmp_path):
        (tmp_path / "c.yaml").write_text("settings: {chain: 3}")
        refused(
            fit(folder, data="none.csv", config=tmp_path / "c.yaml"),
            "c.yaml: unknown key 'chain' in settings; did you mean 'chains'?",
        )

    def test_a_path_that_cannot_be_written_is_refused_before_fitting(self, folder, monkeypatch):
        monkeypatch.setattr("kerneltrail.trajectory.fit.fit", lambda *a, **k: pytest.fail("fitted"))
        refused(fit(folder, out="m.trail/inside"), "cannot be written")

    def test_a_table_without_numbers_left(self, tmp_path):
        (tmp_path / "t.csv").write_text("user,order,y,batch\na,1,2.0,1\n")
        refused(run("fit", tmp_path / "t.csv", *COLUMNS, "--out", tmp_path / "m"), "no column of numbers left")

    def test_chains_that_disagree_are_told(self, folder):
        from dataclasses import replace

        from kerneltrail.cli.fit import chain_lines

        model = load(folder / "m.trail")
        bad = replace(model, diagnostics=replace(model.diagnostics, rhat={"log_joint": 1.4}))
        assert "do not agree yet" in chain_lines(bad)[-1]


class TestShow:
    def test_graph_users_alternatives_and_words_in_data_units(self, tmp_path):
        save(small_model(), tmp_path / "m.trail")
        result = run("show", tmp_path / "m.trail")
        assert result.exit_code == 0, result.output
        for words in (
            "mood from hour, steps; 3 pilot users",
            "root\n└─ 3/3 SE[hour]\n",
            "pilot 2  SE[hour] ×1 → LIN[steps] + PER[hour]*SE[steps] ×2",
            "1. log joint -0.75; 3 nodes, 4 edges; sampled once",
            "similar hour, within about",
            "2 chains of 6 sweeps",
        ):
            assert words in result.stdout
        # A lengthscale of the scaled hour, in hours: the range is nearly a day.
        said = float(result.stdout.split("within about ")[1].split(" hours")[0])
        model = small_model()
        assert said == pytest.approx(
            math.exp(model.nodes[0].group.mean[1]) * model.scaler.length("hour", 1.0), rel=0.01
        )

    def test_dot_is_the_graph_alone(self, tmp_path):
        save(small_model(), tmp_path / "m.trail")
        result = run("show", tmp_path / "m.trail", "--dot")
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("digraph kernels {\n")
        assert 'n0 -> n1 [label="3/3"' in result.stdout
        both = run("show", tmp_path / "m.trail", "--dot", "--json")
        assert both.exit_code == 2
        assert "give one of them" in both.stderr

    def test_json_is_strict_and_holds_everything(self, tmp_path):
        save(small_model(allow_empty=True), tmp_path / "m.trail")
        result = run("show", tmp_path / "m.trail", "--json")
        told = json.loads(result.stdout, parse_constant=pytest.fail)
        assert told["edges"][0] == {"parent": None, "child": "SE[hour]", "count": 3, "total": 3}
        assert told["users"]["pilot 0"] == ["SE[hour]", *["LIN[steps] + SE[hour]"] * 2]
        assert told["nodes"][0]["users"] == ["pilot 0", "pilot 1", "pilot 2"]
        assert set(told["nodes"][0]["hyperparameters"]) == {"SE[hour].amplitude", "SE[hour].lengthscale", "noise"}
        assert told["diagnostics"]["rhat"] == {"log_joint": 1.01, "edges": None}
        assert len(told["structures"]) == 2

    def test_noise_alone_and_models_without_alternatives(self, tmp_path):
        from dataclasses import replace

        model = small_model(allow_empty=True)
        save(replace(model, structures=model.structures[1:]), tmp_path / "m.trail")
        said = run("show", tmp_path / "m.trail").stdout
        assert "1/3 (noise alone)" in said
        assert "none: every sample" in said

    def test_files_that_are_no_models(self, tmp_path):
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


class TestSelect:
    def select(self, folder, tmp_path, *more, data="new.csv", model="m.trail"):
        return run("select", folder / model, folder / data, "--out", tmp_path / "s.csv", *more)

    def test_a_row_per_user_and_batch(self, folder, tmp_path):
        result = self.select(folder, tmp_path, "--predictions", tmp_path / "p.csv")
        assert result.exit_code == 0, result.output
        model = load(folder / "m.trail")
        new = Cohort.from_schema(model.schema, folder / "new.csv")
        steps, predicted = table(tmp_path / "s.csv"), table(tmp_path / "p.csv")
        assert [(row["user"], int(row["batch"]), int(row["rows"])) for row in steps] == [
            (user.name, t, user.ends[t - 1]) for user in new.raw for t in (1, 2, 3)
        ]
        assert len(predicted) == new.rows
        user = model.new_user(new.raw[0].name)
        for t in (1, 2):
            batch, after = new.raw[0].batch(t), new.raw[0].batch(t + 1)
            step = user.update(batch.X, batch.y)
            row, next_rows = steps[t - 1], predicted[user.rows : user.rows + after.rows]
            assert row["composition"] == step.composition.text
            assert float(row["probability"]) == step.probabilities[step.composition]
            for node in model.nodes:
                assert float(row[f"log_evidence {node.composition}"]) == step.log_evidence[node.composition]
            prediction = user.predict(after.X)
            assert float(row["next_rmse"]) == np.sqrt(np.mean((after.y - prediction.mean) ** 2))
            assert float(row["next_log_density"]) == prediction.log_density(after.y).mean()
            assert [float(each["mean"]) for each in next_rows] == prediction.mean.tolist()
            assert [float(each["sd"]) for each in next_rows] == np.sqrt(prediction.total).tolist()
            assert {each["batch"] for each in next_rows} == {str(t + 1)}
            assert [int(each["row"]) for each in next_rows] == [user.rows + i + 1 for i in range(after.rows)]
        assert steps[2]["next_rmse"] == ""  # nothing is known of a batch after the last

    def test_greedy_leaves_evidences_empty_that_it_did_not_look_at(self, folder, tmp_path):
        assert self.select(folder, tmp_path, "--selection", "greedy", "--batch-size", 9).exit_code == 0
        rows = table(tmp_path / "s.csv")
        assert [row["rows"] for row in rows[:3]] == ["9", "18", "25"]
        assert {row["probability"] for row in rows} == {"1.0"}
        assert any(value == "" for row in rows for name, value in row.items() if name.startswith("log_evidence"))

    def test_values_outside_the_range_of_the_pilot_users_are_not_clipped(self, folder, tmp_path):
        rng = np.random.default_rng(0)
        far = ["user,order,batch,x,y", *(f"far,{i},{i // 10},{rng.uniform(50, 90)},{rng.normal()}" for i in range(30))]
        (tmp_path / "far.csv").write_text("\n".join(far))
        result = self.select(folder, tmp_path, "--predictions", tmp_path / "p.csv", data=tmp_path / "far.csv")
        assert result.exit_code == 0, result.output
        assert all(math.isfinite(float(row["mean"])) for row in table(tmp_path / "p.csv"))

    def test_a_reward_model_reads_actions(self, tmp_path):
        model = rewarded_model()
        save(model, tmp_path / "m.trail")
        from kerneltrail.data import Cohort

        Cohort.from_users([rows("new", seed=5)], target="mood").write_csv(tmp_path / "new.csv")
        assert self.select(tmp_path, tmp_path, "--predictions", tmp_path / "p.csv").exit_code == 0
        own, person = model.new_user(), rows("new", seed=5)
        own.update(person.X[:4], person.y[:4], action=person.action[:4])
        said, seen = own.advantage(person.X[4:8]), table(tmp_path / "p.csv")[4:8]
        assert [float(row["advantage"]) for row in seen] == pytest.approx(said.mean.tolist())
        assert [float(row["advantage_low"]) for row in seen] == pytest.approx(said.interval(0.9)[0].tolist())
        text = (tmp_path / "new.csv").read_text().replace("action", "acted", 1)
        (tmp_path / "new.csv").write_text(text)
        refused(self.select(tmp_path, tmp_path), "has no column 'action'")

    def test_bad_input_is_refused_and_nothing_is_written(self, folder, tmp_path):
        text = (folder / "new.csv").read_text()
        (tmp_path / "lacking.csv").write_text(text.replace("x", "xx", 1))
        refused(self.select(folder, tmp_path, data=tmp_path / "lacking.csv"), "has no column 'x'", "did you mean 'xx'?")
        refused(self.select(folder, tmp_path, data="none.csv"), "there is no file")
        refused(self.select(folder, tmp_path, model="new.csv"), "not a file that kerneltrail wrote")
        refused(self.select(folder, tmp_path, "--predictions", tmp_path / "s.csv"), "they need a file each")
        refused(self.select(folder, tmp_path, "--batch-size", 3, "--batch-column", "batch"), "in one way")
        refused(self.select(folder, tmp_path, "--predictions", folder / "new.csv" / "p"), "cannot be written")
        assert [path.name for path in tmp_path.iterdir()] == ["lacking.csv"]

    def test_an_interrupt_leaves_no_file(self, folder, tmp_path, monkeypatch):
        def stopped(*arguments, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr("kerneltrail.cli.select.follow", stopped)
        result = self.select(folder, tmp_path)
        assert result.exit_code == 130
        assert list(tmp_path.iterdir()) == []


class TestBars:
    def test_what_a_bar_says(self):
        assert _standing(FitProgress("fits", 1, 2)) == ""
        said = _standing(FitProgress("chains", 1, 2, -12.34, 3, 5, 1.0123))
        assert said == "log joint -12.3, 3 nodes, 5 edges, R-hat 1.012"
        assert "R-hat" not in _standing(FitProgress("chains", 1, 2, -1.0, 3, 5, float("nan")))

    def test_bars_are_drawn_on_a_terminal_only(self, monkeypatch, capsys):
        for forced in ("", "1"):
            monkeypatch.setenv("FORCE_COLOR", forced)
            with fit_bar() as tell:
                tell(FitProgress("fits", 1, 2))
                tell(FitProgress("chains", 1, 2, -12.34, 3, 5, 1.0))
            with user_bar(2) as told:
                told("ann [x]")
                told("bob")
            captured = capsys.readouterr()
            assert captured.out == ""
            assert ("log joint" in captured.err and "bob" in captured.err) == bool(forced)
