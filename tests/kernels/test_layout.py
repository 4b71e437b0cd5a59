"""Layouts and hyperparameter vectors: names, round trips, refusals."""

import numpy as np
import pytest
from hypothesis import given

from kerneltrail.errors import KernelError
from kerneltrail.kernels import Composition, Hyperparameters, layout_of, parse

from .drawing import compositions, hyperparameters


def test_the_order_is_amplitude_then_atoms_and_the_noise_last():
    layout = layout_of(parse("LIN[x]*PER[h] + SE[h]"))
    assert layout.names == (
        "SE[h].amplitude",
        "SE[h].lengthscale",
        "LIN[x]*PER[h].amplitude",
        "LIN[x]*PER[h]: LIN[x].location",
        "LIN[x]*PER[h]: PER[h].lengthscale",
        "LIN[x]*PER[h]: PER[h].period",
        "noise",
    )
    assert layout.amplitude_index == (0, 2)
    assert layout.atom_index == ((slice(1, 2),), (slice(3, 4), slice(4, 6)))
    np.testing.assert_array_equal(layout.positive, [True, True, True, False, True, True, True])
    assert [slot.covariate for slot in layout.slots] == [None, "h", None, "x", "h", "h", None]
    assert [(slot.product, slot.atom) for slot in layout.slots] == [
        (0, -1),
        (0, 0),
        (1, -1),
        (1, 0),
        (1, 1),
        (1, 1),
        (-1, -1),
    ]


def test_equal_factors_are_told_apart():
    names = layout_of(parse("PER[x]*PER[x]")).names
    assert names[1] == "PER[x]*PER[x]: PER[x].lengthscale"
    assert names[3] == "PER[x]*PER[x]: PER[x]#2.lengthscale"


@given(compositions)
def test_names_are_unique_and_every_slot_is_addressed_once(composition):
    layout = layout_of(composition)
    assert len(set(layout.names)) == layout.size == len(layout.positive)
    addressed = [*layout.amplitude_index, layout.size - 1]
    for places in layout.atom_index:
        for place in places:
            addressed.extend(range(place.start, place.stop))
    assert sorted(addressed) == list(range(layout.size))
    assert layout_of(composition) is layout


def test_the_empty_composition_has_noise_only():
    assert layout_of(Composition()).names == ("noise",)
    assert Hyperparameters.from_values(Composition(), [0.5])["noise"] == pytest.approx(0.5)


@given(hyperparameters())
def test_round_trips(fitted):
    layout = fitted.layout
    np.testing.assert_allclose(layout.unconstrain(layout.constrain(fitted.vector)), fitted.vector, atol=1e-12)
    by_name = Hyperparameters.from_values(fitted.composition, dict(fitted))
    by_place = Hyperparameters.from_values(fitted.composition, fitted.values_array)
    assert by_name == by_place
    np.testing.assert_allclose(by_name.vector, fitted.vector, atol=1e-12)
    assert list(fitted) == list(layout.names)
    assert len(fitted) == layout.size
    assert hash(fitted) == hash(Hyperparameters(fitted.composition, fitted.unconstrained))


def test_leading_shapes_are_kept():
    layout = layout_of(parse("LIN[x] + SE[x]"))
    batch = np.random.default_rng(0).normal(size=(3, 2, layout.size))
    natural = layout.constrain(batch)
    assert natural.shape == batch.shape
    np.testing.assert_array_equal(natural[1, 1], layout.constrain(batch[1, 1]))
    np.testing.assert_allclose(layout.unconstrain(natural), batch)


def test_locations_may_be_negative_and_the_rest_may_not():
    composition = parse("LIN[x]")
    assert Hyperparameters.from_values(composition, [1.0, -3.0, 1.0])["LIN[x].location"] == -3.0
    with pytest.raises(KernelError, match=r"LIN\[x\].amplitude of LIN\[x\] must be positive"):
        Hyperparameters.from_values(composition, [-1.0, -3.0, 1.0])
    with pytest.raises(KernelError, match="noise of LIN"):
        layout_of(composition).unconstrain([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0, 4.0], 1.0, []])
def test_a_vector_of_the_wrong_size_is_refused(values):
    with pytest.raises(KernelError, match="has 3 hyperparameters"):
        Hyperparameters.from_values(parse("SE[x]"), values)


def test_other_refusals():
    composition = parse("SE[x]")
    with pytest.raises(KernelError, match=r"has 3 hyperparameters .* got 2 values"):
        Hyperparameters(composition, (1.0, 2.0))
    with pytest.raises(KernelError, match=r"missing or unknown: SE\[x\].lengthscale, length"):
        Hyperparameters.from_values(composition, {"SE[x].amplitude": 1.0, "length": 1.0, "noise": 1.0})
    with pytest.raises(KernelError, match=r"SE\[x\].lengthscale of SE\[x\] must be finite"):
        Hyperparameters(composition, (1.0, float("nan"), 1.0))
    with pytest.raises(KeyError):
        Hyperparameters(composition, (1.0, 1.0, 1.0))["period"]
