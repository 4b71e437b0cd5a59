import json
import os
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save as save_arrays

from kerneltrail.errors import KerneltrailError, ModelFileError
from kerneltrail.gp.population import PLACES, PopulationMean
from kerneltrail.kernels import Pool
from kerneltrail.store import container
from kerneltrail.trajectory.model import TrajectoryModel, from_bytes, load, save
from kerneltrail.trajectory.model_file import fingerprint, to_bytes
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.settings import Settings
from support.identical import difference, identical
from support.new_atoms import registered

from .small import mean_model, rewarded_model, rows, small_model

MODELS = {
    "plain": small_model,
    "reward": rewarded_model,
    "population mean": mean_model,
    "curves": lambda: curved_model(),
    "empty allowed": lambda: small_model(allow_empty=True),
    "published": lambda: small_model(settings=Settings.published(seed=3, refine=6)),
    "all": lambda: small_model(settings=Settings(memory="all", refine=6)),
}


def curved_model():
    """The model of `mean_model` with a curve of every covariate, which say something of a user's level too."""
    model, rng = mean_model(), np.random.default_rng(5)
    d = len(model.covariates)
    curves, others = rng.standard_normal((2, d, len(PLACES)))
    level = PopulationMean(rng.standard_normal(1 + d), model.covariates, None, model.mean.penalty, others)
    return replace(model, mean=replace(model.mean, curves=curves, level=level, scatter=0.3))


def follow(user, seen, batches):
    """Update with some batches; everything that can be asked afterwards."""
    told = []
    for t in batches:
        batch = seen.batch(t)
        told.append(user.update(batch.X, batch.y, action=batch.action))
        prediction = user.predict(0.9 * batch.X, action=batch.action)
        told.append((prediction.mean, prediction.variance, prediction.noise, user.composition, user.hyperparameters))
    return told


