"""Every column of every exported table: its type, and what it says in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

TEXT, WHOLE, NUMBER, FLAG, TEXTS = "str", "int", "float", "bool", "tuple[str, ...]"
CONTEXT = "context."
"""What the name of a covariate that came with a request begins with."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: as it stands in the file.
        type: str, int, float, bool, or a list of texts.
        words: what it says.
    """

    name: str
    type: str
    words: str


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


_ASSIGNED = (
    "the action that was assigned: 1 is treatment, 0 is none; whether it reached the participant is another column"
)
_DELIVERED = "the action that was reported as delivered; empty if nobody reported, which does not mean 0"
_OUTCOME = "the outcome that counts for the decision; empty if none is known, which does not mean 0"
_SHARE = "the probability with which treatment (action 1) was drawn, whatever was drawn"

COLUMNS: dict[str, tuple[Column, ...]] = {
    "decisions": _columns(
        ("sequence", WHOLE, "number of the decision's entry in the ledger"),
        ("participant", TEXT, "the study's identifier of the participant"),
        ("decision", TEXT, "the decision's key, which deliveries and outcomes name"),
        ("decision_id", TEXT, "the decision's identifier in the answer to the app"),
        ("kind", TEXT, "kind of decision, from the protocol"),
        ("index", TEXT, "which decision of its kind, as the app counts"),
        ("decided_at", TEXT, "time of the decision by the app, with its zone"),
        ("received_at", TEXT, "time of recording, in UTC"),
        ("available", FLAG, "whether the participant could be treated at that time"),
        ("reasons", TEXTS, "why they could not"),
        ("action", WHOLE, _ASSIGNED),
        ("probability", NUMBER, _SHARE),
        ("probability_of_action", NUMBER, "the probability of the action that was assigned"),
        ("draw", NUMBER, "the number between 0 and 1 that was drawn: treatment if it is below the probability"),
        ("drawn_by", TEXT, "who drew: the service, or the app when it could not reach the service"),
        ("rung", TEXT, "what answered: the policy, or one of its substitutes"),
        ("rung_reason", TEXT, "why a substitute answered"),
        ("policy_version", TEXT, "version of the policy that served"),
        ("model_id", TEXT, "identifier of the model behind the policy"),
        ("composition", TEXT, "kernel that described the participant at that time"),
        ("advantage_mean", NUMBER, "expected gain of treatment, in units of the outcome"),
        ("advantage_sd", NUMBER, "standard deviation of that gain"),
        ("clipped", TEXT, "which bound held the probability back, if one did"),
        ("imputed", TEXTS, "covariates that were missing and filled in by the protocol's rule"),
        ("delivery_status", TEXT, "what the app reported last of the delivery; empty if nothing"),
        ("delivered_action", WHOLE, _DELIVERED),
        ("delivered_at", TEXT, "time of the delivery by the app"),
        ("outcome", NUMBER, _OUTCOME),
        ("outcome_key", TEXT, "key of the outcome that counts"),
        ("removed", FLAG, "whether the participant's data were removed on request; nearly all else is then empty"),
    ),
    "outcomes": _columns(
        ("sequence", WHOLE, "number of the outcome's entry in the ledger"),
        ("participant", TEXT, "the study's identifier of the participant"),
        ("outcome", TEXT, "the outcome's key, as the app named it"),
        ("decision", TEXT, "key of the decision it belongs to; empty if it belongs to none"),
        ("value", NUMBER, "the value; empty if it was looked for and is missing, which does not mean 0"),
        ("observed_at", TEXT, "time of the observation, with its zone"),
        ("received_at", TEXT, "time of recording, in UTC"),
        ("supersedes", TEXT, "key of the outcome that this one corrects"),
        ("counts", FLAG, "whether it is the one that counts for its decision"),
        ("left_out", TEXT, "why it does not count"),
    ),
    "policies": _columns(
        ("sequence", WHOLE, "number of the activation's entry in the ledger"),
        ("version", TEXT, "version of the policy"),
        ("activated_at", TEXT, "from when on it served, in UTC"),
        ("replaced_at", TEXT, "until when it served; empty if it still does"),
        ("reason", TEXT, "why it was activated"),
        ("model_id", TEXT, "identifier of the model behind it"),
        ("active", FLAG, "whether it serves now"),
    ),
    "incidents": _columns(
        ("sequence", WHOLE, "number of the incident's entry in the ledger"),
        ("incident", TEXT, "the incident's identifier"),
        ("kind", TEXT, "what happened"),
        ("severity", TEXT, "how bad it is"),
        ("participant", TEXT, "whom it concerns; empty if nobody in particular"),
        ("words", TEXT, "what happened, in words"),
        ("recorded_at", TEXT, "time of recording, in UTC"),
        ("open", FLAG, "whether nobody has acknowledged it"),
        ("acknowledged_at", TEXT, "when it was first acknowledged, in UTC"),
        ("acknowledged_by", TEXT, "by whom"),
        ("note", TEXT, "what they wrote"),
    ),
    "mrt": _columns(
        ("id", TEXT, "the study's identifier of the participant"),
        ("decision_point", WHOLE, "which decision of the participant, in the order of time, from 1"),
        ("decided_at", TEXT, "time of the decision by the app, with its zone"),
        ("outcome", NUMBER, _OUTCOME),
        ("treatment", WHOLE, _ASSIGNED),
        ("rand_prob", NUMBER, _SHARE),
        ("availability", WHOLE, "1 if the participant could be treated at that time, 0 if not"),
        ("delivered", WHOLE, _DELIVERED),
    ),
    "obp": _columns(
        ("round", WHOLE, "number of the row, from 0; rows are decisions with a known outcome while available"),
        ("action", WHOLE, _ASSIGNED),
        ("reward", NUMBER, "the outcome that counts for the decision"),
        ("pscore", NUMBER, "the probability of the action that was assigned"),
        ("position", WHOLE, "always 0: a decision is about one action"),
    ),
    "lifejacket": _columns(
        ("user_id", TEXT, "the study's identifier of the participant"),
        ("calendar_t", WHOLE, "which decision of the participant, in the order of time, from 1; all have as many rows"),
        ("in_study", WHOLE, "1 if the participant had this decision, 0 if the row only fills the table"),
        ("policy_num", WHOLE, "the policy that served: 1 for the first version that was activated; 0 if none had been"),
        ("action", WHOLE, _ASSIGNED),
        ("action_prob", NUMBER, _SHARE),
        ("reward", NUMBER, _OUTCOME),
        ("available", WHOLE, "1 if the participant could be treated at that time, 0 if not"),
    ),
    "dictionary": _columns(
        ("table", TEXT, "name of the table"),
        ("column", TEXT, "name of the column"),
        ("type", TEXT, "str: text; int: whole number; float: number; bool: true or false; tuple: texts, joined by ;"),
        ("words", TEXT, "what the column says"),
    ),
}  # fmt: skip
"""Columns of each table but for covariates, which depend on the trial."""

WITH_CONTEXT = ("decisions", "mrt", "obp", "lifejacket")
"""Tables that end with a column for each covariate that came with requests."""


def context_columns(types: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    """Columns of covariates, by name and type."""
    return tuple(
        Column(f"{CONTEXT}{name}", kind, f"the covariate {name} as it came with the request; empty if it did not come")
        for name, kind in types
    )
