"""Papers: their tables and figures made again, beside what the paper printed.

`PAPERS` names each paper's module and class; it is imported when it is asked for, since plotting is slow to import.
"""

from collections.abc import Mapping

PAPERS: Mapping[str, str] = {
    "irbr": "murmuration.papers.irbr.paper:IrbrPaper",
    "multipath": "murmuration.papers.multipath.paper:MultipathPaper",
    "gryphon": "murmuration.papers.gryphon.paper:GryphonPaper",
    "epidemic": "murmuration.papers.epidemic.paper:EpidemicPaper",
    "vinifera": "murmuration.papers.vinifera.paper:ViniferaPaper",
}
