"""The harness: all methods, all users, in parallel or not, stopped or not, with failures that stop nobody."""

import json
import math
from contextlib import ExitStack
from dataclasses import replace
from threading import Lock

import pytest

from evaluation.toys import SPECS, Toy, cohort, everything, newcomer, user
from kerneltrail.errors import DataError
from kerneltrail.evaluation import evaluate, load_evaluation, splits
from kerneltrail.evaluation import harness as module
from kerneltrail.kernels import Pool, parse
from kerneltrail.methods import methods
from kerneltrail.methods.ard import SingleKernel
from kerneltrail.methods.builder import MethodBuilder
from kerneltrail.methods.mean import RunningMean
from kerneltrail.methods.registry import METHODS, learns_from
from kerneltrail.trajectory import EVIDENCES, PathEvidence
from methods.common import training
from trajectory import tiny

TIMES = ("seconds", "cpu_seconds", "predict_seconds")


@pytest.fixture
def toys():
    """A way to register methods for one test."""
    with ExitStack() as stack:

        def add(name, builder=None, **how):
            made = builder or (lambda cohort, *, seed, noise=1.0: Toy(noise=noise, **how))
            stack.enter_context(METHODS.temporarily(name, made))

        yield add


def own_learner(cohort):
    """A learner that somebody else wrote."""
    return RunningMean.train(cohort)


def outside_learner(preprocessor, priors):
    """A learner of the user's own rows alone, that somebody else wrote."""
    return SingleKernel(preprocessor, parse("LIN[x]"), priors, starts=1, screen=2)


class PlainEvidence(PathEvidence):
    """Laplace's, by somebody else."""

    name = "plain"

    def evaluate(self, user, mask):
        return self.table.get(user, mask).log_laplace


def without_times(steps):
    return [repr(replace(step, **dict.fromkeys(TIMES, 0.0))) for step in steps]


class TestAllMethods:
    def test_every_method_follows_everybody_to_the_end(self):
        """A user with one batch and one with a constant target among them."""
        found = everything()
        assert found.failures == ()
        assert found.methods == methods()
        for method in methods():
            own = [(s.user, s.t) for s in found.steps if s.method == method]
            assert own == [
                *(("ann", t) for t in range(4)),
                *(("short", t) for t in range(2)),
                *(("constant", t) for t in range(4)),
            ]

    def test_predictions_are_judged_wherever_there_is_a_next_batch(self):
        for step in everything().steps:
            assert math.isfinite(step.log_density) == (step.predicted > 0)
            assert math.isfinite(step.seconds) == (step.t > 0)
            assert step.run == "one"

    def test_right_is_known_where_the_truth_is(self):
        found = everything()
        others = [step for step in found.steps if step.user != "ann"]
        assert others
        assert all(step.right is None and math.isnan(step.brier) for step in others)
        own = [step for step in found.steps if step.user == "ann"]
        assert len(own) == 4 * len(methods())
        assert all(step.right == (step.composition == "LIN[steps] + SE[hour]") for step in own)

    def test_what_was_done_is_said(self):
        (run,) = everything().about["runs"]
        assert (run["run"], run["seed"], run["workers"]) == ("one", 1, 1)
        assert run["methods"]["cks"]["method"] == "cks"
        assert run["methods"]["cks"]["settings"]["search"]["SearchSettings"]["depth"] == 0
        assert set(run["build_seconds"]) == set(methods())
        assert list(run["test"]) == ["ann", "short", "constant"]
        json.dumps(everything().about)

    def test_processes_make_no_difference(self):
        few = ("mean", "se-ard", "final")
        test = [newcomer("ann"), newcomer("bob")]
        one, two = (
            evaluate(training(), test, {name: SPECS[name] for name in few}, workers=workers) for workers in (1, 2)
        )
        assert without_times(one.steps) == without_times(two.steps)


