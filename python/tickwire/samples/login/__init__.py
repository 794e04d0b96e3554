"""Login: a backend over HTTP hands out connect tokens, and the game server takes nobody without one.

Each in a terminal of its own::

    python -m tickwire.samples.login key game.key
    python -m tickwire.samples.login backend --key game.key --account ann:opensesame
    python -m tickwire.samples.login serve --key game.key
    python -m tickwire.samples.login play ann

:mod:`~tickwire.samples.login.backend` is the backend, made with Flask, and
:mod:`~tickwire.samples.login.game` both sides of the game. Backend and server share the key; players never
see it.
"""
