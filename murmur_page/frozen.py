"""The page with its data in it: a file that needs no server and no network, or the first part of a report."""

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_page.columns import in_columns
from murmur_page.page_files import picture, read_file, script

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class FrozenPicture:
    """The parts of a frozen page, as HTML."""

    style: str
    body: str
    policy: str
    """The content policy under which its script runs: no other script, and nothing from any network."""


def freeze(data: Mapping[str, Any], alone: bool = False) -> FrozenPicture:
    """The picture of that data (`murmur_page.recorded`); `alone`: it has a page to itself."""
    columns = {**data, "frames": in_columns(data["frames"])}
    packed = gzip.compress(json.dumps(columns, separators=(",", ":")).encode(), mtime=0)
    holder = f'<script type="text/plain" id="live-data">{base64.b64encode(packed).decode()}</script>'
    own = script("frozen")
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return FrozenPicture(read_file("live.css"), f"{picture(alone)}{holder}\n<script>{own}</script>", policy)


def write_page(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file of the picture alone."""
    parts = freeze(data, alone=True)
    title = html.escape(str(data["head"]["name"]))
    path.write_text(
        _PAGE.format(policy=parts.policy, title=title, style=parts.style, body=parts.body), encoding="utf-8"
    )
