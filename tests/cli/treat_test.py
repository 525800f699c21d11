#!/usr/bin/env python3
"""Tests `tailward treat` on living processes: a server that suffers from Nagle against delayed ACK, by writing each
answer in two pieces without TCP_NODELAY. Needs root: for other processes' sockets and for packets.

    treat_test.py --program build/dev/apps/tailward [TEST…]
"""
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import script

PROGRAM = None
DEADLINE = 30  # seconds, for what takes a moment
NOBODY = 65534
wait_until = functools.partial(script.wait_until, seconds=DEADLINE)

SERVER = r"""
import ctypes, os, socket, sys, threading
if len(sys.argv) > 1:
    os.setgroups([])
    os.setgid(int(sys.argv[1]))
    os.setuid(int(sys.argv[1]))
    ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: as if it had been this user's from the start
OPTIONS = [(6, 1), (6, 3), (1, 7), (1, 8), (1, 72), (6, 25), (6, 18), (1, 9), (6, 4), (6, 5), (6, 6)]
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
connections = []
def serve(connection):
    try:
        while connection.recv(100):
            connection.send(b"a" * 32)
            connection.send(b"b" * 32)  # waits for the acknowledgement of the first
    except OSError:
        pass  # the client went away
def accept():
    while True:
        connection, _ = listener.accept()
        connections.append(connection)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
print(listener.getsockname()[1], flush=True)
for line in sys.stdin:
    print([[c.getsockopt(level, name) for level, name in OPTIONS] for c in connections], flush=True)
"""

CLIENT = r"""
import socket, sys, threading, time
port, count, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
def ask():
    try:
        talk()
    except OSError:
        pass  # the server went away
def talk():
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while pause < 1000:
        connection.send(b"q" * 16)
        got = 0
        while got < 64:
            data = connection.recv(100)
            if not data:
                return
            got += len(data)
        time.sleep(pause)
    time.sleep(pause)
for _ in range(count):
    threading.Thread(target=ask, daemon=True).start()
sys.stdin.read()
"""


