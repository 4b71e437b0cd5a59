"""Write docs/reference.md from docstrings: ``python scripts/reference.py``. Public names are those of `__all__`."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

import kerneltrail
from kerneltrail.cli.app import app

GOAL = Path(__file__).parents[1] / "docs" / "reference.md"
OPENING = """# Reference

Everything public, from the docstrings; written by `python scripts/reference.py`. First the names at the top, as
`import kerneltrail as kt` has them; then those of the rooms, such as `kt.kernels.log_normal`; then the command line.
How things go together is in the [README](../README.md) and the [how-to](how-to.md).
"""
ROOMS = {
    "kernels": "Kernels",
    "data": "Data",
    "data.simulate": "Simulated users",
    "gp": "Gaussian processes",
    "methods": "Methods",
    "evaluation": "Evaluation",
    "report.model_page": "Pages",
    "trial": "Trials",
    "trial.ledger": "The ledger of a trial",
    "adapters.arviz": "ArviZ",
    "errors": "Errors",
}
"""Rooms in the order they are shown."""
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$")
ITEM = re.compile(r"^([\w*][\w*, ]*?): (.*)$")


def main() -> None:
    """Write the page."""
    GOAL.write_text(text(), encoding="utf-8")
    print(f"written: {GOAL}")


def text() -> str:
    """The whole page."""
    top = {name: getattr(kerneltrail, name) for name in sorted(kerneltrail.__all__, key=str.lower)}
    parts = [OPENING, "## At the top\n"]
    parts += [entry(f"kt.{name}", value) for name, value in top.items() if not inspect.ismodule(value)]
    for room, title in ROOMS.items():
        named = {
            name: value for name, value in public(room).items() if not any(value is known for known in top.values())
        }
        parts.append(f"## {title}: `kerneltrail.{room}`\n")
        parts += [entry(name, value) for name, value in named.items()]
    return "\n".join([*parts, commands()])


def public(room: str) -> dict[str, Any]:
    """Classes and functions that a room offers, by name."""
    module = import_module(f"kerneltrail.{room}")
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    values = {name: getattr(module, name) for name in sorted(names, key=str.lower)}
    return {
        name: value
        for name, value in values.items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("kerneltrail")
    }


def entry(name: str, value: Any) -> str:
    """One public name."""
    kind = "class " if inspect.isclass(value) else ""
    lines = [
        f"### `{name}`\n",
        f"```python\n{kind}{name.removeprefix('kt.')}{signature(value)}\n```\n",
        markdown(inspect.getdoc(value) or ""),
    ]
    if inspect.isclass(value) and not issubclass(value, Exception):
        lines += ["", *members(value)]
    return "\n".join(lines).rstrip() + "\n"


def signature(value: Any) -> str:
    """How it is called, a line for each parameter where one line does not hold them."""
    if inspect.isclass(value) and (issubclass(value, Exception) or getattr(value, "_is_protocol", False)):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [_plain(str(p)) for p in found.parameters.values()]
    kinds = [p.kind for p in found.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        plain.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"({', '.join(plain)})"
    if len(line) > 100:
        line = "(\n" + "".join(f"    {each},\n" for each in plain) + ")"
    back = found.return_annotation
    return line if inspect.isclass(value) or back is inspect.Signature.empty else f"{line} -> {_plain(str(back))}"


def _plain(text: str) -> str:
    """Without what differs between runs and machines: addresses, and defaults that are objects."""
    text = text.replace("'", "") if text.count("'") == 2 and ": '" in text else text
    return re.sub(r"<(?:function <lambda>|[\w. ]+)(?: at 0x\w+)?>", "…", text)


def members(value: type) -> list[str]:
    """Public methods and properties, also those of the package's own bases, with the first line of what they do."""
    found = []
    own_bases = [each for each in value.__mro__ if each.__module__.partition(".")[0] == "kerneltrail"]
    for name in dict.fromkeys(name for each in own_bases for name in vars(each)):
        if name.startswith("_") or name in getattr(value, "__dataclass_fields__", {}):
            continue
        own = inspect.getattr_static(value, name)
        function = own.__func__ if isinstance(own, classmethod | staticmethod) else own
        is_property = isinstance(own, property) or type(own).__name__ == "cached_property"
        if not is_property and not callable(function):
            continue
        doc = inspect.getdoc(getattr(value, name) if not is_property else own) or ""
        label = name if is_property else f"{name}({', '.join(_names(function))})"
        found.append(f"- `{label}`: {' '.join(doc.split(chr(10) * 2)[0].split())}")
    return found


def _names(function: Any) -> list[str]:
    kept = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in kept]


def markdown(doc: str) -> str:
    """A docstring with its sections as lists; examples stay as they are."""
    lines: list[str] = []
    within = example = False
    for line in doc.splitlines():
        stripped = line.strip()
        if example and not stripped:
            lines, example = [*lines, "```"], False
        if stripped.startswith(">>>") and not example:
            lines, example = [*lines, "```python"], True
        if example:
            lines.append(line)
        elif SECTION.match(line):
            lines += [f"*{stripped[:-1]}*", ""]
            within = True
        elif within and (item := ITEM.match(stripped)) and line.startswith("    ") and not line.startswith("     "):
            lines.append(f"- `{item[1]}`: {item[2]}")
        elif within and line.startswith("      "):
            lines.append(f"  {stripped}")
        else:
            within = within and (not stripped or line.startswith("    "))
            lines.append(stripped if within else line)
    return "\n".join([*lines, "```"] if example else lines)


def commands() -> str:
    """The command line."""
    group: Any = typer.main.get_command(app)
    lines = ["## The command line\n", "`kerneltrail COMMAND --help` says the same.\n"]
    for name, command in group.commands.items():
        lines += command_lines(f"kerneltrail {name}", command)
    return "\n".join(lines)


def command_lines(name: str, command: Any) -> list[str]:
    """One command with its options, then its own commands."""
    lines = [f"### `{name}`\n", f"{inspect.cleandoc(command.help or '')}\n"]
    for parameter in command.params:
        if parameter.name != "help":
            shown = ", ".join(parameter.opts) if parameter.param_type_name == "option" else parameter.name.upper()
            must = " (required)" if parameter.required and parameter.param_type_name == "option" else ""
            lines.append(f"- `{shown}`{must}: {getattr(parameter, 'help', None) or ''}".rstrip(" :"))
    lines.append("")
    for inner, its_command in getattr(command, "commands", {}).items():
        lines += command_lines(f"{name} {inner}", its_command)
    return lines


if __name__ == "__main__":
    sys.exit(main())
