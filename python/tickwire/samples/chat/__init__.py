"""Chat: a room on a server, and a text interface in a terminal. Run each in its own terminal::

    python -m tickwire.samples.chat serve
    python -m tickwire.samples.chat join --name ann

:mod:`~tickwire.samples.chat.room` has the messages and the server, :mod:`~tickwire.samples.chat.screen` the
interface.
"""
