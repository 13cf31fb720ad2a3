"""The site of the documentation: `make docs` builds it into docs/_build/html, and it needs no network to be read."""

import html
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

project = "murmur"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "STATUS.md", "measured"]
suppress_warnings = ["myst.xref_missing"]  # of links to files of the source: tests/docs/test_links.py checks those

html_theme = "furo"
html_title = "murmur"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

autodoc_member_order = "bysource"
default_role = "code"  # of docstrings, whose backquotes are Markdown's

# scripts/fetch_mermaid.sh has put the script there. Without it the pictures of states are shown as their text.
MERMAID = HERE / "_build" / "mermaid"
if (MERMAID / "mermaid.min.js").exists():
    html_static_path.append("_build/mermaid")
    html_js_files = [("mermaid.min.js", {"defer": "defer"})]


class Mermaid(Directive):
    """A picture in mermaid's language, which the script draws in the browser.

    The extension that there is for it loads the script as a module, and browsers refuse those from a disk.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        text = html.escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid">{text}</pre>', format="html")]


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.add_directive("mermaid", Mermaid)
