"""The ``tickwire replay`` command: shows a recording of a match, or where two of them differ."""
