"""Hyperparameters between the scaled units that models are fitted in and the data's units that people read."""

from __future__ import annotations

from kerneltrail.data.scaling import Scaler
from kerneltrail.kernels import Hyperparameters


def in_data_units(hyperparameters: Hyperparameters, scaler: Scaler) -> Hyperparameters:
    """The hyperparameters of the same kernel on covariates and target in data units: hours, steps, °C.

    Not an approximation: for all X, K_θ(scaled X)·scale² = K_θ'(X). Lengths and locations follow their covariate,
    variances the target; a linear atom is quadratic in its covariate, so its range² moves into the product's amplitude.
    """
    return _converted(hyperparameters, scaler, back=False)


def in_scaled_units(hyperparameters: Hyperparameters, scaler: Scaler) -> Hyperparameters:
    """The inverse of `in_data_units`."""
    return _converted(hyperparameters, scaler, back=True)


def _converted(hyperparameters: Hyperparameters, scaler: Scaler, *, back: bool) -> Hyperparameters:
    length = scaler.scaled_length if back else scaler.length
    location = scaler.scaled_location if back else scaler.location
    products = hyperparameters.composition.products
    values = hyperparameters.values_array
    for index, slot in enumerate(hyperparameters.layout.slots):
        if slot.covariate is None:
            factor = scaler.scale**2
            if slot.product >= 0:
                for atom in products[slot.product].atoms:
                    factor /= scaler.length(atom.covariate, 1.0) ** 2 if atom.spec.linear else 1.0
            values[index] = values[index] / factor if back else values[index] * factor
        elif slot.spec.unit == "length":
            values[index] = length(slot.covariate, values[index])
        elif slot.spec.unit == "location":
            values[index] = location(slot.covariate, values[index])
    return Hyperparameters.from_values(hyperparameters.composition, values)
