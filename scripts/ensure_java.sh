#!/bin/sh
# Spark needs Java 17 or newer. Where it is missing, install it if that is possible here, else say how.
# Never fails: everything but the analysis works without Java, and `murmur doctor` says what is missing.
version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
if [ "${version:-0}" -ge 17 ]; then
    exit 0
fi
echo "Java 17 or newer, which Spark needs, was not found (found: ${version:-none})."
if [ "$(id -u)" -eq 0 ]; then
    become=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    become="sudo -n"
else
    echo "Install it as root: apt-get install openjdk-17-jre-headless"
    exit 0
fi
if command -v apt-get >/dev/null 2>&1; then
    $become apt-get update -qq
    $become env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless ||
        $become env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq default-jre-headless ||
        echo "Java could not be installed; do it by hand: apt-get install default-jre-headless"
else
    echo "Install a Java runtime of version 17 or newer with this system's package manager."
fi
exit 0
