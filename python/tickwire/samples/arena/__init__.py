"""Arena: players shoot at each other over a bad network. A window shows them, and the techniques that hide
that network.

Alone with bots::

    python -m tickwire.samples.arena play

or with others, each in a terminal of their own::

    python -m tickwire.samples.arena --host
    python -m tickwire.samples.arena join --network wifi-bad

Read :mod:`~tickwire.samples.arena.messages` first (shared by both sides), then
:mod:`~tickwire.samples.arena.server` (which decides) and :mod:`~tickwire.samples.arena.player` (which
predicts), with :mod:`~tickwire.samples.arena.rules`. :mod:`~tickwire.samples.arena.window` draws everything.
"""
