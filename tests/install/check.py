#!/usr/bin/env python3
"""The library as its users meet it: installs a build folder to an empty prefix, then builds and runs against it, from
there alone, a stranger's project and the examples, with find_package(tailward) and with pkg-config.

    check.py --build DIR --source DIR [--compiler CXX] [--cmake CMAKE]

Nothing of the library is compiled here.
"""
import argparse
import http.server
import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path


def run(*command, env=None):
    """Its output; what fails ends the test, with the output shown."""
    command = [str(part) for part in command]
    print("$", *command, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    print(done.stdout, flush=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    return done.stdout


def expect(pattern, text):
    match = re.search(pattern, text, re.M)
    if not match:
        raise SystemExit(f"no {pattern!r} in:\n{text}")
    return match


class Server(http.server.ThreadingHTTPServer):
    """One host of a service whose every 40th primary takes 300 ms."""
    daemon_threads = True
    request_queue_size = 64

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes, and a delayed ACK is not what is tested

        def do_GET(self):
            attempt = int(self.headers["x-tailward-attempt"])
            with self.server.lock:
                self.server.attempts.append(attempt)
                slow = attempt == 0 and len(self.server.attempts) % 40 == 0
            if slow:
                time.sleep(0.3)
            body = b"hello\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.lock, self.attempts = threading.Lock(), []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A loser's connection, which the client has closed."""

    @property
    def address(self):
        return f"127.0.0.1:{self.server_port}"


def check_hedged_get(program):
    servers = [Server(), Server()]
    text = run(program, "fixed:50ms", "/", *(server.address for server in servers))
    expect(r"^800 requests, 0 failed$", text)
    expect(r"^P50 \d+\.\d ms, P99 \d+\.\d ms$", text)
    hedges, won = map(int, expect(r"^(\d+) hedges \(.* extra load\), (\d+) of them won$", text).groups())
    expect(r"^(unknown|healthy|watch|cause): .", text)
    attempts = [attempt for server in servers for attempt in server.attempts]
    for server in servers:
        server.shutdown()
    if not 0 < won <= hedges or attempts.count(0) != 800 or attempts.count(1) > hedges:
        raise SystemExit(f"{hedges} hedges, {won} won; the servers saw {attempts.count(0)} primaries and "
                         f"{attempts.count(1)} hedges")


def check_profiled_lock(program, profile):
    expect(r"^\d+ contended acquisitions waited for ", run(program, profile))
    if profile.read_bytes()[:2] != b"\x1f\x8b":
        raise SystemExit(f"{profile} is not compressed")


def check_examples(folder):
    check_hedged_get(folder / "hedged_get")
    check_profiled_lock(folder / "profiled_lock", folder / "contention.pb.gz")


def check_headers(include):
    """Boost is needed to build the library, not to use it."""
    for header in include.rglob("*.h"):
        if re.search(r"#\s*include\s*[<\"]boost/", header.read_text(encoding="utf-8")):
            raise SystemExit(f"{header} includes Boost")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("--source", required=True, type=Path)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--cmake", default="cmake")
    args = parser.parse_args()

    work = args.build.resolve() / "install-test"
    shutil.rmtree(work, ignore_errors=True)
    prefix = work / "prefix"
    run(args.cmake, "--install", args.build, "--prefix", work / "staged")
    (work / "staged").rename(prefix)  # an installed tree may be moved
    check_headers(prefix / "include")

    for name, project in ("consumer", args.source / "tests/install"), ("examples", args.source / "examples"):
        run(args.cmake, "-G", "Ninja", "-S", project, "-B", work / name, "-D", f"CMAKE_PREFIX_PATH={prefix}",
            "-D", f"CMAKE_CXX_COMPILER={args.compiler}")
        run(args.cmake, "--build", work / name)
    run(work / "consumer/consumer")
    check_examples(work / "examples")

    (pc,) = prefix.rglob("tailward.pc")
    flags = run("pkg-config", "--cflags", "--libs", "tailward", env=os.environ | {"PKG_CONFIG_PATH": str(pc.parent)})
    by_hand = work / "by-hand"
    by_hand.mkdir()
    for name in "hedged_get", "profiled_lock":
        source = args.source / f"examples/{name}.cc"
        run(args.compiler, "-std=c++20", source, *flags.split(), "-o", by_hand / name)
    check_examples(by_hand)


if __name__ == "__main__":
    main()
