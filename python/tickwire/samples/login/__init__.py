"""Login: a backend over HTTP gives players connect tokens, and the game server refuses clients without a
token.

Run each in its own terminal::

    python -m tickwire.samples.login key game.key
    python -m tickwire.samples.login backend --key game.key --account ann:opensesame
    python -m tickwire.samples.login serve --key game.key
    python -m tickwire.samples.login play ann

:mod:`~tickwire.samples.login.backend` is the backend, made with Flask, and
:mod:`~tickwire.samples.login.game` has both sides of the game. Backend and server share the key; players
never see it.
"""
