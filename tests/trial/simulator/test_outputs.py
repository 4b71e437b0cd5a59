import csv
import json
import re

import numpy as np
import pytest

from kerneltrail.trial.simulator.outputs import write_study
from kerneltrail.trial.simulator.page import _in_short
from kerneltrail.trial.simulator.study import Run, simulate
from kerneltrail.trial.simulator.summary import summarised

from .made import design, stress, study


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out, known = tmp_path_factory.mktemp("study"), study()
    designs = [design(3, 3), design(3, 3, "clip=0.1:0.9")]
    runs = simulate(known, designs, range(3), ("ours", "fixed", "never", "heartsteps"))
    return out, runs, write_study(out, known, runs)


def test_the_page_stands_alone_and_has_all_its_parts(written):
    out, _, _ = written
    page = (out / "index.html").read_text()
    assert not re.findall(r"""(?:src|href|srcset)=["'](?!data:|#)""", page)
    for heading in ("In short", "What people get", "Will the effect be found?", "What goes wrong"):
        assert heading in page
    assert "limits 0.1–0.9" in page
    assert "nan" not in re.sub(r"data:image[^\"]*", "", page).lower().replace("nance", "")


def test_the_page_says_once_what_is_assumed_of_availability_and_each_sentence_once(written):
    page = (written[0] / "index.html").read_text().replace("\u00a0", " ")
    assert page.count("Somebody can act at 80 % of the decision points") == 1
    short = re.search(r'id="short".*?</section>', page, re.DOTALL)[0]
    sentences = re.findall(r"<li>(.*?)</li>", short, re.DOTALL)
    assert len(sentences) == len(set(sentences)) >= 3
    assert short.count("95 % interval that so many trials leave") == 1


def test_numbers_of_a_column_have_the_same_decimals(written):
    page = (written[0] / "index.html").read_text().replace("\u00a0", " ")
    columns = 0
    for body in re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL):
        rows = [re.findall(r"<t[dh][^>]*>\s*(.*?)\s*</t[dh]>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]
        for column in zip(*rows, strict=True):
            if all(re.fullmatch(r"[−\d.± ]+", cell) for cell in column):
                columns += 1
                assert len({len(part.partition(".")[2]) for cell in column for part in cell.split(" ± ")}) == 1, column
    assert columns > 10


def test_designs_of_which_the_same_is_to_be_said_are_named_together(written):
    def better(run):
        return Run(run.design, run.policy, run.seed, {**run.values, "mean": float(run.policy == "ours")}, 1.0)

    alike = [better(each) for each in written[1] if each.policy in ("ours", "never")]
    words = _in_short(summarised(alike), study())
    assert [each for each in words if "by the mean outcome" in each] == [
        "In all designs, by the mean outcome, the trial's policy does better than never."
    ]


def table(out, name):
    return list(csv.DictReader((out / "tables" / f"{name}.csv").read_text().splitlines()))


def test_tables_have_a_row_for_each_design_and_policy(written):
    out, runs, _ = written
    rows = table(out, "designs")
    assert len(rows) == 8
    first = next(row for row in rows if row["policy"] == "ours")
    values = [run.values["mean"] for run in runs if run.policy == "ours" and run.design.label == first["design"]]
    assert float(first["mean"]) == pytest.approx(np.mean(values))
    assert float(first["mean_se"]) == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
    assert len(table(out, "runs")) == 24
    assert json.loads((out / "results.json").read_text())["drive"] == "quick"


def test_pairs_are_of_the_same_seeds(written):
    _, runs, summary = written
    pair = next(each for each in summary.pairs if each.other == "fixed" and each.measure == "mean")
    of = {(run.policy, run.seed): run.values["mean"] for run in runs if run.design.label == pair.design}
    gaps = [of["ours", seed] - of["fixed", seed] for seed in range(3)]
    assert pair.difference.mean == pytest.approx(np.mean(gaps))
    assert pair.difference.users == 3


def test_where_a_lower_outcome_is_better_the_verdicts_turn_round(written, tmp_path):
    """Prompts raise the outcome, so never is best, and what is closer to it is better."""
    known = stress(effect=3.0)
    runs = simulate(known, [design(3, 4)], range(4), ("ours", "always", "never"))
    summary = write_study(tmp_path, known, runs)
    verdicts = {(pair.other, pair.measure): pair.verdict for pair in summary.pairs}
    assert verdicts["always", "mean"] == "better"
    assert verdicts["never", "mean"] == "worse"
    assert {measure for _, measure in verdicts} == {"mean", "p75"}
    turned = {pair.other: pair.verdict for pair in summarised(runs).pairs if pair.measure == "mean"}
    assert turned == {"always": "worse", "never": "better"}
    assert all(
        pair.difference.mean < 0.0 for pair in summary.pairs if pair.other == "always"
    )  # of the outcome, as it is
    page = (tmp_path / "index.html").read_text()
    assert "does better than always; it does worse than never" in page
    assert "To the left of the line, ours is better" in page
    assert "75th percentile, above which a quarter of the people lie" in page
    assert "a lower value of" in page
    assert "25th percentile" not in page
    assert {row["verdict"] for row in table(tmp_path, "pairs") if row["other"] == "always"} >= {"better"}
    assert "p75" in table(tmp_path, "runs")[0]
    before = (written[0] / "index.html").read_text()
    assert "To the right of the line, ours is better" in before
    assert "25th percentile, below which a quarter of the people lie" in before
    assert "a higher value of" in before


def run(seed, truth, estimate, error, p):
    found = {"estimate": estimate, "error": error, "low": estimate - 2 * error, "high": estimate + 2 * error, "p": p}
    names = ("mean", "p25", "regret", "at_limit", "doses", "probability", "fallback", "median_ms", "p95_ms")
    values = {**dict.fromkeys(names, 1.0), "truth": truth, "wcls": found, "deciles": [[0, 0, 0]] * 10, "counts": {}}
    return Run(design(), "ours", seed, {**values, "facts": {}}, 1.0)


def test_bias_coverage_and_power_are_counted_against_the_mean_truth():
    """The first interval holds its own trial's truth, but not that of all trials; the second the other way round."""
    runs = [run(0, 0.4, 0.4, 0.05, 0.001), run(1, 0.0, 0.15, 0.05, 0.2), run(2, 0.2, 0.2, 0.05, 0.01)]
    (line,) = summarised(runs).lines
    assert line.finding.truth == pytest.approx(0.2)
    assert line.finding.bias.mean == pytest.approx(0.05)
    assert line.finding.coverage.mean == pytest.approx(2 / 3)
    assert line.finding.power.mean == pytest.approx(2 / 3)
