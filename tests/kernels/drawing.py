"""What the kernel tests draw: atoms, products, compositions, hyperparameters."""

import numpy as np
from hypothesis import strategies as st

from kerneltrail.kernels import Atom, Composition, Hyperparameters, Product, layout_of

KINDS = ("LIN", "PER", "SE")
names = st.one_of(
    st.sampled_from(["x", "hour", "steps30pre", "precip.chance", "time of day", "α", "a+b", "(x)", "x*y"]),
    st.text(st.characters(exclude_characters="[]\n", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
        lambda name: name == name.strip()
    ),
)
atoms = st.builds(Atom, st.sampled_from(KINDS), names)
products = st.lists(atoms, min_size=1, max_size=4).map(lambda found: Product(tuple(found)))
compositions = st.lists(products, max_size=5).map(lambda found: Composition(tuple(found)))


@st.composite
def hyperparameters(draw, of=compositions, low=-3.0, high=3.0):
    composition = draw(of)
    size = layout_of(composition).size
    return Hyperparameters(composition, tuple(draw(st.lists(st.floats(low, high), min_size=size, max_size=size))))


def central_difference(function, point, step=1e-5):
    """d function/d point by central differences, one array per coordinate."""
    point = np.asarray(point, dtype=np.float64)
    for i in range(len(point)):
        shift = np.zeros_like(point)
        shift[i] = step
        yield (function(point + shift) - function(point - shift)) / (2.0 * step)
