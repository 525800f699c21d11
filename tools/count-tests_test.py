#!/usr/bin/env python3
"""tools/count-tests: what counts as passed, failed and skipped, and where the reasons come from."""
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).with_name("count-tests")
PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"/>'
SKIPPED_BY_GTEST = """<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN      ] X.Y
src/x_test.cc:2: Skipped
needs root,
really
[  SKIPPED ] X.Y (0 ms)
</system-out></testcase>"""
SKIPPED_BY_CODE = """<testcase name="d" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>SKIP proxies: needs nginx
</system-out></testcase>"""
NOT_BUILT = '<testcase name="e" status="notrun"><skipped message="Unable to find executable"/></testcase>'


def count(*cases, text=None):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(f"<testsuite>{''.join(cases)}</testsuite>" if text is None else text)
        file.flush()
        done = subprocess.run([TOOL, file.name], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


class CountTest(unittest.TestCase):
    def test_the_last_line_counts(self):
        self.assertEqual(count(PASSED, PASSED), (0, ["2 passed, 0 failed, 0 skipped"]))

    def test_skips_are_named_with_their_reasons_and_do_not_fail(self):
        self.assertEqual(count(PASSED, SKIPPED_BY_GTEST, SKIPPED_BY_CODE),
                         (0, ["skipped: c: needs root, really", "skipped: d: needs nginx",
                              "1 passed, 0 failed, 2 skipped"]))

    def test_failures_fail(self):
        self.assertEqual(count(PASSED, FAILED), (1, ["failed: b", "1 passed, 1 failed, 0 skipped"]))

    def test_a_test_whose_program_is_missing_has_failed(self):
        self.assertEqual(count(NOT_BUILT), (1, ["failed: e", "0 passed, 1 failed, 0 skipped"]))

    def test_no_test_at_all_is_a_failure(self):
        self.assertEqual(count(), (1, ["0 passed, 0 failed, 0 skipped"]))
        self.assertEqual(count(text="not XML"), (1, ["0 passed, 1 failed, 0 skipped"]))


if __name__ == "__main__":
    unittest.main()
