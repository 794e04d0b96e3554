"""Matchmaker: players name a room, and get a token for wherever it runs.

Each in a terminal of its own::

    python -m tickwire.samples.matchmaker ticket ann
    python -m tickwire.samples.matchmaker serve
    python -m tickwire.samples.matchmaker play attic --ticket TICKET

:mod:`~tickwire.samples.matchmaker.backend` is the web application, which keeps nothing of its own, so that
any number of them can stand behind a load balancer. :mod:`~tickwire.samples.matchmaker.game` is the room.
"""
