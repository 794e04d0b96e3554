"""Arena: players run for gems over a bad network. A window shows them, and how the connection does.

Alone with bots::

    python -m tickwire.samples.arena play

or with others, each in a terminal of their own::

    python -m tickwire.samples.arena serve --bots 4
    python -m tickwire.samples.arena join --network wifi-bad

Read :mod:`~tickwire.samples.arena.messages` first (what is said, and over which channel), then
:mod:`~tickwire.samples.arena.server` and :mod:`~tickwire.samples.arena.player` (who says it), with
:mod:`~tickwire.samples.arena.world` for the rules. :mod:`~tickwire.samples.arena.window` draws it all.
"""
