#!/usr/bin/env python3
"""Scores `tailward diagnose` against a few faulty servers: `tailward lab truth`, short.

    truth_test.py --program build/dev/apps/tailward [TEST…]

The whole score takes twenty runs of each fault, `tailward lab truth --runs 20`; this shows that it works. Exits
77 when it cannot run here.
"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import script

PROGRAM = None


def truth(*arguments):
    run = subprocess.run([PROGRAM, "lab", "truth", "--json", "-", *arguments], capture_output=True, text=True,
                         timeout=250)
    if run.returncode not in (0, 1):
        raise AssertionError(f"truth ended with {run.returncode}: {run.stderr}")
    return run.returncode, json.loads(run.stdout)


@unittest.skipIf(os.geteuid() != 0, "needs root: captures, and network namespaces of its own")
class Scorecard(unittest.TestCase):
    def test_names_the_fault_of_the_server(self):
        status, score = truth("--runs", "2", "--for", "3s", "--sick", "nagle-delayed-ack", "--sick", "packet-loss",
                              "--sick", "small-receive-window", "--sick", "listen-overflow")
        self.assertEqual(score["failed"], [])
        self.assertEqual(score["runs"], 8)
        said = json.dumps(score["cases"], indent=1)
        # One in sixteen may be wrong where other programs take the machine's time.
        self.assertGreaterEqual(score["first_finding_right"], 7 / 8, said)
        self.assertGreaterEqual(score["capture"]["first_finding_right"], 7 / 8, said)
        everything_right = score["first_finding_right"] == 1 and score["capture"]["first_finding_right"] == 1
        self.assertEqual(status, 0 if everything_right else 1)

    def test_finds_nothing_at_a_healthy_server(self):
        status, score = truth("--runs", "3", "--for", "2s", "--sick", "none")
        self.assertEqual(status, 0, json.dumps(score["cases"], indent=1))
        self.assertEqual(score["confusion"], {"none": {"none": 3}})
        self.assertTrue(all(case["requests"] > 50 for case in score["cases"]))

    def test_ends_at_ctrl_c_with_what_it_has(self):
        run = subprocess.Popen([PROGRAM, "lab", "truth", "--sick", "none", "--for", "2s", "--json", "-"],
                               stdout=subprocess.PIPE, text=True)
        time.sleep(3.5)
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=30)
        self.assertEqual(run.returncode, 0)
        score = json.loads(said)
        self.assertTrue(score["partial"])
        self.assertLess(score["runs"], 20)


@unittest.skipIf(os.geteuid() != 0, "needs root: it captures packets")
class FaultyServer(unittest.TestCase):
    def test_is_diagnosed_as_its_directions_say(self):
        server = subprocess.Popen([PROGRAM, "lab", "serve", "--sick", "nagle-delayed-ack", "--for", "60s"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            lines = [server.stdout.readline() for _ in range(3)]
            direction = lines[2].removeprefix("Diagnose it: tailward ").split()
            run = subprocess.run([PROGRAM, *direction, "--for", "3s", "--json", "-"], capture_output=True, text=True,
                                 timeout=60)
            self.assertEqual(run.returncode, 1, run.stderr)
            found = json.loads(run.stdout)
            self.assertEqual(found["findings"][0]["cause"], "nagle-delayed-ack")
            self.assertEqual(found["findings"][0]["certainty"], "proven")
            self.assertEqual(found["hedging"]["advice"], "no")
            self.assertEqual(found["sources"]["packets"], "used")
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=30)
        self.assertEqual(server.returncode, 0)


if __name__ == "__main__":
    script.main(sys.modules[__name__])
