import pickle

import pytest
import tickwire as tw


@pytest.mark.parametrize("text", ["127.0.0.1:40000", "0.0.0.0:0", "[::1]:65535", "[2001:db8::1]:1"])
def test_prints_what_it_parses(text: str) -> None:
    assert str(tw.Address(text)) == text
    assert eval(repr(tw.Address(text)), {"Address": tw.Address}) == tw.Address(text)


def test_takes_text_pairs_and_addresses() -> None:
    address = tw.Address("10.0.0.1:5")
    assert tw.Address(("10.0.0.1", 5)) == tw.Address(address) == address
    assert tw.Address(("::1", 7)) == tw.Address("[::1]:7")


def test_has_parts() -> None:
    address = tw.Address("[::1]:9")
    assert (address.host, address.port, address.is_ipv6, address.is_loopback) == ("::1", 9, True, True)
    assert address.with_port(10) == tw.Address("[::1]:10")
    assert not tw.Address("192.0.2.1:9").is_loopback


def test_is_ordered_hashed_and_pickled() -> None:
    a, b = tw.Address("10.0.0.1:5"), tw.Address("10.0.0.1:6")
    assert a < b
    assert len({a, b, tw.Address("10.0.0.1:5")}) == 2
    assert pickle.loads(pickle.dumps(a)) == a


@pytest.mark.parametrize(
    "text", ["", "localhost:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "256.0.0.1:1", "::1:1", "1:2:3"]
)
def test_refuses_what_is_not_an_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address with a port"):
        tw.Address(text)


def test_refuses_bad_parts() -> None:
    with pytest.raises(ValueError, match=r"tickwire.resolve\(\) looks up names"):
        tw.Address(("localhost", 1))
    with pytest.raises(ValueError, match="port must be 0 to 65535, not 65536"):
        tw.Address(("127.0.0.1", 65536))
    with pytest.raises(TypeError, match="not int"):
        tw.Address(5)
