"""python -m benchmarks --document [--quick] [--only-stored]: write the page docs/how_fast.md and its pictures."""

import argparse

from benchmarks.how_fast import document


def main() -> None:
    """Write what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--document", action="store_true", required=True, help="write docs/how_fast.md")
    parser.add_argument("--quick", action="store_true", help="few cases, some minutes")
    parser.add_argument("--only-stored", action="store_true", help="measure nothing")
    given = parser.parse_args()
    document(quick=given.quick, only_stored=given.only_stored)


if __name__ == "__main__":
    main()
