"""`kerneltrail trial`: run a trial from its folder; what needs no server."""

from __future__ import annotations

import json as plain_json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.trial.conduct import Trial
    from kerneltrail.trial.folder import Folder
    from kerneltrail.trial.ledger.ledger import Ledger
    from kerneltrail.trial.ledger.writer import Head

DIFFERENT = 1
"""Exit code where a record does not hold what it should."""

trial = typer.Typer(
    name="trial",
    no_args_is_help=True,
    help="Run a trial: protocol, keys, updates, and proofs that its record is whole.",
)
key = typer.Typer(name="key", no_args_is_help=True, help="Make, revoke and list keys to the service.")
trial.add_typer(key)

Where = Annotated[Path, typer.Option("--folder", help="The trial's folder, as `trial init` makes it.")]
At = Annotated[
    str | None,
    typer.Option("--ledger", help="Where the ledger is, if not in the folder: a path, or postgresql://user@host/name."),
]
COPIES = "10,14,26"
Copies = Annotated[
    str,
    typer.Option(
        "--copies",
        help="Copies made before updates that are kept: last ones, newest of so many days, of so many weeks; or all.",
    ),
]
By = Annotated[str, typer.Option("--by", help="Your name, for the record.")]


def _folder(path: Path, ledger: str | None) -> Folder:
    """The trial's folder, as far as the packages for trials are installed."""
    from kerneltrail.errors import TrialError

    try:
        from kerneltrail.trial.folder import Folder
    except ModuleNotFoundError as missing:
        raise TrialError(f"a trial needs the package {missing.name}: install kerneltrail[trial]") from None
    return Folder(path, ledger)


@contextmanager
def _opened(path: Path, ledger: str | None, *, copies: str = COPIES) -> Iterator[Trial]:
    running = _folder(path, ledger).open(keep=copies)
    try:
        yield running
    finally:
        running.close()


@contextmanager
def _record(path: Path, ledger: str | None) -> Iterator[Ledger]:
    """The ledger alone, for what needs neither key nor models."""
    record = _folder(path, ledger).ledger()
    try:
        yield record
    finally:
        record.close()


def _time(text: str | None, option: str) -> datetime | None:
    from kerneltrail.trial.ledger.entries import instant

    if text is None:
        return None
    try:
        return instant(text)
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint=option) from None


BETTER = ("higher", "lower")
"""Which outcome may be better."""
HASH = 64
"""Digits of the hash of an entry."""


def head_of(text: str | None) -> Head | None:
    """The end of a chain that was noted as number:hash."""
    from kerneltrail.trial.ledger.writer import Head

    if text is None:
        return None
    number, _, digest = text.partition(":")
    if not number.isdigit() or not digest:
        raise typer.BadParameter(f"expected number:hash, got {text}", param_hint="--head")
    if len(digest) != HASH or set(digest) - set("0123456789abcdef"):
        words = f"the noted end is not complete: a hash has {HASH} digits from 0 to f, and this one is {digest}"
        raise typer.BadParameter(words, param_hint="--head")
    return Head(int(number), digest)


@trial.command()
def init(
    model: Annotated[Path, typer.Argument(help="A model file, fitted with an action and a reward section.")],
    name: Annotated[str, typer.Option("--trial", help="The trial's id. Draws depend on it, so it never changes.")],
    folder: Where = Path(),
    allocation: Annotated[str, typer.Option("--allocation", help="Allocation rule or preset.")] = "default",
    better: Annotated[
        str,
        typer.Option(
            "--better", help="Whether a higher or a lower outcome is better: lower for stress, pain or craving."
        ),
    ] = "higher",
) -> None:
    """Make a trial's folder: a commented protocol to read and change, and the secret key of its draws."""
    _folder(folder, None)
    from kerneltrail.cli.terminal import say
    from kerneltrail.names import nearest
    from kerneltrail.trial.folder import KEY, PROTOCOL, make_folder

    if better not in BETTER:
        raise typer.BadParameter(nearest(better, BETTER, "there are"), param_hint="--better")
    _, protocol = make_folder(folder, model, trial=name, allocation=allocation, better=better)
    reward, other = protocol.reward, BETTER[better == BETTER[0]]
    direction = f"{reward.direction[0].upper()}{reward.direction[1:]}"
    say(
        [
            f"{direction}: if that is wrong, write `better: {other}` under reward in {PROTOCOL}.",
            f"Wrote {folder / PROTOCOL}: read it, change what differs in your trial, then run `kerneltrail trial "
            "freeze`.",
            f"Wrote {folder / KEY}: keep it secret, and keep a copy; without it no decision can be made or replayed.",
            f"Publish before the trial: {protocol.draw.commitment}",
        ]
    )


