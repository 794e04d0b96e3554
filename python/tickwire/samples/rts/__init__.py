"""Rts: up to four players gather gold, build, train soldiers and fight, in lockstep and without a server.

Four bots on a bad virtual network, faster than real time, and what they played::

    python -m tickwire.samples.rts headless --minutes 5 --record match.twrec
    python -m tickwire.samples.rts replay match.twrec
    tickwire replay match.twrec --commands tickwire.samples.rts.messages:COMMANDS

Read :mod:`~tickwire.samples.rts.messages` first (what players command), then
:mod:`~tickwire.samples.rts.rules` (the world, in whole numbers only), :mod:`~tickwire.samples.rts.bot`, and
:mod:`~tickwire.samples.rts.player` (lockstep on a peer).
"""
