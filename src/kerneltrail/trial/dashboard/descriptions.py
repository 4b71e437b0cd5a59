"""Which descriptions fit how many participants, by the policy that serves: now, and at each version before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kerneltrail.kernels import NOTHING
from kerneltrail.kernels.phrases import counted
from kerneltrail.report.model_text import node_noun
from kerneltrail.report.page import Expert, Paragraph, Section, Table
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.dashboard.drawing import GALLERY, Shares, draw_shares, places
from kerneltrail.trial.dashboard.texts import share
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.versions import Version, Versions

MOST = 5
"""Kernels that are drawn; further ones are in the table."""
HEADING = "Which descriptions fit participants?"


def nouns(model: LearntGraph) -> dict[str, str]:
    """The kernels of a model in words, by what decisions call them."""
    if not isinstance(model, TrajectoryModel):
        return {}
    return {node.composition.text or NOTHING: node_noun(model, node) for node in model.selectable}


def frequencies(state: State, users: Mapping[str, NewUser]) -> list[tuple[Version, Counter[str]]]:
    """For each version on the way to the one that serves: how many participants it knew had which kernel.

    Kernels are those of the participants as they are followed now: a correction changes what is said of earlier
    versions too. Versions that lie before what users remember are left out.
    """
    steps = {name: {step.batch: step.composition.text or NOTHING for step in user.history}
             for name, user in users.items()}  # fmt: skip
    lengths: dict[str, int] = {}
    found = []
    versions = Versions(state)
    for version in versions.chain(versions.active.version) if versions.active else ():
        for name, change in version.stored["participants"].items():
            lengths[name] = len(change["rebuilt"]) if "rebuilt" in change else lengths.get(name, 0) + 1
        known = {name: min(lengths[name], user.batches) for name, user in users.items() if lengths.get(name)}
        if known and all(batch in steps[name] for name, batch in known.items()):
            found.append((version, Counter(steps[name][batch] for name, batch in known.items())))
    return found


def descriptions_section(
    state: State, users: Mapping[str, NewUser | None], nouns: Mapping[str, str], zone: str, updates: Sequence[float]
) -> Section:
    """How many participants each description fits best; `users` are those of whom the policy knows outcomes."""
    active = Versions(state).active
    if active is None:
        return Section(HEADING, [Paragraph("No policy serves.")], "kernels")
    if not users:
        words = f"Policy {active.version}, which serves, knows no outcomes of participants yet."
        return Section(HEADING, [Paragraph(words)], "kernels")
    ready = {name: user for name, user in users.items() if user is not None}
    found = frequencies(state, ready)
    wait = ""
    if len(ready) < len(users):
        wait = f" {counted(len(users) - len(ready), 'participant')} more: not at hand now."
    if not found:
        people = counted(len(users), "participant")
        words = f"Policy {active.version} knows {people}; their descriptions are not at hand now."
        return Section(HEADING, [Paragraph(words)], "kernels")
    total: Counter[str] = Counter()
    for _, counts in found:
        total.update(counts)
    names = [name for name, _ in total.most_common()]
    at = places([instant(version.made_at) for version, _ in found], zone)
    lines = tuple(
        (nouns.get(name, name), at, tuple(counts[name] / counts.total() for _, counts in found))
        for name in names[:MOST]
    )
    last = found[-1][1]
    now = "; ".join(f"{nouns.get(name, name)}: {share(last[name], last.total())}" for name in names if last[name])
    words = f"Of those whose outcomes policy {active.version}, which serves, knows: {now}.{wait}"
    caption = f"Share of participants by the description that fits best, after each update, by policy {active.version}."
    rows = [(nouns.get(name, name), name, *(str(counts[name]) for _, counts in found)) for name in names]
    columns = ("description", "kernel", *(f"policy {version.version}" for version, _ in found))
    table = Table("Participants by description", columns, rows)
    picture = GALLERY.picture(draw_shares, Shares(lines, tuple(updates), "share of participants"), words, caption)
    return Section(HEADING, [Paragraph(words), picture, Expert("The numbers", [table])], "kernels")
