"""The ``tickwire replay`` command: shows a recording of a match, or the difference between two recordings."""
