#!/usr/bin/env python3
"""Compares the tables of docs/reference with real output: each field that is there is documented, and each documented
field is there, but for the optional ones. The documents' flags exist, and their links lead somewhere.

    reference_test.py --program build/dev/apps/tailward [TEST…]
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

import script

PROGRAM = None
ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"
FOUND = 1  # the exit code of a verb that found something, or of an experiment whose claim a busy machine broke


def tables(page):
    """{"HEADING": {field: is it optional}} of all tables of a page whose first column is a name in backticks."""
    found, heading = {}, None
    for line in (REFERENCE / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
        elif match := re.match(r"\| `([a-z0-9_]+)` \| (.*)", line):
            found.setdefault(heading, {})[match[1]] = "*optional*" in match[2]
    return found


def documents():
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def written(*arguments, codes=(0,)):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "out.json")
        done = subprocess.run([PROGRAM, *map(str, arguments), "--json", path], capture_output=True, text=True,
                              timeout=120)
        if done.returncode not in codes:
            raise AssertionError(f"{arguments}: {done.returncode}: {done.stderr}")
        return json.loads(path.read_text(encoding="utf-8"))


@contextlib.contextmanager
def faulty_server(cause):
    process = subprocess.Popen([PROGRAM, "lab", "serve", "--sick", cause, "--for", "60s"], stdout=subprocess.PIPE,
                               text=True)
    try:
        said = dict(process.stdout.readline().split() for _ in range(2))
        yield said["pid"], said["port"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


class ReferenceTest(unittest.TestCase):
    def compare(self, heading, values, page="json.md", envelope=False):
        """The fields of all `values` together are those of the table; each has those that are not optional."""
        documented = tables(page)[heading]
        if envelope:
            documented = tables("json.md")["Every file"] | documented
        self.assertTrue(values, f"{heading}: nothing to compare")
        there = set().union(*values)
        self.assertEqual(there - documented.keys(), set(), f"{page}, {heading}: not documented")
        needed = {field for field, optional in documented.items() if not optional}
        for value in values:
            self.assertEqual(needed - value.keys(), set(), f"{page}, {heading}: documented and not there")

    def test_plan_writes_what_its_page_says(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "latencies")
            log.write_text("\n".join(str(10 + i % 90) for i in range(2_000)), encoding="utf-8")
            result = written("plan", "--latencies", log)
        self.compare("tailward plan", [result], envelope=True)
        self.compare("policies[]", result["policies"])

    def test_sockets_writes_what_its_page_says(self):
        with faulty_server("nagle-delayed-ack") as (pid, _):
            result = written("sockets", "--pid", pid)
        self.compare("tailward sockets", [result], envelope=True)
        self.compare("sockets[]", result["sockets"])

    @unittest.skipIf(os.geteuid() != 0, "needs root: packets")
    def test_diagnose_writes_what_its_page_says_live_and_from_a_capture(self):
        with tempfile.TemporaryDirectory() as folder, faulty_server("nagle-delayed-ack") as (pid, _):
            capture = Path(folder, "x.pcap")
            live = written("diagnose", "--pid", pid, "--for", "3s", "--write", capture, codes=(FOUND,))
            stored = written("diagnose", "--pcap", capture, codes=(FOUND,))
        for result in (live, stored):
            self.compare("tailward diagnose", [result], envelope=True)
            self.compare("parts[]", result["parts"])
            self.compare("findings[]", result["findings"])
            self.assertIn(result["findings"][0]["cause"], (REFERENCE / "causes.md").read_text(encoding="utf-8"))

    @unittest.skipIf(os.geteuid() != 0, "needs root: packets, and sockets of another process")
    def test_treat_writes_what_its_page_says(self):
        with faulty_server("nagle-delayed-ack") as (pid, _):
            result = written("treat", "--pid", pid, "--set", "nodelay=1", "--for", "2s", "--yes")
        self.compare("tailward treat", [result], envelope=True)
        self.compare("connections[]", result["connections"])

    def test_experiments_on_locks_and_on_tcp_write_what_their_page_says(self):
        locks = written("lab", "falsification", "--quick", codes=(0, FOUND))
        packets = written("lab", "interlock", "--quick", codes=(0, FOUND))
        for result in (locks, packets):
            self.compare("tailward lab", [result], envelope=True)
        self.compare("arms[] of falsification", locks["arms"])
        self.compare("arms[] of interlock", packets["arms"])

    def test_the_proxy_serves_what_its_page_says(self):
        admin = script.free_port()
        with faulty_server("none") as (_, port):
            proxy = subprocess.Popen([PROGRAM, "proxy", "--listen", f"127.0.0.1:{script.free_port()}", "--to",
                                      f"127.0.0.1:{port},localhost:{port}", "--admin", f"127.0.0.1:{admin}"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                script.wait_until(lambda: script.listens(admin), "the admin address")

                def get(path):
                    with urllib.request.urlopen(f"http://127.0.0.1:{admin}{path}", timeout=20) as response:
                        return response.read().decode()
                stats = json.loads(get("/stats"))
                config = json.loads(get("/config"))
                metrics = set(re.findall(r"^# TYPE (\S+)", get("/metrics"), re.MULTILINE))
            finally:
                proxy.terminate()
                proxy.wait(20)
        self.compare("/stats", [stats], page="proxy.md")
        self.compare("routes[]", stats["routes"], page="proxy.md")
        self.compare("hosts[]", stats["routes"][0]["hosts"], page="proxy.md")
        self.assertEqual(metrics, set(tables("proxy.md")["/metrics"]))
        text = (REFERENCE / "proxy.md").read_text(encoding="utf-8")
        for field in [*config, *stats["routes"][0]["denied"], *stats["proxy"], *stats["server"]]:
            self.assertIn(f"`{field}`", text)

    def test_every_fault_of_the_lab_is_a_documented_cause(self):
        listed = subprocess.run([PROGRAM, "lab", "serve", "--list"], capture_output=True, text=True, check=True)
        causes = (REFERENCE / "causes.md").read_text(encoding="utf-8")
        for line in listed.stdout.splitlines():
            self.assertIn(f"| `{line.split()[0]}` |", causes)

    def test_every_flag_that_a_document_uses_is_one_of_its_verb(self):
        pages = {}
        for title, text in re.findall(r"^## tailward ([a-z ]+)\n+```\n(.*?)```", (REFERENCE / "cli.md").read_text("utf-8"),
                                      re.MULTILINE | re.DOTALL):
            pages[title] = set(re.findall(r"--[a-z][a-z-]+", text))
        checked = 0
        for path in documents():
            text = path.read_text(encoding="utf-8").replace("\\\n", " ")
            for command in re.findall(r"(?:tailward|\./run) ([a-z][^\n`|;#]*)", text):
                words = command.split()
                verb = " ".join(words[:2]) if " ".join(words[:2]) in pages else words[0]
                for flag in re.findall(r"(?<=\s)--[a-z][a-z-]+", command) if verb in pages else []:
                    self.assertIn(flag, pages[verb], f"{path}: tailward {command}")
                    checked += 1
        self.assertGreater(checked, 50)

    def test_every_link_of_a_document_leads_somewhere(self):
        def headings(path):
            found = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found}

        for path in documents():
            for name, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", path.read_text(encoding="utf-8")):
                target = (path.parent / name).resolve() if name else path
                self.assertTrue(target.exists(), f"{path}: {name}")
                if anchor:
                    self.assertIn(anchor, headings(target), f"{path}: {name}#{anchor}")


if __name__ == "__main__":
    script.main(sys.modules[__name__])
