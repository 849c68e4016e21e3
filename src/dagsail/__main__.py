"""`python -m dagsail`."""

from __future__ import annotations

from dagsail.cli import main

if __name__ == "__main__":
    main()
