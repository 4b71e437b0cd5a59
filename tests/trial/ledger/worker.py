"""A process that appends to a ledger until it is done or killed: python worker.py LOCATION NAME COUNT."""

import sys

from kerneltrail.trial.ledger import Ledger


def main(location, name, count):
    print("ready", flush=True)
    sys.stdin.readline()
    with Ledger(location, "walking", patience=60) as ledger:
        for index in range(int(count)):
            # Two entries at a time: a half would be seen. Every tenth key is wanted by both processes.
            shared = "both" if index % 10 == 0 else name
            with ledger.transaction() as writer:
                writer.append("incident", f"{shared}/{index}", {"kind": "first", "index": index}, response=b"x" * 500)
                writer.append("incident", f"{name}/{index}/second", {"kind": "second", "index": index})
            print(index, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
