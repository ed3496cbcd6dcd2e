"""What the site needs beyond mkdocs: files from outside docs/, and `<w, x>` as plain text.

The pages are written for two readers, the repository's host and the site. Their links may lead
out of docs/ (``../SECURITY.md``), and a ``<`` in a formula is a less-than sign, not a tag.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
# What pages may link to outside docs/, and where the site keeps it.
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/results/*.png")
FOLDER = "repository"
LINK = re.compile(r"\]\(([^)\s:]+)\)")


class NoRawHtml(Extension):
    """Markdown without HTML in it."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Take out what recognises tags."""
        md.preprocessors.deregister("html_block")
        md.inlinePatterns.deregister("html")


def on_config(config: Any) -> Any:
    """Add the extension: mkdocs itself takes only names."""
    config.markdown_extensions.append(NoRawHtml())
    return config


def outside() -> list[str]:
    """Return the files outside docs/ that belong to the site, by their path in the repository."""
    found = (path for pattern in OUTSIDE for path in sorted(ROOT.glob(pattern)))
    return [path.relative_to(ROOT).as_posix() for path in found]


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside docs/."""
    for path in outside():
        files.append(File.generated(config, f"{FOLDER}/{path}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to files outside docs/ to their copies in the site, and theirs back."""
    here = page.file.src_uri
    known = set(outside())
    copied = here.startswith(f"{FOLDER}/")
    base = here.removeprefix(f"{FOLDER}/") if copied else f"docs/{here}"

    def moved(link: re.Match[str]) -> str:
        target, _, anchor = link.group(1).partition("#")
        in_repository = posixpath.normpath(posixpath.join(posixpath.dirname(base), target))
        if in_repository in known:
            in_site = f"{FOLDER}/{in_repository}"
        elif in_repository.startswith("docs/"):
            in_site = in_repository.removeprefix("docs/")
        else:
            return link.group(0)
        relative = posixpath.relpath(in_site, posixpath.dirname(here) or ".")
        return f"]({relative}{'#' + anchor if anchor else ''})"

    return LINK.sub(moved, markdown)