@trial.command()
def freeze(
    folder: Where = Path(),
    ledger: At = None,
    reason: Annotated[str, typer.Option("--reason", help="Why a protocol in force is changed.")] = "",
    by: By = "",
) -> None:
    """Freeze the protocol. A change afterwards is a new version, with a reason and a name."""
    from kerneltrail.cli.terminal import say

    study = _folder(folder, ledger)
    protocol = study.protocol()
    with study.ledger(new=True) as record:
        is_new = record.head() is None
    running = study.open(freeze=is_new)
    try:
        answer = running.freeze(protocol, reason=reason, by=by)
    finally:
        running.close()
    value = answer.value
    say([f"Version {value['version']} of the protocol is frozen; its hash is {value['hash']}."])


@key.command("create")
def create_key(
    scope: Annotated[
        list[str], typer.Option("--scope", help="app, operator, analyst, monitor, unblinded. Repeatable.")
    ],
    folder: Where = Path(),
    ledger: At = None,
    days: Annotated[int | None, typer.Option("--days", min=1, help="Days after which it opens nothing.")] = None,
    note: Annotated[str, typer.Option("--note", help="What it is for.")] = "",
    by: By = "",
) -> None:
    """Make a key to the service, and print it: once, since only its SHA-256 is kept."""
    from datetime import UTC, datetime, timedelta

    end = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with _opened(folder, ledger) as running:
        made = running.create_key(scope, expires_at=end, note=note, by=by)
    typer.echo(made.token)
    typer.echo(f"Key {made.id} is for {', '.join(made.scopes)}. It is not shown again.", err=True)


@key.command("revoke")
def revoke_key(
    id: Annotated[str, typer.Argument(help="The key's id: what stands between kt_ and the next _.")],
    folder: Where = Path(),
    ledger: At = None,
    reason: Annotated[str, typer.Option("--reason", help="Why.")] = "",
    by: By = "",
) -> None:
    """Make a key useless from now on."""
    with _opened(folder, ledger) as running:
        answer = running.revoke_key(id, reason=reason, by=by)
    typer.echo(f"Key {id} is revoked." if answer.new else f"Key {id} was revoked before.")


@key.command("list")
def list_keys(folder: Where = Path(), ledger: At = None) -> None:
    """List keys with their scopes; secrets are not kept."""
    from kerneltrail.cli.terminal import say
    from kerneltrail.trial.ledger.folds import fold

    with _record(folder, ledger) as record:
        keys = fold(record.trial, record.entries()).keys.values()
    for each in keys:
        state = "" if each.revoked_at is None else f", revoked {each.revoked_at}"
        note = f" ({each.payload['note']})" if each.payload.get("note") else ""
        say([f"{each.id}: {', '.join(each.payload['scopes'])}{note}, made {each.created_at}{state}"])
    if not keys:
        say(["There are no keys yet."])


@trial.command()
def update(
    folder: Where = Path(),
    ledger: At = None,
    reason: Annotated[str, typer.Option("--reason", help="Why now, for the record.")] = "by hand",
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="Only what was recorded by then, such as 2026-03-01T03:00:00+01:00.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compute and check; record nothing.")] = False,
    if_due: Annotated[bool, typer.Option("--if-due", help="Only if the protocol's schedule says so.")] = False,
    copies: Copies = COPIES,
    by: By = "",
) -> None:
    """Learn from the outcomes so far. A new policy is checked, then it serves; a failed update changes nothing."""
    from kerneltrail.cli.terminal import say

    at = _time(as_of, "--as-of")
    with _opened(folder, ledger, copies=copies) as running:
        why = running.due() if if_due else reason
        if not why:
            say(["No update is due."])
            return
        done = running.update(reason=why, as_of=at, dry_run=dry_run, by=by)
    made = f"Policy {done.version} serves. " if done.version else ""
    say([f"{made}{done.words}", *(f"• {check.words}" for check in done.checks if not check.passed)])
    if done.state in ("failed", "refused"):
        raise typer.Exit(DIFFERENT)


