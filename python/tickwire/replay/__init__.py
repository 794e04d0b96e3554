"""The ``tickwire replay`` command: what is in a recording of a match, and where two of them part."""
