"""The command ``kerneltrail``: its commands, and how whatever goes wrong ends in a sentence and an exit code."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from kerneltrail.cli.bench import bench
from kerneltrail.cli.check import check
from kerneltrail.cli.cks import cks
from kerneltrail.cli.demo import demo
from kerneltrail.cli.describe import describe
from kerneltrail.cli.evaluate import evaluate
from kerneltrail.cli.example import example
from kerneltrail.cli.experiment import experiment
from kerneltrail.cli.fit import fit
from kerneltrail.cli.predict import predict
from kerneltrail.cli.report import report
from kerneltrail.cli.select import select
from kerneltrail.cli.series import series
from kerneltrail.cli.show import show
from kerneltrail.cli.tables import tables
from kerneltrail.cli.trial import trial
from kerneltrail.cli.trial_analysis import analyse, rerun
from kerneltrail.cli.trial_service import demo as trial_demo
from kerneltrail.cli.trial_service import openapi, serve
from kerneltrail.cli.trial_simulate import simulate
from kerneltrail.errors import KerneltrailError

COMMANDS: tuple[Callable[..., None], ...] = (
    example, check, fit, show, select, predict, report, describe, evaluate, cks, demo, experiment, bench, tables,
)  # fmt: skip
"""In the order in which a newcomer needs them."""

FAILED, REFUSED, MISTAKEN, INTERRUPTED, TERMINATED = 1, 2, 70, 130, 143
"""Exit codes: the machine could not do it; what was asked cannot be done; a mistake in kerneltrail; the user pressed
Ctrl-C, or the system asked to stop (both as shells report them)."""

_USAGE: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""Base of what Typer raises and prints itself."""


class Terminated(KeyboardInterrupt):
    """The system asked to stop (SIGTERM): treated as Ctrl-C, so that files are closed and processes end."""


class _SentenceGroup(TyperGroup):
    """Commands whose failures end in a sentence, not in a traceback."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override, unused-ignore]
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KerneltrailError as error:
            _end(str(error), REFUSED)
        except KeyboardInterrupt as stop:
            _end("Stopped.", TERMINATED if isinstance(stop, Terminated) else INTERRUPTED, style="")
        except MemoryError:
            _end("There is not enough memory for this: take fewer rows, users or processes (--workers).", FAILED)
        except (_USAGE, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # whoever read the output, such as `head`, has had enough
            if ctx.params.get("traceback"):
                raise
            if isinstance(error, OSError):
                _end(f"{error.filename or 'A file'} cannot be read or written: {error.strerror or error}", FAILED)
            _end(
                f"Kerneltrail made a mistake: {type(error).__name__}: {error}\nPlease report it, with what "
                "`kerneltrail --traceback …` prints.",
                MISTAKEN,
            )


def _end(sentence: str, code: int, *, style: str = "red") -> NoReturn:
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True).print(Text(sentence, style=style), soft_wrap=True)
    raise typer.Exit(code) from None


app = typer.Typer(
    rich_markup_mode="markdown",
    cls=_SentenceGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Gaussian-process kernels that grow with a user's data.",
)


def main() -> None:
    """Entry point of the command ``kerneltrail``."""

    def stop(*_: Any) -> NoReturn:
        raise Terminated

    signal.signal(signal.SIGTERM, stop)
    app()


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"kerneltrail {version('kerneltrail')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where in the code an unexpected error comes from.")
    ] = False,
) -> None:
    """Gaussian-process kernels that grow with a user's data."""


for _command in COMMANDS:
    app.command()(_command)
app.add_typer(series)
trial.command()(analyse)
trial.command()(rerun)
trial.command()(serve)
trial.command("demo")(trial_demo)
trial.command()(openapi)
trial.command()(simulate)
app.add_typer(trial)

if __name__ == "__main__":
    main()
