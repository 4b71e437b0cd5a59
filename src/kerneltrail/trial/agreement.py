"""What was agreed: freezing a protocol, its later versions, and which policy serves."""

from __future__ import annotations

from kerneltrail.errors import KeyConflict, StaleRevision, TrialError
from kerneltrail.trial.core import Core, answer_of
from kerneltrail.trial.ledger import canonical
from kerneltrail.trial.ledger.entries import Kind
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Answer
from kerneltrail.trial.versions import FIRST, Versions, stored_version


def check_key(core: Core, protocol: Protocol) -> None:
    """Refuse a key of the draws that the protocol is not committed to, and another trial's protocol."""
    if protocol.trial != core.ledger.trial:
        raise TrialError(f"the protocol is of the trial {protocol.trial!r}, the ledger of {core.ledger.trial!r}")
    if protocol.draw.commitment != core.draws.commitment:
        raise TrialError(
            "the key of the draws is not the one that the protocol is committed to: its SHA-256 is "
            f"{core.draws.commitment[:12]}…, and the protocol has {protocol.draw.commitment[:12]}…. It may be another "
            "trial's: put back the draw.key that `kerneltrail trial init` made with this protocol, or a copy of it"
        )


def check_in_force(core: Core, frozen: Protocol, given: Protocol | None) -> None:
    """Refuse a key that does not go with the protocol in force, and another protocol than that."""
    check_key(core, frozen)
    if given is not None and given.hash != frozen.hash:
        raise TrialError("the ledger has another protocol in force; a change of it is frozen with a reason")


def freeze(core: Core, protocol: Protocol, reason: str, by: str) -> Answer:
    """Freeze a protocol, and let a policy of its model serve if another one did."""
    check_key(core, protocol)
    protocol.check_model(core.models.get(protocol.model.fingerprint))
    with core.reading() as state:
        frozen = state.protocol
    if frozen is not None and frozen.hash == protocol.hash:
        entry = core.ledger.get(Kind.PROTOCOL, str(frozen.version))
        if entry is not None:
            return answer_of(entry, new=False)
    if frozen is not None and (not reason.strip() or not by.strip()):
        raise TrialError("a protocol is frozen: a change of it needs a reason, and the name of who changes it")
    try:
        return _freeze(core, protocol, reason or "the trial begins", by)
    except KeyConflict:
        raise StaleRevision("somebody else froze a protocol at the same time") from None


def _freeze(core: Core, protocol: Protocol, reason: str, by: str) -> Answer:
    with core.ledger.transaction() as writer:
        with core.reading() as state:
            number, versions = len(state.protocols) + 1, Versions(state)
            active, until = versions.active, state.sequence
        payload = {
            "version": number,
            "hash": protocol.hash,
            "protocol": protocol.to_json(),
            "reason": reason,
            "by": by,
        }
        shown = {"version": number, "hash": protocol.hash, "reason": reason, "by": by}
        answer = core.append(Kind.PROTOCOL, str(number), payload, shown, writer=writer)
        if active is None or active.model_id != protocol.model.fingerprint:
            # Whoever has rows is followed anew on the other model, batch by batch as before.
            version = FIRST if active is None else versions.next_name()
            base = None if active is None else active.version
            known = until if active is None else active.until
            stored = stored_version(version, protocol.model.fingerprint, base, known, {})
            reason = f"protocol {number}: {reason}"
            writer.append(
                Kind.POLICY_ACTIVATED, f"{version}/protocol", {"version": version, "reason": reason, "policy": stored}
            )
    return answer


def activate(core: Core, version: str, reason: str, expected: str | None, by: str) -> Answer:
    """Let another version serve."""
    with core.ledger.transaction() as writer:
        with core.reading() as state:
            versions = Versions(state)
            wanted, active = versions.get(version), versions.active
            last = state.active_policy
            number = len(state.activations) + 1
        if expected is not None and (active is None or active.version != expected):
            serving = "none" if active is None else active.version
            raise StaleRevision(f"policy {serving} serves, not {expected}")
        if active is not None and active.version == wanted.version and last is not None:
            value = {"version": version, "reason": last.reason, "by": last.payload.get("by", "")}
            return Answer(canonical(value), False, last.sequence, value)
        payload = {"version": version, "reason": reason, "by": by}
        return core.append(Kind.POLICY_ACTIVATED, f"{version}/again-{number}", payload, payload, writer=writer)
