"""What the *_test.py scripts of this folder share: ports, waiting, and how such a script begins and ends."""
import argparse
import os
import socket
import sys
import time
import unittest

SKIPPED = 77


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(ready, what, seconds=20):
    """Returns what `ready()` returned when it was at last something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if got := ready():
            return got
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run_tests(module, names):
    """Runs the named tests, or all, and exits: 0 passed, 1 failed, SKIPPED when all were skipped."""
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.wasSuccessful() and len(result.skipped) == suite.countTestCases():
        sys.exit(SKIPPED)
    sys.exit(0 if result.wasSuccessful() else 1)


def main(module):
    """Gives the script's module its PROGRAM, and runs its tests."""
    parser = argparse.ArgumentParser(description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="CLASS or CLASS.test_NAME; all when none is named")
    asked = parser.parse_args()
    module.PROGRAM = os.path.abspath(asked.program)
    run_tests(module, asked.tests)
