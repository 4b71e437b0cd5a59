"""How large the errors are, beside those of simple rules: what the kernel adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kerneltrail.data import Schema
from kerneltrail.evaluation.baselines import RUNNING, SHARED
from kerneltrail.evaluation.intervals import Interval, mean_over_users
from kerneltrail.evaluation.metrics import rmse
from kerneltrail.evaluation.verdicts import verdict
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import capitalised, counted, limit, rounded, with_unit
from kerneltrail.report.model_page.followed_user import UserView, caution
from kerneltrail.report.model_page.numbers import digits, percent
from kerneltrail.report.page import Beside, Block, Expert, Paragraph, Section, Sentences, Table

RULES = {
    RUNNING: "the average of all the user's rows before the batch",
    SHARED: "the pilot users' regression on the covariates, moved to the user's own level so far",
}
WORDS = {"wins": "smaller", "ties": "not clearly different", "loses": "larger"}


@dataclass(frozen=True)
class Compared:
    """Errors over all batches but the first of all users.

    Attributes:
        rule: a simple rule's name.
        ours, theirs: RMSE over all rows.
        difference: of the users' RMSE, ours less theirs, with its interval over users.
    """

    rule: str
    ours: float
    theirs: float
    difference: Interval


def compared(users: Sequence[UserView]) -> tuple[Compared, ...]:
    """Our errors beside those of every simple rule that is known; empty where nobody has a second batch."""
    known = [one for one in users if len(one.ahead) > 1]
    rules = dict.fromkeys(name for one in known for ahead in one.ahead[1:] for name in ahead.simple)
    found = []
    for rule in rules:
        ours = [np.concatenate([a.y - a.mean for a in one.ahead[1:]]) for one in known]
        theirs = [np.concatenate([a.y - a.simple[rule] for a in one.ahead[1:]]) for one in known]
        gaps = [_size(a) - _size(b) for a, b in zip(ours, theirs, strict=True)]
        whole = [_size(np.concatenate(errors)) for errors in (ours, theirs)]
        found.append(Compared(rule, whole[0], whole[1], mean_over_users(gaps)))
    return tuple(found)


def _size(errors: Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def errors_section(users: Sequence[UserView], schema: Schema) -> Section | None:
    """The section on errors; None where nobody has a second batch."""
    rows = compared(users)
    if not rows:
        return None
    known = [one for one in users if len(one.ahead) > 1]
    count = sum(len(ahead.y) for one in known for ahead in one.ahead[1:])
    ours = with_unit(digits(rows[0].ours), schema.unit(schema.target))
    blocks: list[Block] = [
        Paragraph(
            f"How far predictions of {schema.label(schema.target)} lie from what was then observed: the root mean "
            f"squared error (RMSE), over {count:,} rows of {counted(len(known), 'user')}, from the second batch on. "
            f"Beside it stands what simple rules get from the same rows.{caution(known)}"
        ),
        Beside(
            [
                Sentences(f"The typical error is {ours}", [_sentence(row, schema) for row in rows]),
                Table(
                    f"RMSE of {schema.label(schema.target)} by batch, over the users who have it",
                    ("batch", "users", "rows", "kernels", *(row.rule for row in rows)),
                    _by_batch(known, [row.rule for row in rows]),
                ),
            ]
        ),
        Expert("User by user", [_by_user(known, [row.rule for row in rows], schema)]),
    ]
    return Section("How large are the errors?", blocks, "errors")


def _sentence(row: Compared, schema: Schema) -> str:
    unit, gap = schema.unit(schema.target), row.difference
    theirs = f"{capitalised(row.rule)} ({RULES[row.rule]}): {with_unit(digits(row.theirs), unit)}"
    text = f"{theirs}. Over all rows, the kernels' error is {_amount(row)}"
    if gap.users < 2:
        return f"{text}; with one user nothing can be said of others."
    wide = gap.high - gap.low
    mean, low, high = rounded(gap.mean, wide), limit(gap.low, wide), limit(gap.high, wide)
    average = "no difference on average" if mean == "0" else f"average difference {with_unit(mean, unit)}"
    return (
        f"{text}. User by user, over {gap.users} users, it is {WORDS[verdict('rmse', gap.low, gap.high)]} ({average}, "
        f"90 % interval {low} to {high})."
    )


def _amount(row: Compared) -> str:
    """How our error stands to theirs, of which "0 % less" says nothing."""
    if digits(row.ours) == digits(row.theirs):
        return "the same, to the digits shown"
    less = 1.0 - row.ours / row.theirs if row.theirs > 0 else 0.0
    amount = percent(abs(less))
    return f"{'less than 1 %' if amount == '0 %' else amount} {'smaller' if less >= 0 else 'larger'}"


def user_errors(one: UserView, schema: Schema) -> str:
    """One user's typical error from the second batch on, beside those of simple rules; empty with a single batch."""
    later = one.ahead[1:]
    if not later:
        return ""
    y = np.concatenate([a.y for a in later])
    ours = with_unit(digits(rmse(np.concatenate([a.mean for a in later]), y)), schema.unit(schema.target))
    rules = [f"{name} {digits(rmse(np.concatenate([a.simple[name] for a in later]), y))}" for name in later[0].simple]
    when = (
        "Batch 2, predicted before it was"
        if len(later) == 1
        else "Batches from the second on, predicted before they were"
    )
    return f"{when} seen: typical error (RMSE) {ours} ({', '.join(rules)})."


def _by_batch(known: Sequence[UserView], rules: Sequence[str]) -> list[list[str]]:
    table = []
    for t in range(1, max(len(one.ahead) for one in known)):
        at = [one.ahead[t] for one in known if t < len(one.ahead)]
        y = np.concatenate([a.y for a in at])
        means = [[a.mean for a in at], *([a.simple[rule] for a in at] for rule in rules)]
        errors = [digits(rmse(np.concatenate(mean), y)) for mean in means]
        table.append([str(t + 1), str(len(at)), f"{len(y):,}", *errors])
    return table


def _by_user(known: Sequence[UserView], rules: Sequence[str], schema: Schema) -> Table:
    rows = []
    for one in known:
        later = one.ahead[1:]
        y = np.concatenate([a.y for a in later])
        means = [[a.mean for a in later], *([a.simple[rule] for a in later] for rule in rules)]
        rows.append([one.user.name, f"{len(y):,}", *(digits(rmse(np.concatenate(mean), y)) for mean in means)])
    caption = f"RMSE of {schema.label(schema.target)} from the second batch on, user by user"
    return Table(caption, ("user", "rows", "kernels", *rules), rows)
