"""A protocol as the commented YAML file that people read, change and freeze; read back, it is the same protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kerneltrail.trial.allocation import ALLOCATIONS, PRESETS
from kerneltrail.trial.protocol import Protocol

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Words that YAML does not read as texts."""

ABOUT: Mapping[str, str] = {
    "title": "What the trial is called in reports.",
    "trial": "Its id. Draws depend on it, so it never changes.",
    "model": "The model that decides, and the digest of all that its decisions depend on. Another model is refused.",
    "reward": (
        "From the model: the action, the outcome, and the features on which the action's advantage depends.\n"
        'better: "higher" if a higher value of {outcome} counts as better, so that messages go where they raise it;\n'
        '"lower" if a lower one does, as of stress, pain or craving. No model knows which: what stands here is assumed.'
    ),
    "covariates": (
        "How each covariate arrives. field: its name in the context that the app sends; arrives: context, or dose for\n"
        "the dose counted here; low and high: values outside are refused; levels: in the model's order; missing:\n"
        "refuse the request, or use last_seen (the last value of this participant) or slot_mean (the mean of this\n"
        "participant's values at this time of the day)."
    ),
    "decisions": (
        "Kinds of decisions, each with the times of the day at which it is due, in the participant's time zone.\n"
        'Without times a decision is made whenever the app asks. Example: walk: {times: ["08:00", "12:30", "18:00"]}'
    ),
    "availability": "Why nobody can be asked. An unavailable participant gets no action, and the reason is recorded.",
    "allocation": (
        "From the benefit (the advantage, or minus it where a lower outcome is better) to the probability of acting.\n"
        "Rules: {rules}.\n"
        "Presets: {presets}.\n"
        "A slope per noise sd is divided by noise_sd, which is the model's, in the outcome's units. odds_against:\n"
        "odds against acting, between the limits, where the benefit is known to be none."
    ),
    "limits": "The least and the largest probability of acting: both acting and not acting stay possible, always.",
    "burden": (
        "What the benefit must exceed, in the outcome's units: delta, and per_dose for each unit of the dose, which\n"
        "fades by decay from one decision to the next and rises by 1 with each action."
    ),
    "updates": (
        'When the policy learns from new outcomes: every: 20 (outcomes), daily: "03:00", weekly: "Monday 03:00",\n'
        "or by_hand: true. Times are on the clock of timezone. A participant whose probability moves by more than\n"
        "largest_shift at one update is reported."
    ),
    "pooling": (
        "participant: each learns from their own outcomes; pooled: all learn from everybody's, which needs the pilot\n"
        "users' table as pilot.csv beside this file."
    ),
    "deadline_ms": "A decision that takes longer is answered by the next rung.",
    "fallback": (
        "What answers when the policy cannot: the last policy that worked, what the pilot users say of anybody, and\n"
        "in the end the fixed probability. Every rung is randomised, and recorded as what it is."
    ),
    "draw": "SHA-256 of the secret key of the draws. Publish it before the trial; keep the key.",
}  # fmt: skip
"""What stands above each key."""

PLAIN = (
    "\nThe coding is plain, since the pilot users' table was fitted without the action's probability: a baseline that\n"
    "is wrong can leak into the advantage. Name the probability's column when you fit, and it is centred."
)
"""What stands above a reward model that does not know with which probability pilot users' actions were drawn."""


def commented_text(protocol: Protocol) -> str:
    """The protocol as a YAML text with a comment above each key."""
    reward, stored = protocol.reward, protocol.to_json()
    stored["reward"] = {name: getattr(reward, name) for name in type(reward).model_fields}  # better is stated, always
    rules, presets = ", ".join(ALLOCATIONS), ", ".join(PRESETS)
    parts = ["# The protocol of a trial. Whoever freezes it freezes every value below; comments may change."]
    for key, value in stored.items():
        about = ABOUT[key].replace("{rules}", rules).replace("{presets}", presets)
        if key == "reward":
            about = about.replace("{outcome}", reward.outcome)
            about += PLAIN if reward.coding == "plain" else ""
        comment = "\n".join(f"# {line}" for line in about.splitlines())
        parts.append(f"{comment}\n{chr(10).join(_lines(key, value))}")
    return "\n\n".join(parts) + "\n"


def _lines(key: str, value: Any, indent: str = "") -> Iterator[str]:
    """A key with its value: mappings of mappings over several lines, everything else on one."""
    if isinstance(value, Mapping) and any(isinstance(each, Mapping) for each in value.values()):
        yield f"{indent}{_key(key)}:"
        for name, each in value.items():
            yield from _lines(name, each, indent + "  ")
    elif isinstance(value, Mapping) and not indent:
        yield f"{_key(key)}:"
        for name, each in value.items():
            if each is not None:
                yield f"  {_key(name)}: {_flow(each)}"
    else:
        yield f"{indent}{_key(key)}: {_flow(value)}"


def _flow(value: Any) -> str:
    """A value on one line; what is not set is left out."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(name)}: {_flow(each)}" for name, each in value.items() if each is not None)
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return json.dumps(value, ensure_ascii=False)  # texts in quotes: YAML reads them as JSON does


def _key(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.lower() not in _WORDS
    return name if plain else json.dumps(name, ensure_ascii=False)
