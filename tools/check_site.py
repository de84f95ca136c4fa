"""Check a built site: python tools/check_site.py FOLDER

Links lead to pages and headings that exist, and no page loads anything from the network.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

# What a browser fetches without a click
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
LOADING_LINKS = {"stylesheet", "preconnect", "dns-prefetch", "preload", "icon", "manifest"}
REMOTE = re.compile(r"^(https?:)?//")
REMOTE_IN_CSS = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?:https?:)?//")


class Page(HTMLParser):
    """The links, anchors and remote loads of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.remote: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        loaded = given.get(LOADS.get(tag, ""), "")
        if tag == "link" and LOADING_LINKS & set(given.get("rel", "").split()):
            loaded = given.get("href", "")
        if REMOTE.match(loaded):
            self.remote.append(loaded)
        if loaded and not REMOTE.match(loaded) and not loaded.startswith("data:"):
            self.links.append(loaded)


def check(folder: Path) -> list[str]:
    """One line per problem."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        place = path.relative_to(folder)
        problems += [f"{place} loads {address}" for address in page.remote]
        if path.name == "404.html":  # its links begin with the address of the site
            continue
        for link in page.links:
            problem = _broken(link, path, pages, folder)
            if problem:
                problems.append(f"{place}: {problem}")
    for path in sorted(folder.rglob("*.css")):
        if REMOTE_IN_CSS.search(path.read_text("utf-8")):
            problems.append(f"{path.relative_to(folder)} loads something from the network")
    return problems


def _broken(link: str, path: Path, pages: dict[Path, Page], folder: Path) -> str | None:
    address, anchor = urldefrag(link)
    if REMOTE.match(address) or address.startswith(("mailto:", "data:", "javascript:")):
        return None
    target = path if not address else (path.parent / unquote(address.partition("?")[0])).resolve()
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file() or folder.resolve() not in target.resolve().parents:
        return f"{link} leads nowhere"
    known = pages.get(target)
    if anchor and known is not None and unquote(anchor) not in known.anchors | {"__top"}:
        return f"{link}: the page has no such heading"
    return None


def main(folder: Path) -> int:
    problems = check(folder.resolve())
    print("\n".join(problems) or f"{folder}: links are whole, nothing is loaded from the network")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
