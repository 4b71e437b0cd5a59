"""What Python computed, as data that a page carries for its script."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray


def embedded(name: str, data: Any) -> str:
    """An element with data as JSON; as no "<" is left in it, nothing in it can end the element early."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f'<script type="application/json" id="{name}">' + text.replace("<", "\\u003c") + "</script>"


def brief(values: NDArray[np.float64]) -> list[float]:
    """Numbers to four digits, which is finer than a pixel."""
    return [float(f"{value:.4g}") for value in values.tolist()]
