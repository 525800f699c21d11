"""Rules of tools/tidy about names: each is used, has one meaning, and is the word that docs/terminology.md has."""
import re
from collections import Counter, defaultdict

from tidy_tree import Finding

PRODUCT = ("src/", "include/", "apps/", "bench/", "fuzz/", "examples/", "tests/install/")
# Called by the language or by a library, never by name.
IMPLICIT = {"main", "begin", "end", "parse", "format", "what", "message", "name", "default_error_condition",
            "PrintTo", "LLVMFuzzerTestOneInput", "await_ready", "await_suspend", "await_resume"}


def rule_dead(tree):
    """What a header declares is used outside of its folder's tests. Told from the text alone, by names: one that is
    used for anything counts as used, so this finds less than there is, and seldom something that is not. A const
    member that its own tests alone ask is in use: it is how they see what happened."""
    mentions, in_tests, declared = Counter(), defaultdict(Counter), Counter()
    for file in tree.code(*PRODUCT):
        words = re.findall(r"~?\b[A-Za-z_]\w*", file.code)
        if file.helps_tests:
            in_tests[file.path.rsplit("/", 1)[0]].update(words)
        else:
            mentions.update(words)
            for head in file.declarations:
                declared[head.name] += 1
                declared[head.of] += 1  # X::f() { … } is no use of X
    for folder in in_tests:
        mentions.update(in_tests[folder])
    for file in tree.code("src/"):
        if not file.path.endswith(".h"):
            continue
        tests = in_tests[file.path.rsplit("/", 1)[0]]
        own = Counter(head.name for head in file.declarations)
        for head in file.declarations:
            name = head.name
            constructor = head.kind == "function" and not name[0].islower()
            if constructor or name in IMPLICIT or name not in own:
                continue
            observed = file.helps_tests or head.is_const
            used = mentions[name] - (own[name] if file.helps_tests else declared[name])
            used -= 0 if observed else tests[name]
            if used <= 0:
                del own[name]
                yield Finding("dead", file.path, head.line, f"nothing but its own tests uses {name}", name)


def rule_type_name(tree, twice=()):
    """A type's name has one meaning, as far as it is seen: what two sources have for themselves may be called alike.
    `twice` are the names that have several meanings still."""
    places = defaultdict(list)
    for file in tree.code("src/"):
        if file.helps_tests:
            continue
        for declared in file.declarations:
            if declared.kind == "type" and not declared.in_type:
                places[declared.name].append((file.path, declared.line))
    for name, found in sorted(places.items()):
        if len(found) < 2 or not any(path.endswith(".h") for path, _ in found):
            places[name] = []
        elif name not in twice:
            for path, line in found:
                others = ", ".join(other for other, _ in found if other != path) or "the same file"
                yield Finding("type-name", path, line, f"{name} is a type of {others} too: one meaning per name", name)
    if tree.file("tools/tidy"):
        for name in twice:
            if len(places[name]) < 2:
                yield Finding("type-name", "tools/tidy", 1, f"{name} has one meaning now: take it off the list", name)


def spots(tree, pattern, explained):
    """Where a word stands in names, comments and prose."""
    for file in tree.files:
        if file.path not in explained and file.suffix != ".cli":
            for match in re.finditer(pattern, file.words):
                yield file.path, file.line_at(match.start()), match[0]


def rule_old_word(tree, words, explained):
    """Words on their way out. Each has a count that may only go down, and none is a rule of its own."""
    for pattern, (instead, most) in words.items():
        found = list(spots(tree, pattern, explained))
        if len(found) > most:
            path, line, text = found[-1]
            yield Finding("old-word", path, line, f"{len(found)} times '{pattern}', at most {most} may be left: "
                          f"write '{instead}' (tools/tidy --words lists all)", text)
        elif len(found) < most and tree.file("tools/tidy"):
            yield Finding("old-word", "tools/tidy", 1, f"only {len(found)} times '{pattern}' are left: lower the count "
                          f"from {most}")


def print_words(tree, words, explained):
    for pattern, (instead, _) in words.items():
        for path, line, text in spots(tree, pattern, explained):
            print(f"{path}:{line}: '{text}' -> {instead}")


def comment_density(tree):
    """{(folder, "headers" or "sources"): [comment lines, lines of code, of these with a comment]}, without tests."""
    counts = defaultdict(lambda: [0, 0, 0])
    for file in tree.code("src/", "apps/", "include/"):
        if file.is_test:
            continue
        folder = file.path.split("/")[1] if file.path.startswith("src/") else file.path.split("/")[0]
        count = counts[folder, "headers" if file.suffix == ".h" else "sources"]
        for text, words, code in zip(file.lines, file.words.split("\n"), file.code.split("\n")):
            if words.strip() and not code.strip():
                count[0] += 1
            elif text.strip():
                count[1] += 1
                count[2] += words != code
    return counts


def print_comments(tree):
    counts = comment_density(tree)
    print("comment lines per line of code (and the share of lines of code that end in a comment)")
    print(f"{'folder':<12}{'headers':>14}{'sources':>14}")
    for folder in sorted({folder for folder, _ in counts}):
        cells = [counts.get((folder, kind), (0, 0, 0)) for kind in ("headers", "sources")]
        print(f"{folder:<12}" + "".join(f"{lines / code:>7.2f} ({ends / code:.2f})" if code else f"{'–':>14}"
                                        for lines, code, ends in cells))
