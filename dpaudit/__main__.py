"""``python -m dpaudit``: the command line."""

from dpaudit.cli.main import main

if __name__ == "__main__":
    main()
