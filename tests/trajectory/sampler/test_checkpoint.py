"""A fit that is killed goes on where it was, to the same bits."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kerneltrail.errors import DataError, KerneltrailError
from kerneltrail.gp import Reward
from kerneltrail.store.cache import JSON, Cache
from kerneltrail.trajectory import TrajectoryError
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings, MapTable
from kerneltrail.trajectory.sampler.checkpoint import Checkpoint
from kerneltrail.trajectory.settings import Settings
from support.identical import difference
from trajectory import tiny

KINDS = {
    "exact": tiny.settings(rhat=1.0001, sweeps=64),
    "group": tiny.settings(evidence="group", sweeps=24),
    "published": Settings.published(maps=tiny.QUICK, largest=2, sweeps=24, check=8),
}


def timeless(model):
    return replace(model, diagnostics=replace(model.diagnostics, seconds={}))


def assert_same(mine, theirs):
    assert difference(timeless(mine), timeless(theirs)) is None


def run(settings, folder, **others):
    return fit(tiny.cohort(), pool=tiny.POOL, settings=settings, workers=1, checkpoint=folder, **others)


@pytest.fixture(scope="module")
def whole():
    return {name: run(settings, None) for name, settings in KINDS.items()}


class Pulled(Exception):
    """The plug was pulled."""


@pytest.mark.parametrize("kind", list(KINDS))
def test_stopped_at_every_other_report_of_progress_it_ends_the_same(whole, kind, tmp_path):
    stops = [0]

    def pull(limit):
        left = [limit]

        def told(progress):
            left[0] -= 1
            if left[0] < 0:
                raise Pulled

        return told

    while True:  # each time a little further, from where the last one ended
        try:
            model = run(KINDS[kind], tmp_path, progress=pull(2 + stops[0]))
        except Pulled:
            stops[0] += 1
            continue
        break
    assert stops[0] > 2
    assert_same(model, whole[kind])


@pytest.mark.parametrize("after", [1, 2, 3])
def test_stopped_between_two_chains_of_a_round_it_ends_the_same(whole, after, tmp_path, monkeypatch):
    """One chain was kept further on than the other."""
    keep, left = Checkpoint.add_leg, [after]

    def pulled(self, chain, stored):
        keep(self, chain, stored)
        left[0] -= 1
        if not left[0]:
            raise Pulled

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add_leg", pulled)
        with pytest.raises(Pulled):
            run(KINDS["exact"], tmp_path)
    assert_same(run(KINDS["exact"], tmp_path), whole["exact"])


def test_a_line_cut_short_is_dropped_for_good(whole, tmp_path):
    run(KINDS["exact"], tmp_path)
    for chain in tmp_path.glob("chain-*"):
        chain.unlink()
    fits = tmp_path / "fits.log"
    lines = fits.read_bytes().splitlines(keepends=True)
    for cut in (b"", lines[-1][:1], lines[-1][: len(lines[-1]) // 2], lines[-1][:-1]):
        fits.write_bytes(b"".join(lines[:3]) + cut)
        table = tiny.table()
        assert Checkpoint(tmp_path, key_of(tmp_path)).read_fits(table) == 3
        assert fits.read_bytes() == b"".join(lines[:3])
        assert_same(run(KINDS["exact"], tmp_path), whole["exact"])
        stored = list(Checkpoint(tmp_path, key_of(tmp_path)).fits.read())
        assert len({(line["user"], line["mask"]) for line in stored}) == len(stored) == len(lines)


def key_of(folder):
    return Cache(folder).read("fit", JSON).value


def test_fits_come_back_bit_for_bit(tmp_path):
    table, back = tiny.table(), tiny.table()
    keeper = Checkpoint(tmp_path, "k")
    table.on_new = keeper.add_fits
    table.compute([(0, 1), (1, 6), (2, 5)])
    assert Checkpoint(tmp_path, "k").read_fits(back) == 3
    for pair, fits in table.known.items():
        for name in ("theta", "log_likelihood", "log_laplace", "precision"):
            assert getattr(back.known[pair], name).tobytes() == getattr(fits, name).tobytes()
            assert getattr(back.known[pair], name).shape == getattr(fits, name).shape


def test_a_finished_fit_is_read_not_run(whole, tmp_path, monkeypatch):
    run(KINDS["exact"], tmp_path)
    monkeypatch.setattr("kerneltrail.trajectory.map_table.fit_path", lambda *a: pytest.fail("fitted again"))
    monkeypatch.setattr(
        "kerneltrail.trajectory.sampler.chains.ChainTarget.advance", lambda *a: pytest.fail("sampled again")
    )
    assert_same(run(KINDS["exact"], tmp_path), whole["exact"])


@pytest.mark.parametrize(
    "other",
    [
        {"settings": tiny.settings(seed=1, sweeps=8)},
        {"pool": tiny.POOL.with_probabilities({"SE[x]": 0.2})},
        {"pool": tiny.POOL.with_empty()},
        {"priors": tiny.PRIORS.override("noise", None, tiny.PRIORS.of("amplitude"))},
        {"cohort": tiny.cohort(seed=1)},
    ],
    ids=["settings", "probabilities", "empty", "priors", "data"],
)
def test_the_checkpoint_of_another_fit_is_refused_by_name(tmp_path, other):
    given = {"pool": tiny.POOL, "settings": tiny.settings(sweeps=8), "workers": 1, "checkpoint": tmp_path / "kept"}
    fit(tiny.cohort(), **given)
    before = sorted((path.name, path.read_bytes()) for path in (tmp_path / "kept").iterdir())
    changed = {**given, **{name: value for name, value in other.items() if name != "cohort"}}
    with pytest.raises(TrajectoryError, match="kept belongs to another fit"):
        fit(other.get("cohort", tiny.cohort()), **changed)
    assert sorted((path.name, path.read_bytes()) for path in (tmp_path / "kept").iterdir()) == before


def test_what_other_code_kept_is_another_fit(tmp_path, monkeypatch):
    run(tiny.settings(sweeps=8), tmp_path)
    monkeypatch.setattr("kerneltrail.trajectory.fit.code", lambda layer: "changed")
    with pytest.raises(TrajectoryError, match=r"belongs to another fit \(other data, pool, priors, settings or code\)"):
        run(tiny.settings(sweeps=8), tmp_path)


def test_an_extended_fit_is_another_fit(tmp_path):
    model = fit(tiny.cohort(2), pool=tiny.POOL, settings=KINDS["exact"], workers=1)
    run(KINDS["exact"], tmp_path)
    with pytest.raises(TrajectoryError, match="belongs to another fit"):
        run(KINDS["exact"], tmp_path, extend=model)


def test_the_number_of_workers_is_no_other_fit(whole, tmp_path):
    run(KINDS["exact"], tmp_path)
    again = fit(tiny.cohort(), pool=tiny.POOL, settings=KINDS["exact"], workers=2, checkpoint=tmp_path)
    assert_same(again, whole["exact"])


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrajectoryError, match="file/inside cannot be made"):
        Checkpoint(tmp_path / "file" / "inside", "k")


@pytest.mark.parametrize("name", ["fit.entry", "chain-0.log", "fits.log"])
def test_a_damaged_file_is_named(tmp_path, name):
    run(KINDS["exact"], tmp_path)
    (tmp_path / name).write_text("{not json}\n")
    with pytest.raises(TrajectoryError, match=f"{name} is damaged"):
        run(KINDS["exact"], tmp_path)


def test_one_changed_character_anywhere_is_refused_and_never_used(tmp_path):
    """A digit that is another digit is a number that was never computed."""
    run(tiny.settings(sweeps=16), tmp_path)
    rng = np.random.default_rng(0)
    for path in sorted(tmp_path.iterdir()):
        data = path.read_bytes()
        digits = [place for place, character in enumerate(data) if chr(character).isdigit()]
        for place in rng.choice(digits, 6, replace=False).tolist():
            changed = bytearray(data)
            changed[place] = ord("7") if data[place] != ord("7") else ord("3")
            path.write_bytes(changed)
            with pytest.raises(TrajectoryError, match=rf"{path.name} is damaged.*Remove the checkpoint"):
                run(tiny.settings(sweeps=16), tmp_path)
        path.write_bytes(data)
    run(tiny.settings(sweeps=16), tmp_path)


@pytest.mark.parametrize("number", range(40))
def test_a_checkpoint_made_by_hand_is_refused_or_does_no_harm(whole_folder, tmp_path, number):
    """Sums that are right, of values that are not: whatever comes of it is no traceback."""
    shutil.copytree(whole_folder, tmp_path / "kept")
    rng = np.random.default_rng(number)
    cache = Cache(tmp_path / "kept")
    name = ("chain-0", "fits")[number % 2]
    lines = list(cache.log(name).read())
    cache.log(name).path.unlink()
    lines[0] = spoilt(lines[0], rng)
    for line in lines:
        cache.log(name).append(line)
    with suppress(KerneltrailError):
        run(tiny.settings(sweeps=16), tmp_path / "kept")


ODD = [None, True, -1, 2**70, 0.5, float("nan"), float("inf"), "x", [], {}, [[[]]], {"a": 1}]


def spoilt(value, rng):
    """A value with one of its parts replaced by something else."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[int(rng.integers(len(keys)))]
        items = dict(value) if isinstance(value, dict) else list(value)
        items[key] = spoilt(value[key], rng)
        return items
    return ODD[int(rng.integers(len(ODD)))]


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    run(tiny.settings(sweeps=16), folder)
    return folder


