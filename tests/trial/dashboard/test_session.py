"""Sessions: signed, for a while, ended when they should be."""

from datetime import UTC, datetime, timedelta

import pytest

from kerneltrail.trial.dashboard.session import LIFETIME, Sessions, visit

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def sessions():
    return Sessions(b"a secret")


def test_a_session_is_known_again_on_every_server_until_its_end(sessions):
    cookie = sessions.begin("1a2b3c4d", NOW)
    for server in (sessions, Sessions(b"a secret")):
        session = server.of(cookie, NOW + LIFETIME - timedelta(seconds=1))
        assert session.key == "1a2b3c4d"
        assert server.of(cookie, NOW + LIFETIME) is None
    assert Sessions(b"another").of(cookie, NOW) is None


@pytest.mark.parametrize(
    "forge",
    [
        lambda cookie: None,
        lambda cookie: "",
        lambda cookie: "....",
        lambda cookie: cookie[:-1],
        lambda cookie: cookie.replace("1a2b3c4d", "deadbeef"),
        lambda cookie: ".".join([*cookie.split(".")[:2], "9999999999", cookie.split(".")[3]]),
        lambda cookie: cookie + "ü",
    ],
)
def test_a_cookie_that_was_changed_is_none(sessions, forge):
    assert sessions.of(forge(sessions.begin("1a2b3c4d", NOW)), NOW) is None


def test_a_session_that_was_logged_out_is_over_and_others_of_the_key_are_not(sessions):
    one, other = sessions.begin("1a2b3c4d", NOW), sessions.begin("1a2b3c4d", NOW)
    sessions.end(sessions.of(one, NOW))
    assert sessions.of(one, NOW) is None
    assert sessions.of(other, NOW) is not None


def test_a_form_s_token_is_of_one_session_and_is_no_session(sessions):
    one, other = visit(), visit()
    assert sessions.is_token(sessions.token(one), one)
    assert not sessions.is_token(sessions.token(one), other)
    assert not sessions.is_token("", one)
    assert not sessions.is_token("ü", one)
    key, nonce, end, _ = sessions.begin("1a2b3c4d", NOW).split(".")
    assert sessions.of(f"{key}.{nonce}.{end}.{sessions.token(f'{key}.{nonce}.{end}')}", NOW) is None
