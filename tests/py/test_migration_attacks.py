"""Games that migrate, over many players who come and go, and with players who lie about states."""

from __future__ import annotations

import numpy as np
import pytest
import tickwire as tw
from test_migration import Table
from tickwire._migration import _read_note
from tickwire._states import pack


def test_a_host_that_many_came_to_and_left_is_still_replaced() -> None:
    table = Table(3)
    host, successor = table.seats[:2]
    for _ in range(3):
        visitor = table.join()
        table.run(1.5)
        visitor.sends = 1
        table.run(0.5)
        visitor.peer.close()
        table.run(1)
    # As after hundreds more.
    host.game._counts.update({(3, joined): 1 for joined in range(1_000, 1_400)})
    table.run(1.5)
    assert len(host.game._counts) <= 3
    host.peer.close()
    table.run(2)
    assert successor.game.is_host
    assert successor.loaded


def test_who_lies_about_a_states_size_keeps_nobody_from_it() -> None:
    table = Table(5, copies=4)
    table.run(2)
    liar = table.seats[4]
    for state in liar.game._heard.values():
        state.size = 1 << 31
    notes = table.seats[1].game
    notes._epoch += 1
    states = {number: state for seat in table.seats[2:] for number, state in seat.game._heard.items()}
    number = max(states)
    for seat in table.seats[2:]:
        assert seat.peer.me is not None
        note = _read_note(bytes((2, 0)), 0, 0.0)
        assert note is not None
        note.states = dict(seat.game._heard)
        for saved in note.states.values():
            # Between those of the others, where the median is.
            saved.saved = 1.0 + (seat is table.seats[2]) - (seat is table.seats[3])
        notes._notes[seat.peer.me.number] = note
    notes._heard.clear()
    assert notes._known(notes._others()).get(number) is None, "three of five, and one lies"
    honest = notes._notes[2]
    notes._notes[0] = honest
    known = notes._known(notes._others())
    assert known[number].size == honest.states[number].size < 1 << 20


@pytest.mark.parametrize(
    "array",
    [np.zeros(2, "V0"), np.zeros(2, [("a", [("a", [("a", [("a", [("a", [("a", "i4")])])])])])])],
    ids=["no bytes", "nested"],
)
def test_a_state_that_no_new_host_could_load_is_the_callers_mistake(array: np.ndarray) -> None:
    with pytest.raises(
        ValueError, match=r"save\['x'\] must be an array whose elements have bytes, and records"
    ):
        pack({"x": array}, {})


def test_hosts_come_and_go_in_the_tick_in_which_others_join() -> None:
    for seed in range(3):
        table = Table(3, seed=seed)
        table.run(1 + seed / 7)
        for _ in range(3):
            newcomer = table.join(
                contact=next(i for i, it in enumerate(table.seats) if not it.peer.closed) + 1
            )
            table.run(0.02 * seed)
            while len(table.seats[-1].peer.players) < 2 and not newcomer.peer.closed:
                table.step()
            host = next(seat for seat in table.seats if seat.game.is_host)
            host.peer.close()
            table.run(6)
            left = [seat for seat in table.seats if not seat.peer.closed]
            assert len([seat for seat in left if seat.game.is_host]) == 1, seed
            assert len({seat.game.host and seat.game.host.number for seat in left}) == 1, seed
            assert all(not seat.of(tw.peers.GameEnded) for seat in left if seat is not newcomer), seed
