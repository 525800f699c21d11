#!/usr/bin/env python3
"""Runs the text-file tests of the real program.

    run_cli_tests.py --program build/dev/apps/tailward FILE.cli… [--only NAME] [--list]

A file holds cases, each a few lines of KEYWORD VALUE; lines that start with # and empty lines are nothing.

    NAME         what the program does, as a sentence; starts a case
    RUN          a line of bash; several RUN lines are one script, which stops at its first failure.
                 `tailward` is the program under test; the working directory is empty and thrown away;
                 what is still running in the background at the end is killed.
    EXPECT       a regular expression that some line of standard output must match
    EXPECT_ERR   the same for standard error
    EXPECT_NONE  a regular expression that no line of either may match
    EXPECT_JSON  a Python expression that must be true of `j`, standard output read as JSON
    EXPECT_EXIT  the exit status; 0 when it is not said
    REQUIRES     `root`, or the name of a program: without it the case is skipped. May be repeated
    TIMEOUT      in seconds; 30 when it is not said
    ALONE        no other test runs at the same time (for CTest): for what measures

Exits 0 when all cases passed, 1 when one failed, 77 when all were skipped, 2 when a file is not understood.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = 77
LISTS = {"RUN": "run", "EXPECT": "expect", "EXPECT_ERR": "expect_err", "EXPECT_NONE": "expect_none",
         "EXPECT_JSON": "expect_json", "REQUIRES": "requires"}
NUMBERS = {"EXPECT_EXIT": "exit", "TIMEOUT": "timeout"}


@dataclass
class Case:
    name: str
    run: list = field(default_factory=list)
    expect: list = field(default_factory=list)
    expect_err: list = field(default_factory=list)
    expect_none: list = field(default_factory=list)
    expect_json: list = field(default_factory=list)
    requires: list = field(default_factory=list)
    exit: int = 0
    timeout: int = 30


def parse(path):
    cases = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        keyword, _, value = line.partition(" ")
        value = value.strip()
        if keyword == "NAME":
            if any(case.name == value for case in cases):
                raise ValueError(f"{path}:{number}: a second case of this name")
            if not value or re.search(r"[;\[\]\\$\"]", value):
                raise ValueError(f"{path}:{number}: a NAME is a plain sentence; CMake reads it too")
            cases.append(Case(value))
        elif not cases:
            raise ValueError(f"{path}:{number}: a case starts with NAME")
        elif keyword in LISTS:
            getattr(cases[-1], LISTS[keyword]).append(value)
        elif keyword in NUMBERS:
            setattr(cases[-1], NUMBERS[keyword], int(value))
        elif keyword != "ALONE":
            raise ValueError(f"{path}:{number}: unknown keyword {keyword}")
    for case in cases:
        if not case.run:
            raise ValueError(f"{path}: {case.name}: nothing to RUN")
    return cases


def missing(case):
    """What the case requires and this machine has not, or None."""
    for need in case.requires:
        if need == "root":
            if os.geteuid() != 0:
                return "needs root"
        elif not shutil.which(need):
            return f"needs {need}"
    return None


def execute(case, program):
    """(exit status or None after a timeout, standard output, standard error)"""
    with tempfile.TemporaryDirectory() as folder, \
            tempfile.TemporaryFile("w+", errors="replace") as out, \
            tempfile.TemporaryFile("w+", errors="replace") as err:
        bin_folder, work = Path(folder, "bin"), Path(folder, "work")
        bin_folder.mkdir()
        work.mkdir()
        (bin_folder / "tailward").symlink_to(Path(program).resolve())
        environment = dict(os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}", NO_COLOR="1", LC_ALL="C.UTF-8")
        # Files, not pipes: a background process that keeps a pipe open would keep us reading.
        process = subprocess.Popen(["bash", "-e", "-o", "pipefail", "-c", "\n".join(case.run)], cwd=work,
                                   env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   start_new_session=True)
        try:
            status = process.wait(case.timeout)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def complaints(case, status, out, err):
    if status is None:
        yield f"still running after {case.timeout} s"
    elif status != case.exit:
        yield f"exit status {status}, expected {case.exit}"

    def matches(pattern, text):
        return any(re.search(pattern, line) for line in text.splitlines())

    for pattern in case.expect:
        if not matches(pattern, out):
            yield f"no line of standard output matches: {pattern}"
    for pattern in case.expect_err:
        if not matches(pattern, err):
            yield f"no line of standard error matches: {pattern}"
    for pattern in case.expect_none:
        if matches(pattern, out) or matches(pattern, err):
            yield f"a line matches that must not: {pattern}"
    if case.expect_json:
        try:
            j = json.loads(out)
        except ValueError as error:
            yield f"standard output is not JSON: {error}"
            return
        for expression in case.expect_json:
            try:
                if not eval(expression, {"j": j}):
                    yield f"not true: {expression}"
            except Exception as error:
                yield f"not true: {expression} ({type(error).__name__}: {error})"


def run(case, program):
    """"passed", "failed" or "skipped", and says so."""
    if reason := missing(case):
        print(f"SKIP {case.name}: {reason}")
        return "skipped"
    status, out, err = execute(case, program)
    wrong = list(complaints(case, status, out, err))
    if not wrong:
        print(f"PASS {case.name}")
        return "passed"
    print(f"FAIL {case.name}")
    for line in wrong:
        print(f"  {line}")
    for title, text in (("script", "\n".join(case.run)), ("standard output", out), ("standard error", err)):
        print(f"  --- {title}")
        print("".join(f"  {line}\n" for line in text.splitlines()[-60:]), end="")
    return "failed"


def main(arguments=None):
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--program", default=os.environ.get("TAILWARD"), help="the program under test")
    parser.add_argument("--only", help="run the case of this name")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    options = parser.parse_args(arguments)
    try:
        cases = [case for file in options.files for case in parse(file)]
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    if options.only is not None:
        cases = [case for case in cases if case.name == options.only]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    if not cases or not options.program or not os.access(options.program, os.X_OK):
        print("no such case" if not cases else f"no program to test: {options.program}", file=sys.stderr)
        return 2
    results = [run(case, options.program) for case in cases]
    if "failed" in results:
        return 1
    return 0 if "passed" in results else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
