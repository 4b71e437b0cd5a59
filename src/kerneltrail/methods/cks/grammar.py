"""The grammar of the search (method §10.1): from an expression to all that one step makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kerneltrail.kernels import default_kinds
from kerneltrail.methods.cks.expression import Expression, Leaf, Sum, leaf, numbered, plus, times


def base_expressions(covariates: Sequence[str], kinds: Sequence[str] | None = None) -> tuple[Leaf, ...]:
    """Every atom on every covariate: where the search starts, and what a step adds or multiplies by."""
    return tuple(leaf(kind, covariate) for covariate in sorted(covariates) for kind in kinds or default_kinds())


def steps(expression: Expression, base: Sequence[Leaf]) -> Iterator[Expression]:
    """All outcomes of one rule applied to one subexpression, with repetitions.

    The rules are S → S+B and S → S×B for any subexpression S, and B → B' for any atom, on its covariate. Subexpressions
    are the nodes of the canonical tree: a sum of three has itself and its three parts, not its pairs.
    """
    for other in base:
        yield plus(expression, other)
        yield times(expression, other)
    if isinstance(expression, Leaf):
        for other in base:
            if other.atom.covariate == expression.atom.covariate:
                yield Leaf(other.atom, expression.origin)
        return
    join = plus if isinstance(expression, Sum) else times
    for i, part in enumerate(expression.parts):
        rest = expression.parts[:i] + expression.parts[i + 1 :]
        for changed in steps(part, base):
            yield join(changed, *rest)


def expand(expression: Expression, base: Sequence[Leaf]) -> tuple[Expression, ...]:
    """The children of an expression, smallest first; their atoms' `origin` says where in the parent they stood.

    >>> [child.text for child in expand(leaf("SE", "x"), base_expressions(["x"]))]  # doctest: +NORMALIZE_WHITESPACE
    ['LIN[x]', 'PER[x]', 'LIN[x] + SE[x]', 'LIN[x]*SE[x]', 'PER[x] + SE[x]', 'PER[x]*SE[x]', 'SE[x] + SE[x]']
    """
    children = dict.fromkeys(steps(numbered(expression), base))
    return tuple(sorted((each for each in children if each != expression), key=lambda each: each.key))
