"""The demonstration: it runs, its page stands alone, and what it claims is computed."""

import re

import pytest

from kerneltrail.data import simulate
from kerneltrail.errors import DataError
from kerneltrail.kernels import Pool
from kerneltrail.studies import demo
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.settings import Settings

PICTURES = {
    "story.png", "graph.png", "selected.png", "probabilities.png", "newcomer.png", "next-batch.png",
    "fit.png", "parts.png", "period.png", "effects.png", "forecast.png",
}  # fmt: skip
TINY = demo.Study(
    pilots=4,
    newcomers=3,
    batches=(4, 8, 24),
    pool=Pool.of("LIN[x]", "PER[x]", "SE[x]"),
    settings=Settings(chains=2, sweeps=32, check=8, largest=2, maps=MapSettings(starts=1, screen=4)),
    workers=1,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "deep"
    said = []
    return demo.run(out, seed=0, tell=said.append, study=TINY), said


@pytest.fixture(scope="module")
def text(made):
    return made[0].read_text(encoding="utf-8")


def test_every_stage_is_announced_in_its_order_and_counted(made):
    assert tuple(dict.fromkeys(now.stage for now in made[1])) == demo.STAGES
    for stage in demo.STAGES:
        done = [now.done for now in made[1] if now.stage == stage]
        assert done == sorted(done)


def test_the_page_its_pictures_and_the_model_are_there_and_nothing_else(made):
    folder = made[0].parent
    assert {file.name for file in folder.iterdir()} == {"index.html", demo.MODEL} | PICTURES
    assert all((folder / name).stat().st_size < 250_000 for name in PICTURES)


def test_the_page_stands_alone_and_has_words_for_every_picture(text):
    sources = re.findall(r'(?:src|srcset|href)="([^"]{0,40})', text)
    assert len(sources) == 18  # all pictures but those of the story and of the graph, wide and narrow
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert len(re.findall(r'alt="[^"]{20,}"', text)) == 9


def test_the_model_beside_the_page_is_the_one_it_shows(made, text):
    model = TrajectoryModel.load(made[0].parent / demo.MODEL)
    assert model.users == ("train-01", "train-02", "train-03", "train-04")
    for node in model.nodes:
        assert f'<p class="code">{node.composition.text}</p>' in text
        assert f'aria-label="key kernel {node.composition.text}, passed by {len(node.users)} pilot users"' in text
    for name, path in model.table():
        cells = "".join(f"<td>{composition.text}</td>" for composition in path)
        assert re.search(rf'<th scope="row">{name}</th><td>[^<]*</td>{re.escape(cells)}', text)
    assert text.count(" samples\n") + text.count(" sample\n") == len(model.structures) - 1


def test_the_story_is_told_in_words(text):
    for words in (
        "Of 4 simulated pilot users, 2 follow LIN[x] + PER[x] and 2 follow SE[x]",
        "4, 12 and 36 rows have been seen",
        "a kernel has at most 2 of them, to keep this page quick; the default is 3",
        "as one more arrow costs",
        "The published procedure, Settings.published()",
        "R-hat, which is 1 where chains agree",
        "On this graph 3 new users are followed",
        "The true kernel was selected at",
        "After 36 rows, ",
    ):
        assert words in text


def test_the_share_right_counts_what_the_users_were_given(made, text):
    model = TrajectoryModel.load(made[0].parent / demo.MODEL)
    simulation = simulate.paper(train=4, test=3, seed=0, batches=(4, 8, 24))
    right = 0
    for user in simulation.test:
        state = model.new_user(user.name)
        for t in range(1, 4):
            state.update(user.batch(t).X, user.batch(t).y)
        right += state.composition == simulation.truth[user.name]
    assert f'<th scope="row">36</th><td>{right} of 3</td>' in text


def test_the_true_kernel_is_chosen_and_said_in_words(text):
    assert '<tr class="marked"><th scope="row">LIN[log_steps30pre] + SE[hour] (the truth)</th>' in text
    assert "similar to what was observed at a similar hour" in text
    assert "repeats with period 2.97" in text  # truth 2.98


def test_other_seeds_work(tmp_path):
    page = demo.run(tmp_path, seed=3, study=TINY)
    assert page.exists()


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "pilot_users", lambda *given: pytest.fail("worked"))
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        demo.run(tmp_path / "file" / "deep")


@pytest.mark.slow
def test_the_whole_story_ends_well(tmp_path):
    """With the rows, new users and settings that it has by default; fewer pilot users and products to fit."""
    said = []
    pool = Pool.of("LIN[x]", "PER[x]", "SE[x]", "LIN[x]*PER[x]", "PER[x]*SE[x]")
    study = demo.Study(pilots=4, pool=pool, workers=1)
    text = demo.run(tmp_path, tell=said.append, study=study).read_text(encoding="utf-8")
    assert tuple(dict.fromkeys(now.stage for now in said)) == demo.STAGES
    assert '<th scope="row">187</th><td>12 of 12</td>' in text
