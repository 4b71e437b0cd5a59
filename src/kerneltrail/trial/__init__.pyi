from .allocation import ALLOCATIONS, PRESETS, Allocated, Allocation, Limits, allocation_of
from .burden import Burden, dose_after, dose_of
from .draw import Draws, drawn

__all__ = [
    "ALLOCATIONS",
    "Allocated",
    "Allocation",
    "Burden",
    "Draws",
    "Limits",
    "PRESETS",
    "allocation_of",
    "dose_after",
    "dose_of",
    "drawn",
]
