#!/usr/bin/env python3
"""Tests `tailward lab` and `tailward demo` as programs: what they write, and how they end when things go wrong.

    lab_test.py --program build/dev/apps/tailward [TEST…]

Whether the experiments' claims hold on this machine is for `tailward lab` to say on a quiet one; here they run
with few requests, on a machine that may be busy with other tests.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import script
from script import wait_until

PROGRAM = None


def servers_of(pid):
    """The processes that `pid` has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


class LabTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_lab(self, *arguments, **options):
        return subprocess.run([PROGRAM, "lab", *arguments], capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, **options)

    def start_lab(self, *arguments, **options):
        process = subprocess.Popen([PROGRAM, "lab", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, text=True, **options)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        server = wait_until(lambda: servers_of(process.pid), "a server")[0]
        return process, server

    def test_writes_the_contracts_json_alone_on_standard_output(self):
        ran = self.run_lab("falsification", "--quick", "--seed", "7", "--json", "-")
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        result = json.loads(ran.stdout)
        self.assertEqual(result["experiment"], "falsification")
        self.assertEqual(result["seed"], 7)
        self.assertIs(result["partial"], False)
        none, fixed = result["arms"]
        self.assertEqual((none["name"], fixed["name"]), ("none", "fixed"))
        self.assertEqual(none["requests"], 800)
        self.assertEqual(none["server_requests"], 800)
        self.assertEqual(none["hedges"], 0)
        self.assertNotIn("verdict", none)
        # Each hedge that was sent reached the server, but for those taken back on their way.
        self.assertGreater(fixed["hedges"], 100)
        self.assertLessEqual(fixed["server_requests"], 800 + fixed["hedges"])
        self.assertGreaterEqual(fixed["server_requests"], 800 + 0.8 * fixed["hedges"])
        self.assertGreater(fixed["lock_wait_ms"], none["lock_wait_ms"])
        self.assertIn(fixed["verdict"]["layer"], ("cause", "watch"))
        self.assertTrue(fixed["verdict"]["sentence"])
        self.assertLessEqual(none["p99_low_ms"], none["p99_ms"])
        self.assertLessEqual(none["p99_ms"], none["p99_high_ms"])
        self.assertEqual(none["article"]["p99_ms"], 486.4)
        self.assertTrue(all({"name", "ok", "value", "bound"} <= set(check) for check in result["checks"]))
        self.assertEqual(ran.returncode, 0 if all(check["ok"] for check in result["checks"]) else 1)

    def test_writes_one_page_that_needs_nothing_else(self):
        page = self.folder / "report.html"
        ran = self.run_lab("falsification", "--quick", "--html", page)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        text = page.read_text()
        self.assertTrue(text.startswith("<!"))
        self.assertNotRegex(text, r'(src|href)="(https?:)?//')
        self.assertIn("falsification", text)
        self.assertRegex(ran.stdout, "▌ (CAUSE|WATCH)")
        self.assertTrue(all(len(line) <= 80 for line in ran.stdout.splitlines()), "the terminal has 80 columns")

    def test_ctrl_c_shows_what_there_is_and_marks_it(self):
        out = self.folder / "partial.json"
        process, server = self.start_lab("reference", "--json", out)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, stderr)
        result = json.loads(out.read_text())
        self.assertIs(result["partial"], True)
        self.assertEqual(result["checks"], [], "a partial result claims nothing")
        self.assertLess(result["arms"][0]["requests"], 50_000)
        self.assertIn("ended early", stdout)
        wait_until(lambda: not Path(f"/proc/{server}").exists(), "the server's end")

    def test_ctrl_c_again_and_again_from_the_start_leaves_a_whole_file_and_nothing_else(self):
        out = self.folder / "partial.json"
        process, server = self.start_lab("reference", "--json", out)
        end = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < end:
            process.send_signal(signal.SIGINT)
            time.sleep(0.005)
        _, stderr = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, stderr)
        self.assertIs(json.loads(out.read_text())["partial"], True)
        self.assertEqual(list(self.folder.iterdir()), [out])
        wait_until(lambda: not Path(f"/proc/{server}").exists(), "the server's end")

    def test_ctrl_c_in_a_drift_shows_the_phases_so_far(self):
        out = self.folder / "partial.json"
        process, _ = self.start_lab("drift", "--json", out)
        servers = wait_until(lambda: len(servers_of(process.pid)) == 3 and servers_of(process.pid), "3 servers")
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, stderr)
        result = json.loads(out.read_text())
        self.assertIs(result["partial"], True)
        self.assertEqual(result["checks"], [])
        [arm] = result["arms"]
        self.assertEqual(arm["name"], "fixed")
        [warm_up] = arm["phases"]
        self.assertEqual(warm_up["name"], "warm-up")
        # An open loop asks for 600 a second, however busy the machine is.
        asked = 600 * (warm_up["to_s"] - warm_up["from_s"])
        self.assertGreater(asked, 600)
        self.assertAlmostEqual(warm_up["requests"], asked, delta=0.2 * asked)
        self.assertEqual(warm_up["failed"], 0)
        self.assertGreater(warm_up["p99_ms"], warm_up["p50_ms"])
        self.assertLessEqual(arm["hedges"], arm["budget_share"] * arm["server_requests"] + arm["budget_burst"])
        self.assertIn("ended early", stdout)
        self.assertTrue(all(len(line) <= 80 for line in stdout.splitlines()), stdout)
        for server in servers:
            wait_until(lambda: not Path(f"/proc/{server}").exists(), "the server's end")

    def test_one_of_three_servers_that_dies_ends_a_drift(self):
        process, _ = self.start_lab("drift")
        servers = wait_until(lambda: len(servers_of(process.pid)) == 3 and servers_of(process.pid), "3 servers")
        time.sleep(1)
        os.kill(servers[1], signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 2)
        self.assertIn("killed by signal 9", stderr)
        self.assertIn("hint", stderr)
        self.assertEqual(stdout, "")

    def test_a_file_that_can_no_longer_be_written_costs_the_file_only(self):
        folder = self.folder / "gone"
        folder.mkdir()
        process, _ = self.start_lab("reference", "--json", folder / "a.json", "--html", self.folder / "b.html")
        folder.rmdir()
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 2)
        self.assertIn("a.json", stderr)
        self.assertIn("ended early", stdout)
        self.assertTrue((self.folder / "b.html").exists())

    def test_notices_a_dead_server_where_the_end_of_children_is_ignored(self):
        process, server = self.start_lab(
            "reference", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        time.sleep(1)
        os.kill(server, signal.SIGKILL)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertIn("killed by signal 9", stderr)

    def test_a_server_that_dies_in_mid_run_is_said_in_one_line(self):
        out = self.folder / "never.json"
        process, server = self.start_lab("reference", "--json", out)
        time.sleep(1)
        os.kill(server, signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertIn("killed by signal 9", stderr)
        self.assertIn("hint", stderr)
        self.assertEqual(stdout, "")
        self.assertFalse(out.exists(), "no half-written file")

    def test_the_server_ends_with_a_lab_that_was_killed(self):
        process, server = self.start_lab("reference")
        process.kill()
        process.communicate(timeout=20)
        wait_until(lambda: not Path(f"/proc/{server}").exists(), "the server's end")

    def test_a_file_that_cannot_be_written_is_an_error_with_a_hint(self):
        began = time.monotonic()
        ran = self.run_lab("falsification", "--quick", "--json", self.folder / "no" / "such" / "folder.json")
        self.assertLess(time.monotonic() - began, 3, "it did not measure first")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("folder.json", ran.stderr)
        self.assertIn("hint", ran.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_demo_tells_the_story(self):
        ran = subprocess.run([PROGRAM, "demo"], capture_output=True, text=True, timeout=300,
                             stdin=subprocess.DEVNULL)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        for text in ("1  First, measure", "2  The popular cure", "3  The cause first", "verdict:"):
            self.assertIn(text, ran.stdout)
        # The ending follows the result, as the exit status does.
        self.assertIn("Then what?" if ran.returncode == 0 else "did not go as it is told", ran.stdout)


if __name__ == "__main__":
    script.main(sys.modules[__name__])
