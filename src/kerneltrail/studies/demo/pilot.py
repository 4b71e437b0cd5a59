"""The whole story: pilot users teach a graph of kernels, on which new users are then followed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kerneltrail.data import Simulation, simulate
from kerneltrail.kernels import Pool
from kerneltrail.kernels.phrases import counted
from kerneltrail.progress import Tell
from kerneltrail.report import graph
from kerneltrail.report.figures import NARROW, WIDE
from kerneltrail.report.model_page import GraphBlock
from kerneltrail.report.model_text import graph_lines
from kerneltrail.report.page import Block, Lines, Paragraph, Section, Table
from kerneltrail.studies.demo.newcomers import FOLLOWING, new_users
from kerneltrail.studies.demo.parts import Part, listed
from kerneltrail.studies.figure_pair import FigurePair
from kerneltrail.trajectory.fit import STAGES as FIT_STAGES
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.settings import Settings

STAGES = (*FIT_STAGES, FOLLOWING)
"""What `pilot_users` tells of, one after the other."""


@dataclass(frozen=True)
class Study:
    """How large the story is.

    Attributes:
        pilots, newcomers: numbers of users.
        batches: rows of each batch.
        pool: products on offer.
        settings: of the fit. Two products in a kernel at most take a third of the time that the default of three takes.
        workers: processes, all cores if None.
    """

    pilots: int = 6
    newcomers: int = 12
    batches: tuple[int, ...] = (3, 4, 10, 20, 50, 100)
    pool: Pool = field(default_factory=Pool.paper)
    settings: Settings = field(default_factory=lambda: Settings(largest=2))
    workers: int | None = None


def pilot_users(seed: int, tell: Tell = lambda now: None, study: Study | None = None) -> tuple[Part, Part]:
    """The paper's synthetic experiment (method §9.1): a graph learnt from pilot users, new users followed on it."""
    study = study or Study()
    simulation = simulate.paper(train=study.pilots, test=study.newcomers, seed=seed, batches=study.batches)
    settings = replace(study.settings, seed=seed)
    model = fit(simulation.train, pool=study.pool, settings=settings, workers=study.workers, progress=tell)
    drawn = _graph(model)
    blocks: list[Block] = [
        Paragraph(_setting(simulation, model)),
        GraphBlock(model),
        Paragraph(_why(model)),
        _paths(simulation, model),
        _alternatives(model),
        Paragraph(_agreement(model)),
    ]
    first = Part(Section("From pilot users, a graph of kernels", blocks), (drawn,), model)
    return first, new_users(model, simulation, tell)


def _setting(simulation: Simulation, model: TrajectoryModel) -> str:
    train = simulation.train
    kinds: dict[str, int] = {}
    for user in train:
        kernel = simulation.truth[user.name].text
        kinds[kernel] = kinds.get(kernel, 0) + 1
    truly = " and ".join(f"{count} follow {kernel}" for kernel, count in kinds.items())
    largest = model.settings.largest
    short = f"a kernel has at most {largest} of them, to keep this page quick; the default is {Settings().largest}"
    return (
        f"Of {len(train)} simulated pilot users, {truly}, which the fit is not told. Their rows arrive in "
        f"batches, after which {listed(train.users[0].ends)} rows have been seen. Kernels are put together from "
        f"{len(model.pool)} products ({short}). Which kernel each pilot user has after each batch is then sampled for "
        "all of them together: a step from kernel to kernel that others took as well costs less than a new one. The "
        "steps taken make a graph."
    )


def _graph(model: TrajectoryModel) -> FigurePair:
    drawn = graph.Graph.of(model.pool, model.paths)
    nodes = ", ".join(graph.name_of(node.composition) for node in model.nodes)
    return FigurePair(
        "graph",
        graph.draw(drawn, width=WIDE),
        graph.draw(drawn, width=NARROW),
        f"The learnt graph: from the root, arrows lead to {nodes}, with the share of users on each.",
        "The learnt graph. A box is a kernel; in grey, the batch from which it is in use. 2/3 on an arrow says that "
        "of three departures from a box two went this way; a loop is to stay for another batch. Broader arrows were "
        "taken more often.",
    )


def _why(model: TrajectoryModel) -> str:
    return (
        f"The graph has {counted(len(model.nodes), 'kernel')} and no more because early batches say little: after a "
        "few rows kernels differ by about as much as one more arrow costs, so ways through simpler kernels gain next "
        "to nothing, and of graphs that are nearly as probable as the best the simplest is kept. The published "
        "procedure, Settings.published(), judges a kernel at the best hyperparameters of its own users and leaves out "
        "what a choice means for the next batch, and so tends to paths that begin simple and grow, as in the paper's "
        "figure."
    )


def _paths(simulation: Simulation, model: TrajectoryModel) -> Table:
    ends = simulation.train.users[0].ends
    rows = [
        [name, simulation.truth[name].text, *(graph.name_of(kernel) for kernel in path)] for name, path in model.table()
    ]
    caption = "The pilot users' kernels after each batch, in the chosen structure"
    return Table(caption, ("user", "truth", *(f"{end} rows" for end in ends)), rows, words=True)


def _alternatives(model: TrajectoryModel) -> Lines:
    chosen, *others = model.structures
    lines = []
    for other in others:
        by = other.log_joint - chosen.log_joint
        lines += [
            f"{by:+.2f}, {counted(other.nodes, 'kernel')}, {counted(other.edges, 'arrow')}, "
            f"{counted(other.visits, 'sample')}",
            *(f"  {line}" for line in graph_lines(model.pool, other.paths)),
            "",
        ]
    heading = (
        "Other structures that were sampled, with their log joint relative to the chosen one, which is the simplest "
        f"within {model.settings.margin:g} of the best"
    )
    return Lines(heading, lines[:-1] or ["none: every sample has this graph"])


def _agreement(model: TrajectoryModel) -> str:
    diagnostics = model.diagnostics
    rhat = {name: f"{value:.2f}" for name, value in diagnostics.rhat.items()}
    return (
        f"Sampled were {counted(len(diagnostics.log_joint), 'chain')} of {counted(diagnostics.sweeps, 'sweep')}, begun "
        f"apart. R-hat, which is 1 where chains agree, is {rhat['log_joint']} for the log joint, {rhat['edges']} for "
        f"the number of arrows and {rhat['agreement']} for the agreement with the chosen paths; sampling stops once "
        f"the largest is below {model.settings.rhat:g}."
    )
