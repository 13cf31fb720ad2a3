"""`python -m spark_analysis RUN`: see `spark_analysis.main`."""

from spark_analysis.main import main

if __name__ == "__main__":
    raise SystemExit(main())
