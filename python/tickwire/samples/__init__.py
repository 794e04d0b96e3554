"""Sample programs to run and to read.

- ``python -m tickwire.samples.echo``: the shortest server and client
- ``python -m tickwire.samples.chat``: a text interface in a terminal, reliable messages
- ``python -m tickwire.samples.filedrop``: files as chunks, with a progress bar
- ``python -m tickwire.samples.arena``: a game in a window over a bad network
- ``python -m tickwire.samples.duel``: a fight of two without a server, by rollback
- ``python -m tickwire.samples.campfire``: a game that a player hosts, and that goes on when that one leaves
- ``python -m tickwire.samples.rts``: a strategy game in lockstep, played by bots and replayed
- ``python -m tickwire.samples.crowd``: ten thousand wanderers as columns of ghosts
- ``python -m tickwire.samples.login``: a login backend over HTTP that hands out connect tokens

Most need ``pip install '.[samples]'`` in a checkout, and report it if packages are missing.
"""
