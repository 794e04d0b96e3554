"""Hooks and columns with NumPy, which the package itself doesn't need."""

from __future__ import annotations

import numpy as np
import pytest
import tickwire as tw
from conftest import Move, make_protocol
from tickwire.testing import advance


def test_columns_are_arrays_without_copying_and_arrays_are_scores() -> None:
    addresses = []

    def by_tag(candidates: tw.columns.Candidates) -> np.ndarray:
        tags = np.asarray(candidates.tag)
        addresses.append({np.asarray(candidates.tag).ctypes.data, tags.ctypes.data})
        assert tags.dtype == np.uint32
        assert np.asarray(candidates.age).dtype == np.float32
        assert not tags.flags.writeable
        return tags.astype(np.float32)

    network = tw.testing.SimulatedNetwork()
    server = tw.Server("10.0.0.1:5", make_protocol(), network=network, tuning=tw.Tuning(priority=by_tag))
    client = tw.Client.connect("10.0.0.1:5", server.protocol, network=network)
    advance(network, server, client, seconds=0.5)
    for tick in range(20):
        server.send(server.clients[0], Move(tick, 0, 0.0), 1, tag=tick)
    server.flush()
    network.advance(0.1)
    assert [message.tick for message in client.receive().messages] == list(range(19, -1, -1))
    assert [len(same) for same in addresses] == [1]


def test_every_other_score_of_an_array_is_as_good_as_a_copy() -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server(
        "10.0.0.1:5",
        make_protocol(),
        network=network,
        tuning=tw.Tuning(
            priority=lambda candidates: np.repeat(np.asarray(candidates.tag), 2).astype(np.float32)[::2]
        ),
    )
    client = tw.Client.connect("10.0.0.1:5", server.protocol, network=network)
    advance(network, server, client, seconds=0.5)
    for tick in range(5):
        server.send(server.clients[0], Move(tick, 0, 0.0), 1, tag=tick)
    server.flush()
    network.advance(0.1)
    assert [message.tick for message in client.receive().messages] == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("dtype", ["f8", ">f4", "i4"])
def test_scores_of_another_type_or_byte_order_are_refused(dtype: str) -> None:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server(
        "10.0.0.1:5",
        make_protocol(),
        network=network,
        tuning=tw.Tuning(priority=lambda candidates: np.zeros(len(candidates), dtype)),
    )
    client = tw.Client.connect("10.0.0.1:5", server.protocol, network=network)
    advance(network, server, client, seconds=0.5)
    server.send(server.clients[0], Move(1, 0, 0.0), 1)
    with pytest.raises(TypeError, match="float32"):
        server.flush()