class Server:
    """The sick server; asks it for the options of its connections."""

    def __init__(self, test, user=None):
        who = [] if user is None else [str(user)]
        self.process = subprocess.Popen([sys.executable, "-c", SERVER, *who], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        self.pid = self.process.pid
        self.port = int(self.process.stdout.readline())

    def options(self):
        """Of each connection, in the order in which they were accepted."""
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def nodelay(self):
        return [connection[0] for connection in self.options()]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@unittest.skipIf(os.geteuid() != 0, "needs root: other processes' sockets, and packets")
class TreatTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.json = self.folder / "treat.json"

    def serve(self, count, pause=0.005, user=None):
        server = Server(self, user)
        self.connect(server, count, pause)
        return server

    def connect(self, server, count, pause=0.005):
        already = len(server.options())
        client = subprocess.Popen([sys.executable, "-c", CLIENT, str(server.port), str(count), str(pause)],
                                  stdin=subprocess.PIPE)
        self.addCleanup(client.stdin.close)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        wait_until(lambda: len(server.options()) == already + count, "connections")

    def start(self, *arguments, program=None, **options):
        process = subprocess.Popen([program or PROGRAM, "treat", *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def treat(self, *arguments, **options):
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def treated(self, *arguments, **options):
        """Treats with --yes and returns the JSON."""
        status, out, err = self.treat(*arguments, "--yes", "--json", self.json, **options)
        self.assertEqual(status, 0, out + err)
        return json.loads(self.json.read_text())

    def test_the_treated_half_is_cured_the_other_is_not_and_all_is_put_back(self):
        server = self.serve(8)
        before = server.options()
        result = self.treated("--pid", server.pid, "--set", "nodelay=1", "--for", "4s")
        self.assertLess(result["treated"]["p50_ms"], 1)
        self.assertGreater(result["untreated"]["p50_ms"], 35)
        self.assertLess(result["untreated"]["p50_ms"], 60)
        self.assertGreater(result["before"]["treated"]["p50_ms"], 35)
        self.assertGreater(result["treated"]["requests"], 5 * result["untreated"]["requests"])
        self.assertEqual((result["treated"]["clusters"], result["untreated"]["clusters"]), (4, 4))
        self.assertLess(result["effect"]["high_ms"], -30)
        self.assertLessEqual(result["effect"]["low_ms"], result["effect"]["p50_ms"])
        self.assertIs(result["effect"]["shown"], True)
        self.assertIs(result["rolled_back"], True)
        self.assertEqual(result["rollback"]["restored"], 4)
        self.assertIn("nodelay=1 makes it faster", result["sentence"])
        self.assertEqual([c["after"] for c in result["connections"] if c["applied"]], [{"nodelay": 1}] * 4)
        self.assertEqual(server.options(), before)

    def test_kill_9_in_mid_treatment_puts_everything_back(self):
        server = self.serve(8)
        before = server.options()
        process = self.start("--pid", server.pid, "--set", "nodelay=1,sndbuf=64KiB,keepalive=1,user_timeout=30s",
                             "--for", "15s", "--yes")
        wait_until(lambda: sum(server.nodelay()) == 4, "the change")
        self.assertNotEqual(server.options(), before)
        process.kill()
        process.communicate()
        wait_until(lambda: server.options() == before, "the old options")

    def test_ctrl_c_puts_everything_back_and_shows_what_there_is(self):
        server = self.serve(8)
        before = server.options()
        process = self.start("--pid", server.pid, "--set", "nodelay=1", "--for", "15s", "--yes", "--keep", "--json",
                             self.json)
        wait_until(lambda: sum(server.nodelay()) == 4, "the change")
        time.sleep(1)  # some requests
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(server.options(), before)
        result = json.loads(self.json.read_text())
        self.assertIs(result["partial"], True)
        self.assertIs(result["rolled_back"], True)
        self.assertIs(result["kept"], False)
        self.assertIn("Rolled back: 4 connections", out)

    def test_without_yes_it_says_what_it_would_do_and_changes_nothing(self):
        server = self.serve(4)
        before = server.options()
        status, out, err = self.treat("--pid", server.pid, "--set", "nodelay=1")
        self.assertEqual(status, 0, err)
        self.assertIn("2 of 4 connections of python", out)
        self.assertEqual(out.count("nodelay: off → on"), 2)
        self.assertIn("Nothing was changed. --yes does it.", out)
        self.assertEqual(server.options(), before)

    def test_a_single_connection_is_treated_in_slices_of_time(self):
        server = self.serve(1)
        result = self.treated("--port", server.port, "--set", "nodelay=1", "--for", "4s")
        self.assertEqual(result["design"], "slices")
        self.assertLess(result["treated"]["p50_ms"], 1)
        self.assertGreater(result["untreated"]["p50_ms"], 35)
        self.assertLess(result["effect"]["high_ms"], -30)
        self.assertEqual(server.nodelay(), [0])

    def test_all_are_compared_with_before_and_kept_and_undone_as_it_says(self):
        server = self.serve(2)
        result = self.treated("--pid", server.pid, "--set", "nodelay=1", "--for", "2s", "--all", "--keep")
        self.assertEqual(result["design"], "before-after")
        self.assertLess(result["effect"]["p50_ms"], -30)
        self.assertIs(result["rolled_back"], False)
        self.assertIs(result["kept"], True)
        self.assertEqual(server.nodelay(), [1, 1])
        words = result["undo"].split()
        self.assertEqual(words[:2], ["tailward", "treat"])
        status, out, err = self.treat(*words[2:])
        self.assertEqual(status, 0, err)
        self.assertEqual(server.nodelay(), [0, 0])

    def test_connections_that_come_meanwhile_take_part(self):
        server = self.serve(4)
        process = self.start("--pid", server.pid, "--set", "nodelay=1", "--for", "15s", "--yes", "--json", self.json)
        wait_until(lambda: sum(server.nodelay()) == 2, "the change")
        self.connect(server, 12)
        wait_until(lambda: sum(server.nodelay()) > 2, "new ones treated")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE)
        late = [c for c in json.loads(self.json.read_text())["connections"] if c["late"]]
        self.assertGreater(len(late), 0)
        self.assertEqual(server.nodelay(), [0] * 16)

    def test_an_acknowledging_client_is_cured_by_quickack(self):
        server = Server(self)
        count = 8
        self.connect(server, count)
        client = next(int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid() and
                      str(server.port) in self.command_of(p))
        result = self.treated("--pid", client, "--set", "quickack=1", "--for", "3s")
        self.assertLess(result["treated"]["p50_ms"], 25)
        self.assertGreater(result["untreated"]["p50_ms"], 35)
        self.assertTrue(any("does not last" in warning for warning in result["warnings"]))

    @staticmethod
    def command_of(pid):
        try:
            return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            return []

    def test_a_process_that_ends_meanwhile_is_said_so(self):
        server = self.serve(4)
        process = self.start("--pid", server.pid, "--set", "nodelay=1", "--for", "15s", "--yes", "--json", self.json)
        wait_until(lambda: sum(server.nodelay()) == 2, "the change")
        server.process.kill()
        out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("The process ended meanwhile", out)
        self.assertIs(json.loads(self.json.read_text())["process_ended"], True)

    def test_without_traffic_there_is_one_clear_line_and_nothing_is_changed(self):
        server = self.serve(4, pause=10_000)
        before = server.options()
        status, out, err = self.treat("--pid", server.pid, "--set", "nodelay=1", "--for", "1s", "--yes")
        self.assertEqual(status, 2)
        self.assertIn("there were no requests on these connections", err)
        self.assertEqual(server.options(), before)

    def test_nothing_matches_or_nothing_is_to_be_changed(self):
        server = self.serve(2)
        status, _, err = self.treat("--pid", server.pid, "--set", "nodelay=1", "--remote", "10.0.0.0/8", "--yes")
        self.assertEqual(status, 2)
        self.assertIn("none of the 2 connections", err)
        status, _, err = self.treat("--pid", server.pid, "--set", "nodelay=0", "--yes")
        self.assertEqual(status, 2)
        self.assertIn("2 matching connections already have nodelay=0", err)

    def test_another_users_process_is_refused_with_the_capability(self):
        server = self.serve(2)
        status, _, err = self.as_nobody("--pid", server.pid, "--set", "nodelay=1", "--yes")
        self.assertEqual(status, 2)
        self.assertIn("CAP_SYS_PTRACE", err)
        self.assertEqual(server.nodelay(), [0, 0])

    def test_without_the_right_to_capture_the_kernels_account_has_to_do(self):
        scope = Path("/proc/sys/kernel/yama/ptrace_scope")
        if scope.exists() and scope.read_text().strip() != "0":
            self.skipTest("kernel.yama.ptrace_scope is not 0: a user may not look into their own processes")
        server = self.serve(8, user=NOBODY)
        before = server.options()
        status, out, err = self.as_nobody("--pid", server.pid, "--set", "nodelay=1", "--for", "3s", "--yes", "--json",
                                          "-")
        self.assertEqual(status, 0, err)
        result = json.loads(out)
        self.assertEqual(result["measured_by"], "tcp_info")
        self.assertIsNone(result["treated"]["p50_ms"])
        self.assertLess(result["treated"]["busy_per_segment_ms"], 1)
        self.assertGreater(result["untreated"]["busy_per_segment_ms"], 10)
        self.assertLess(result["effect"]["busy_per_segment"]["high_ms"], 0)
        self.assertIn("less certain", " ".join(result["warnings"]))
        self.assertEqual(server.options(), before)

    def as_nobody(self, *arguments):
        """Runs the program as another user, from where that user may read it."""
        self.folder.chmod(0o755)
        program = shutil.copy(PROGRAM, self.folder)
        os.chmod(program, 0o755)
        return self.treat(*arguments, program=program, user=NOBODY, group=NOBODY, extra_groups=[])


if __name__ == "__main__":
    script.main(sys.modules[__name__])
