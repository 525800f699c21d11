#!/usr/bin/env python3
"""Tests `tailward sockets` as a program: against ss, on real servers, with many sockets, as a watch.

    sockets_test.py --program build/dev/apps/tailward [TEST…]

nginx, redis-server, node and java are started on free loopback ports, where they are installed; what the test
started ends with it. A comparison with ss is of sockets that are at rest, between two runs of ss: what both of
these say alike must be said, and what moved in between must lie in between.
"""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import script

from script import free_port, listens, wait_until

PROGRAM = None
MANY = 5_000
MANY_SECONDS = 3.0

JAVA = """
import java.net.*; import java.io.*;
public class Echo { public static void main(String[] a) throws Exception {
  ServerSocket s = new ServerSocket(Integer.parseInt(a[0]), 50, InetAddress.getByName("127.0.0.1"));
  while (true) { Socket c = s.accept(); new Thread(() -> { try {
    InputStream in = c.getInputStream(); OutputStream out = c.getOutputStream(); byte[] b = new byte[4096];
    for (int n; (n = in.read(b)) > 0; ) out.write(b, 0, n); } catch (IOException e) {} }).start(); } } }
"""


def run(*arguments, **options):
    done = subprocess.run([PROGRAM, "sockets", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          **options)
    return done.returncode, done.stdout, done.stderr


def look(*arguments):
    status, out, err = run(*arguments, "--json", "-")
    if status != 0:
        raise AssertionError(err)
    return json.loads(out)


# ---- what ss says --------------------------------------------------------------------------------------

STATES = {"ESTAB": "ESTABLISHED", "LISTEN": "LISTEN", "CLOSE-WAIT": "CLOSE-WAIT", "FIN-WAIT-1": "FIN-WAIT-1",
          "FIN-WAIT-2": "FIN-WAIT-2", "LAST-ACK": "LAST-ACK", "UNCONN": "CLOSE", "SYN-SENT": "SYN-SENT"}


def address(text):
    """ss writes v4-mapped addresses as such, wildcards as *, and interfaces behind a per cent sign."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]").split("%")[0].removeprefix("::ffff:")
    if host == "*":
        host = "::"
    return host, port


def ours(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), port


def ss_sockets():
    """By (local, remote): all figures of `ss -tinmO`, in our names and units."""
    out = subprocess.run(["ss", "-H", "-tanmiO"], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in out.splitlines():
        state, recv, send, local, remote, *rest = line.split()
        if "skmem:" not in line:
            continue  # TIME-WAIT and the like: nobody's any more, or not yet
        found[address(local), address(remote)] = figures(state, int(recv), int(send), rest)
    return found


def figures(state, recv, send, rest):
    words = {}
    flags = set()
    for at, word in enumerate(rest):
        name, colon, value = word.partition(":")
        if colon and not name.startswith("("):
            words[name] = value
        elif word in ("pacing_rate", "delivery_rate"):
            words[word] = rest[at + 1]
        else:
            flags.add(word)
    memory = dict(re.findall(r"([a-z]+)(\d+)", words.get("skmem", "")))
    say = {"state": STATES.get(state, state), "recv_queue": recv, "send_queue": send}
    for key, name in (("r", "rmem_alloc"), ("rb", "rcvbuf"), ("t", "wmem_alloc"), ("tb", "sndbuf"), ("f", "fwd_alloc"),
                      ("w", "wmem_queued"), ("o", "optmem"), ("bl", "backlog"), ("d", "drops")):
        say["memory." + name] = int(memory[key])
    say["options.congestion"] = flags  # one of the bare words
    if say["state"] == "LISTEN":
        return say

    def number(name, scale=1, missing=0):
        return round(float(re.match(r"[\d.e+]+", words[name])[0]) * scale) if name in words else missing

    rtt = words.get("rtt", "0/0").split("/")
    retrans = words.get("retrans", "0/0").split("/")
    wscale = words.get("wscale", "").split(",")
    say |= {
        "tcp.snd_wscale": int(wscale[0]) if len(wscale) == 2 else None,
        "tcp.rcv_wscale": int(wscale[1]) if len(wscale) == 2 else None,
        "tcp.rto_us": number("rto", 1000), "tcp.backoff": number("backoff"),
        "tcp.rtt_us": round(float(rtt[0]) * 1000), "tcp.rttvar_us": round(float(rtt[1]) * 1000),
        "tcp.ato_us": number("ato", 1000), "tcp.snd_mss": number("mss"), "tcp.pmtu": number("pmtu"),
        "tcp.rcv_mss": number("rcvmss"), "tcp.advmss": number("advmss"), "tcp.cwnd": number("cwnd"),
        "tcp.ssthresh": number("ssthresh", missing=None),
        "tcp.bytes_sent": number("bytes_sent"), "tcp.bytes_retrans": number("bytes_retrans"),
        "tcp.bytes_acked": number("bytes_acked"), "tcp.bytes_received": number("bytes_received"),
        "tcp.segs_out": number("segs_out"), "tcp.segs_in": number("segs_in"),
        "tcp.data_segs_out": number("data_segs_out"), "tcp.data_segs_in": number("data_segs_in"),
        "tcp.last_data_sent_ms": number("lastsnd"), "tcp.last_data_recv_ms": number("lastrcv"),
        "tcp.last_ack_recv_ms": number("lastack"),
        "tcp.pacing_bytes_per_s": number("pacing_rate", 1 / 8, None),
        "tcp.delivery_bytes_per_s": number("delivery_rate", 1 / 8),
        "tcp.delivered": number("delivered"), "tcp.app_limited": "app_limited" in flags,
        "tcp.busy_us": number("busy", 1000), "tcp.rwnd_limited_us": number("rwnd_limited", 1000),
        "tcp.sndbuf_limited_us": number("sndbuf_limited", 1000),
        "tcp.unacked": number("unacked"), "tcp.retrans_now": int(retrans[0]), "tcp.total_retrans": int(retrans[1]),
        "tcp.lost": number("lost"), "tcp.sacked": number("sacked"), "tcp.reordering": number("reordering", missing=3),
        "tcp.rcv_rtt_us": number("rcv_rtt", 1000, None), "tcp.rcv_space": number("rcv_space"),
        "tcp.rcv_ssthresh": number("rcv_ssthresh"), "tcp.notsent_bytes": number("notsent"),
        "tcp.min_rtt_us": number("minrtt", 1000, None), "tcp.snd_wnd": number("snd_wnd"),
        "tcp.rcv_ooopack": number("rcv_ooopack"),
    }
    if "rcv_wnd" in words:  # iproute2 6.2
        say["tcp.rcv_wnd"] = number("rcv_wnd")
    return say


# ss shows these in whole milliseconds, or rounded to six digits.
COARSE_US = {"tcp.busy_us", "tcp.rwnd_limited_us", "tcp.sndbuf_limited_us"}
SIX_DIGITS = {"tcp.rto_us", "tcp.rtt_us", "tcp.rttvar_us", "tcp.rcv_rtt_us", "tcp.min_rtt_us", "tcp.pacing_bytes_per_s",
              "tcp.delivery_bytes_per_s"}


def said(socket_json, name):
    part, _, key = name.partition(".")
    return socket_json[part][key] if key else socket_json[part]


def agrees(name, value, before, after):
    if name == "options.congestion":
        return value in before | after
    if value is None or before is None or after is None:
        # ss leaves out what is 0, and thresholds from 65,535 on.
        nothing = (None, 0) if name != "tcp.ssthresh" else (None,)
        big = name == "tcp.ssthresh" and value is not None and value >= 0xFFFF
        return big or (value in nothing and before in nothing and after in nothing)
    if isinstance(value, (bool, str)):
        return value in (before, after)
    low, high = min(before, after), max(before, after)
    slack = 1_000 if name in COARSE_US else max(1, abs(high) * 2e-5) if name in SIX_DIGITS else 0
    return low - slack <= value <= high + slack


class Servers(contextlib.ExitStack):
    """Real ones, on loopback, each with what to send to it. What cannot be had is said."""

    def __init__(self):
        super().__init__()
        self.folder = Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.missing = []

    def start(self, *command, **options):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        self.callback(lambda: (process.poll() is None and process.terminate(), process.wait(20)))
        return process

    def has(self, program):
        if shutil.which(program) or Path(f"/usr/sbin/{program}").exists():
            return True
        self.missing.append(program)
        return False

    def ready(self, port, process):
        wait_until(lambda: listens(port) or process.poll() is not None, f"port {port}")
        return port

    HTTP = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    def nginx(self):
        port, app = free_port(), self.node()
        folder = self.folder
        temporary = " ".join(f"{name}_temp_path {folder}/{name};"
                             for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;\n"
            "events { worker_connections 1024; }\n"
            f"http {{ access_log off; {temporary}\n"
            f"  upstream app {{ server 127.0.0.1:{app or 9}; keepalive 8; }}\n"
            f"  server {{ listen 127.0.0.1:{port}; location /direct {{ return 200 hello; }}\n"
            "    location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; } } }\n")
        path = shutil.which("nginx") or "/usr/sbin/nginx"
        return self.ready(port, self.start(path, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"))

    def redis(self):
        port = free_port()
        return self.ready(port, self.start("redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1",
                                           cwd=self.folder))

    def node(self):
        if not self.has("node"):
            return None
        port = free_port()
        code = ("require('http').createServer((q,s)=>s.end('hello '+'x'.repeat(200)))"
                f".listen({port},'127.0.0.1')")
        return self.ready(port, self.start("node", "-e", code))

    def java(self):
        port = free_port()
        (self.folder / "Echo.java").write_text(JAVA)
        process = self.start("java", "-Xshare:auto", str(self.folder / "Echo.java"), str(port))
        wait_until(lambda: listens(port) or process.poll() is not None, "java", 60)
        return port if process.poll() is None else None

    def all(self):
        """(name, port, request) of each that could be started."""
        started = []
        for name, program, start, request in (
                ("nginx", "nginx", self.nginx, self.HTTP), ("redis", "redis-server", self.redis, b"PING\r\n"),
                ("node", "node", self.node, self.HTTP), ("java", "java", self.java, b"hello")):
            port = start() if self.has(program) else None
            if port:
                started.append((name, port, request))
        return started


class SocketsTest(unittest.TestCase):
    def servers(self):
        servers = self.enterContext(Servers())
        started = servers.all()
        for name in sorted(set(servers.missing)):
            print(f"without {name}: it is not installed")
        if not started:
            self.skipTest("none of nginx, redis-server, node, java is installed")
        return started

    def talk(self, port, request, rounds=60):
        client = self.enterContext(socket.create_connection(("127.0.0.1", port), timeout=20))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(rounds):
            client.sendall(request)
            client.recv(65_536)
        return client

    def compare_with_ss(self, *arguments):
        """Returns how many figures of how many sockets agreed."""
        before, result, after = ss_sockets(), look(*arguments), ss_sockets()
        figures_seen, sockets_seen, wrong = 0, 0, []
        for one in result["sockets"]:
            key = (ours(one["local"]), ours(one["remote"]))
            if one["state"] == "LISTEN":
                key = (key[0], (key[1][0], "*"))
            if key not in before or key not in after:
                continue
            sockets_seen += 1
            for name in before[key]:
                figures_seen += 1
                value = said(one, name)
                if not agrees(name, value, before[key][name], after[key][name]):
                    wrong.append(f"{key}: {name}: {value}, ss {before[key][name]} and {after[key][name]}")
        self.assertEqual(wrong, [], "\n".join(wrong))
        return figures_seen, sockets_seen

    def test_every_figure_agrees_with_ss_on_real_servers(self):
        if not shutil.which("ss"):
            self.skipTest("ss (iproute2) is not installed")
        started = self.servers()
        for _, port, request in started:
            for _ in range(3):
                self.talk(port, request)
        time.sleep(0.6)  # delayed acknowledgements and timers come to rest
        for name, port, _ in started:
            seen, sockets = self.compare_with_ss("--port", port)
            print(f"{name}: {seen} figures of {sockets} sockets agree with ss")
            self.assertGreaterEqual(sockets, 4)
            self.assertGreaterEqual(seen, 3 * 50)

    def test_every_figure_agrees_with_ss_on_stalled_and_closing_sockets(self):
        if not shutil.which("ss"):
            self.skipTest("ss (iproute2) is not installed")
        listener = self.enterContext(socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True,
                                                          backlog=7))
        port = listener.getsockname()[1]
        stalled = self.enterContext(socket.create_connection(("127.0.0.1", port)))
        reader = self.enterContext(listener.accept()[0])
        stalled.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                stalled.send(b"x" * 65_536)
        closing = self.enterContext(socket.create_connection(("::1", port)))
        left = self.enterContext(listener.accept()[0])
        closing.shutdown(socket.SHUT_WR)
        waiting = self.enterContext(socket.create_connection(("::1", port)))  # not accepted
        time.sleep(0.6)
        seen, sockets = self.compare_with_ss("--pid", os.getpid())
        print(f"stalled and closing: {seen} figures of {sockets} sockets agree with ss")
        self.assertGreaterEqual(sockets, 6)
        by_fd = {one["fd"]: one for one in look("--pid", os.getpid())["sockets"]}
        self.assertEqual(by_fd[left.fileno()]["state"], "CLOSE-WAIT")
        self.assertEqual(by_fd[listener.fileno()]["recv_queue"], 1)
        self.assertEqual(by_fd[listener.fileno()]["send_queue"], 7)
        self.assertGreater(by_fd[stalled.fileno()]["tcp"]["notsent_bytes"], 0)
        self.assertGreater(by_fd[reader.fileno()]["recv_queue"], 0)
        self.assertEqual(by_fd[reader.fileno()]["remote"].split(":")[0], "127.0.0.1")
        self.assertEqual(by_fd[waiting.fileno()]["remote"], f"[::1]:{port}")

    def test_healthy_servers_get_no_remarks(self):
        for name, port, request in self.servers():
            for _ in range(3):
                self.talk(port, request, rounds=200)
            result = look("--port", port)
            remarks = [(one["fd"], remark["code"]) for one in result["sockets"] for remark in one["remarks"]]
            if name == "java":  # its default is Nagle on and a backlog of 50, and this program leaves it so
                self.assertLessEqual({code for _, code in remarks}, {"nagle", "small-backlog"}, result)
            else:
                self.assertEqual(remarks, [], name)
            runtime = {"nginx": "nginx", "redis": "Redis", "node": "Node.js", "java": "Java"}[name]
            self.assertEqual({process["runtime"] for process in result["processes"]}, {runtime})

    def test_options_that_ss_cannot_show_are_read_from_a_running_process(self):
        listener = self.enterContext(socket.create_server(("127.0.0.1", 0)))
        client = self.enterContext(socket.create_connection(listener.getsockname()))
        self.enterContext(listener.accept()[0])
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
        options = {one["fd"]: one["options"] for one in look("--pid", os.getpid())["sockets"]}[client.fileno()]
        self.assertIs(options["nodelay"], True)
        self.assertIs(options["cork"], True)
        self.assertEqual(options["sndbuf"], 40_000)
        self.assertIs(options["keepalive"], True)
        self.assertEqual(options["keepidle_s"], 15)
        if options["buf_lock"] is not None:
            self.assertEqual(options["buf_lock"], ["snd"])

    def test_five_thousand_sockets_are_looked_at_quickly(self):
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < MANY + 200:
            self.skipTest(f"ulimit -Hn is {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        listener = self.enterContext(socket.create_server(("127.0.0.1", 0), backlog=4_096))
        for _ in range(MANY // 2):
            self.enterContext(socket.create_connection(listener.getsockname()))
            self.enterContext(listener.accept()[0])
        def processor():
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return usage.ru_utime + usage.ru_stime

        before, began = processor(), time.monotonic()
        status, out, err = run("--pid", os.getpid())
        took, used = time.monotonic() - began, processor() - before
        print(f"{MANY:,} sockets in {took:.2f} s, {used:.2f} s of a processor")
        self.assertEqual(status, 0, err)
        # What it takes by the clock depends on who else is at work here.
        self.assertLess(used, MANY_SECONDS)
        self.assertIn("5,000 connections", " ".join(out.split()))
        self.assertLess(len(out.splitlines()), 80)

    def test_a_process_in_another_network_namespace(self):
        if os.geteuid() != 0 or not shutil.which("unshare"):
            self.skipTest("needs root and unshare(1)")
        code = ("import socket,sys; s=socket.create_server(('0.0.0.0', 17777), backlog=200); print('up', flush=True);"
                " sys.stdin.read()")
        process = subprocess.Popen(["unshare", "--net", sys.executable, "-c", code], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait, 20)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        if process.stdout.readline() != "up\n":
            self.skipTest("network namespaces are not allowed here")
        for arguments in (("--pid", process.pid), ("--port", 17_777)):
            result = look(*arguments)
            self.assertEqual([one["local"] for one in result["sockets"]], ["0.0.0.0:17777"])
            self.assertEqual(result["sockets"][0]["send_queue"], 200)
            self.assertEqual(result["processes"][0]["pid"], process.pid)

    def test_another_user_is_told_what_is_missing(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become somebody else")
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            os.chmod(folder, 0o755)
            copy = shutil.copy(PROGRAM, folder)
            listener = self.enterContext(socket.create_server(("127.0.0.1", 0)))

            def as_nobody(*arguments):
                return subprocess.run([copy, "sockets", *map(str, arguments)], capture_output=True, text=True,
                                      timeout=60, user=65_534, group=65_534, extra_groups=[])
            try:
                refused = as_nobody("--pid", os.getpid())
            except PermissionError as error:
                self.skipTest(f"the program cannot be run as another user: {error}")
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.assertRegex(refused.stderr, r"may not look into process \d+ \(.*\): it runs as uid 0, this as uid 65534")
            self.assertIn("CAP_SYS_PTRACE", refused.stderr)
            by_port = as_nobody("--port", listener.getsockname()[1])
            self.assertEqual(by_port.returncode, 0, by_port.stderr)
            self.assertIn("could not be read", by_port.stdout)

    def test_a_watch_shows_rates_and_ends_after_its_time(self):
        listener = self.enterContext(socket.create_server(("127.0.0.1", 0)))
        client = self.enterContext(socket.create_connection(listener.getsockname()))
        server = self.enterContext(listener.accept()[0])
        watch = subprocess.Popen([PROGRAM, "sockets", "--pid", str(os.getpid()), "--every", "200ms", "--for", "1.1s",
                                  "--json", "/dev/stderr"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while watch.poll() is None:
            client.send(b"x" * 100)
            server.recv(100)
            time.sleep(0.01)
        out, err = watch.communicate()
        self.assertEqual(watch.returncode, 0, err)
        self.assertGreaterEqual(out.count("Per second"), 3)
        self.assertRegex(out, r"[1-9] active")
        result = json.loads(err)
        rates = {one["fd"]: one["rates"] for one in result["sockets"]}[client.fileno()]
        self.assertGreater(rates["sent_bytes_per_s"], 500)
        self.assertGreater(rates["segments_out_per_s"], 5)

    def test_ctrl_c_ends_a_watch_on_a_terminal_and_gives_the_screen_back(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        watch = subprocess.Popen([PROGRAM, "sockets", "--pid", str(os.getpid()), "--watch", "--every", "100ms"],
                                 stdin=slave, stdout=slave, stderr=slave, env=os.environ | {"TERM": "xterm"})
        os.close(slave)
        seen = b""
        end = time.monotonic() + 20
        while seen.count(b"Per second") < 3 and time.monotonic() < end:
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 65_536)
        watch.send_signal(signal.SIGINT)
        while watch.poll() is None and time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    seen += os.read(master, 65_536)
        with contextlib.suppress(OSError):
            while select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 65_536)
        self.assertEqual(watch.returncode, 0)
        self.assertGreaterEqual(seen.count(b"Per second"), 3)
        self.assertIn(b"\x1b[?1049h", seen)
        self.assertIn(b"\x1b[?1049l", seen)

    def test_a_watch_ends_with_its_process(self):
        listener = socket.create_server(("127.0.0.1", 0))
        target = subprocess.Popen(["sleep", "60"], pass_fds=[listener.fileno()])
        listener.close()
        watch = subprocess.Popen([PROGRAM, "sockets", "--pid", str(target.pid), "--watch", "--every", "100ms"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        watch.stdout.readline()
        target.kill()
        target.wait()
        _, err = watch.communicate(timeout=20)
        self.assertEqual(watch.returncode, 2)
        self.assertRegex(err, "there is no process|ended")

    def test_a_watch_whose_reader_has_gone_ends(self):
        watch = subprocess.Popen([PROGRAM, "sockets", "--pid", str(os.getpid()), "--watch", "--every", "100ms"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        watch.stdout.readline()
        watch.stdout.close()
        self.addCleanup(watch.stderr.close)
        self.assertEqual(watch.wait(20), 0)


if __name__ == "__main__":
    script.main(sys.modules[__name__])
