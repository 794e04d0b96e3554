"""Sequence comparison and the sequence buffer, against plain models."""

from __future__ import annotations

import gc
import weakref

import pytest
import tickwire as tw
from hypothesis import given
from hypothesis import strategies as st

SEQUENCE = st.integers(0, 65_535)


@given(SEQUENCE, SEQUENCE)
def test_comparison_is_the_wrapping_distance(a: int, b: int) -> None:
    distance = (a - b + 32_768) % 65_536 - 32_768
    assert tw.articles.sequence_distance(a, b) == distance
    if abs(distance) != 32_768:
        assert tw.articles.sequence_greater(a, b) == (distance > 0)
    else:
        assert tw.articles.sequence_greater(a, b) == (a > b)
    assert tw.articles.sequence_less(a, b) == tw.articles.sequence_greater(b, a)


@pytest.mark.parametrize(
    "compare", [tw.articles.sequence_greater, tw.articles.sequence_less, tw.articles.sequence_distance]
)
def test_numbers_that_are_no_sequences_are_named(compare: object) -> None:
    assert callable(compare)
    with pytest.raises(ValueError, match="a must be 0 to 65535, not -1"):
        compare(-1, 0)
    with pytest.raises(ValueError, match="b must be 0 to 65535, not 65536"):
        compare(0, 65_536)
    with pytest.raises(TypeError):
        compare(0.5, 0)


@pytest.mark.parametrize("capacity", [0, -1, 3, 100, 1000, 32_767, 65_536, 2**70])
def test_a_capacity_that_does_not_divide_the_sequences_is_named(capacity: int) -> None:
    with pytest.raises(ValueError, match=f"capacity must be a power of two, 1 to 32768, not {capacity}"):
        tw.articles.SequenceBuffer(capacity)


def test_it_is_used_much_like_a_dict() -> None:
    buffer: tw.articles.SequenceBuffer[str] = tw.articles.SequenceBuffer(16)
    assert (buffer.newest, len(buffer), list(buffer)) == (None, 0, [])
    assert buffer.insert(65_535, "a")
    assert buffer.insert(2, "b")
    assert buffer.insert(0, "c")
    assert buffer.newest == 2
    assert list(buffer) == [65_535, 0, 2]
    assert (buffer[0], buffer.get(0), buffer.get(1), buffer.get(1, "none")) == ("c", "c", None, "none")
    assert 2 in buffer
    assert 1 not in buffer
    assert (buffer.remove(2), buffer.remove(2), buffer.remove(2, "none")) == ("b", None, "none")
    del buffer[0]
    for call in (lambda: buffer[0], lambda: buffer.__delitem__(0)):
        with pytest.raises(KeyError, match="0"):
            call()
    assert repr(buffer) == "<SequenceBuffer of 1 in 16>"
    buffer.advance(20)
    assert (buffer.newest, len(buffer)) == (20, 0)
    assert buffer.is_stale(4)
    assert not buffer.is_stale(5)
    assert not buffer.insert(4, "too old")
    assert 4 not in buffer
    buffer.reset()
    assert (buffer.newest, buffer.capacity) == (None, 16)


@pytest.mark.parametrize("sequence", [-1, 65_536, 2**70])
def test_a_key_that_is_no_sequence_is_named(sequence: int) -> None:
    buffer: tw.articles.SequenceBuffer[int] = tw.articles.SequenceBuffer(16)
    for call in (
        lambda: buffer.insert(sequence, 1),
        lambda: buffer.get(sequence),
        lambda: buffer.remove(sequence),
        lambda: buffer.advance(sequence),
        lambda: buffer.is_stale(sequence),
        lambda: buffer[sequence],
        lambda: sequence in buffer,
    ):
        with pytest.raises(ValueError, match=f"sequence must be 0 to 65535, not {sequence}"):
            call()


@given(
    st.sampled_from([1, 2, 16, 256, 32_768]),
    st.lists(st.tuples(st.sampled_from(["insert", "advance", "remove"]), st.integers(-40_000, 40_000))),
)
def test_it_holds_what_a_dict_of_endless_numbers_holds(capacity: int, steps: list[tuple[str, int]]) -> None:
    buffer: tw.articles.SequenceBuffer[int] = tw.articles.SequenceBuffer(capacity)
    model: dict[int, int] = {}
    following = 65_536
    for action, step in steps:
        # Far ahead, the wrapped number would be behind.
        number = max(0, following + min(step, 32_000))
        stale = number < following - capacity
        if stale and following - number > 32_000:
            continue
        if action == "remove":
            expected = model.pop(number, None) if not stale else None
            assert buffer.remove(number % 65_536) == expected or stale
            continue
        if action == "insert":
            assert buffer.insert(number % 65_536, number) == (not stale)
        else:
            buffer.advance(number % 65_536)
        if not stale:
            following = max(following, number + 1)
            if action == "insert":
                model[number] = number
            model = {key: value for key, value in model.items() if key >= following - capacity}
        assert [buffer[key] for key in buffer] == sorted(model)
        assert len(buffer) == len(model)


class Node:
    """Comes back to its buffer when it goes."""

    def __init__(self, buffer: tw.articles.SequenceBuffer[Node], gone: list[int]) -> None:
        self.buffer = buffer
        self.gone = gone

    def __del__(self) -> None:
        self.gone.append(len(self.buffer))


def test_objects_may_use_the_buffer_while_they_go() -> None:
    gone: list[int] = []
    buffer: tw.articles.SequenceBuffer[Node] = tw.articles.SequenceBuffer(4)
    for sequence in range(4):
        buffer.insert(sequence, Node(buffer, gone))
    buffer.insert(3, Node(buffer, gone))
    buffer.insert(5, Node(buffer, gone))
    buffer.insert(0, Node(buffer, gone))
    buffer.remove(3)
    buffer.advance(6)
    buffer.reset()
    assert len(gone) == 7


def test_cycles_through_a_buffer_are_collected() -> None:
    buffer: tw.articles.SequenceBuffer[object] = tw.articles.SequenceBuffer(4)
    holder = {buffer}
    buffer.insert(0, holder)
    token = type("Token", (), {})()
    buffer.insert(1, token)
    there = weakref.ref(token)
    del buffer, holder, token
    gc.collect()
    assert there() is None
