"""Timing in turns, with a clock that the tests hold."""

from kerneltrail.studies.bench.timing import Effort, in_turns, timed, undisturbed


def test_every_round_goes_through_all_and_the_first_is_thrown_away():
    calls = []

    def work(name):
        def run():
            calls.append(name)
            return float(len(calls))

        return run

    found = in_turns({"a": [work("a1"), work("a2")], "b": [work("b")]}, Effort(least=2, most=4, seconds=1e9))
    assert sorted(calls[:3]) == ["a1", "a2", "b"]
    assert all(sorted(calls[start : start + 3]) == ["a1", "a2", "b"] for start in range(0, 15, 3))
    assert [len(rounds) for rounds in (*found["a"], *found["b"])] == [4, 4, 4]
    assert min(found["b"][0]) > 3.0  # the first round, calls 1 to 3, does not count


def test_rounds_stop_when_time_is_up():
    found = in_turns({"a": [lambda: 1.0]}, Effort(least=2, most=100, seconds=0.0))
    assert len(found["a"][0]) == 2


def test_pieces_count_at_their_best():
    assert undisturbed([[3.0, 1.0], [2.0, 5.0]]) == 3.0
    assert timed(lambda: None)() >= 0.0