class TestOutside:
    def test_a_method_registered_from_outside_is_evaluated_like_any_other(self, tmp_path, monkeypatch):
        test = [user("ann"), user("bob")]
        monkeypatch.setattr(METHODS, "_things", dict(METHODS._things))
        METHODS.add("probe", lambda cohort, *, seed, noise=1.0: Toy(noise=noise))
        found = evaluate(cohort(["p", "q"]), test, ["mean", "probe"], workers=1)
        found.save(tmp_path)
        unsure = evaluate(cohort(["p", "q"]), test, {"unsure": ("probe", {"noise": 9.0})}, workers=1)
        apart = evaluate(cohort(["p", "q"]), test, ["mean", "probe"], workers=2)
        assert not found.failures
        assert load_evaluation(tmp_path).methods == ("mean", "probe")
        assert {row.method for row in found.summary() if row.metric == "rmse"} == {"mean", "probe"}
        assert [row.second for row in found.paired("mean") if row.metric == "rmse" and row.t == 0] == ["probe"]
        assert unsure.steps[0].log_density < found.at("probe", 0)[0].log_density
        assert without_times(apart.steps) == without_times(found.steps)

    def test_workers_know_the_evidence_and_the_atoms_from_outside_too(self, toys, new_atoms):
        toys("toy")
        pool = Pool.of("LIN[x]", "MATERN52[x]", "RQ[x]")
        test = [tiny.pilot(7), tiny.pilot(8)]
        with EVIDENCES.temporarily("plain", PlainEvidence):
            plain = ("trajectory", {"pool": pool, "settings": tiny.settings(evidence="plain")})
            one, two = (
                evaluate(tiny.cohort(), test, {"toy": "toy", "plain": plain}, workers=workers) for workers in (1, 2)
            )
        assert not one.failures + two.failures
        assert without_times(one.steps) == without_times(two.steps)

    def test_results_of_another_evidence_of_the_same_name_are_not_reused(self, tmp_path):
        class Other(PlainEvidence):
            def evaluate(self, user, mask):
                return super().evaluate(user, mask) - 1.0

        files = []
        for evidence in (PlainEvidence, PlainEvidence, Other):
            with EVIDENCES.temporarily("plain", evidence):
                plain = ("trajectory", {"pool": tiny.POOL, "settings": tiny.settings(evidence="plain", sweeps=8)})
                evaluate(tiny.cohort(), [tiny.pilot(7)], {"plain": plain}, workers=1, out=tmp_path)
            files.append(len(list(tmp_path.glob("*.entry"))))
        assert files[0] == files[1] < files[2]

    def test_a_learner_from_outside_on_own_rows_is_shared_by_its_own_code(self, toys, tmp_path, monkeypatch):
        toys("single", MethodBuilder("single", outside_learner, "own rows"))
        for train, code, files in (("pq", "first", 1), ("pr", "first", 1), ("pr", "edited", 2)):
            monkeypatch.setattr("kerneltrail.evaluation.training.code_of", lambda learn, code=code: code)
            found = evaluate(cohort(list(train)), [user("ann")], ["single"], workers=1, share=tmp_path)
            assert not found.failures
            assert len(list(tmp_path.glob("*.entry"))) == files


class TestFailures:
    def test_a_method_that_cannot_be_built_is_reported_and_the_others_go_on(self, toys):
        def broken(cohort, *, seed):
            raise ZeroDivisionError("nothing to divide by")

        toys("toy")
        toys("broken", broken)
        found = evaluate(cohort(["p", "q"]), [user("ann")], ["broken", "toy"], workers=1, run="a")
        assert found.methods == ("toy",)
        (failure,) = found.failures
        assert (failure.run, failure.method, failure.user, failure.t) == ("a", "broken", "", None)
        assert (failure.stage, failure.type, failure.message) == ("build", "ZeroDivisionError", "nothing to divide by")
        assert "broken: build failed with ZeroDivisionError" in str(failure)

    def test_a_user_whom_a_method_fails_on_is_reported_and_the_others_go_on(self, toys):
        toys("toy")
        toys("weak", fail=("update", 1, "bob"))
        found = evaluate(cohort(["p", "q"]), [user("ann"), user("bob")], ["weak", "toy"], workers=1)
        assert [(f.method, f.user, f.t) for f in found.failures] == [("weak", "bob", 1)]
        assert [(s.user, s.t) for s in found.steps if s.method == "weak"] == [
            ("ann", 0), ("ann", 1), ("ann", 2), ("ann", 3), ("bob", 0), ("bob", 1),
        ]  # fmt: skip
        assert len([s for s in found.steps if s.method == "toy"]) == 8

    def test_a_method_that_cannot_go_to_another_process_is_reported_and_the_others_go_on(self, toys):
        def locked(cohort, *, seed, lock=None):
            method = Toy()
            method.lock = Lock()
            return method

        toys("toy")
        toys("locked", locked)
        specs = {"built": ("locked", {}), "given": ("locked", {"lock": Lock()}), "toy": ("toy", {})}
        found = evaluate(cohort(["p", "q"]), [user("ann")], specs, workers=2)
        assert found.methods == ("toy",)
        assert [(f.method, f.stage) for f in found.failures] == [("built", "build"), ("given", "build")]
        assert all("evaluate it with one worker" in f.message for f in found.failures)
        assert evaluate(cohort(["p", "q"]), [user("ann")], specs, workers=1).methods == tuple(specs)

    @pytest.mark.parametrize(
        ("methods", "said"),
        [
            (["shrinkag"], "did you mean 'shrinkage'"),
            ({"a": ("se-ard", {"start": 3})}, "se-ard has no setting 'start'; did you mean 'starts'"),
            ([], "at least one method"),
            ("mean", r"such as \['mean'\]"),
        ],
    )
    def test_unknown_names_are_refused_at_once(self, methods, said):
        with pytest.raises(DataError, match=said):
            evaluate(cohort(["p"]), [user("ann")], methods)

    def test_users_are_checked(self):
        train = cohort(["p", "q"])
        for test, said in [
            ([], "at least one test user"),
            ([user("ann"), user("ann")], "two test users are named 'ann'"),
            ([user("p")], "'p' is both a training and a test user"),
            ([user("ann", covariates=("z",))], "has covariates z, the training users x"),
        ]:
            with pytest.raises(DataError, match=said):
                evaluate(train, test, ["mean"])


