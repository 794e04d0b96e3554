"""Matchmaker: players name a room, and get a token for the server that runs it.

Run each in its own terminal::

    python -m tickwire.samples.matchmaker ticket ann
    python -m tickwire.samples.matchmaker serve
    python -m tickwire.samples.matchmaker play attic --ticket TICKET

:mod:`~tickwire.samples.matchmaker.backend` is the web application. It has no state, so any number of
instances can run behind a load balancer. :mod:`~tickwire.samples.matchmaker.game` is the room.
"""
