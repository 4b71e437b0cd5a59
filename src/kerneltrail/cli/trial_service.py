"""`kerneltrail trial serve`, `demo` and `openapi`: what needs a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltrail.cli.trial import COPIES, At, Copies, Where


def check_packages() -> None:
    """Refuse where the packages for trials are not installed."""
    from importlib.util import find_spec

    from kerneltrail.errors import TrialError

    if any(find_spec(name) is None for name in ("fastapi", "sqlalchemy", "uvicorn")):
        raise TrialError("trials need further packages: install kerneltrail[trial]")


def serve(
    folder: Where = Path(),
    ledger: At = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen at; this machine only by default.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 for any that is free.")] = 8000,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Decisions made at the same time.")] = 8,
    every: Annotated[
        float, typer.Option("--every", min=0.0, help="Seconds between looks at the clock, for updates and alerts.")
    ] = 30.0,
    copies: Copies = COPIES,
) -> None:
    """Serve a trial over HTTP, until Ctrl-C. Several may serve the same ledger."""
    check_packages()
    from kerneltrail.cli.terminal import say
    from kerneltrail.trial.folder import Folder
    from kerneltrail.trial.service import address_of, create_app, listening, server_for, write_log

    opened = Folder(folder, ledger).open(keep=copies)
    try:
        name = opened.protocol.trial
        opened.check_secret()
        with listening(host, port) as listener:
            write_log()
            at = address_of(listener)
            say([f"{name} is served at {at}/v1/trials/{name}, for people at {at}/desk; Ctrl-C stops it"])
            if host not in ("127.0.0.1", "::1", "localhost"):
                say(["Others can reach this address: put a proxy with TLS before it (docs/trial.md)."], style="yellow")
            app = create_app(opened, name=name, interval=every, threads=threads, alone=True)
            server_for(app).run(sockets=[listener])
    finally:
        opened.close()
    say(["Stopped."])


def openapi(
    out: Annotated[Path, typer.Option("--out", help="Where to write it.", dir_okay=False)] = Path("openapi.json"),
) -> None:
    """Write the description of the service in OpenAPI."""
    check_packages()
    from kerneltrail.cli.terminal import say
    from kerneltrail.store.atomic import write
    from kerneltrail.trial.service import openapi_text

    say([f"{write(out, openapi_text())}: the service, for programs that make clients"])


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the model and the ledgers.", file_okay=False)] = Path(
        "trial-demo"
    ),
    once: Annotated[
        bool, typer.Option("--once", help="Run to the end, replay all decisions, and exit with the verdict.")
    ] = False,
    days: Annotated[int, typer.Option("--days", min=1, max=16, help="Days that are simulated.")] = 7,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 for any that is free.")] = 0,
    pause: Annotated[
        float, typer.Option("--pause", min=0.0, help="Seconds between decisions; none with --once.")
    ] = 0.1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulated people.")] = 0,
) -> None:
    """Serve a simulated study: twenty participants, decisions and outcomes as they come, updates every night."""
    check_packages()
    from kerneltrail.cli.terminal import say
    from kerneltrail.kernels.phrases import counted
    from kerneltrail.progress import show_progress
    from kerneltrail.store.atomic import check_writable

    check_writable(out / "pilot.trail")
    with show_progress("learning from pilot users") as display:
        from kerneltrail.studies import trial_demo

        size = trial_demo.Size(days=days)
        trial_demo.pilot_model(out, size, seed, display.show)
    with trial_demo.demonstration(out, seed=seed, size=size, port=port, say=lambda text: say([text])) as running:
        say([f"Served at {running.address}/v1/trials/{trial_demo.TRIAL}", "Keys, shown once:"])
        say(f"  {name}: {token}" for name, token in running.tokens.items())
        say([f"To look at it, open {running.address}/desk and log in with the key after `desk:` above."])
        if not once:
            each = counted(running.day_seconds(pause), "second")
            say([f"Days pass in about {each} each; participant lists fill as they do. End it with Ctrl-C."])
        stopped = False
        try:
            running.run(0.0 if once else pause)
            if not once:
                say(["All days are over. It is served until Ctrl-C."])
                while True:
                    running.wait()
        except KeyboardInterrupt:
            if once:
                raise
            stopped = True
        verdict = running.verdict()
        say([str(verdict)])
    if stopped:
        say(["Stopped."])
    if not verdict.same:
        raise typer.Exit(1)
