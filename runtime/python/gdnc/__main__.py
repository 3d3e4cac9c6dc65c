"""python -m gdnc doctor"""

import argparse
import sys

from . import doctor


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gdnc")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "doctor", help="which GPU, driver, bundle and kernels are found, and what is missing; exit 3 if something is")
    command.add_argument("--json", action="store_true", help="print JSON")
    return doctor.main(parser.parse_args().json)


sys.exit(main())
