"""``python -m tickwire``, and the ``tickwire`` command."""

import sys

__all__: list[str] = []


def main() -> int:
    """Runs the command line. Ctrl-C ends the program with exit code 130, even during the imports."""
    try:
        from tickwire import _cli

        return _cli.main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
