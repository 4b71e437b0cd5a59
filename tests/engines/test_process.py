"""What a process of our own sets up."""

import gc
import subprocess
import sys
import weakref

from kerneltrail.engines import leave_settled

ALONE = """
import gc
from kerneltrail.engines import leave_settled
callbacks = len(gc.callbacks)
circle = []
circle.append(circle)
del circle
kept = [[number] for number in range(1000)]
count = leave_settled()
assert count == gc.get_freeze_count() > 1000, count
assert not any(each is kept for each in gc.get_objects())
assert gc.collect() == 0
more = [[number] for number in range(1000)]
gc.collect()
assert gc.get_freeze_count() > count + 1000
assert not any(each is more for each in gc.get_objects())
assert leave_settled() > count
assert len(gc.callbacks) == callbacks + 1
"""


class Node:
    """Something that others may refer to."""


def test_what_is_settled_is_passed_over_and_freed_when_nobody_refers_to_it():
    subprocess.run([sys.executable, "-c", ALONE], check=True)  # elsewhere: this process goes on testing
    before = list(gc.callbacks)
    try:
        kept, circle = Node(), Node()
        circle.itself = circle
        last, lost = weakref.ref(kept), weakref.ref(circle)
        del circle
        leave_settled()
        assert lost() is None  # it was collected before
        del kept
        assert last() is None
    finally:
        gc.callbacks[:] = before
        gc.unfreeze()
