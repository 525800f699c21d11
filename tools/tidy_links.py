"""Rules of tools/tidy about dependencies: what a folder may use, says that it links, and really uses."""
import re
from dataclasses import dataclass, field

from tidy_tree import Finding, includes

# A library, by its headers and by what links it.
LIBRARIES = [
    (r"boost/.*", "Boost::headers"),
    (r"fmt/.*", "fmt::fmt"),
    (r"tl/expected\.hpp", "tl::expected"),
    (r"nlohmann/.*", "nlohmann_json::nlohmann_json"),
    (r"zlib\.h", "ZLIB::ZLIB"),
    (r"pcap/.*|pcap\.h", "${TAILWARD_PCAP}"),
    (r"libmnl/.*", "${TAILWARD_MNL}"),
    (r"google/protobuf/.*|.*\.pb\.h", "protobuf::libprotobuf-lite"),
    (r"elfutils/.*|dwarf\.h", "${TAILWARD_LIBDW}"),
    (r"CLI/.*", "CLI11::CLI11"),
]
# Not asked for: the operating system's headers come with the compiler, and tailward_component() links GoogleTest.
NO_LIBRARY = re.compile(r"[\w.]+|(?:sys|netinet|arpa|net|linux|asm|gtest|gmock)/.*")
LINKS_OF_ALL = ("Threads::Threads", "tailward::heap_count")  # used without a header of theirs


@dataclass
class Component:
    """One tailward_component(): a folder with a CMakeLists.txt, and what that links."""
    path: str
    line: int
    name: str
    links: dict = field(default_factory=lambda: {"PUBLIC": set(), "PRIVATE": set(), "TEST": set()})


def read_components(tree):
    components = {}
    for file in tree.files:
        match = re.search(r"\btailward_component\(\s*(\w+)([^)]*)\)", re.sub("#[^\n]*", "", file.text))
        if not file.path.startswith("src/") or not file.path.endswith("/CMakeLists.txt") or not match:
            continue
        line = file.line_at(file.text.find("tailward_component("))
        component = Component(file.path, line, match[1])
        into = "PRIVATE"
        for word in match[2].split():
            word = re.sub(r"^\$<BUILD_INTERFACE:(.*)>$", r"\1", word)
            if word in ("PUBLIC", "PRIVATE", "TEST", "GENERATED"):
                into = word
            elif into != "GENERATED" and ("::" in word or word.startswith("${")):
                component.links[into].add(word)
        components[file.path.removesuffix("/CMakeLists.txt")] = component
    return components


def component_of(path, components):
    """The innermost component whose folder holds that file, or None."""
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        if path in components:
            return components[path]
    return None


def library_of(name, components):
    """What links that header: a component's target, a library's, None for the operating system's, "?" for unknown."""
    for pattern, link in LIBRARIES:
        if re.fullmatch(pattern, name):
            return link
    if target := component_of(f"src/{name}", components):
        return f"tailward::{target.name}"
    return None if NO_LIBRARY.fullmatch(name) or name.startswith(("tailward/", "apps/")) else "?"


def reached(links, components):
    """These links, and what they hand on."""
    by_target = {f"tailward::{c.name}": c for c in components.values()}
    seen, ahead = set(), list(links)
    while ahead:
        link = ahead.pop()
        if link not in seen:
            seen.add(link)
            if link in by_target:
                ahead += by_target[link].links["PUBLIC"]
    return seen


def rule_link(tree):
    """A folder links what it includes, itself or by a PUBLIC link of what it links; and it links nothing else."""
    components = read_components(tree)
    wanted = {component.name: set() for component in components.values()}
    for file in tree.code("src/"):
        component = component_of(file.path, components)
        if component is None:
            continue
        links = component.links
        own = links["PUBLIC"] | links["PRIVATE"] | (links["TEST"] if file.helps_tests else set())
        linked = reached(own, components) | {f"tailward::{component.name}"}
        for line, _, name in includes(file):
            link = library_of(name, components)
            if link == "?":
                yield Finding("link", file.path, line, f"<{name}> is of no library that tools/tidy_links.py knows", name)
            elif link:
                wanted[component.name].add(link)
                if link not in linked:
                    yield Finding("link", file.path, line, f"{component.path} does not link {link}, of which this is",
                                  name)
    for component in components.values():
        links = component.links
        for link in sorted(links["PUBLIC"] | links["PRIVATE"] | links["TEST"]):
            known = link.startswith("tailward::") or any(link == library for _, library in LIBRARIES)
            if known and link not in LINKS_OF_ALL and link not in wanted[component.name]:
                yield Finding("link", component.path, component.line, f"links {link} and includes nothing of it", link)


def rule_permission(tree, may_include):
    """Every permission in the table of who may include whom is used."""
    table = tree.file("tools/tidy")
    if table is None:
        return
    used = {}
    for file in tree.code("src/"):
        folder = file.path.split("/")[1]
        used.setdefault(folder, set()).update(name.split("/")[0] for _, _, name in includes(file) if "/" in name)
    for folder, allowed in may_include.items():
        at = table.text.find(f'"{folder}":')
        for unused in sorted(set(allowed.split()) - used.get(folder, set())) if folder in used else []:
            yield Finding("permission", table.path, table.line_at(max(at, 0)),
                          f"src/{folder} may include {unused}, and no file of it does", f"{folder} {unused}")
