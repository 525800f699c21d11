#!/usr/bin/env python3
"""The runner itself: above all, that a case which should fail does."""
import contextlib
import io
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import run_cli_tests as runner  # noqa: E402

PROGRAM = """#!/bin/sh
case $1 in
  json) echo '{"arms": [{"requests": 2000}]}' ;;
  fail) echo 'error: no such thing' >&2; exit 2 ;;
  *) echo "got $# arguments"; echo second ;;
esac
"""


class RunnerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program = self.folder / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def run_text(self, text, *options):
        file = self.folder / "a.cli"
        file.write_text(text)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = runner.main([str(file), "--program", str(self.program), *options])
        self.output = out.getvalue()
        return status

    def passes(self, lines):
        self.assertEqual(self.run_text(f"NAME a\n{lines}"), 0, self.output)

    def fails(self, lines, because):
        self.assertEqual(self.run_text(f"NAME a\n{lines}"), 1, self.output)
        self.assertIn(because, self.output)

    def test_standard_output_is_matched_line_by_line(self):
        self.passes("RUN tailward 1 2\nEXPECT ^got 2 arguments$\nEXPECT ^second$\n")
        self.fails("RUN tailward 1 2\nEXPECT ^got 3\n", "matches: ^got 3")
        self.fails("RUN tailward fail || true\nEXPECT no such\n", "standard output matches")

    def test_standard_error_is_matched_apart(self):
        self.passes("RUN tailward fail\nEXPECT_ERR no such\nEXPECT_EXIT 2\n")
        self.fails("RUN tailward\nEXPECT_ERR got\n", "standard error matches")

    def test_what_must_not_be_there(self):
        self.passes("RUN tailward\nEXPECT_NONE error\n")
        self.fails("RUN tailward\nEXPECT_NONE second\n", "must not: second")
        self.fails("RUN tailward fail\nEXPECT_EXIT 2\nEXPECT_NONE error\n", "must not: error")

    def test_the_exit_status_is_checked_even_when_nothing_is_said(self):
        self.fails("RUN tailward fail\n", "exit status 2, expected 0")
        self.fails("RUN tailward\nEXPECT_EXIT 2\n", "exit status 0, expected 2")

    def test_json_is_asked_in_python(self):
        self.passes('RUN tailward json\nEXPECT_JSON j["arms"][0]["requests"] == 2000\n')
        self.fails('RUN tailward json\nEXPECT_JSON j["arms"][0]["requests"] > 2000\n', "not true")
        self.fails('RUN tailward json\nEXPECT_JSON j["missing"]\n', "KeyError")
        self.fails("RUN tailward\nEXPECT_JSON True\n", "not JSON")

    def test_a_script_stops_at_its_first_failure(self):
        self.fails("RUN tailward fail\nRUN tailward\n", "expected 0")
        self.passes("RUN echo x >file\nRUN test -s file\nRUN tailward\n")

    def test_a_case_that_hangs_fails_and_leaves_nothing_behind(self):
        start = time.monotonic()
        self.fails("RUN sleep 60\nTIMEOUT 1\n", "still running after 1 s")
        self.passes("RUN sleep 60 & echo $! >&2; tailward\nEXPECT second\n")
        self.assertLess(time.monotonic() - start, 20)

    def test_what_is_missing_skips_the_case_with_its_reason(self):
        self.assertEqual(self.run_text("NAME a\nRUN tailward\nREQUIRES no-such-program\n"), runner.SKIPPED)
        self.assertIn("SKIP a: needs no-such-program", self.output)
        self.assertEqual(self.run_text("NAME a\nRUN tailward\nREQUIRES no-such-program\nNAME b\nRUN tailward\n"), 0)
        root = self.run_text("NAME a\nRUN tailward\nREQUIRES root\n")
        self.assertEqual(root, 0 if os.geteuid() == 0 else runner.SKIPPED)

    def test_one_failure_among_several_is_a_failure(self):
        self.assertEqual(self.run_text("NAME a\nRUN tailward\nNAME b\nRUN false\nNAME c\nRUN tailward\n"), 1)
        self.assertIn("PASS a\nFAIL b", self.output)
        self.assertEqual(self.run_text("NAME a\nRUN tailward\nNAME b\nRUN false\n", "--only", "a"), 0)

    def test_a_file_with_a_mistake_is_refused(self):
        for text in ("RUN x\n", "NAME a\nEXPCT x\n", "NAME a\nEXPECT x\n", "NAME a\nRUN x\nNAME a\nRUN x\n",
                     "NAME a;b\nRUN x\n", "NAME\nRUN x\n", ""):
            self.assertEqual(self.run_text(text), 2, text)
        self.assertEqual(self.run_text("NAME a\nRUN true\n", "--only", "b"), 2)


if __name__ == "__main__":
    unittest.main()
