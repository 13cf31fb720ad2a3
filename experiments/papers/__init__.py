"""Papers: their tables and figures made again, beside what the paper printed.

`PAPERS` names each paper's module and class; it is imported when it is asked for, since plotting is slow to import.
"""

from collections.abc import Mapping

PAPERS: Mapping[str, str] = {
    "irbr": "experiments.papers.irbr:Irbr",
    "publiy": "experiments.papers.publiy:Publiy",
    "gryphon": "experiments.papers.gryphon:Gryphon",
    "epidemic": "experiments.papers.epidemic:Epidemic",
    "vinifera": "experiments.papers.vinifera:Vinifera",
}
