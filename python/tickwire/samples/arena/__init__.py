"""Arena: players shoot at each other over a bad network. A window shows the players, and the techniques
that hide the network.

To play alone with bots::

    python -m tickwire.samples.arena play

or with other players, each in their own terminal::

    python -m tickwire.samples.arena --host
    python -m tickwire.samples.arena join --network wifi-bad

Read :mod:`~tickwire.samples.arena.messages` first (for both sides) and
:mod:`~tickwire.samples.arena.rules`. Then read :mod:`~tickwire.samples.arena.server`, which decides, and
:mod:`~tickwire.samples.arena.player`, which predicts. :mod:`~tickwire.samples.arena.window` draws
everything.
"""
