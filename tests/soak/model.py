"""A model of each kind of channel's promise: it gets everything sent and received in one direction of one
connection, and reports violations."""

from __future__ import annotations

from collections import deque


class Violation(Exception):  # noqa: N818 (it is what was found, not what went wrong here)
    """Something that must not be."""


class Flow:
    """One channel in one direction of one connection. Numbers ascend in the order of sending."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.sent = 0
        self.got = 0
        # Tags whose notification is due.
        self.open: set[int] = set()
        # Reported as delivered before the other side's game had seen them.
        self.claimed: set[int] = set()

    def fail(self, what: str) -> None:
        raise Violation(f"{self.where}: {what}")

    def send(self, number: int, key: int, notify: bool) -> None:  # noqa: ARG002 (of latest channels)
        self.sent += 1
        if notify:
            self.open.add(number)
        self._send(number)

    def receive(self, number: int, key: int) -> None:  # noqa: ARG002
        self.got += 1
        self.claimed.discard(number)
        self._receive(number)

    def notified(self, tag: int, delivered: bool) -> None:
        if tag not in self.open:
            self.fail(f"{tag} was notified twice, or nobody asked")
        self.open.remove(tag)
        if delivered and not self._has(tag):
            self.claimed.add(tag)

    def missed(self, count: int) -> None:
        self.fail(f"{count} messages are reported as missing")

    def at_end(self) -> None:
        """After the connection's end was reported: nothing is open any more."""
        if self.open:
            self.fail(f"{sorted(self.open)[:5]} were never notified")

    def settled(self) -> None:
        """When all was quiet for long on a perfect network."""
        if self.open:
            self.fail(f"{sorted(self.open)[:5]} are still not notified")
        self._settled()

    def is_settled(self) -> bool:
        return not self.open

    def unseen(self) -> list[int]:
        """Messages reported as delivered although the game there has seen neither them nor newer ones."""
        return sorted(number for number in self.claimed if not self._has(number))

    def _send(self, _number: int) -> None: ...
    def _receive(self, _number: int) -> None: ...
    def _has(self, _number: int) -> bool:
        return False

    def _settled(self) -> None: ...


class Ordered(Flow):
    """Exactly once, in order."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.expected: deque[int] = deque()

    def _send(self, number: int) -> None:
        self.expected.append(number)

    def _receive(self, number: int) -> None:
        if not self.expected or self.expected[0] != number:
            wanted = self.expected[0] if self.expected else "nothing"
            self.fail(f"{number} came, the next is {wanted}")
        self.expected.popleft()

    def _has(self, number: int) -> bool:
        return not self.expected or number < self.expected[0]

    def is_settled(self) -> bool:
        return super().is_settled() and not self.expected

    def _settled(self) -> None:
        if self.expected:
            self.fail(f"{len(self.expected)} messages from {self.expected[0]} on never came")


class Unordered(Flow):
    """Exactly once, in any order."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.expected: set[int] = set()

    def _send(self, number: int) -> None:
        self.expected.add(number)

    def _receive(self, number: int) -> None:
        if number not in self.expected:
            self.fail(f"{number} came twice, or was never sent")
        self.expected.remove(number)

    def _has(self, number: int) -> bool:
        return number not in self.expected

    def is_settled(self) -> bool:
        return super().is_settled() and not self.expected

    def _settled(self) -> None:
        if self.expected:
            self.fail(f"{len(self.expected)} messages, such as {min(self.expected)}, never came")


class AtMostOnce(Flow):
    """At most once, in any order."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.waiting: set[int] = set()

    def _send(self, number: int) -> None:
        self.waiting.add(number)

    def _receive(self, number: int) -> None:
        if number not in self.waiting:
            self.fail(f"{number} came twice, or was never sent")
        self.waiting.remove(number)

    def _has(self, number: int) -> bool:
        return number not in self.waiting


class Newest(Flow):
    """At most once, never one after a newer one."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.waiting: set[int] = set()
        self.last = -1

    def _send(self, number: int) -> None:
        self.waiting.add(number)

    def _receive(self, number: int) -> None:
        if number <= self.last:
            self.fail(f"{number} came after {self.last}")
        if number not in self.waiting:
            self.fail(f"{number} came and was never sent")
        self.waiting.remove(number)
        self.last = number

    def _has(self, number: int) -> bool:
        return number <= self.last


class Redundant(Newest):
    """In order, each at most once, and gaps are counted."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.places: dict[int, int] = {}
        self.known_missing = 0

    def _send(self, number: int) -> None:
        super()._send(number)
        self.places[number] = len(self.places)

    def missed(self, count: int) -> None:
        self.known_missing += count

    def check(self, counted: int) -> None:
        """All up to the newest came, or are counted as missing."""
        place = self.places[self.last] + 1
        if counted != place or self.got + self.known_missing > place:
            self.fail(
                f"{place} were sent up to {self.last}; {self.got} came and {self.known_missing} are reported "
                f"as missing, {counted} in the receiver's own counts"
            )


class Latest(Flow):
    """The newest value of each key, in the end. A value whose ack was lost may come again."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.newest: dict[int, int] = {}
        self.seen: dict[int, int] = {}
        self.sent_numbers: set[int] = set()

    def send(self, number: int, key: int, notify: bool) -> None:
        super().send(number, key, notify)
        self.newest[key] = number
        self.sent_numbers.add(number)

    def receive(self, number: int, key: int) -> None:
        super().receive(number, key)
        if number not in self.sent_numbers:
            self.fail(f"{number} came and was never sent")
        if number < self.seen.get(key, -1):
            self.fail(f"{number} came for key {key} after {self.seen[key]}")
        self.seen[key] = number

    def _has(self, _number: int) -> bool:
        return True

    def is_settled(self) -> bool:
        return super().is_settled() and self.seen == self.newest

    def _settled(self) -> None:
        stale = [key for key, number in self.newest.items() if self.seen.get(key) != number]
        if stale:
            key = stale[0]
            self.fail(f"the newest of key {key} is {self.newest[key]}, but {self.seen.get(key)} is there")


FLOWS: dict[str, type[Flow]] = {
    "reliable_ordered": Ordered,
    "reliable_unordered": Unordered,
    "unreliable": AtMostOnce,
    "sequenced": Newest,
    "redundant": Redundant,
    "latest": Latest,
    "payload": AtMostOnce,
    "chunks": Flow,
}
