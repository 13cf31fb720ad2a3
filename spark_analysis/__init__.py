"""What happened in a run, and whether it was right: the judge, the metrics of the papers and the report."""
