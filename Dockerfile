# murmur with Spark's Java in one image; docs/in-your-places.md says how to use it, and what of it was checked. Ray's dashboard
# and wget are what KubeRay asks whether a pod is well.
FROM python:3.12-slim-bookworm
# Debian keeps one version of each package.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps wget && rm -rf /var/lib/apt/lists/*
COPY . /murmur
RUN pip install --no-cache-dir -c /murmur/constraints.txt /murmur pytest 'ray[default]'
WORKDIR /work
ENTRYPOINT ["murmur"]
