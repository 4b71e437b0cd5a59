"""How firm the graph is, and how it was sampled, in words."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.report.model_page.sampling import chains_section, draws_of, firmness
from trajectory.small import small_model


def visited(visits, **traces):
    model = small_model()
    chosen = replace(model.structures[0], visits=visits)
    diagnostics = replace(
        model.diagnostics, sweeps=200, traces={"log_joint": np.random.default_rng(0).normal(size=(4, 200)), **traces}
    )
    return replace(model, structures=(chosen, *model.structures[1:]), diagnostics=diagnostics)


@pytest.mark.parametrize(
    ("visits", "said"),
    [(9, "9 of 400 draws: many graphs are nearly as good; do not read much into single arrows"),
     (100, "100 of 400 draws: other graphs are nearly as good, so read single arrows with care"),
     (300, "300 of 400 draws: most draws are this very graph")],
)  # fmt: skip
def test_the_share_of_draws_is_told_with_words(visits, said):
    model = visited(visits)
    assert draws_of(model) == 400  # half of the sweeps are warm-up
    assert said in firmness(model)


def test_the_average_agreement_is_that_of_the_later_half():
    agreement = np.tile(np.r_[np.zeros(100), np.full(100, 0.87)], (4, 1))
    assert "gives 87 % of the pilot users' batches the same kernel" in firmness(visited(9, agreement=agreement))


def test_one_kernel_is_certain_by_construction():
    model = visited(400)
    alone = replace(model, nodes=model.nodes[:1])
    assert "by construction and say nothing about how sure it is" in firmness(alone)


def test_accepted_proposals_are_explained_and_behind_a_click():
    *_, last = chains_section(small_model()).blocks
    assert last.summary == "Proposals accepted"
    assert "A move proposes another way" in last.blocks[0].caption
