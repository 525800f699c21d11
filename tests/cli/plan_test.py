#!/usr/bin/env python3
"""Tests `tailward plan` as a program where text files are too little: signals, long input, what it needs.

    plan_test.py --program build/dev/apps/tailward [TEST…]
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import script

PROGRAM = None
# The most memory that a log of any length may take.
MEMORY_MB = 200


class PlanTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *arguments, **options):
        process = subprocess.Popen([PROGRAM, "plan", *map(str, arguments)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def run_plan(self, *arguments, stdin=b""):
        process = self.start(*arguments)
        out, err = process.communicate(stdin, timeout=120)
        return process.returncode, out.decode(), err.decode()

    def peak_mb(self, *arguments):
        """Runs the program; its exit status, its standard error, and the most memory that it had."""
        with open(self.folder / "err", "w+") as err:
            process = subprocess.Popen([PROGRAM, "plan", *map(str, arguments)], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            return process.returncode, err.read(), usage.ru_maxrss / 1024

    def interrupted(self, number, given, *arguments):
        """Gives it input, leaves that open, and sends the signal."""
        process = self.start("--latencies", "-", *arguments)
        process.stdin.write(given)
        process.stdin.flush()
        time.sleep(0.5)
        process.send_signal(number)
        try:
            status = process.wait(timeout=20)
        finally:
            process.kill()
            process.stdin.close()
        with process.stdout, process.stderr:
            return status, process.stdout.read().decode(), process.stderr.read().decode()

    def test_ctrl_c_while_it_waits_for_input_shows_what_there_is(self):
        file = self.folder / "plan.json"
        given = b"".join(b"%d\n" % i for i in range(1, 100_001))
        status, out, err = self.interrupted(signal.SIGINT, given, "--json", file)
        self.assertEqual(status, 0, err)
        self.assertIn("ended early", out)
        result = json.loads(file.read_text())
        self.assertIs(result["partial"], True)
        self.assertEqual(result["read"]["latencies"], 100_000)

    def test_sigterm_before_anything_came_is_an_error(self):
        status, out, err = self.interrupted(signal.SIGTERM, b"")
        self.assertEqual(status, 2)
        self.assertEqual(out, "")
        self.assertIn("stopped before anything was read", err)

    def test_an_endless_line_is_refused_in_bounded_memory(self):
        log = self.folder / "log"
        with open(log, "wb") as file:
            file.write(b"1\n2\n")
            for _ in range(100):
                file.write(b"7" * (1 << 20))
        status, err, peak = self.peak_mb("--latencies", log)
        self.assertEqual(status, 2)
        self.assertIn("line 3 is longer than 1 MiB", err)
        self.assertLess(peak, MEMORY_MB)

    def test_a_million_latencies_take_no_more_memory_than_a_few(self):
        random.seed(7)
        some = [f"{random.lognormvariate(1.5, 0.5):.3f}\n" for _ in range(10_000)]
        log = self.folder / "log"
        with open(log, "w") as file:
            for _ in range(100):
                file.writelines(some)
        status, err, peak = self.peak_mb("--latencies", log)
        self.assertEqual(status, 0, err)
        self.assertLess(peak, MEMORY_MB)

    def test_quantiles_agree_with_sorting(self):
        random.seed(11)
        values = sorted(round(random.lognormvariate(3, 1), 3) for _ in range(20_000))
        shuffled = values[:]
        random.shuffle(shuffled)
        status, out, err = self.run_plan("--latencies", "-", "--json", "-",
                                         stdin="".join(f"{v}\n" for v in shuffled).encode())
        self.assertEqual(status, 0, err)
        off = json.loads(out)["policies"][0]
        for name, share in (("p50_ms", 0.5), ("p90_ms", 0.9), ("p95_ms", 0.95), ("p99_ms", 0.99), ("p999_ms", 0.999)):
            exact = values[int(share * len(values)) - 1]
            self.assertAlmostEqual(off[name] / exact, 1, delta=0.02, msg=name)

    def test_the_forecast_of_a_fixed_delay_agrees_with_drawing_it(self):
        random.seed(13)
        values = [random.lognormvariate(1.5, 0.4) * (10 if random.random() < 0.05 else 1) for _ in range(100_000)]
        status, out, err = self.run_plan("--latencies", "-", "--json", "-",
                                         stdin="".join(f"{v:.4f}\n" for v in values).encode())
        self.assertEqual(status, 0, err)
        for policy in json.loads(out)["policies"][1:]:
            drawn, hedges = [], 0
            for _ in range(200_000):
                latency = random.choice(values)
                for stage in policy["stages"]:
                    if latency > stage["delay_ms"] and random.random() < stage["probability"]:
                        hedges += 1
                        latency = min(latency, stage["delay_ms"] + random.choice(values))
                drawn.append(latency)
            drawn.sort()
            self.assertAlmostEqual(policy["p99_ms"] / drawn[int(0.99 * len(drawn))], 1, delta=0.05, msg=policy["name"])
            self.assertAlmostEqual(policy["extra_load"], hedges / len(drawn), delta=0.003, msg=policy["name"])


if __name__ == "__main__":
    script.main(sys.modules[__name__])
