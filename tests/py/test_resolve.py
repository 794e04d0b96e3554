import socket

import pytest
import tickwire as tw


def test_resolves_names_and_numbers() -> None:
    assert tw.Address("127.0.0.1:40000") in tw.resolve("localhost:40000").result(timeout=10)
    assert tw.resolve("127.0.0.1:7").result(timeout=10) == [tw.Address("127.0.0.1:7")]
    assert tw.resolve("[::1]:7").result(timeout=10) == [tw.Address("[::1]:7")]


def test_an_unknown_name_fails_in_the_future() -> None:
    with pytest.raises(socket.gaierror):
        tw.resolve("no-such-name.invalid:1").result(timeout=30)


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", ":1", "localhost:x", "localhost:65536"])
def test_refuses_text_without_a_port(text: str) -> None:
    with pytest.raises(ValueError, match="is not a name and a port"):
        tw.resolve(text)
