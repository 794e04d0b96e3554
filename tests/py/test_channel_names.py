"""Channels by name, and the channel that a class names as its own."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pytest
import tickwire as tw
from tickwire.testing import advance, connected_pair


@tw.message(channel="chat")
class Chat:
    text: Annotated[str, tw.text(20)]


@tw.message(channel=1)
class Move:
    x: tw.i8


@tw.message
class Loud(Chat):
    pass


class Own(tw.messages.Message, channel="chat"):
    n: int = 0

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.n = stream.bits(self.n, 8)


@tw.message
class Plain:
    n: tw.u8


CHANNELS = [
    tw.reliable_ordered("events"),
    tw.unreliable("state"),
    tw.reliable_unordered("chat"),
    tw.latest("values"),
    tw.channels.payload("raw"),
    tw.chunks("files"),
]
MESSAGES = [Chat, Move, Loud, Own, Plain]


def sent_per_channel(server: tw.Server) -> list[int]:
    return [channel.sent for channel in server.stats(server.clients[0]).channels]


def test_a_message_goes_on_the_channel_of_its_class_or_the_one_that_is_named() -> None:
    network, server, client = connected_pair(tw.Protocol(1, MESSAGES, CHANNELS))
    handle = server.clients[0]
    server.send(handle, Chat("own"))
    server.send(handle, Loud("inherited"))
    server.send(handle, Own(n=3))
    server.broadcast(Chat("all"))
    server.send(handle, Move(1))
    server.send(handle, Move(2), "events")
    server.send(handle, Plain(1))
    server.send(handle, Plain(2), channel="values", key=7)
    server.send_payload(handle, b"raw", "raw", tag=1)
    assert server.send(handle, tw.columns.Batch(Plain, np.zeros(2, tw.columns.dtype(Plain))), "state") == []
    assert server.send([handle], tw.columns.Batch(Move, np.zeros(1, tw.columns.dtype(Move)))) == []
    assert server.broadcast(tw.columns.Batch(Chat, np.zeros(1, tw.columns.dtype(Chat)))) == []
    client.send(Chat("up"))
    client.send_payload(b"up", "raw", tag=2)
    assert client.send(tw.columns.Batch(Plain, np.zeros(1, tw.columns.dtype(Plain))), "chat") == []
    at_server, at_client = advance(network, server, client, seconds=1)
    assert sent_per_channel(server)[:5] == [2, 4, 5, 1, 1]
    assert at_client.latest == [(7, Plain(2))]
    assert at_client.payloads == [(4, b"raw")]
    assert [message for _, message in at_server.messages] == [Chat("up"), Plain(0)]


def test_a_protocol_knows_the_numbers_of_its_names() -> None:
    protocol = tw.Protocol(1, MESSAGES, CHANNELS)
    assert [protocol.channel_number(channel.name) for channel in protocol.channels] == list(range(6))
    with pytest.raises(tw.errors.ChannelError, match=r"channel must be 0 to 5, or 'events', .*, not 'chta'"):
        protocol.channel_number("chta")


@pytest.mark.parametrize(
    ("channel", "error", "complaint"),
    [
        ("chta", tw.errors.ChannelError, r"channel must be 0 to 5, or 'events', 'state'.*, not 'chta'"),
        ("", tw.errors.ChannelError, r"not ''"),
        (6, tw.errors.ChannelError, r"channel must be 0 to 5, not 6"),
        (-1, tw.errors.ChannelError, r"channel must be 0 to 5, not -1"),
        (2**200, tw.errors.ChannelError, r"channel must be 0 to 5, not 16069"),
        (1.5, TypeError, r"channel must be an int or a str, not float"),
        (b"chat", TypeError, r"channel must be an int or a str, not bytes"),
    ],
)
def test_a_wrong_channel_is_named(channel: Any, error: type[Exception], complaint: str) -> None:
    _, server, client = connected_pair(tw.Protocol(1, MESSAGES, CHANNELS))
    calls = [
        lambda: server.send(server.clients[0], Plain(1), channel),
        lambda: server.broadcast(Plain(1), channel),
        lambda: client.send(Plain(1), channel),
        lambda: client.send_payload(b"", channel, tag=0),
        lambda: client.send(tw.columns.Batch(Plain, b""), channel),
    ]
    for call in calls:
        with pytest.raises(error, match=complaint):
            call()


@pytest.mark.parametrize(
    ("channels", "complaint"),
    [
        ([tw.unreliable()], r"Chat: its channel must be 0 to 0 \(none of them has a name\), not 'chat'"),
        ([tw.unreliable("chta"), tw.latest()], r"Chat: its channel must be 0 to 1, or 'chta', not 'chat'"),
        (
            [tw.channels.payload("chat"), tw.latest()],
            r"Chat: its channel must be one of messages, and 'chat' is a payload",
        ),
        (
            [tw.chunks("chat"), tw.latest()],
            r"Chat: its channel must be one of messages, and 'chat' is a chunks",
        ),
        ([tw.latest("chat")], r"Move: its channel must be 0 to 0, or 'chat', not 1"),
        (
            [tw.latest("chat"), tw.latest("chat")],
            r"channels must have different names, and 'chat' appears twice",
        ),
    ],
)
def test_a_wrong_own_channel_is_named_when_the_protocol_is_made(
    channels: list[tw.channels.Channel], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        tw.Protocol(1, MESSAGES, channels)


def test_a_channel_is_an_int_or_a_str() -> None:
    with pytest.raises(TypeError, match="Wrong: channel must be an int or a str, not float"):
        tw.message(channel=1.5)(type("Wrong", (), {}))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="Wrong: channel must be an int or a str, not bool"):

        class Wrong(tw.messages.Message, channel=True):
            pass