class TestKept:
    def few(self, **more):
        chosen = {name: SPECS[name] for name in ("trajectory", "mean", "se-ard")}
        return evaluate(training(), [newcomer("ann"), newcomer("bob")], chosen, workers=1, **more)

    def test_stopped_anywhere_it_goes_on_to_the_same_result(self, tmp_path, monkeypatch):
        whole = without_times(self.few().steps)
        computed = []
        real = module.follow

        def stopping(method, user, **more):
            if len(computed) == 3:
                raise KeyboardInterrupt
            computed.append(user.name)
            return real(method, user, **more)

        monkeypatch.setattr(module, "_warm_up", lambda *given: None)
        monkeypatch.setattr(module, "follow", stopping)
        with pytest.raises(KeyboardInterrupt):
            self.few(out=tmp_path)
        monkeypatch.setattr(module, "follow", real)
        monkeypatch.setattr("kerneltrail.methods.trajectory.fit", lambda *a, **k: pytest.fail("fitted again"))
        assert without_times(self.few(out=tmp_path).steps) == whole

    def test_what_is_there_is_not_computed_again_and_keeps_its_times(self, tmp_path, monkeypatch):
        first = self.few(out=tmp_path)
        followed = []
        real = module.follow
        monkeypatch.setattr(
            module, "follow", lambda m, u, last=None, **more: followed.append(last) or real(m, u, last=last, **more)
        )
        again = self.few(out=tmp_path)
        assert set(followed) == {0}  # what comes before the first row of a method that is shared between splits
        own = [repr(s) for s in first.steps if s.method != "se-ard" or s.t]
        assert [repr(s) for s in again.steps if s.method != "se-ard" or s.t] == own

    def test_other_data_settings_or_seeds_are_computed_anew(self, tmp_path):
        toys = {"se-ard": ("se-ard", {"starts": 1, "screen": 2})}
        train, ann = training(), newcomer("ann")

        def files(**changes):
            evaluate(**{"train": train, "test": [ann], "methods": toys, "out": tmp_path, "workers": 1, **changes})
            return len(list(tmp_path.glob("*.entry")))

        assert files() == 1
        assert files() == 1
        assert files(seed=1) == 2
        assert files(methods={"se-ard": ("se-ard", {"starts": 1, "screen": 4})}) == 3
        assert files(test=[newcomer("bob")]) == 4

    def test_what_other_code_computed_is_computed_anew(self, tmp_path, monkeypatch):
        """Of methods that look at one user alone, and of those that learn from training users."""
        chosen = {name: SPECS[name] for name in ("mean", "se-ard")}
        for files in (2, 2):
            evaluate(training(), [newcomer("ann")], chosen, workers=1, out=tmp_path)
            assert len(list(tmp_path.glob("*.entry"))) == files
        monkeypatch.setattr("kerneltrail.evaluation.training.code_of", lambda learn: "changed")
        evaluate(training(), [newcomer("ann")], chosen, workers=1, out=tmp_path)
        assert len(list(tmp_path.glob("*.entry"))) == 4

    def test_a_learner_of_ones_own_is_kept_by_its_own_code(self, toys, tmp_path, monkeypatch):
        """A builder is the package's, its learner need not be."""
        toys("own", MethodBuilder("own", own_learner))
        for code, files in (("first", 1), ("first", 1), ("edited", 2)):
            told = lambda learn, code=code: code if learn is own_learner else "the package's"  # noqa: E731
            monkeypatch.setattr("kerneltrail.evaluation.training.code_of", told)
            evaluate(training(), [newcomer("ann")], ["own"], workers=1, out=tmp_path)
            assert len(list(tmp_path.glob("*.entry"))) == files

    def test_a_damaged_piece_is_computed_again(self, tmp_path):
        first = self.few(out=tmp_path)
        for path in tmp_path.glob("*.entry"):
            path.write_bytes(path.read_bytes()[:-9])
        assert without_times(self.few(out=tmp_path).steps) == without_times(first.steps)

    def test_failures_are_not_kept(self, toys, tmp_path):
        toys("weak", fail=("update", 1, "bob"))
        for _ in range(2):
            found = evaluate(cohort(["p"]), [user("bob")], ["weak"], workers=1, out=tmp_path)
            assert len(found.failures) == 1
        assert not list(tmp_path.glob("*.entry"))

    def test_a_setting_that_cannot_be_described_is_evaluated_but_not_kept(self, toys, tmp_path):
        toys("toy")
        odd = {"toy": ("toy", {"noise": type("Odd", (float,), {})(1.0)}), "odd": ("toy", {"noise": _Odd()})}
        found = evaluate(cohort(["p"]), [user("bob")], odd, workers=1, out=tmp_path)
        assert not found.failures
        assert len(list(tmp_path.glob("*.entry"))) == 1


