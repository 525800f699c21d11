#!/usr/bin/env python3
"""Tests `tailward proxy` as a program, before real servers.

    proxy_test.py --program build/dev/apps/tailward [--requests N] [TEST…]

--requests, or TAILWARD_PROXY_REQUESTS: over how many requests the answers through the proxy are compared with
those without it; 2,000 when it is not said, 100,000 for the bar. Everything runs on free loopback ports and in
a folder that is thrown away; what the test started ends with it. Exits 77 when it cannot run here.
"""
import argparse
import collections
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from script import free_port, listens, run_tests, wait_until

PROGRAM = None
REQUESTS = 2_000


class Proxy:
    """The program with its addresses, read from the line that it prints."""

    def __init__(self, to, *options):
        hosts = ",".join(f"127.0.0.1:{port}" for port in to)
        self.process = subprocess.Popen(
            [PROGRAM, "proxy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--to", hosts, *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.line = self.process.stdout.readline()
        ports = re.search(r"listening on 127\.0\.0\.1:(\d+), .*admin 127\.0\.0\.1:(\d+)", self.line)
        if not ports:
            raise AssertionError("it did not start: " + self.line + self.process.stdout.read())
        self.port, self.admin = int(ports[1]), int(ports[2])

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=20) as answer:
            return answer.read().decode()

    def stats(self):
        return json.loads(self.get("/stats"))

    def stop(self):
        """Returns the exit status and what it printed since it started."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            said, _ = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, said


class Connection:
    """An HTTP/1.1 connection that gives answers as bytes: head and body, framing removed."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def close(self):
        self.socket.close()

    def send(self, request):
        self.socket.sendall(request)

    def more(self):
        piece = self.socket.recv(262_144)
        if not piece:
            raise ConnectionError("closed within an answer" if self.rest else "closed without an answer")
        self.rest += piece

    def take(self, size):
        while len(self.rest) < size:
            self.more()
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def line(self):
        while b"\r\n" not in self.rest:
            self.more()
        taken, self.rest = self.rest.split(b"\r\n", 1)
        return taken

    def answer(self, method=b"GET"):
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        status = head[9:12]
        lower = head.lower()
        if method == b"HEAD" or status in (b"204", b"304"):
            return head, b""
        if b"\r\ntransfer-encoding: chunked" in lower:
            body = b""
            while size := int(self.line().split(b";")[0], 16):
                body += self.take(size)
                self.take(2)
            self.line()
            return head, body
        length = re.search(rb"\r\ncontent-length: (\d+)", lower)
        return head, self.take(int(length[1])) if length else b""


def closes(head):
    return b"\r\nconnection: close" in head.lower()


DATE = re.compile(rb"\r\nDate: [^\r]*")
OF_THE_HOP = (b"connection:", b"keep-alive:")


def end_to_end(head):
    """The lines of a head that every hop must leave alone, framing included; without the time of day."""
    if not DATE.search(head):
        return [b"(no date)"] + sorted(head.split(b"\r\n"))
    lines = DATE.sub(b"", head).split(b"\r\n")
    return sorted(line for line in lines if not line.lower().startswith(OF_THE_HOP))


class Nginx:
    """Two nginx with the same files."""

    CONFIG = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid.{port}; error_log {folder}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000; default_type application/octet-stream; absolute_redirect off;
  client_body_temp_path {folder}/body.{port}; proxy_temp_path {folder}/proxy.{port};
  fastcgi_temp_path {folder}/f.{port}; uwsgi_temp_path {folder}/u.{port}; scgi_temp_path {folder}/s.{port};
  server {{
    listen 127.0.0.1:{port}; root {folder}/www;
    add_header Set-Cookie "a=1"; add_header Set-Cookie "b=2"; add_header X-Mixed-Case "Kept as It Is";
    location /chunked/ {{ ssi on; ssi_types *; alias {folder}/www/; }}
    location /nothing {{ return 204; }}
    location /moved {{ return 301 /elsewhere; }}
    location /wrong {{ return 500 "a failure with a text"; }}
  }}
}}
"""

    def __init__(self, folder):
        www = Path(folder) / "www"
        www.mkdir()
        for size in (0, 1, 100, 4_096, 20_000, 65_536, 1_048_576):
            (www / str(size)).write_bytes(random.Random(size).randbytes(size).replace(b"<!--#", b"<!-- "))
        self.ports, self.processes = [], []
        for _ in range(2):
            port = free_port()
            config = Path(folder) / f"nginx.{port}.conf"
            config.write_text(self.CONFIG.format(folder=folder, port=port))
            self.processes.append(subprocess.Popen(["nginx", "-p", folder, "-c", config, "-e", "stderr"]))
            self.ports.append(port)
        for port in self.ports:
            wait_until(lambda: listens(port), "nginx")

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def request_of(method, path, *fields):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: shop.example", *fields, "", ""]).encode()


# How often in a hundred, and what.
MIX = [(20, request_of("GET", "/100")), (20, request_of("GET", "/4096")), (10, request_of("GET", "/chunked/20000")),
       (10, request_of("GET", "/20000")), (5, request_of("GET", "/0")), (5, request_of("GET", "/1")),
       (5, request_of("HEAD", "/4096")), (5, request_of("HEAD", "/chunked/4096")), (3, request_of("GET", "/65536")),
       (3, request_of("GET", "/20000", "Range: bytes=100-4999")), (3, request_of("GET", "/nothing")),
       (3, request_of("GET", "/moved")), (3, request_of("GET", "/missing")), (2, request_of("GET", "/wrong")),
       (2, request_of("GET", "/4096", "If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT")),
       (1, request_of("GET", "/1048576"))]


def method_of(request):
    return request.split(b" ", 1)[0]


def compare(ports, expected, requests, connections, seed, results):
    """Asks one of `ports` again and again over several connections; puts the number of differences."""
    draw = random.Random(seed)
    kinds = draw.choices([request for _, request in MIX], [share for share, _ in MIX], k=requests)
    lines = [Connection(ports[i % len(ports)]) for i in range(connections)]
    wrong = []
    heads = {}
    for start in range(0, requests, connections):
        batch = kinds[start:start + connections]
        for line, request in zip(lines, batch):
            line.send(request)
        for line, request in zip(lines, batch):
            head, body = line.answer(method_of(request))
            shape = DATE.sub(b"", head)
            if shape not in heads:
                heads[shape] = end_to_end(head)
            if (heads[shape], body) != expected[request]:
                wrong.append(f"{request!r}: {head!r} with {len(body)} bytes")
    for line in lines:
        line.close()
    results.put((requests, wrong))


class Identity(unittest.TestCase):
    """An answer through the proxy is the answer without it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tailward-proxy-")
        if not shutil.which("nginx"):
            raise unittest.SkipTest("needs nginx")
        cls.nginx = Nginx(cls.folder)
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.addClassCleanup(cls.nginx.stop)

    def expected(self):
        """What the servers answer when asked directly; both the same."""
        answers = {}
        for port in self.nginx.ports:
            line = Connection(port)
            for _, request in MIX:
                line.send(request)
                head, body = line.answer(method_of(request))
                answers.setdefault(request, (end_to_end(head), body))
                self.assertEqual(answers[request], (end_to_end(head), body), "the servers differ")
            line.close()
        return answers

    def test_answers_are_identical(self):
        expected = self.expected()
        proxy = Proxy(self.nginx.ports)
        self.addCleanup(proxy.stop)
        workers = 2
        results = multiprocessing.Queue()
        began = time.monotonic()
        processes = [multiprocessing.Process(target=compare, args=([proxy.port], expected, REQUESTS // workers, 8,
                                                                   seed, results)) for seed in range(workers)]
        for process in processes:
            process.start()
        done, wrong = 0, []
        for _ in processes:
            count, differences = results.get(timeout=500)
            done += count
            wrong += differences
        for process in processes:
            process.join()
        self.assertEqual(wrong[:3], [], f"{len(wrong)} of {done} answers differ")
        stats = proxy.stats()
        self.assertEqual(stats["routes"][0]["requests"], REQUESTS)
        self.assertEqual(stats["proxy"]["bad_gateway"], 0)
        print(f"identical: {done:,} answers in {time.monotonic() - began:.1f} s, "
              f"{stats['routes'][0]['hedges']} hedges")

    def test_curl_and_http_1_0_get_their_bytes(self):
        proxy = Proxy(self.nginx.ports)
        self.addCleanup(proxy.stop)
        if not shutil.which("curl"):
            self.skipTest("needs curl")
        for options in ([], ["--http1.0"], ["--http2"], ["-H", "Expect: 100-continue"]):
            for path in ("/20000", "/chunked/20000"):
                got = subprocess.run(["curl", "-sS", *options, f"http://127.0.0.1:{proxy.port}{path}"],
                                     capture_output=True, check=True, timeout=60).stdout
                self.assertEqual(got, (Path(self.folder) / "www/20000").read_bytes(), f"{options} {path}")

    def test_wrk_sees_no_error(self):
        if not shutil.which("wrk"):
            self.skipTest("needs wrk")
        proxy = Proxy(self.nginx.ports)
        self.addCleanup(proxy.stop)
        said = subprocess.run(["wrk", "-t1", "-c32", "-d2s", "--timeout", "30s",
                               f"http://127.0.0.1:{proxy.port}/4096"],
                              capture_output=True, check=True, text=True, timeout=60).stdout
        self.assertNotRegex(said, "Socket errors|Non-2xx")
        self.assertRegex(said, r"Requests/sec: +[1-9]")

    def test_drains_under_load_without_a_failed_request(self):
        proxy = Proxy(self.nginx.ports)
        failures, answered, last = [], collections.Counter(), collections.Counter()

        def load(number):
            try:
                line = Connection(proxy.port)
                while True:
                    line.send(request_of("GET", "/4096"))
                    head, body = line.answer()
                    answered[number] += 1
                    if not head.startswith(b"HTTP/1.1 200") or len(body) != 4_096:
                        failures.append(head)
                    if not closes(head):
                        continue
                    last[number] += 1
                    line.close()
                    try:
                        line = Connection(proxy.port)
                    except ConnectionRefusedError:
                        return  # nobody listens any more: not a failure of a request
            except OSError as error:
                failures.append(repr(error))

        threads = [threading.Thread(target=load, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(answered) == 16 and sum(answered.values()) > 500, "load", 60)
        status, said = proxy.stop()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(status, 0, said)
        self.assertIn("draining", said)
        self.assertIn("drained", said)
        self.assertEqual(len(last), 16, "every client was told Connection: close")


class SlowNowAndThen(ThreadingHTTPServer):
    """Sleeps at its first attempts, at a share of them, and counts what it gets."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, share, sleep):
        super().__init__(("127.0.0.1", 0), Handler)
        self.share, self.sleep = share, sleep
        self.draw = random.Random(1)
        self.lock = threading.Lock()
        self.attempts = collections.Counter()
        self.bodies = collections.Counter()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a hedge's loser is cut off: that is what happens here


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        attempt = self.headers["x-tailward-attempt"]
        with server.lock:
            server.attempts[attempt] += 1
            if body:
                server.bodies[body] += 1
            slow = attempt == "0" and server.draw.random() < server.share
        if slow:
            time.sleep(server.sleep)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_GET = do_POST = answer


class Hedging(unittest.TestCase):
    def setUp(self):
        self.servers = [SlowNowAndThen(0.05, 0.5) for _ in range(2)]
        for server in self.servers:
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
        self.proxy = Proxy([server.server_address[1] for server in self.servers], "--policy", "fixed:100ms",
                           "--budget", "20%")
        self.addCleanup(self.proxy.stop)

    def in_parallel(self, work, clients=4):
        failures = []

        def run(number):
            try:
                line = Connection(self.proxy.port)
                work(line, number)
                line.close()
            except Exception as error:  # the test fails below, on its own thread
                failures.append(repr(error))

        threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def seen(self, attempt):
        return sum(server.attempts[attempt] for server in self.servers)

    def test_hedges_what_is_slow_and_says_so(self):
        def ask(line, _):
            for _ in range(100):
                line.send(request_of("GET", "/"))
                head, body = line.answer()
                assert head.startswith(b"HTTP/1.1 200") and body == b"ok", head

        self.in_parallel(ask)
        route = self.proxy.stats()["routes"][0]
        self.assertEqual(route["requests"], 400)
        self.assertGreater(route["hedges"], 0)
        self.assertGreater(route["hedge_wins"], 0)
        self.assertEqual(route["attempts"], route["requests"] + route["hedges"])
        self.assertLessEqual(route["hedges"], 0.2 * 400 + 10)
        self.assertGreater(route["trigger_rate"], 0)
        self.assertEqual(route["client"]["samples"], 400)
        self.assertIn(route["verdict"]["layer"], ("healthy", "watch", "cause"))
        # Every attempt carries its number, and the servers got what /stats says.
        self.assertEqual(self.seen("0"), 400)
        self.assertEqual(self.seen("1"), route["hedges"])
        self.assertIn("tailward_attempts_total{kind=\"hedge\"}", self.proxy.get("/metrics"))

    def test_sends_every_post_exactly_once(self):
        def post(line, number):
            for i in range(50):
                body = f"order {number}-{i}"
                line.send(request_of("POST", "/", f"Content-Length: {len(body)}") + body.encode())
                head, _ = line.answer()
                assert head.startswith(b"HTTP/1.1 200"), head

        self.in_parallel(post)
        bodies = sum((server.bodies for server in self.servers), collections.Counter())
        self.assertEqual(len(bodies), 200)
        self.assertEqual(set(bodies.values()), {1})
        self.assertEqual(self.seen("1"), 0)
        self.assertEqual(self.proxy.stats()["routes"][0]["hedges"], 0)


class Ending(unittest.TestCase):
    def setUp(self):
        self.server = SlowNowAndThen(1.0, 30)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def ask_and_wait(self, proxy):
        line = Connection(proxy.port)
        line.send(request_of("GET", "/"))
        wait_until(lambda: self.server.attempts["0"] > 0, "the request")
        return line

    def test_cuts_what_outlasts_the_drain_timeout_and_exits_0(self):
        proxy = Proxy([self.server.server_address[1]], "--drain-timeout", "1500ms")
        line = self.ask_and_wait(proxy)
        proxy.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not listens(proxy.port), "the closed listener")
        with self.assertRaises(urllib.error.HTTPError) as ready:
            proxy.get("/readyz")
        self.assertEqual(ready.exception.code, 503)
        said, _ = proxy.process.communicate(timeout=30)
        self.assertEqual(proxy.process.returncode, 0)
        self.assertIn("1 requests were cut", said)
        line.close()

    def test_a_second_signal_ends_it_at_once(self):
        proxy = Proxy([self.server.server_address[1]])
        line = self.ask_and_wait(proxy)
        proxy.process.send_signal(signal.SIGINT)
        wait_until(lambda: not listens(proxy.port), "the closed listener")
        began = time.monotonic()
        proxy.process.send_signal(signal.SIGINT)
        said, _ = proxy.process.communicate(timeout=20)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(proxy.process.returncode, 0)
        self.assertIn("second signal", said)
        line.close()


def main():
    global PROGRAM, REQUESTS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--requests", type=int, default=int(os.environ.get("TAILWARD_PROXY_REQUESTS", REQUESTS)))
    parser.add_argument("tests", nargs="*", metavar="TEST", help="Identity, Hedging.test_…; all when none is named")
    asked = parser.parse_args()
    PROGRAM, REQUESTS = os.path.abspath(asked.program), asked.requests
    run_tests(sys.modules[__name__], asked.tests)


if __name__ == "__main__":
    main()
