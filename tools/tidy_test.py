#!/usr/bin/env python3
"""Each rule of tools/tidy against a tiny tree that breaks it, and against one that comes close but does not."""
import contextlib
import importlib.machinery
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("tidy", str(Path(__file__).with_name("tidy")))
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
sys.modules["tidy"] = tidy
loader.exec_module(tidy)

COMPONENT = "tailward_component(x)\n"
HOME = "/" + "home/somebody/x"


@contextlib.contextmanager
def tree(**files):
    """A tree on disk; in the names, `__` stands for `/` and a final `_h`, `_cc`, `_md` … for the suffix."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = Path(root) / ".".join(name.replace("__", "/").rsplit("_", 1))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield tidy.read_tree(root)


class TidyTest(unittest.TestCase):
    def found(self, **files):
        with tree(**files) as read:
            return [(f.rule, f.line) for f in tidy.check(read, allowed=[])]

    def breaks(self, rule, line, **files):
        self.assertEqual(self.found(**files), [(rule, line)])

    def clean(self, **files):
        self.assertEqual(self.found(**files), [])

    # include

    def test_a_lower_folder_may_not_include_a_higher_one(self):
        self.breaks("include", 2, src__base__a_cc='#include "base/a.h"\n#include "stats/histogram.h"\n')
        self.breaks("include", 1, src__net__a_cc='#include "hedge/race.h"\n')
        self.breaks("include", 1, src__proxy__a_cc='#include "lab/experiment.h"\n')
        self.clean(src__hedge__a_cc='#include "hedge/race.h"\n#include "io/timers.h"\n#include <vector>\n')
        self.clean(src__client__a_cc='#include "hedge/race.h"\n#include "net/loop.h"\n')

    def test_nothing_includes_apps(self):
        self.breaks("include", 1, bench__a_cc='#include "apps/options.h"\n')

    def test_a_folder_that_the_table_does_not_know_is_said(self):
        self.breaks("include", 1, src__novel__a_cc="int a;\n")

    # os-header

    def test_only_net_and_probe_meet_the_operating_system(self):
        for header in ("sys/socket.h", "unistd.h", "csignal", "boost/asio.hpp", "boost/asio/ip/tcp.hpp"):
            self.breaks("os-header", 1, src__hedge__a_cc=f"#include <{header}>\n")
            self.clean(src__net__a_cc=f"#include <{header}>\n")
            self.clean(src__probe__a_cc=f"#include <{header}>\n")
            self.clean(src__hedge__a_test_cc=f"#include <{header}>\n", src__hedge__CMakeLists_txt=COMPONENT)
        self.clean(src__hedge__a_cc='#include <system_error>\n#include <boost/beast.hpp>\n#include "hedge/signal.h"\n')

    # clock

    def test_clocks_sleeps_and_unseeded_randomness_are_refused(self):
        for text in ("auto t = std::chrono::steady_clock::now();", "clock_gettime(CLOCK_REALTIME, &t);",
                     "auto t = time(nullptr);", "std::this_thread::sleep_for(x);", "usleep(3);",
                     "int r = std::rand();", "std::normal_distribution<> d;"):
            self.breaks("clock", 2, src__hedge__a_cc=f"\n{text}\n")
            self.breaks("clock", 2, src__hedge__a_test_cc=f"\n{text}\n", src__hedge__CMakeLists_txt=COMPONENT)
            self.clean(src__probe__a_cc=f"\n{text}\n")

    def test_the_seed_of_a_test_may_come_from_the_machine(self):
        self.breaks("clock", 1, src__hedge__a_cc="std::random_device d;\n")
        self.clean(src__hedge__a_test_cc="std::random_device d;\n", src__hedge__CMakeLists_txt=COMPONENT)
        self.clean(src__hedge__a_cc="boost::math::normal_distribution<> d;\n")

    def test_words_that_only_look_like_clocks_pass(self):
        self.clean(src__hedge__a_cc="// steady_clock would be wrong here\nauto s = \"usleep(1)\";\n"
                                    "std::chrono::steady_clock::time_point t;\nstats.time(0);\nservice_time(x);\nrng.rand();\nstrand(x);\n")

    # test

    def test_a_test_that_asserts_nothing_is_found(self):
        build = {"src__io__CMakeLists_txt": COMPONENT}
        self.breaks("test", 1, src__io__a_test_cc="TEST(ATest, Runs) {\n  run();\n}\n", **build)
        self.breaks("test", 1, src__io__a_test_cc="TEST(ATest, Runs) { EXPECT_TRUE(true); }\n", **build)
        self.breaks("test", 1, src__io__a_test_cc="TEST(ATest, Skips) { GTEST_SKIP(); }\n", **build)
        self.breaks("test", 1, src__io__a_test_cc="TEST(ATest, DISABLED_Is) { EXPECT_EQ(1, 1); }\n", **build)
        self.clean(src__io__a_test_cc='TEST(ATest, Skips) { GTEST_SKIP() << "no root"; }\n'
                                      "TEST_F(ATest, Checks) {\n  if (x) { EXPECT_EQ(1, x); }\n}\n", **build)

    def test_a_helper_that_asserts_counts(self):
        self.clean(src__io__CMakeLists_txt=COMPONENT, src__io__a_test_cc=(
            "void same(int a, std::function<void()> f) {\n  EXPECT_EQ(a, 1);\n}\n"
            "TEST(ATest, Direct) { same(1, {}); }\n"
            "TEST(ATest, Named) { expect_log({1}); }\n"))

    # registered

    def test_a_test_that_no_program_builds_is_found(self):
        test = "TEST(ATest, Is) { EXPECT_EQ(1, 1); }\n"
        self.breaks("registered", 1, src__io__a_test_cc=test, src__io__CMakeLists_txt="# nothing\n")
        self.breaks("registered", 1, bench__a_test_cc=test)
        self.clean(src__io__a_test_cc=test, src__io__CMakeLists_txt=COMPONENT)
        # A sub-folder is built when the component above it takes its sub-folders in, and not otherwise.
        self.clean(src__io__room__a_test_cc=test, src__io__CMakeLists_txt="tailward_component(io RECURSE PUBLIC x)\n")
        self.breaks("registered", 1, src__io__room__a_test_cc=test, src__io__CMakeLists_txt=COMPONENT)

    def test_a_test_that_ctest_does_not_know_is_found(self):
        with tempfile.TemporaryDirectory() as build, \
                tree(src__io__CMakeLists_txt=COMPONENT,
                     src__io__a_test_cc="TEST(ATest, Is) { EXPECT_EQ(1, 1); }\n"
                                        "TEST_P(ATest, Each) { EXPECT_EQ(1, 1); }\n") as read:
            listed = Path(build) / "CTestTestfile.cmake"
            listed.write_text("add_test(io/Any/ATest.Each/0 true)\n")
            self.assertEqual([(f.rule, f.line) for f in tidy.check(read, build, [])], [("registered", 1)])
            listed.write_text("add_test(io/Any/ATest.Each/0 true)\nadd_test(io/ATest.Is true)\n")
            self.assertEqual(tidy.check(read, build, []), [])

    # header, format, lengths

    def test_a_header_needs_its_guard(self):
        self.breaks("header", 1, src__io__a_h="int a();\n")
        self.clean(src__io__a_h="// What it is.\n#pragma once\nint a();\n")

    def test_a_source_includes_its_own_header_first(self):
        header = "// What it is.\n#pragma once\nint a();\n"
        self.breaks("header", 1, src__io__a_h=header, src__io__a_cc='#include <string>\n\n#include "io/a.h"\n')
        self.breaks("header", 1, src__io__a_h=header, src__io__a_cc="int b;\n")
        self.clean(src__io__a_h=header, src__io__a_cc='#include "io/a.h"\n\n#include <string>\n')
        self.clean(src__io__a_cc="#include <string>\n")  # has none

    def test_lines_fit_and_white_space_is_plain(self):
        self.breaks("format", 2, src__io__a_cc="\n// " + "x" * 98 + "\n")
        self.breaks("format", 1, src__io__a_cc="\tint a;\n")
        self.breaks("format", 1, tools__a_py="a = 1 \n")
        self.clean(src__io__a_cc="// " + "→" * 97 + "\n")  # columns, not bytes

    def test_a_long_function_is_found_and_a_long_class_is_not_one(self):
        lines = "  a();\n" * 69
        self.breaks("long-function", 4, src__io__a_cc="namespace x {\n\n// Why.\nint A::f(int b) const {\n"
                                                      + lines + "}\n}\n")
        self.clean(src__io__a_cc="namespace x {\nint f() {\n" + lines[7:] + "}\n}\n")
        self.clean(src__io__a_cc="class A : public B<int(int)> {\n  int f() { return 1; }\n" + lines + "};\n")

    def test_a_long_file_is_found(self):
        self.breaks("long-file", 1, src__io__a_cc="int a;\n" * 601)
        self.breaks("long-file", 1, src__io__a_test_cc="int a;\n" * 1001, src__io__CMakeLists_txt=COMPONENT)
        self.clean(src__io__a_test_cc="int a;\n" * 601, src__io__CMakeLists_txt=COMPONENT)

    def test_the_ratchet_asks_to_be_lowered(self):
        with tree(src__io__a_cc="int a;\n") as read:
            self.assertEqual([f.rule for f in tidy.rule_long_function(read, 1)], ["long-function"])
            self.assertEqual([f.rule for f in tidy.rule_long_file(read, 0)], [])

    # path, word

    def test_paths_of_one_machine_are_found(self):
        self.breaks("path", 1, docs__a_md=f"Look into {HOME}.\n")
        self.clean(docs__a_md="Look into build/home/x and /usr/include.\n")

    def test_one_word_for_one_thing(self):
        self.breaks("word", 2, docs__a_md="A hedge.\nA backup request.\n")
        self.breaks("word", 1, src__io__a_cc="int hedge_rate;\n")
        self.clean(docs__terminology_md="hedge: elsewhere called a backup request.\n")

    # exceptions

    def test_an_exception_covers_its_finding_and_is_missed_when_idle(self):
        rule = [("clock", "src/io/a.cc", "usleep", "why")]
        with tree(src__io__a_cc="usleep(1);\n") as read:
            self.assertEqual(tidy.check(read, allowed=rule), [])
        with tree(src__io__a_cc="int a;\n") as read:
            self.assertEqual([f.rule for f in tidy.check(read, allowed=rule)], ["allowed"])


if __name__ == "__main__":
    unittest.main()
