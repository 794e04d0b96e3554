"""Rts: up to four players gather gold, build, train soldiers and fight, in lockstep and without a server.

To play in a window against bots, to host a game, or to join a game, by an address or by a code::

    python -m tickwire.samples.rts play
    python -m tickwire.samples.rts play --host 0.0.0.0:40000
    python -m tickwire.samples.rts play --join 192.0.2.7:40000
    python -m tickwire.samples.rts play --host 0.0.0.0:0 --rendezvous meet.example.net:3478
    python -m tickwire.samples.rts play --join KTRX7B --rendezvous meet.example.net:3478

To run four bots on a bad virtual network, faster than real time, and to replay their match::

    python -m tickwire.samples.rts headless --minutes 5 --record match.twrec
    python -m tickwire.samples.rts replay match.twrec
    tickwire replay match.twrec --commands tickwire.samples.rts.messages:COMMANDS

Read :mod:`~tickwire.samples.rts.messages` first (the players' commands), then
:mod:`~tickwire.samples.rts.rules` (the world, in integers only), :mod:`~tickwire.samples.rts.bot`, and
:mod:`~tickwire.samples.rts.player` (lockstep on a peer). :mod:`~tickwire.samples.rts.play` opens the game,
and :mod:`~tickwire.samples.rts.window` shows it.
"""