@pytest.mark.parametrize("after", [0, 1, 3, 9, 12])
def test_a_full_disk_is_a_sentence_that_leaves_nothing_behind(whole, tmp_path, monkeypatch, after):
    """And when there is room again, the fit goes on to the same model."""
    left = [after]

    def full(handle, sync=os.fsync):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"kept.* cannot be written: No space left on device"):
            run(KINDS["exact"], tmp_path / "kept")
    assert not [path for path in (tmp_path / "kept").iterdir() if path.name.startswith(".")]
    assert_same(run(KINDS["exact"], tmp_path / "kept"), whole["exact"])


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="there is no device that is always full")
def test_a_log_on_a_device_that_is_full_is_a_sentence(tmp_path):
    (tmp_path / "fits.log").symlink_to("/dev/full")
    with pytest.raises(DataError, match=r"fits\.log cannot be written: No space left on device"):
        Cache(tmp_path).log("fits").append([1])


FITTING = """
import os, sys
sys.path.insert(0, sys.argv[1])
from trajectory.sampler import test_checkpoint
test_checkpoint.longer(None, 1)  # what is compiled is loaded once, for all that are forked from here
for folder in iter(sys.stdin.readline, ""):
    child = os.fork()
    if not child:
        os.setsid()
        test_checkpoint.longer(folder.rstrip(), int(sys.argv[2]))
        sys.exit()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def longer(folder, workers):
    """A fit of about a second: 42 paths of fits, then chains of up to 12 rounds."""
    return fit(
        tiny.cohort(3, (3, 6, 10)),
        pool=tiny.POOL | tiny.Pool.of("LIN[x]*PER[x]"),
        settings=tiny.settings(largest=3, sweeps=120, check=10, rhat=1.0001, chains=3),
        workers=workers,
        checkpoint=folder,
    )


def begin(server, folder):
    """The process group of a fit, once it has kept something: before that, a kill is only a later beginning."""
    server.stdin.write(f"{folder}\n")
    server.stdin.flush()
    group = int(server.stdout.readline())
    deadline = time.monotonic() + 120
    while not (folder / "fits.log").exists():
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return group


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "moments"), [(1, 8), (2, 3)])
def test_killed_at_random_moments_it_ends_the_same(workers, moments, tmp_path):
    whole = longer(None, 1)
    command = [sys.executable, "-c", FITTING, str(Path(__file__).parents[2]), str(workers)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        begin(server, tmp_path / "whole")
        started = time.perf_counter()
        assert int(server.stdout.readline()) == 0
        lasts = time.perf_counter() - started
        rng = np.random.default_rng(workers)
        killed = 0
        for number, share in enumerate(rng.uniform(0.0, 1.0, moments).tolist()):
            folder = tmp_path / str(number)
            group = begin(server, folder)
            time.sleep(share * lasts)
            with suppress(ProcessLookupError):  # it was faster than the first
                os.killpg(group, signal.SIGKILL)  # the workers, too
            killed += int(server.stdout.readline()) == -signal.SIGKILL
            assert_same(longer(folder, 1), whole)
        server.stdin.close()
    assert killed >= moments // 2


@pytest.mark.parametrize(
    "other",
    [
        {"count": 2},
        {"pool": tiny.Pool.of("LIN[x]", "PER[x]", "LIN[x]*SE[x]")},
        {"reward": Reward.constant(1.0)},
        {"prior": tiny.PRIORS.override("noise", None, tiny.PRIORS.of("amplitude"))},
        {"settings": MapSettings(starts=1, screen=5)},
    ],
    ids=["users", "pool", "reward", "priors", "settings"],
)
def test_fits_of_another_table_are_left_aside(tmp_path, other):
    """All but probabilities in the pool, which no fit depends on."""
    table = tiny.table()
    table.on_new = Checkpoint(tmp_path, "k").add_fits
    table.compute([(0, 1), (1, 2)])
    given = {"count": 3, "pool": tiny.POOL, "prior": tiny.PRIORS, "settings": tiny.QUICK, "reward": None, **other}
    another = MapTable(tiny.pilots(given.pop("count")), **given)
    assert Checkpoint(tmp_path, "k").read_fits(another) == 0
    assert another.known == {}
    likelier = tiny.table(pool=tiny.POOL.with_probabilities({"SE[x]": 0.2}))
    assert Checkpoint(tmp_path, "k").read_fits(likelier) == 2
