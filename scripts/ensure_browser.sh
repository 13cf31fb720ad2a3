#!/bin/sh
# The tests of the live page drive Chromium. Where it is missing, install it if that is possible here, else say how.
# Never fails: without it those tests are skipped, and say so.
if command -v chromedriver >/dev/null 2>&1 && command -v chromium >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq &&
        env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver && exit 0
fi
echo "Chromium and chromedriver are missing: tests of the live page are skipped (apt-get install chromium chromium-driver)."
exit 0
