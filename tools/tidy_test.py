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
        self.breaks("include", 1, src__net__a_cc='#include "hedge/engine/race.h"\n')
        self.breaks("include", 1, src__proxy__a_cc='#include "lab/experiment.h"\n')
        self.clean(src__hedge__a_cc='#include "hedge/engine/race.h"\n#include "stats/window.h"\n#include <vector>\n')
        self.clean(src__client__a_cc='#include "hedge/engine/race.h"\n#include "net/loop.h"\n')

    def test_nothing_includes_apps(self):
        self.breaks("include", 1, bench__a_cc='#include "apps/options.h"\n')

    def test_a_folder_that_the_table_does_not_know_is_said(self):
        self.breaks("include", 1, src__novel__a_cc="int a;\n")

    # permission, link

    def test_a_permission_that_no_file_uses_is_found(self):
        with tree(src__stats__a_cc='#include "base/a.h"\n', tools__tidy='X = {\n    "stats": "base io",\n}\n') as read:
            found = list(tidy.tidy_links.rule_permission(read, {"stats": "base io", "net": "base"}))
            self.assertEqual([(f.line, f.offence) for f in found], [(2, "stats io")])

    def test_a_library_is_linked_by_who_includes_it(self):
        source = "#include <boost/beast.hpp>\n#include <vector>\n#include <sys/stat.h>\n"
        self.breaks("link", 1, src__net__a_cc=source, src__net__CMakeLists_txt="tailward_component(net PRIVATE fmt::fmt)\n"
                    "# Boost::headers", src__net__b_cc="#include <fmt/format.h>\n")
        for link in ("Boost::headers", "$<BUILD_INTERFACE:Boost::headers>"):
            self.clean(src__net__a_cc=source, src__net__CMakeLists_txt=f"tailward_component(net PRIVATE {link})\n")
        self.breaks("link", 1, src__net__a_cc="#include <strange/thing.h>\n", src__net__CMakeLists_txt=COMPONENT)

    def test_what_a_folder_links_in_public_it_hands_on(self):
        def files(keyword):
            return {"src__base__CMakeLists_txt": f"tailward_component(base {keyword} fmt::fmt)\n",
                    "src__base__a_cc": "#include <fmt/format.h>\n",
                    "src__stats__CMakeLists_txt": "tailward_component(stats PUBLIC tailward::base)\n",
                    "src__stats__a_cc": '#include <fmt/format.h>\n#include "base/a.h"\n'}
        self.clean(**files("PUBLIC"))
        self.breaks("link", 1, **files("PRIVATE"))

    def test_what_only_tests_link_is_not_there_for_a_source(self):
        links = "tailward_component(base TEST ZLIB::ZLIB)\n"
        self.clean(src__base__a_test_cc="#include <zlib.h>\n", src__base__CMakeLists_txt=links)
        self.breaks("link", 1, src__base__a_cc="#include <zlib.h>\n", src__base__CMakeLists_txt=links)

    def test_a_folder_inside_a_folder_may_be_a_component_of_its_own(self):
        def files(links):
            return {"src__lab__CMakeLists_txt": f"tailward_component(lab {links})\n", "src__lab__a_cc": '#include "lab/tcp/b.h"\n',
                    "src__lab__tcp__CMakeLists_txt": "tailward_component(lab_tcp)\n", "src__lab__tcp__b_cc": "int b;\n"}
        self.clean(**files("PRIVATE tailward::lab_tcp"))
        self.breaks("link", 1, **files(""))

    def test_a_link_that_nothing_needs_is_found(self):
        self.breaks("link", 1, src__base__a_cc="int a;\n", src__base__CMakeLists_txt="tailward_component(base PUBLIC ZLIB::ZLIB)\n")
        self.clean(src__base__a_cc="int a;\n", src__base__CMakeLists_txt="tailward_component(base PUBLIC Threads::Threads)\n")

    # os-header

    def test_only_net_and_probe_meet_the_operating_system(self):
        for header in ("sys/socket.h", "unistd.h", "csignal", "boost/asio.hpp", "boost/asio/ip/tcp.hpp"):
            self.breaks("os-header", 1, src__hedge__a_cc=f"#include <{header}>\n")
            self.clean(src__net__a_cc=f"#include <{header}>\n")
            self.clean(src__probe__a_cc=f"#include <{header}>\n")
            links = "tailward_component(hedge TEST Boost::headers)\n" if header.startswith("boost/") else COMPONENT
            self.clean(src__hedge__a_test_cc=f"#include <{header}>\n", src__hedge__CMakeLists_txt=links)
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
        self.clean(src__io__room__a_test_cc=test, src__io__CMakeLists_txt="tailward_component(io ROOMS PUBLIC x)\n")
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
        self.breaks("header", 1, src__io__a_h="extern int a;\n")
        self.clean(src__io__a_h="// What it is.\n#pragma once\nextern int a;\n")

    def test_a_source_includes_its_own_header_first(self):
        header = "// What it is.\n#pragma once\nextern int a;\n"
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

    def test_an_old_word_may_only_become_rarer(self):
        words = {r"[Rr]epl(?:y|ies)": ("response", 1)}

        def found(**files):
            with tree(**files) as read:
                return [f.path for f in tidy.tidy_names.rule_old_word(read, words, ("docs/terminology.md",))]
        one = "// A reply.\n"
        self.assertEqual(found(src__io__a_cc=one), [])
        self.assertEqual(found(src__io__a_cc=one, docs__a_md="Replies.\n"), ["docs/a.md"])
        self.assertEqual(found(src__io__a_cc=one, docs__terminology_md="Replies.\n"), [])
        self.assertEqual(found(src__io__a_cc="int a;\n", tools__tidy=""), ["tools/tidy"])  # to be lowered

    def test_contracts_in_strings_and_code_spans_are_no_words(self):
        words = {"reply": ("response", 0)}
        with tree(src__io__a_cc='json["reply"] = 1;\n', docs__a_md="The field `reply`.\n```\nreply: 1\n```\n",
                  tests__cli__a_cli="EXPECT_OUT reply\n", tests__cli__a_py='a = "reply"\n') as read:
            self.assertEqual(list(tidy.tidy_names.rule_old_word(read, words, ())), [])
        with tree(src__io__a_cc="int reply = 1;\n") as read:
            self.assertEqual(len(list(tidy.tidy_names.rule_old_word(read, words, ()))), 1)

    # type-name, dead

    def test_a_type_name_has_one_meaning(self):
        one = "#pragma once\nnamespace tailward::io {\nstruct Gate {\n  int a;\n};\n}\n"
        use = "Gate a;\n"
        two = "namespace tailward::net {\nnamespace {\nclass Gate : public B {\n};\n}\n}\n"
        self.assertEqual(self.found(src__io__a_h=one, src__net__b_cc=two, src__io__c_cc=use), [("type-name", 3), ("type-name", 3)])
        self.clean(src__io__a_cc=two, src__net__b_cc=two)  # each for itself
        self.clean(src__io__a_h=one, src__io__c_cc=use, src__net__b_cc="class Gate;\nstruct A {\n  struct Gate {};\n};\n")
        self.clean(src__io__a_h=one, src__io__c_cc=use, src__net__CMakeLists_txt=COMPONENT, src__net__b_testing_h="#pragma once\n" + two,
                   src__net__b_test_cc="Gate s;\n")

    def test_a_type_name_on_the_list_must_still_be_needed(self):
        with tree(src__io__a_cc="struct Gate {};\n", tools__tidy="") as read:
            self.assertEqual([f.path for f in tidy.tidy_names.rule_type_name(read, ["Gate"])], ["tools/tidy"])

    def test_what_a_header_declares_and_nobody_uses_is_found(self):
        header = "#pragma once\nclass A {\n public:\n  A();\n  void go();\n  int seen() const;\n};\nint help(const A& a);\n"
        source = '#include "io/a.h"\n\nA::A() {}\nvoid A::go() {}\nint A::seen() const { return 0; }\nint help(const A& a) { return 1; }\n'
        test = {"src__io__CMakeLists_txt": COMPONENT, "src__io__a_test_cc": "TEST(A, B) { A a; a.go(); EXPECT_EQ(a.seen(), help(a)); }\n"}
        # Its own tests are no users, but may look at what happened.
        self.assertEqual(self.found(src__io__a_h=header, src__io__a_cc=source, **test), [("dead", 5), ("dead", 8)])
        self.clean(src__io__a_h=header, src__io__a_cc=source, src__net__b_cc="int b() { A a; a.go(); return help(a); }\n", **test)
        self.assertEqual(self.found(src__io__a_h="#pragma once\nstruct A {\n  A();\n};\n", src__io__a_cc='#include "io/a.h"\nA::A() {}\n'),
                         [("dead", 2)])

    # comments

    def test_comment_density_counts_headers_and_sources_apart(self):
        with tree(src__io__a_h="// What.\n\nint a;  // ns\n", src__io__a_cc='int a;\nint b = f(\n    "// no");\n',
                  src__io__a_test_cc="// Not counted.\n") as read:
            self.assertEqual(dict(tidy.tidy_names.comment_density(read)),
                             {("io", "headers"): [1, 1, 1], ("io", "sources"): [0, 3, 0]})

    # exceptions

    def test_an_exception_covers_its_finding_and_is_missed_when_idle(self):
        rule = [("clock", "src/io/a.cc", "usleep", "why")]
        with tree(src__io__a_cc="usleep(1);\n") as read:
            self.assertEqual(tidy.check(read, allowed=rule), [])
        with tree(src__io__a_cc="int a;\n") as read:
            self.assertEqual([f.rule for f in tidy.check(read, allowed=rule)], ["allowed"])


if __name__ == "__main__":
    unittest.main()
