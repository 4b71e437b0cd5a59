"""The text form of kernels: ``LIN[x] + PER[hour]*SE[temperature]`` (method §2).

Grammar: sum := term ("+" term)*; term := factor ("*" factor)*; factor := KIND "[" covariate "]" | "(" sum ")".
`×` and `·` are read as `*`. The empty text is the empty composition, and so is `NOTHING`, which people read. The time
is linear in the text, but for brackets that are multiplied out; a composition of more than `composition.LARGEST`
factors is refused, and so are brackets in each other more than 100 deep.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Generic, TypeVar

from kerneltrail.errors import KernelSyntaxError
from kerneltrail.kernels.atoms import ATOMS, Atom
from kerneltrail.kernels.composition import LARGEST, Composition, Product

T = TypeVar("T")

NOTHING = "noise alone"
"""What people read for the empty composition."""

_NAME = re.compile(r"[^\W\d]\w*")
_TIMES = "*×·"
_DEEPEST = 100


def parse(text: str) -> Composition:
    """The composition that a text describes, multiplied out to a sum of products.

    >>> parse("SE[hour] + LIN[x]*(PER[x] + SE[x])").text
    'SE[hour] + LIN[x]*PER[x] + LIN[x]*SE[x]'

    Raises:
        KernelSyntaxError: with a caret under the character that could not be read.
        KernelError: if it has too many factors when multiplied out.
    """
    if text.strip() == NOTHING:
        return Composition()
    return parse_as(text, _alone, Composition.sum, Composition.product) or Composition()


def _alone(atom: Atom) -> Composition:
    return Composition((Product((atom,)),))


def parse_as(text: str, atom: Callable[[Atom], T], plus: Callable[..., T], times: Callable[..., T]) -> T | None:
    """What a text describes, built from atoms, sums and products of one's own; None for the empty text.

    `plus` and `times` get all parts of a sum or product at once.
    """
    reader = _Reader(text, atom, plus, times)
    reader.blanks()
    if reader.at_end:
        return None
    result = reader.sum()
    if not reader.at_end:
        raise reader.error("expected '+', '*' or the end")
    return result


class _Reader(Generic[T]):
    """A recursive-descent reader over one text."""

    def __init__(self, text: str, atom: Callable[[Atom], T], plus: Callable[..., T], times: Callable[..., T]) -> None:
        self.atom, self.plus, self.times = atom, plus, times
        self.text = text
        self.position = 0
        self.depth = 0
        self.atoms = 0

    @property
    def at_end(self) -> bool:
        return self.position >= len(self.text)

    def error(self, problem: str, position: int | None = None) -> KernelSyntaxError:
        return KernelSyntaxError(problem, self.text, self.position if position is None else position)

    def blanks(self) -> None:
        while not self.at_end and self.text[self.position].isspace():
            self.position += 1

    def take(self, characters: str) -> bool:
        self.blanks()
        if not self.at_end and self.text[self.position] in characters:
            self.position += 1
            self.blanks()
            return True
        return False

    def sum(self) -> T:
        terms = [self.term()]
        while self.take("+"):
            terms.append(self.term())
        return self.plus(*terms) if len(terms) > 1 else terms[0]

    def term(self) -> T:
        factors = [self.factor()]
        while self.take(_TIMES):
            factors.append(self.factor())
        return self.times(*factors) if len(factors) > 1 else factors[0]

    def factor(self) -> T:
        opened = self.position
        if self.take("("):
            self.depth += 1
            if self.depth > _DEEPEST:
                raise self.error(f"more than {_DEEPEST} brackets inside each other", opened)
            inner = self.sum()
            if not self.take(")"):
                if self.at_end:
                    raise self.error("this '(' is never closed", opened)
                raise self.error("expected '+', '*' or ')'")
            self.depth -= 1
            return inner
        match = _NAME.match(self.text, self.position)
        if match is None:
            raise self.error(f"expected a kernel ({', '.join(ATOMS)}) or '('")
        name = match.group()
        if name not in ATOMS:
            near = difflib.get_close_matches(name.upper(), ATOMS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(ATOMS)}"
            raise self.error(f"unknown kernel {name!r}; {hint}")
        self.position = match.end()
        self.blanks()
        bracket = self.position
        if not self.take("["):
            raise self.error(f"expected '[' and a covariate after {name}, as in {name}[hour]")
        end = self.text.find("]", self.position)
        inside = self.text[self.position : end if end >= 0 else len(self.text)]
        if end < 0 or "[" in inside:
            raise self.error(f"this '[' of {name} is never closed", bracket)
        if not inside.strip():
            raise self.error(f"expected a covariate's name inside {name}[ ]")
        if "\n" in inside.strip():
            raise self.error("a covariate's name cannot hold a line break", self.position + inside.index("\n"))
        self.atoms += 1
        if self.atoms > LARGEST:
            raise self.error(f"more than {LARGEST} factors", match.start())
        self.position = end + 1
        self.blanks()
        return self.atom(Atom(name, inside.strip()))
