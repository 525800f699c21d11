#!/usr/bin/env python3
"""Tests `tailward diagnose --pcap` on captures that other programs wrote of other programs.

    outside_captures_test.py --program build/dev/apps/tailward [TEST…]

tcpdump, tshark and dumpcap capture nginx, redis, PostgreSQL, Python and Node servers on free loopback ports. What
the test started ends with it. Exits 77 when it cannot run here.
"""
import functools
import http.client
import http.server
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import script
from script import free_port, listens

PROGRAM = None
wait_until = functools.partial(script.wait_until, seconds=30)  # PostgreSQL takes its time


def tool(name, *folders):
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *folders]))


def needs(*names):
    """Skips a test, saying so, where a program is not installed."""
    missing = [name for name in names if tool(name) is None]
    return unittest.skipIf(missing, "needs " + ", ".join(missing))


class Capture:
    """A capture program at work; `with` waits until it has begun, and at the end until its file is whole."""

    def __init__(self, command, file):
        self.command, self.file = command, file

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        said = b""
        while not (b"listening on" in said or b"Capturing on" in said and b"File:" in said):
            line = self.process.stderr.readline()
            if not line:
                raise AssertionError(f"{self.command[0]} did not start: {said.decode()}")
            said += line
            if b"Capturing on" in said and self.command[0].endswith("tshark"):
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        # The programs say so a moment before the kernel hands on packets: the file's head is there when it does.
        wait_until(lambda: self.file.exists() and self.file.stat().st_size > 0, "the capture file")
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        time.sleep(0.3)  # what the kernel still holds
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=20)


def tcpdump(port, file, interface="lo", link=None):
    command = [tool("tcpdump"), "-Z", "root", "-i", interface, "-s", "128", "-U", "--immediate-mode", "-w", str(file)]
    return Capture(command + (["-y", link] if link else []) + [f"tcp port {port}"], file)


def tshark(port, file):
    return Capture([tool("tshark"), "-i", "lo", "-f", f"tcp port {port}", "-w", str(file)], file)


def dumpcap(port, file):
    return Capture([tool("dumpcap"), "-i", "lo", "-f", f"tcp port {port}", "-w", str(file)], file)


