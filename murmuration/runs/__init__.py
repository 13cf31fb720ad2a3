"""One run: a deployment played on either runtime, and the run folder that it leaves."""
