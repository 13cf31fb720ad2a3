"""What a page must know of a run before its first frame: who is there, where each is drawn, and what the run is."""

from pathlib import Path
from typing import Any

from murmur_page.layout import layout_of_run
from murmur_pubsub.run_manifest import RunManifest

PAGE_VERSION = 1


def head_of(run: Path, manifest: RunManifest) -> dict[str, Any]:
    """The head of a run's data, as JSON holds it. Nodes are in the order of their numbers."""
    layout = layout_of_run(run, manifest)
    numbers = manifest.numbers
    brokers = set(manifest.brokers)
    nodes = [
        [node.name, node.role[0]]
        + ([numbers[node.broker]] if node.broker is not None else [])
        + ([round(each, 4) for each in layout.positions[node.name]] if node.name in layout.positions else [])
        for node in manifest.nodes
        if node.role != "driver"
    ]
    parts = manifest.scenario.get("broker", {})
    return {
        "version": PAGE_VERSION,
        "name": manifest.name,
        "folder": run.name,
        "runtime": manifest.runtime,
        "seed": manifest.seed,
        "status": manifest.completeness,
        "inputs": bool(manifest.scenario.get("keep_inputs")),
        "description": str(manifest.scenario.get("description", "")),
        "protocols": [parts.get("routing", "forwarding"), parts.get("reliability", "best_effort")],
        "measures": [[each.topic, each.words, each.counted] for each in manifest.measures],
        "layout": layout.kind,
        "boxes": [[box.name, box.x, box.y, box.width, box.height, box.members] for box in layout.boxes],
        "nodes": nodes,
        "links": [[numbers[a], numbers[b]] for a, b in manifest.links if a in brokers and b in brokers],
    }
