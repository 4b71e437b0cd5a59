"""Draws (method §15.2): golden values by hand, and a realised share that agrees with its probability."""

import hashlib
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy import stats

from kerneltrail.errors import DataError
from kerneltrail.trial.draw import Draws, drawn

KEY = bytes(range(32))


def by_hand(key, message):
    """HMAC-SHA256 written out (RFC 2104), and whole numbers only."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in block) + message).digest()
    outer = hashlib.sha256(bytes(b ^ 0x5C for b in block) + inner).digest()
    first = 0
    for byte in outer[:8]:
        first = first * 256 + byte
    return (first // 2048) / 9007199254740992


@pytest.mark.parametrize(
    ("names", "golden"),
    [
        (("walks", "p01", "morning", 0), 0.7746416982246038),
        (("walks", "p01", "morning", 1), None),
        (("walks", "p01", "evening", 0), None),
        (("étude", "p 02", "soir", 123456), None),
    ],
)
def test_a_draw_is_the_first_53_bits_of_the_digest(names, golden):
    message = "\x1f".join(map(str, names)).encode("utf-8")
    assert Draws(KEY).number(*names) == by_hand(KEY, message)
    if golden is not None:
        assert Draws(KEY).number(*names) == golden


def test_the_commitment_is_the_keys_sha256_and_the_key_is_not_shown():
    draws = Draws(KEY)
    assert draws.commitment == hashlib.sha256(KEY).hexdigest()
    assert repr(draws) == "Draws()"


def test_parts_cannot_run_into_each_other():
    draws = Draws(KEY)
    assert draws.number("a", "bc", "d", 1) != draws.number("ab", "c", "d", 1)
    for bad in ("", "a\x1fb", "a\nb", None, 7):
        with pytest.raises(DataError, match="the participant's id must be a text of printable characters"):
            draws.number("a", bad, "d", 1)
    for bad in (-1, 1.0, True, "1"):
        with pytest.raises(DataError, match="whole number from 0 on"):
            draws.number("a", "b", "d", bad)
    with pytest.raises(DataError, match="at least 16 bytes"):
        Draws(b"short")


def test_the_name_of_a_decision_is_a_uuid_of_version_7_with_its_time():
    draws, at = Draws(KEY), datetime(2026, 3, 1, 9, 30, 0, 250_000, tzinfo=UTC)
    name = draws.decision_id("walks", "p01", "morning", 0, at)
    assert (name.version, name.variant) == (7, "specified in RFC 4122")
    assert name.int >> 80 == 1772357400250
    assert name == draws.decision_id("walks", "p01", "morning", 0, at)
    others = {draws.decision_id("walks", "p01", "morning", i, at) for i in range(1000)}
    assert len(others) == 1000
    assert name.int & (2**62 - 1) != int(draws.number("walks", "p01", "morning", 0) * 2**53)


def test_the_share_of_actions_agrees_with_the_probability_in_every_decile():
    """100,000 draws. Ten z-tests at a two-sided level of 1e-5 each: a false alarm for one key in 10,000."""
    draws, rng = Draws(KEY), np.random.default_rng(1)
    chance = rng.uniform(0.2, 0.8, 100_000)
    number = np.array([draws.number("walks", f"p{i % 50}", "morning", i // 50) for i in range(len(chance))])
    assert number.min() >= 0.0
    assert number.max() < 1.0
    action = np.array([drawn(u, p) for u, p in zip(number.tolist(), chance.tolist(), strict=True)])
    decile = np.searchsorted(np.quantile(chance, np.linspace(0.1, 0.9, 9)), chance)
    limit = stats.norm.isf(0.5e-5)
    for k in range(10):
        here = decile == k
        z = (action[here] - chance[here]).sum() / np.sqrt((chance[here] * (1 - chance[here])).sum())
        assert abs(z) < limit, k
    assert stats.kstest(number, "uniform").pvalue > 1e-4  # one more false alarm in 10,000


def test_an_action_is_taken_below_the_probability_only():
    assert (drawn(0.3, 0.3), drawn(np.nextafter(0.3, 0), 0.3), drawn(0.0, 0.2), drawn(0.0, 0.0)) == (0, 1, 1, 0)
