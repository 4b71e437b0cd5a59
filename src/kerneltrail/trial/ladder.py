"""The ladder: when the policy cannot answer, the next rung does, still randomised, and recorded as what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kerneltrail.errors import DecisionError, KerneltrailError
from kerneltrail.store.validate import short
from kerneltrail.trial.answer import Decision, Rung
from kerneltrail.trial.decision import Policy, State, begun, decide, decide_fixed
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.past import Past
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.request import Request

Source = Callable[[], tuple[Policy, State]]
"""Where a rung's policy and the participant's state come from; it may fail, or raise TimeoutError."""


def decide_by_ladder(
    protocol: Protocol,
    request: Request,
    sources: Mapping[Rung, Source],
    *,
    draws: Draws,
    past: Past | None = None,
    in_time: Callable[[], bool] = lambda: True,
) -> Decision:
    """A decision by the first rung of the protocol's ladder that can answer; the fixed probability always can.

    The draw is the same on every rung, and which rung answers does not depend on it.

    Args:
        protocol: what was agreed.
        request: for whom, when, in which context.
        sources: for `policy`, `last_good` and `group_prior`, where it comes from; one that is not there cannot answer.
        draws: of the trial.
        past: of the participant.
        in_time: whether there is time left for a rung that computes; asked before each.

    Raises:
        DecisionError: for a request that must be refused: no rung could answer it rightly.
    """
    past = past or Past()
    start, _ = begun(protocol, request, draws, past)
    if not request.available:
        return start
    reasons: list[str] = []
    for rung in protocol.fallback.ladder:
        if rung == "fixed":
            break
        if not in_time():
            reasons.append(f"the deadline of {protocol.deadline_ms} ms had passed before {rung}")
            break  # no other rung that computes is in time, either
        if rung not in sources:
            reasons.append(f"{rung}: there is none")
            continue
        try:
            policy, state = sources[rung]()
            return decide(
                protocol, policy, state, request,
                draws=draws, past=past, rung=rung, rung_reason="; ".join(reasons),
            )  # fmt: skip
        except DecisionError:
            raise
        except Exception as problem:  # whatever it is, the participant gets an answer and the record the reason
            reasons.append(f"{rung}: {_told(problem, protocol)}")
    return decide_fixed(protocol, request, draws=draws, past=past, rung_reason="; ".join(reasons))


def _told(problem: Exception, protocol: Protocol) -> str:
    if isinstance(problem, TimeoutError):
        return f"no answer within {protocol.deadline_ms} ms"
    text = short(str(problem), 300)
    return text if isinstance(problem, KerneltrailError) else f"{type(problem).__name__}: {text}"
