"""Checks of one column at a time: what is missing, constant, coded, far away, skewed, piled up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.checks.rows import Index, who
from kerneltrail.data.checks.spread import KNOWN_CODES, skewness
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import listing, number

_OFTEN_MISSING = 0.2
_FEW_ROWS = 30
"""Fewer rows say nothing about a distribution."""
_SPREAD_OUT = 20
"""A target with so many different values is spread out."""
_PILED, _HIGH_PILE = 0.1, 0.25
"""Shares of rows with the same value: worth a note, worth a warning."""
_AT_CEILING = 0.05
_SKEWED = 2.0


def percent(share: float) -> str:
    """A share in a sentence.

    >>> percent(0.344), percent(0.004), percent(0.00001)
    ('34 %', '0.4 %', 'less than 0.1 %')
    """
    if 0.0 < share < 0.0005:
        return "less than 0.1 %"
    return f"{100.0 * share:.{0 if share >= 0.095 or share == 0 else 1}f} %"


def rows_of(count: int) -> str:
    """So many rows."""
    return "1 row" if count == 1 else f"{count} rows"


def missing(data: Inspection) -> Iterator[Finding]:
    """Columns with missing values: those that a fit would refuse, those that cost many rows or much of a user, others.

    Columns that are missing in the same rows are told together. Of all it is said what happens to these rows.
    """
    rows, schema = data.rows, data.schema
    together: dict[tuple[bytes, bool], list[str]] = {}
    for name in schema.values:
        gaps = np.isnan(rows.values[name])
        if gaps.any():
            together.setdefault((gaps.tobytes(), schema.policy(name) == "error"), []).append(name)
    sparse: dict[tuple[str, ...], list[str]] = {}
    for (_, refused), names in together.items():
        gaps = np.flatnonzero(np.isnan(rows.values[names[0]]))
        share = len(gaps) / rows.count
        which = f"column {names[0]!r} is" if len(names) == 1 else f"columns {listing(map(repr, names))} are"
        message = f"{which} missing in {rows_of(len(gaps))} ({percent(share)}): {rows.where(gaps)}"
        users, numbers = rows.users_of(gaps), rows.numbered(gaps)
        if refused:
            advice = (
                "Rows with a missing value are refused: --missing drop leaves them out, or fill them in beforehand."
            )
            yield Finding("warning", "missing", tuple(names), users, numbers, message, advice)
        elif share > _OFTEN_MISSING:
            advice = (
                f"{_handled(data, names)} If the column can be spared, leave it out instead; and ask why it is "
                "missing: what is left may not be typical."
            )
            yield Finding("note", "missing", tuple(names), users, numbers, message, advice)
        else:
            sparse.setdefault(_mostly_missing(data, names[0]), []).extend(names)
    for users, names in sparse.items():
        if users:
            which = f"column {names[0]!r} is" if len(names) == 1 else f"columns {listing(map(repr, names))} are"
            message = f"{which} missing in most rows of {who(users)}"
            advice = f"{_handled(data, names)} Little is left there. Did the device or the form lack it?"
            yield Finding("note", "missing", tuple(names), users, (), message, advice)
    yield from _seldom_missing(data, sparse.get((), []))
    yield from _not_drawn(data)


def _not_drawn(data: Inspection) -> Iterator[Finding]:
    """Actions and their probabilities that the table leaves empty where nobody could act."""
    together: dict[bytes, list[str]] = {}
    for name, gaps in data.rows.idle.items():
        together.setdefault(gaps.tobytes(), []).append(name)
    for names in together.values():
        empty = np.flatnonzero(data.rows.idle[names[0]])
        if len(empty):
            which = f"column {names[0]!r} is" if len(names) == 1 else f"columns {listing(map(repr, names))} are"
            share = percent(len(empty) / data.rows.count)
            message = f"{which} missing in {rows_of(len(empty))} ({share}) at which the user was not available"
            advice = "Nothing was drawn there, so that they are taken as 0."
            users, numbers = data.rows.users_of(empty), data.rows.numbered(empty)
            yield Finding("note", "missing", tuple(names), users, numbers, message, advice)


def _seldom_missing(data: Inspection, names: list[str]) -> Iterator[Finding]:
    """What is missing here and there; of users without their table what was dropped and filled when they were read."""
    rows = data.rows
    counts = {name: int(np.isnan(rows.values[name]).sum()) for name in names}
    shares = {name: f" ({percent(count / rows.count)})" for name, count in counts.items()}
    if rows.table is None:
        by_column = {**data.report.dropped, **data.report.filled}
        counts = {name: sum(by_user.values()) for name, by_user in by_column.items()}
    if counts:
        each = [f"{name!r} in {rows_of(count)}{shares.get(name, '')}" for name, count in counts.items()]
        gaps = np.flatnonzero(np.any([np.isnan(rows.values[name]) for name in names], axis=0)) if names else ()
        message = f"values are missing: {listing(each)}"
        users, numbers = rows.users_of(gaps), rows.numbered(gaps)
        yield Finding("note", "missing", tuple(counts), users, numbers, message, _handled(data, list(counts)))


def _handled(data: Inspection, names: Sequence[str]) -> str:
    """What happens to rows in which columns are missing, in sentences."""
    policies = {name: data.schema.policy(name) for name in names}
    said = []
    if dropped := [name for name, policy in policies.items() if policy in ("drop", "error")]:
        said.append(f"Rows without {listing(map(repr, dropped), 'or')} are left out{_in_all(data, dropped)}.")
    for name, policy in policies.items():
        if name not in dropped:
            value = repr(policy) if isinstance(policy, str) else number(policy)
            said.append(f"{name!r} is filled in with {value} there.")
    return " ".join(said)


def _in_all(data: Inspection, names: Sequence[str]) -> str:
    """How many rows lack one of several columns."""
    if len(names) < 2 or data.rows.table is None:
        return ""
    gaps = np.any([np.isnan(data.rows.values[name]) for name in names], axis=0)
    return f", {int(gaps.sum())} of {rows_of(data.rows.count)} in all"


def _mostly_missing(data: Inspection, name: str) -> tuple[str, ...]:
    """Users of whom most values of a column are missing."""
    values, groups = data.rows.values[name], data.rows.groups
    return tuple(user for user, index in groups.items() if len(index) > 4 and np.isnan(values[index]).mean() > 0.5)


def unknown_levels(data: Inspection) -> Iterator[Finding]:
    """Levels that a model does not know."""
    for each in data.report.unknown:
        count, users = len(each.rows), tuple(each.users)
        message = f"covariate {each} ({rows_of(count)} of {who(users)})"
        advice = f"{'This row is' if count == 1 else 'These rows are'} left out. Is it another word for a known one?"
        yield Finding("warning", "level", (each.column,), users, each.rows, message, advice)


def constant(data: Inspection) -> Iterator[Finding]:
    """Columns that do not vary: at all, within every user, or within some as far as the target goes."""
    rows, target = data.rows, data.schema.target
    for name in (target, *data.schema.covariates):
        values = rows.values[name]
        present = data.present(name)
        distinct = np.unique(values[present])
        if len(present) > 1 and len(distinct) == 1:
            level = data.schema.levels.get(name)
            shown = repr(level[int(distinct[0])]) if level else number(float(distinct[0]))
            message = f"{data.named(name)} is {shown} in all {rows_of(len(present))} that have it"
            useless = "No kernel can learn from it: leave it out."
            advice = "There is nothing to predict. Is it the right column?" if name == target else useless
            yield Finding("warning", "constant", (name,), (), (), message, advice)
            continue
        groups = {user: index[np.isfinite(values[index])] for user, index in rows.groups.items()}
        still = [user for user, index in groups.items() if len(index) > 4 and len(np.unique(values[index])) == 1]
        long = [user for user, index in groups.items() if len(index) > 4]
        if name == target:
            yield from _still_target(data, {user: groups[user] for user in still if len(groups[user]) >= 10})
        elif len(long) > 1 and len(still) == len(long):
            message = f"{data.named(name)} never changes within a user, only from one user to another"
            advice = "A kernel is selected within each user's rows, where it is constant and cannot help: leave it out."
            yield Finding("warning", "constant-within", (name,), (), (), message, advice)


def _still_target(data: Inspection, groups: dict[str, Index]) -> Iterator[Finding]:
    if groups:
        name, users = data.schema.target, tuple(groups)
        message = f"{data.named(name)} never changes for {who(users)}"
        advice = "There is nothing to learn from these users. Was the device worn, the question answered?"
        numbers = data.rows.numbered(row for index in groups.values() for row in index)
        yield Finding("warning", "constant", (name,), users, numbers, message, advice)


def sentinels(data: Inspection) -> Iterator[Finding]:
    """Values that come again and again, far away from the rest: codes for a missing value."""
    for name in data.measured:
        far = data.far[name]
        for code in () if far is None else far.codes:
            index = data.at(name, [code])
            rest = f"far from the rest, which lies between {number(far.low)} and {number(far.high)}" if far else ""
            message = (
                f"{data.named(name)} is {number(code)} in {rows_of(len(index))} ({data.rows.where(index)}), {rest}"
            )
            advice = (
                "It looks like a code for a missing value. Empty these cells and add --missing drop; left as it is, it "
                f"stretches the scale of {name!r} and hides all else."
            )
            users = data.rows.users_of(index)
            yield Finding("warning", "sentinel", (name,), users, data.rows.numbered(index), message, advice)


def strays(data: Inspection) -> Iterator[Finding]:
    """Single values far away from the rest."""
    for name in data.measured:
        far = data.far[name]
        if far is None or not far.strays:
            continue
        index = data.at(name, far.strays)
        shown = listing([number(value) for value in far.strays])
        message = (
            f"{data.named(name)} is {shown} in {data.rows.where(index)}, far from the rest, which lies between "
            f"{number(far.low)} and {number(far.high)}"
        )
        code = any(value in KNOWN_CODES for value in far.strays)
        guess = "A code for a missing value?" if code else "A slipped decimal point, another unit?"
        effect = "pulls every fit towards itself" if name == data.schema.target else "squeezes all others together"
        advice = f"{guess} Correct it or empty the cell. If it is real, keep it, but one such value {effect}."
        users = data.rows.users_of(index)
        yield Finding("warning", "far", (name,), users, data.rows.numbered(index), message, advice)


def counts(data: Inspection) -> Iterator[Finding]:
    """Counts with a long tail, which want a logarithm, unless the table has that already."""
    skewed = [name for name in data.measured if _is_skewed_count(data.usual(name))]
    target = data.schema.target
    if target in skewed:
        values = data.usual(target)
        message = (
            f"target {target!r} is a count with a long tail: half of its values are at most "
            f"{number(float(np.median(values)))}, the largest is {number(float(values.max()))}"
        )
        advice = (
            f"Take its logarithm, such as log({target} + 0.5), as the target: noise is taken to be a bell curve of one "
            "width."
        )
        yield Finding("warning", "count", (target,), (), (), message, advice)
    bare = [name for name in skewed if name != target and not data.rises(name)]
    bare = [name for name in bare if all(data.likeness(name, other) != "order" for other in data.measured)]
    if bare:
        are = "is a count with a long tail" if len(bare) == 1 else "are counts with long tails"
        message = f"{data.listed(bare)} {are}"
        advice = f"On a logarithm, such as log({bare[0]} + 0.5), small and large counts are told apart equally well."
        yield Finding("note", "count", tuple(bare), (), (), message, advice)


def _is_skewed_count(values: Array) -> bool:
    if not _is_count(values):
        return False
    skew = skewness(values)
    return skew > _SKEWED and abs(skewness(np.log(values + 0.5))) < 0.5 * skew


def _is_count(values: Array) -> bool:
    if len(values) < _FEW_ROWS or values.min() < 0.0 or values.max() < 20.0:
        return False
    return bool((values == np.round(values)).all()) and len(np.unique(values)) >= 12


def piles(data: Inspection) -> Iterator[Finding]:
    """A target that is spread out but for one value: zeros, or the end of a scale."""
    name = data.schema.target
    values = data.usual(name)
    if len(values) < _FEW_ROWS:
        return
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == 2:
        message = f"target {name!r} has only two values, {number(float(distinct[0]))} and {number(float(distinct[1]))}"
        advice = "It is fitted as if it were a measurement: read predictions as shares, and intervals with care."
        yield Finding("note", "two-values", (name,), (), (), message, advice)
    if len(distinct) <= _SPREAD_OUT:
        return
    order = np.argsort(counts)
    most, next_most = int(order[-1]), int(counts[order[-2]])
    value, share = float(distinct[most]), counts[most] / len(values)
    at_top = most == len(distinct) - 1
    if not (most == 0 or at_top or value == 0.0) or counts[most] < 3 * next_most:
        return
    if share < (_AT_CEILING if at_top else _PILED):
        return
    index = data.at(name, [value])
    others = distinct[distinct != value]
    where = "the largest value" if at_top else "the smallest value" if most == 0 else "neither small nor large"
    message = (
        f"{percent(share)} of target {name!r} ({rows_of(len(index))}) are exactly {_zero(value)}, {where}; the others "
        f"are spread between {number(float(others[0]))} and {number(float(others[-1]))}"
    )
    advice = _CEILING if at_top else _ZEROS
    severity = "warning" if at_top and share >= _HIGH_PILE else "note"  # zeros are learnt, and no mistake
    code = "ceiling" if at_top else "zeros"
    yield Finding(severity, code, (name,), data.rows.users_of(index), data.rows.numbered(index), message, advice)  # type: ignore[arg-type]


_ZEROS = (
    "Two things are mixed: whether there is anything at all, and how much. A fit learns how often that is, for its "
    "intervals ('shape: automatic'); but effects are on the mean of both. To tell the two apart, fit twice: on a "
    "column of 0 and 1 for whether there is anything, and on the other rows for how much."
)
_CEILING = (
    "It looks like the end of a scale, or a device's limit: values beyond it were cut off, which a model cannot know. "
    "If the uncut values exist, use them; else read predictions near the limit as 'at least'."
)


def _zero(value: float) -> str:
    """A value that many rows have; the logarithm of no steps is recognised."""
    for offset in (0.5, 0.1, 0.01, 0.001):
        if abs(value - np.log(offset)) < 5e-3 * abs(value):
            return f"{number(value)}, which is log(0 + {offset:g})"
    return number(value)


CHECKS = (
    Check("missing values", missing),
    Check("levels that the model does not know", unknown_levels, lambda data: bool(data.pilot and data.schema.levels)),
    Check("constant columns", constant),
    Check("codes for missing values", sentinels, told=("far",)),
    Check("values far from the rest", strays),
    Check("counts with a long tail", counts),
    Check("zeros or a limit in the target", piles),
)
