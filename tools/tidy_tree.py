"""The source tree as the rules of tools/tidy see it: files, findings, and what a source declares at its scopes."""
import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

FOLDERS = "src include apps bench fuzz examples tests tools docs cmake bpf web .ci".split()
SKIPPED = {"build", "node_modules", "vendor", "__pycache__", ".git"}
CODE = {".cc", ".h", ".c"}
TEXT = CODE | {".md", ".txt", ".py", ".sh", ".cmake", ".cli", ".ts", ".js", ".css", ".html", ".proto", ""}


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


COMMENT = r"//[^\n]*|/\*.*?\*/"
STRING = r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
STRINGS_AND_COMMENTS = re.compile(f"(?P<comment>{COMMENT})|{STRING}".replace(r"\1", r"\2"), re.S)
PYTHON_STRINGS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
CODE_IN_MARKDOWN = re.compile(r"^```.*?^```|`[^`\n]+`|\]\([^)\n]+\)", re.S | re.M)


@dataclass
class Declaration:
    kind: str  # "type", "alias" or "function"
    name: str
    line: int
    has_body: bool
    namespaces: tuple  # the names of the namespaces around it; an unnamed one is ""
    in_type: bool  # a member, or a nested type
    of: str = ""  # where it is defined outside of its type: that type's name
    is_const: bool = False  # a const member function


@dataclass
class File:
    path: str  # from the root, with forward slashes
    text: str

    @property
    def suffix(self):
        return Path(self.path).suffix

    @property
    def is_code(self):
        return self.suffix in CODE

    @property
    def is_test(self):
        return self.path.endswith("_test.cc")

    @property
    def helps_tests(self):
        """A test, or a header of test helpers."""
        return self.is_test or bool(re.search(r"testing\.h$|/sample_\w+\.h$", self.path))

    @property
    def lines(self):
        return self.text.split("\n")

    @cached_property
    def code(self):
        """The text with comments, strings and characters blanked out, line by line as before."""
        return STRINGS_AND_COMMENTS.sub(blank, self.text)

    @cached_property
    def words(self):
        """What people read: names and comments, or prose. Contracts stand in strings, and those are blanked out."""
        if self.is_code:
            return STRINGS_AND_COMMENTS.sub(lambda m: m[0] if m["comment"] else blank(m), self.text)
        if self.suffix == ".md":
            return CODE_IN_MARKDOWN.sub(blank, self.text)
        if self.suffix == ".py":
            return PYTHON_STRINGS.sub(blank, self.text)
        return self.text

    def line_at(self, offset):
        return self.text.count("\n", 0, offset) + 1

    @cached_property
    def declarations(self):
        return list(declarations(self))


@dataclass
class Finding:
    rule: str
    path: str
    line: int
    message: str
    offence: str = ""  # what ALLOWED is compared with

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


@dataclass
class Tree:
    root: Path
    files: list = field(default_factory=list)

    def code(self, *prefixes):
        return [f for f in self.files if f.is_code and f.path.startswith(prefixes or ("",))]

    def file(self, path):
        return next((f for f in self.files if f.path == path), None)


def read_tree(root):
    tree = Tree(Path(root))
    paths = [p for p in tree.root.iterdir() if p.is_file() and (p.suffix or p.name in ("run", "test"))]
    for folder in FOLDERS:
        for where, folders, names in os.walk(tree.root / folder):
            folders[:] = sorted(set(folders) - SKIPPED)
            paths += [Path(where) / name for name in sorted(names)]
    for path in paths:
        if path.suffix in TEXT and not path.is_symlink():
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # not a text, whatever its name says
            tree.files.append(File(path.relative_to(tree.root).as_posix(), text))
    return tree


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def includes(file):
    for match in INCLUDE.finditer(file.text):
        yield file.line_at(match.start()), match[1], match[2]


# --- What a source declares -------------------------------------------------------------------------------

TYPE_HEAD = re.compile(r"\b(class|struct|union|enum(?:\s+class)?)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)\b(?!\s*::)")
NOT_A_FUNCTION = {"if", "for", "while", "switch", "return", "sizeof", "decltype", "alignas", "noexcept", "requires",
                  "static_assert", "defined", "operator"}


def without_templates(head):
    """The head without what stands in angle brackets, so that the first parenthesis is the parameters'."""
    kept, depth = [], 0
    for at, mark in enumerate(head):
        if mark == "<" and (depth or re.search(r"[\w>]\s*$", head[:at])) and not head.startswith("<=>", at):
            depth += 1
        elif mark == ">" and depth and head[at - 1] != "-":
            depth -= 1
        elif not depth:
            kept.append(mark)
    return "".join(kept)


def classify(head):
    """(kind, name, type whose member is defined) of a declaration's head; kind is None where no rule asks for it."""
    head = re.sub(r"\[\[[^\]]*\]\]|^\s*#.*$|\b(?:public|private|protected)\s*:", " ", head, flags=re.M)
    plain = without_templates(head)
    if match := re.match(r"\s*(?:template\s*)?using\s+(\w+)\s*=", plain):
        return "alias", match[1], ""
    if "friend" in plain.split():
        return None, None, ""
    match = TYPE_HEAD.search(plain)
    if match and "(" not in plain[match.end():] and "=" not in plain:
        special = re.search(rf"\b{match[2]}\s*<", head)  # a specialisation defines no new name
        return (None, None, "") if special else ("type", match[2], "")
    name = re.search(r"(?:(\w+)::)?(~?\w+)\s*\(", plain)
    if not name or name[2] in NOT_A_FUNCTION or re.search(r"=|\boperator\b", plain[:name.start()]):
        return None, None, ""
    return "function", name[2], name[1] or ""


def declarations(file):
    """What stands at the scope of a namespace or a type. A statement in a function's body declares nothing here."""
    # A line of the preprocessor is no statement.
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, file.code, flags=re.M)
    stack, head_from = [], 0  # of ("namespace" or "type" or "other", name)
    for match in re.finditer(r"[{};]", code):
        at, mark = match.start(), match[0]
        if mark == "}":
            kind = stack.pop()[0] if stack else "other"
            if kind != "initializer":
                head_from = at + 1
            continue
        scope = all(kind in ("namespace", "type") for kind, _ in stack)
        head = code[head_from:at]
        opened = ("other", "")
        if scope and (space := re.match(r"\s*(?:inline\s+)?namespace\b\s*([\w:]*)", head)) and mark == "{":
            opened = ("namespace", space[1])
        elif scope:
            kind, name, of = classify(head)
            if kind and not (kind == "type" and mark == ";"):
                start = at - len(head.lstrip())
                yield Declaration(kind, name, file.line_at(start), mark == "{",
                                  tuple(n for k, n in stack if k == "namespace"), any(k == "type" for k, _ in stack), of,
                                  bool(re.search(r"\)\s*const\b", head)))
            if kind == "type" and not head.lstrip().startswith("enum"):
                opened = ("type", name)
            elif mark == "{" and kind is None:
                opened = ("initializer", "")  # `int a{1};`: its statement goes on after the brace
        if mark == "{":
            stack.append(opened)
            if opened[0] == "initializer":
                continue
        if not stack or stack[-1][0] in ("namespace", "type", "other"):
            head_from = at + 1
