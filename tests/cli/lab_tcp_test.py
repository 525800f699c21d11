#!/usr/bin/env python3
"""Tests the TCP experiments of `tailward lab` as a program: what they write, and how they end.

    lab_tcp_test.py --program build/dev/apps/tailward [TEST…]

Whether their claims hold is for `tailward lab` to say on a quiet machine. Round-trip times need a network of
the program's own, which needs root or user namespaces: those tests are skipped without.
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


def may_make_networks():
    return os.geteuid() == 0 and os.path.exists("/dev/net/tun") and subprocess.run(
        ["unshare", "--net", "true"], stderr=subprocess.DEVNULL).returncode == 0


class LabTcpTest(unittest.TestCase):
    def run_lab(self, *arguments):
        ran = subprocess.run([PROGRAM, "lab", *arguments, "--json", "-"], capture_output=True, text=True,
                             timeout=120, stdin=subprocess.DEVNULL)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        return json.loads(ran.stdout)

    def test_small_writes_are_fewer_segments_than_writes_and_each_is_a_call(self):
        result = self.run_lab("nodelay-batch", "--quick", "--seed", "3")
        self.assertEqual(result["experiment"], "nodelay-batch")
        self.assertEqual([arm["name"] for arm in result["arms"]],
                         ["nodelay-64", "nagle-64", "nodelay-512", "nagle-512", "nodelay-4096", "nagle-4096"])
        for arm in result["arms"]:
            self.assertGreater(arm["median_ms"], 0)
            self.assertIn("median_ms", arm["article"])
            self.assertEqual(arm["write_calls"], 5000 if arm["size"] == 4096 else 10000)
            self.assertGreater(arm["segments"], 0)
            self.assertIn(arm["counted"]["source"], ("packets", "tcp-info"))
            if arm["counted"]["source"] == "packets" and arm["option"] == "nagle":
                self.assertLess(arm["segments_per_message"], 1)
        self.assertEqual(len(result["checks"]), 2)

    def test_ctrl_c_shows_what_there_is(self):
        process = subprocess.Popen([PROGRAM, "lab", "interlock", "--json", "-"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, err)
        result = json.loads(out)
        self.assertIs(result["partial"], True)
        self.assertEqual(result["checks"], [])
        self.assertEqual(result["arms"][0]["name"], "nagle-rtt0")
        self.assertGreater(result["arms"][0]["samples"], 0)

    @unittest.skipUnless(may_make_networks(), "needs root and network namespaces with TUN")
    def test_the_interlock_is_a_delayed_ack_for_each_request_and_needs_two_writes(self):
        result = self.run_lab("interlock", "--quick")
        arms = {arm["name"]: arm for arm in result["arms"]}
        self.assertEqual(len(arms), 9)
        for rtt in (0, 1, 10):
            nagle, nodelay, one = (arms[f"{option}-rtt{rtt}"] for option in ("nagle", "nodelay", "one-write"))
            self.assertGreater(nagle["median_ms"], 35)
            self.assertGreaterEqual(one["median_ms"], rtt)
            self.assertLess(max(nodelay["median_ms"], one["median_ms"]), nagle["median_ms"])
            self.assertEqual(one["segments_per_message"], 1)
            self.assertEqual(nagle["segments_per_message"], 2)
            if nagle["counted"]["source"] == "packets":
                self.assertGreater(nagle["delayed_acks"], 20)
                self.assertLess(one["delayed_acks"], 5)

    @unittest.skipUnless(os.geteuid() == 0 and may_make_networks(), "needs root, to give its privileges up")
    def test_without_privileges_it_says_what_it_could_not_measure(self):
        # Neither network namespaces nor captures: as another user who may not make user namespaces either.
        ran = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
                              PROGRAM, "lab", "nodelay-batch", "--quick", "--json", "-"],
                             capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if ran.returncode in (126, 127):
            self.skipTest("another user cannot run the program: " + ran.stderr.strip())
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        result = json.loads(ran.stdout)
        self.assertEqual(len(result["arms"]), 6)
        if result["arms"][0]["counted"]["source"] == "tcp-info":
            self.assertTrue(any("TCP_INFO" in note for note in result["notes"]), result["notes"])


if __name__ == "__main__":
    script.main(sys.modules[__name__])