class _Odd:
    """Acts as a number of 1.0, and says nothing of itself."""

    def __sub__(self, other):
        return 1.0 - other


class TestShared:
    def test_methods_without_training_users_are_followed_once_for_all_splits(self, tmp_path, monkeypatch):
        """And the result is the one that an evaluation of its own would have: before the first row, too."""
        ann = newcomer("ann")
        first = training()
        second = first.subset(first.names[:2])
        second = replace(second, schema=second.schema.fitted(second.raw))
        chosen = {name: SPECS[name] for name in methods() if learns_from(name) == "own rows"}
        alone = evaluate(second, [ann], chosen, workers=1)
        evaluate(first, [ann], chosen, workers=1, share=tmp_path)
        monkeypatch.setattr(module, "_warm_up", lambda *given: pytest.fail("followed again"))
        shared = evaluate(second, [ann], chosen, workers=1, share=tmp_path)
        assert not shared.failures
        assert without_times(shared.steps) == without_times(alone.steps)

    def test_methods_that_learn_from_training_users_are_not_shared(self, tmp_path):
        few = {name: SPECS[name] for name in ("mean", "linear")}
        evaluate(training(), [newcomer("ann")], few, workers=1, share=tmp_path)
        assert not list(tmp_path.glob("*.entry"))


def test_progress_tells_of_every_method_and_user(toys):
    toys("toy")
    said = []
    evaluate(cohort(["p"]), [user("ann"), user("bob")], ["toy"], workers=1, progress=said.append)
    built, *followed = [(p.stage, p.done, p.total) for p in said][-4:]
    assert built == ("building methods", 1, 1)
    assert followed == [("following users", done, 2) for done in (0, 1, 2)]


def test_a_method_that_takes_long_says_how_far_it_is():
    said = []
    quick = tiny.settings(sweeps=8, largest=1)
    specs = {"mine": ("trajectory", {"settings": quick, "pool": tiny.POOL})}
    evaluate(tiny.cohort(), [tiny.pilot(8)], specs, workers=1, progress=said.append)
    building = [p for p in said if p.stage == "building methods"]
    assert {(p.done, p.total) for p in building[:-1]} == {(0, 1)}
    words = [p.said for p in building]
    assert "mine: fitting candidates 1/9+" in words
    assert "mine: sampling paths 8/8" in words


def test_splits_are_seeded_and_in_order():
    names = [f"u{i}" for i in range(9)]
    found = list(splits(names, 3, 20, seed=4))
    assert found == list(splits(names, 3, 20, seed=4)) != list(splits(names, 3, 20, seed=5))
    assert all(len(set(test)) == 3 and list(test) == sorted(test) for test in found)
    assert len({name for test in found for name in test}) == 9
    with pytest.raises(DataError, match="1 to 8 test users, got 9"):
        list(splits(names, 9, 1))
