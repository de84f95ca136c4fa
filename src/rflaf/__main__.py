"""`python -m rflaf` is the command `rflaf`."""

from rflaf.cli import main

if __name__ == "__main__":
    main()