def diagnose(file, port):
    run = subprocess.run([PROGRAM, "diagnose", "--pcap", str(file), "--port", str(port), "--json", "-"],
                         capture_output=True, text=True, timeout=60)
    if run.returncode not in (0, 1):
        raise AssertionError(f"diagnose ended with {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


class Redis:
    """Speaks just enough of its protocol; `pieces` is how many writes one command takes."""

    def __init__(self, port, nodelay=True):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(nodelay))

    def command(self, *words, pieces=1):
        text = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        step = -(-len(text) // pieces)
        for at in range(0, len(text), step):
            self.socket.sendall(text[at:at + step])
        return self.socket.recv(65536)

    def close(self):
        self.socket.close()


class Quiet(http.server.BaseHTTPRequestHandler):
    """As many Python services do it: the head in one write, the body in the next."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"x" * 700
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@unittest.skipIf(os.geteuid() != 0, "needs root: it captures packets")
class OutsideCaptures(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tailward-captures-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.port = free_port()

    def start(self, *command, **options):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)

        def end():
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.addCleanup(end)
        wait_until(lambda: listens(self.port), command[0])

    def serve_in_python(self, handler):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def ask_http(self, path, requests, keep_alive=True):
        line = None
        for _ in range(requests):
            line = line or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            line.request("GET", path)
            answer = line.getresponse()
            answer.read()
            self.assertEqual(answer.status, 200)
            if not keep_alive:
                line.close()
                line = None
        if line:
            line.close()

    def assert_found(self, file, *causes, requests):
        found = diagnose(file, self.port)
        names = [finding["cause"] for finding in found["findings"]]
        said = json.dumps({"verdict": found["verdict"], "findings": found["findings"]}, indent=1)
        self.assertEqual(names[:1], list(causes), said)
        # Each request was found, and no more than the probing of the test itself beside them.
        self.assertGreaterEqual(found["requests"], requests, said)
        self.assertLessEqual(found["requests"], requests * 1.1 + 5, said)
        self.assertEqual(found["packets"]["retransmissions"], 0)
        return found

    @needs("nginx", "tcpdump")
    def test_a_healthy_nginx_by_tcpdump(self):
        (self.folder / "www").mkdir()
        (self.folder / "www" / "small").write_text("x" * 400)
        (self.folder / "www" / "large").write_text("x" * 300_000)
        self.folder.chmod(0o755)
        config = self.folder / "nginx.conf"
        config.write_text(f"""daemon off; pid {self.folder}/pid; error_log {self.folder}/errors;
user root;
events {{}} http {{ access_log off; client_body_temp_path {self.folder}/a; proxy_temp_path {self.folder}/b;
fastcgi_temp_path {self.folder}/c; uwsgi_temp_path {self.folder}/d; scgi_temp_path {self.folder}/e;
server {{ listen 127.0.0.1:{self.port}; root {self.folder}/www; }} }}""")
        self.start(tool("nginx"), "-c", str(config), "-p", str(self.folder))
        file = self.folder / "nginx.pcap"
        with tcpdump(self.port, file):
            self.ask_http("/small", 200)
            self.ask_http("/large", 60)
            self.ask_http("/small", 60, keep_alive=False)
        self.assert_found(file, requests=320)

    @needs("redis-server", "tshark")
    def test_a_healthy_redis_by_tshark(self):
        self.start(tool("redis-server"), "--port", str(self.port), "--save", "", "--dir", str(self.folder))
        file = self.folder / "redis.pcapng"
        with tshark(self.port, file):
            line = Redis(self.port)
            for number in range(400):
                line.command(b"SET", b"key:%d" % number, b"v" * 100)
                line.command(b"GET", b"key:%d" % number)
            line.close()
        self.assert_found(file, requests=800)

    @needs("dumpcap")
    def test_a_healthy_postgresql_by_dumpcap(self):
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not folders:
            self.skipTest("needs PostgreSQL")
        owner = pwd.getpwnam("postgres")
        data = Path(tempfile.mkdtemp(prefix="tailward-postgres-"))
        self.addCleanup(shutil.rmtree, data, ignore_errors=True)
        os.chown(data, owner.pw_uid, owner.pw_gid)
        as_owner = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "cwd": str(data)}
        subprocess.run([folders[-1] / "initdb", "-D", data / "db", "-A", "trust"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_owner)
        self.start(str(folders[-1] / "postgres"), "-D", str(data / "db"), "-p", str(self.port), "-k", str(data),
                   "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", **as_owner)
        script = data / "queries.sql"
        script.write_text("select count(*) from generate_series(1, 2000);\n" * 150)
        file = self.folder / "postgres.pcapng"

        def query():
            return subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-q", "-f",
                                   str(script)], capture_output=True, text=True, timeout=60)
        wait_until(lambda: query().returncode == 0, "PostgreSQL's first answers")
        with dumpcap(self.port, file):
            self.assertEqual(query().returncode, 0)
        self.assert_found(file, requests=150)

    @needs("node", "tcpdump")
    def test_a_healthy_node_by_tcpdump_on_any_interface(self):
        self.start(tool("node"), "-e", "require('http').createServer((question, answer) => setTimeout("
                   "() => answer.end('x'.repeat(2000)), Math.random() * 5)).listen(%d, '127.0.0.1')" % self.port)
        for link in ("LINUX_SLL", "LINUX_SLL2"):
            file = self.folder / f"node-{link}.pcap"
            with tcpdump(self.port, file, "any", link):
                self.ask_http("/", 150)
            self.assert_found(file, requests=150)

    @needs("tcpdump")
    def test_a_python_server_that_writes_head_and_body_apart(self):
        self.serve_in_python(Quiet)
        file = self.folder / "python.pcap"
        with tcpdump(self.port, file):
            self.ask_http("/", 60)
        found = self.assert_found(file, "nagle-delayed-ack", requests=60)
        self.assertIn("server", found["findings"][0]["sentence"])
        self.assertGreater(found["latency"]["p50_ms"], 30)

    @needs("tcpdump")
    def test_a_capture_that_is_still_coming_in_is_diagnosed_up_to_ctrl_c(self):
        self.serve_in_python(Quiet)
        source = subprocess.Popen([tool("tcpdump"), "-Z", "root", "-i", "lo", "-U", "--immediate-mode", "-w", "-",
                                   f"tcp port {self.port}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(source.stderr.close)
        self.addCleanup(source.wait)
        self.addCleanup(source.terminate)
        run = subprocess.Popen([PROGRAM, "diagnose", "--pcap", "-", "--json", "-"], stdin=source.stdout,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        source.stdout.close()
        source.stderr.readline()  # listening
        time.sleep(0.3)
        self.ask_http("/", 40)
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        said, complaint = run.communicate(timeout=30)
        self.assertEqual(run.returncode, 1, complaint)
        found = json.loads(said)
        self.assertTrue(found["partial"])
        self.assertEqual(found["notes"], [])
        self.assertEqual(found["findings"][0]["cause"], "nagle-delayed-ack")
        self.assertGreaterEqual(found["requests"], 35)

    def test_a_pipe_on_which_nothing_comes_is_left_at_ctrl_c(self):
        run = subprocess.Popen([PROGRAM, "diagnose", "--pcap", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        run.wait(timeout=30)
        self.assertEqual(run.returncode, 2)
        complaint = run.stderr.read()
        self.assertIn("no TCP packet was seen", complaint)
        self.assertNotIn("Interrupted system call", complaint)
        for stream in (run.stdin, run.stdout, run.stderr):
            stream.close()

    @needs("tcpdump")
    def test_a_python_server_that_closes_after_each_answer(self):
        self.serve_in_python(functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(self.folder)))
        (self.folder / "page").write_text("x" * 900)
        file = self.folder / "python-closing.pcap"
        with tcpdump(self.port, file):
            self.ask_http("/page", 60, keep_alive=False)
        self.assert_found(file, requests=60)

    @needs("redis-server", "tcpdump")
    def test_a_python_client_that_writes_each_command_in_two_pieces(self):
        self.start(tool("redis-server"), "--port", str(self.port), "--save", "", "--dir", str(self.folder))
        file = self.folder / "pieces.pcap"
        with tcpdump(self.port, file):
            line = Redis(self.port, nodelay=False)
            for _ in range(60):
                line.command(b"SET", b"key", b"v" * 100, pieces=2)
            line.close()
        found = self.assert_found(file, "nagle-delayed-ack", requests=60)
        self.assertIn("client", found["findings"][0]["sentence"])


if __name__ == "__main__":
    script.main(sys.modules[__name__])
