"""``python -m tickwire``: the ``tickwire`` command."""

import sys

from tickwire._cli import main

if __name__ == "__main__":
    sys.exit(main())
