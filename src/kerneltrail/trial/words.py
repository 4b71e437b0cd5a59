"""A decision in words: what was decided, with which chance, and why, for a coordinator to read."""

from __future__ import annotations

from kerneltrail.kernels.phrases import capitalised, listing, rounded, with_unit
from kerneltrail.trial.answer import Decision
from kerneltrail.trial.protocol import Protocol

RUNGS = {
    "last_good": "The last policy that worked decided",
    "group_prior": "What pilot users say of anybody decided",
    "fixed": "A fixed probability decided",
}
"""What decided in place of the policy."""


def words_of(protocol: Protocol, decision: Decision) -> str:
    """One or two sentences on a decision."""
    action = protocol.reward.action
    subject = capitalised(action)
    if not decision.available:
        return f"{subject}: no, because nobody could act ({listing(decision.reasons)})."
    sentences = [f"{subject}: {'yes' if decision.action else 'no'}, by chance{_why(protocol, decision)}."]
    if decision.rung in RUNGS:
        sentences.append(f"{RUNGS[decision.rung]}: {decision.rung_reason.rstrip('.')}.")
    if decision.imputed:
        names = [protocol.covariates[each.covariate].field for each in decision.imputed]
        sentences.append(f"Missing and filled in: {listing(names)}.")
    return " ".join(sentences)


def _why(protocol: Protocol, decision: Decision) -> str:
    chance = f" (probability of yes {decision.probability:.2f}"
    if decision.bound != "none":
        chance += f", its {decision.bound} limit"
    chance += ")"
    parts = decision.advantage
    if parts is None:
        return chance
    low, high = (float(end[0]) for end in parts.mixture.interval(0.9))
    width = high - low
    gain = with_unit(_signed(parts.mean, width), protocol.reward.unit)
    whom = "somebody like the pilot users" if decision.composition is None else "this participant"
    return (
        f"{chance}: in this context it is expected to change {protocol.reward.outcome} by {gain} for {whom} "
        f"(90 % interval {_signed(low, width)} to {_signed(high, width)})"
    )


def _signed(value: float, width: float) -> str:
    text = rounded(value, width)
    return text if text == "0" or text.startswith("−") else f"+{text}"
