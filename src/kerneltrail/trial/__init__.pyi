from .allocation import ALLOCATIONS, PRESETS, Allocated, Allocation, Limits, allocation_of
from .answer import AdvantageParts, Decision, assigned
from .burden import Burden, dose_after, dose_of
from .client import Client, Decided
from .conduct import Trial
from .decision import Policy, decide, decide_fixed
from .draw import Draws, drawn
from .ladder import decide_by_ladder
from .notebook import decide_for
from .past import Past, slot_of
from .protocol import Protocol, read_protocol
from .protocol_text import commented_text
from .replay import Comparison, compare
from .request import Request
from .results import Alert, Answer, Item, PolicyVersion, Replayed, ReplayedDecision, Status, Updated

__all__ = [
    "ALLOCATIONS",
    "AdvantageParts",
    "Alert",
    "Allocated",
    "Allocation",
    "Answer",
    "Burden",
    "Client",
    "Comparison",
    "Decided",
    "Decision",
    "Draws",
    "Item",
    "Limits",
    "PRESETS",
    "Past",
    "Policy",
    "PolicyVersion",
    "Protocol",
    "Replayed",
    "ReplayedDecision",
    "Request",
    "Status",
    "Trial",
    "Updated",
    "allocation_of",
    "assigned",
    "commented_text",
    "compare",
    "decide",
    "decide_by_ladder",
    "decide_fixed",
    "decide_for",
    "dose_after",
    "dose_of",
    "drawn",
    "read_protocol",
    "slot_of",
]
