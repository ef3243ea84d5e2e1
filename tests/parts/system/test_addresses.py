"""Secrets of an address and of the options of its client, in words of libraries."""

from __future__ import annotations

from typing import Any

import pytest

from oop_engine.system.addresses import Address

GIVEN: dict[str, tuple[str, dict[str, Any], str]] = {
    "escaped": ("redis://me:p%40ss%2Fword@h:1/0", {}, "p@ss/word p%40ss%2Fword"),
    "two servers": ("nats://a:secret1@h:1,nats://c:secret2@g:2", {}, "secret1 secret2"),
    "query": ("ws://h/x?access_token=secret1&b=secret%202#c=secret3", {}, "secret1 secret 2 secret3"),
    "an at sign": ("https://me:se@cret@h/x", {}, "se@cret"),
    "header": ("http://h", {"headers": {"Authorization": "Bearer secret1"}}, "secret1"),
    "cookies": ("http://h", {"headers": {"Cookie": "a=secret1; b=secret2"}}, "secret1 secret2 a=secret1"),
    "pairs": ("http://h", {"headers": [("X-Any", "secret1"), (b"X-Other", b"secret2")]}, "secret1 secret2"),
    "login": ("http://h", {"auth": ("somebody", "secret1")}, "somebody secret1"),
    "protocol": ("wss://h", {"subprotocols": ["base64.bearer.secret1"]}, "base64.bearer.secret1"),
    "kafka": (
        "h:1",
        {"sasl.oauthbearer.client.secret": "secret1", "ssl.key.pem": "A secret2"},
        "secret1 secret2",
    ),
    "mqtt": ("h:1", {"username": "somebody", "password": b"secret1"}, "somebody secret1"),
    "seed": ("nats://h:1", {"nkeys_seed_str": "SUASECRET1"}, "SUASECRET1"),
}


@pytest.mark.parametrize("name", GIVEN)
def test_no_secret_is_in_the_words_of_a_library(name: str) -> None:
    address, options, words = GIVEN[name]
    found = Address(address, options)
    shown = f"{found} {found.clean(f'failed: {words} at X-Any of {address}')}"
    assert not [word for word in words.split() if word in shown and len(word) > 2], shown
    assert "failed:" in shown
    assert "X-Any" in shown
