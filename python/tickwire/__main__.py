"""``python -m tickwire``, and the ``tickwire`` command."""

import sys

__all__: list[str] = []


def main() -> int:
    """Runs the command line. Ctrl-C ends it from here on as it ends a command."""
    try:
        from tickwire import _cli

        return _cli.main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