@trial.command()
def replay(
    folder: Where = Path(),
    ledger: At = None,
    participant: Annotated[str | None, typer.Option("--participant", help="Only this one's decisions.")] = None,
) -> None:
    """Compute every decision anew from the ledger, and compare: equal, or different with the first difference."""
    with _opened(folder, ledger) as running:
        replayed = running.replay(participant)
    typer.echo(str(replayed))
    if not replayed.same:
        raise typer.Exit(DIFFERENT)


@trial.command()
def verify(
    folder: Where = Path(),
    ledger: At = None,
    head: Annotated[
        str | None, typer.Option("--head", help="An end of the chain as it was noted before: number:hash.")
    ] = None,
) -> None:
    """Walk the ledger's chain: was anything changed, cut out, moved or deleted since it was recorded?"""
    from kerneltrail.trial.ledger.chain import verify as walk

    expected = head_of(head)
    with _record(folder, ledger) as record:
        verdict = walk(record, expected)
    typer.echo(f"{str(verdict)[0].upper()}{str(verdict)[1:]}.")
    if not verdict.sound:
        raise typer.Exit(DIFFERENT)
    if verdict.head is not None:
        typer.echo(f"Its end, to be noted elsewhere: {verdict.head.sequence}:{verdict.head.hash}")


@trial.command("export")
def export_table(
    table: Annotated[str, typer.Argument(help="decisions, outcomes, deliveries, participants, policies, incidents, "
                                              "mrt, lifejacket, obp or dictionary.")],
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv, .jsonl or .parquet.")],
    folder: Where = Path(),
    ledger: At = None,
) -> None:  # fmt: skip
    """Write a table of the record."""
    from kerneltrail.store.atomic import check_writable, write
    from kerneltrail.trial.export import export
    from kerneltrail.trial.ledger.folds import fold

    _folder(folder, ledger).check_output(out)
    check_writable(out)
    with _record(folder, ledger) as record:
        content = export(fold(record.trial, record.entries()), table, out.suffix.removeprefix("."))
    write(out, content)
    typer.echo(f"Wrote {out}.")


@trial.command()
def backup(
    out: Annotated[Path, typer.Option("--out", help="File to write; .jsonl for lines that any database can restore.")],
    folder: Where = Path(),
    ledger: At = None,
) -> None:
    """Copy the ledger while it is in use, and verify the copy."""
    _folder(folder, ledger).check_output(out, copy=True)
    from kerneltrail.trial.ledger.copies import backup as copy

    with _record(folder, ledger) as record:
        verdict = copy(record, out)
    typer.echo(f"Wrote {out}: {verdict}.")


@trial.command()
def restore(
    copy: Annotated[Path, typer.Argument(help="What `trial backup`, or an update, wrote.")],
    folder: Where = Path(),
    ledger: At = None,
) -> None:
    """Write a copy into a ledger that has nothing of its trial, verified on the way."""
    from kerneltrail.trial.folder import LEDGER
    from kerneltrail.trial.ledger.copies import restore as write_back

    _folder(folder, ledger)
    for verdict in write_back(copy, folder / LEDGER if ledger is None else ledger):
        typer.echo(f"Restored: {verdict}.")


@trial.command()
def status(
    folder: Where = Path(),
    ledger: At = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """How the trial stands: who takes part, calls, fallbacks, the policy, and what somebody should look at."""
    from datetime import UTC

    from kerneltrail.cli.terminal import say
    from kerneltrail.trial.ledger.folds import fold
    from kerneltrail.trial.protocol import Protocol
    from kerneltrail.trial.standing import as_json, lines
    from kerneltrail.trial.standing import status as stands

    with _record(folder, ledger) as record:
        state = fold(record.trial, record.entries())
    frozen: Any = state.protocol
    standing = stands(state, Protocol.from_json(frozen.payload["protocol"]), datetime.now(UTC))
    if json:
        typer.echo(plain_json.dumps(as_json(standing), indent=2, ensure_ascii=False))
    else:
        say(lines(standing))


@trial.command()
def watch(
    folder: Where = Path(),
    ledger: At = None,
    hook: Annotated[
        str | None, typer.Option("--hook", help="Whom to tell: an address that gets JSON, or a command that reads it.")
    ] = None,
) -> None:
    """Record what somebody should look at as incidents, each once a day, and tell of new ones. For a timer."""
    from kerneltrail.cli.terminal import say
    from kerneltrail.trial.hooks import message, send

    with _opened(folder, ledger) as running:
        new = running.watch()
        name = running.protocol.trial
    say([str(each.payload["words"]) for each in new if each.payload is not None] or ["Nothing new."])
    if new and hook is not None:
        send(hook, message(name, new))