def damage(path, change):
    """Rewrite a file's header."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    head = json.loads(header["__metadata__"]["kerneltrail"])
    change(head)
    header["__metadata__"]["kerneltrail"] = json.dumps(head)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "pilot.trail"
    save(small_model(), path)
    return path


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
class TestRoundTrip:
    def test_a_loaded_model_is_the_same_in_every_bit(self, make, tmp_path):
        model = make()
        model.save(tmp_path / "a.trail")
        loaded = TrajectoryModel.load(tmp_path / "a.trail")
        assert difference(model, loaded) is None
        assert loaded.edges == model.edges
        assert identical(loaded.transitions, model.transitions)

    def test_the_same_model_gives_the_same_bytes(self, make):
        assert to_bytes(make()) == to_bytes(from_bytes(to_bytes(make())))

    def test_a_loaded_model_follows_a_user_to_the_same_bits(self, make):
        model, seen = make(), rows("new", 16, seed=9)
        loaded = from_bytes(to_bytes(model))
        assert identical(follow(model.new_user(), seen, range(1, 5)), follow(loaded.new_user(), seen, range(1, 5)))

    @pytest.mark.parametrize("refine", [6, 400])
    def test_a_user_goes_on_from_a_file_as_if_never_stopped(self, make, tmp_path, refine):
        model, seen = make(), rows("new", 16, seed=9)
        whole, parts = model.new_user("ann", refine=refine), model.new_user("ann", refine=refine)
        for t in range(1, 5):
            parts.save(tmp_path / "ann.user")
            parts = from_bytes(to_bytes(model)).load_user(tmp_path / "ann.user")
            assert identical(follow(whole, seen, [t]), follow(parts, seen, [t]))
            assert difference(whole, parts) is None
        assert [step.batch for step in parts.history] == [1, 2, 3, 4]
        assert parts.copy().predict(seen.X[:1], action=[1]).mean == whole.predict(seen.X[:1], action=[1]).mean


@pytest.mark.filterwarnings("ignore:.*far outside those of the pilot users")
def test_values_outside_the_range_seen_in_training_survive_a_restart():
    model = small_model()
    whole = model.new_user(refine=4)
    parts = model.new_user(refine=4)
    for t, (low, high) in enumerate([(0.0, 24.0), (0.0, 24.0), (-60.0, 90.0), (100.0, 200.0)], start=1):
        batch = rows("far", 4, seed=t, low=low, high=high)
        assert identical(whole.update(batch.X, batch.y), parts.update(batch.X, batch.y))
        parts = NewUser.from_bytes(parts.to_bytes(), model)
        assert identical(whole.predict(batch.X * 1.5).mean, parts.predict(batch.X * 1.5).mean)


def test_memory_order_of_rows_is_kept():
    model, seen = small_model(), rows("new", 8)
    user = model.new_user()
    user.update(np.asfortranarray(seen.X), seen.y)
    again = NewUser.from_bytes(user.to_bytes(), model)
    assert again.state.kept.X.flags.f_contiguous == user.state.kept.X.flags.f_contiguous
    assert identical(again, user)


def test_a_pool_beyond_64_products_is_kept():
    model = small_model()
    many = Pool.atoms(["hour", "steps", *(f"c{i}" for i in range(30))])
    many = Pool(many.products[6:] + many.products[:6], many.probabilities) | model.pool
    masks = {mask: many.mask(model.pool.composition(mask)) for path in model.paths for mask in path}
    structures = tuple(
        replace(s, paths=tuple(tuple(masks[m] for m in path) for path in s.paths)) for s in model.structures
    )
    model = replace(
        model, pool=many, structures=structures, nodes=tuple(replace(n, mask=masks[n.mask]) for n in model.nodes)
    )
    assert max(masks.values()) > 2**64
    assert difference(model, from_bytes(to_bytes(model))) is None


class TestIdentical:
    def test_a_last_bit_is_a_difference_and_has_a_place(self):
        model = small_model()
        thetas = model.nodes[1].thetas.copy()
        thetas[0, 0] = np.nextafter(thetas[0, 0], 9.0)
        other = replace(model, nodes=(model.nodes[0], replace(model.nodes[1], thetas=thetas), model.nodes[2]))
        assert difference(model, other) == ".nodes[1].thetas"
        assert fingerprint(model) != fingerprint(other)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (1, 1.0), (0.0, -0.0), ((1,), (1, 2)), ({"a": 1}, {"b": 1}), ("a", ["a"]),
            (np.zeros(2), np.zeros(3)), (np.zeros(2), [0.0, 0.0]), (np.zeros(1), np.zeros(1, dtype=int)),
            (Settings(), Settings(seed=1)), (Settings(), 1),
        ],
    )  # fmt: skip
    def test_differences(self, one, other):
        assert not identical(one, other)
        assert identical(one, one)

    def test_what_selection_does_not_use_is_not_in_the_fingerprint(self):
        model = small_model()
        other = replace(model, provenance={}, structures=model.structures[:1])
        assert fingerprint(model) == fingerprint(other)


class TestBadFiles:
    def refused(self, path, *words):
        with pytest.raises(ModelFileError) as caught:
            load(path)
        assert isinstance(caught.value, KerneltrailError)
        assert all(word in str(caught.value) for word in (path.name, *words))

    def test_no_file(self, tmp_path):
        self.refused(tmp_path / "none.trail", "there is no file")

    def test_a_folder(self, tmp_path):
        self.refused(tmp_path, "folder")

    @pytest.mark.parametrize("content", [b"user,x\n1,2\n", b"x", b"\x05" + bytes(7) + b"{abc}", bytes(64)])
    def test_something_else(self, tmp_path, content):
        path = tmp_path / "data.csv"
        path.write_bytes(content)
        self.refused(path, "not a file that kerneltrail wrote")

    def test_a_safetensors_file_of_somebody_else(self, tmp_path):
        path = tmp_path / "other.safetensors"
        path.write_bytes(save_arrays({"a": np.zeros(3)}, metadata={"format": "pt"}))
        self.refused(path, "not a file that kerneltrail wrote")

    def test_an_empty_file(self, tmp_path):
        (tmp_path / "e.trail").write_bytes(b"")
        self.refused(tmp_path / "e.trail", "empty")

    def test_a_file_cut_short_anywhere(self, stored):
        data = stored.read_bytes()
        for length in [9, 100, 1000, *range(1500, len(data), 97), len(data) - 1]:
            stored.write_bytes(data[:length])
            self.refused(stored, "cut short")
        stored.write_bytes(data + b"x")
        self.refused(stored, "too long")

    def test_a_flipped_bit(self, stored):
        data = bytearray(stored.read_bytes())
        data[-5] ^= 1
        stored.write_bytes(data)
        self.refused(stored, "damaged")

    def test_another_schema_version_says_who_wrote_it_and_what_is_read_here(self, stored):
        damage(stored, lambda head: head.update(schema=99, version="7.1"))
        self.refused(stored, "kerneltrail 7.1", "schema version 99", f"reads schema version {container.SCHEMA}")

    def test_another_schema_version_is_said_even_if_all_else_is_different(self, stored):
        damage(stored, lambda head: (head.clear(), head.update(schema=2, version="9")))
        self.refused(stored, "schema version 2")

    def test_contents_that_do_not_fit_are_damage_not_a_traceback(self, stored):
        def change(head):
            del head["content"]["pool"]
            head["digest"] = "x"

        damage(stored, change)
        self.refused(stored, "damaged")

    def test_an_unknown_setting_names_the_file(self):
        content, arrays = container.unpack(to_bytes(small_model()), "model", "m")
        content["settings"]["speed"] = 1
        with pytest.raises(ModelFileError, match=r"m does not fit this version.*'speed'"):
            from_bytes(container.pack("model", content, arrays), "m")
        del content["users"], content["settings"]["speed"]
        with pytest.raises(ModelFileError, match=r"m is damaged.*users"):
            from_bytes(container.pack("model", content, arrays), "m")

    def test_a_user_is_not_a_model_and_the_other_way_round(self, stored, tmp_path):
        small_model().new_user().save(tmp_path / "ann.user")
        self.refused(tmp_path / "ann.user", "holds a followed user, not a trajectory model")
        with pytest.raises(ModelFileError, match="holds a trajectory model, not a followed user"):
            small_model().load_user(stored)

    def test_a_user_of_another_model(self, tmp_path):
        small_model().new_user().save(tmp_path / "ann.user")
        with pytest.raises(ModelFileError, match=r"ann\.user holds a user who was followed on another model"):
            small_model(settings=Settings(alpha=2.0)).load_user(tmp_path / "ann.user")

    def test_what_json_cannot_hold_is_refused_before_anything_is_written(self, tmp_path):
        with pytest.raises(ModelFileError, match="a set cannot be kept"):
            save(replace(small_model(), provenance={"x": {1}}), tmp_path / "m.trail")
        assert list(tmp_path.iterdir()) == []


def test_a_kernel_that_is_not_registered_here(tmp_path):
    with registered():
        model = small_model()
        model = replace(model, pool=model.pool | Pool.of("MATERN52[hour]"))
        save(model, tmp_path / "m.trail")
        assert difference(model, load(tmp_path / "m.trail")) is None
    with pytest.raises(ModelFileError, match=r"m\.trail uses the kernel 'MATERN52\[hour\]'.*unknown.*register"):
        load(tmp_path / "m.trail")


class TestWriting:
    def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(self, stored, monkeypatch):
        before = stored.read_bytes()

        def full(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(ModelFileError, match="cannot be written: No space left"):
            save(rewarded_model(), stored)
        assert stored.read_bytes() == before
        assert list(stored.parent.iterdir()) == [stored]

    def test_a_write_replaces_the_old_file_whole(self, stored):
        save(rewarded_model(), stored)
        assert load(stored).reward is not None
        assert list(stored.parent.iterdir()) == [stored]

    def test_folders_on_the_way_are_made_and_a_bad_path_is_refused(self, tmp_path):
        save(small_model(), tmp_path / "a" / "b" / "m.trail")
        with pytest.raises(ModelFileError, match="cannot be written"):
            save(small_model(), tmp_path / "a" / "b" / "m.trail" / "c")

    def test_nothing_in_a_file_is_pickled(self, stored):
        data = stored.read_bytes()
        assert b"\x80\x04\x95" not in data
        head = json.loads(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["kerneltrail"])
        assert head["content"]["compositions"][0] == "SE[hour]"
        assert head["schema"] == container.SCHEMA
        assert head["content"]["settings"]["seed"] == 7


def test_files_from_before_the_population_mean_are_read():
    """Written without the keys that came later, a model loads as it was, and its users go on."""
    model, seen = rewarded_model(), rows("new", 16, seed=9)
    user = model.new_user()
    follow(user, seen, (1, 2))
    kept = user.to_bytes()
    content, arrays = container.unpack(to_bytes(model), "model", "it")
    del content["settings"]["mean"], content["settings"]["constant"], content["reward"]["variances"]
    older = from_bytes(container.pack("model", content, arrays))
    assert difference(older, model) is None
    assert fingerprint(older) == fingerprint(model)
    assert follow(NewUser.from_bytes(kept, older), seen, (3,))[0] == follow(user, seen, (3,))[0]


def test_settings_that_came_later_are_no_part_of_an_older_models_fingerprint(monkeypatch):
    """A user's file has the fingerprint that its model had when it was written: with these settings, and no others."""
    first = (
        "evidence alpha keep largest width moves options start chains sweeps rhat check margin selection memory refine "
        "seed maps"
    )
    told = []
    monkeypatch.setattr("kerneltrail.trajectory.model_file.digest_of", lambda said, arrays: told.append(said) or "")
    fingerprint(rewarded_model())
    assert set(told[0]["settings"]) == set(first.split())
    assert set(told[0]["reward"]) == {"features", "advantage_variance", "constant_variance", "intercept"}


def test_another_population_mean_is_another_model():
    one = mean_model()
    other = replace(one, mean=replace(one.mean, weights=one.mean.weights + 1.0))
    assert len({fingerprint(model) for model in (one, other, curved_model())}) == 3
