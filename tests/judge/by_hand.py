"""Runs that are led by hand, and what the plain judge says of them."""

from murmuration.harness.cluster import Cluster
from spark_analysis.plain_judge import Judgement, judge_run


def judge_ended(cluster: Cluster) -> Judgement:
    """End the run and judge it."""
    cluster.end()
    return judge_run(cluster.folder)
