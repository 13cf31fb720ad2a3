#!/bin/sh
# One test makes hosts of its own with sshd, and fills them with rsync. Where these are missing, install them if that is
# possible here, else say how. Never fails: without them that test is skipped, and says so.
if command -v sshd >/dev/null 2>&1 && command -v rsync >/dev/null 2>&1 && command -v ip >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq &&
        env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openssh-server rsync iproute2 &&
        exit 0
fi
echo "sshd, rsync or ip is missing: the test of \`ray up\` is skipped (apt-get install openssh-server rsync iproute2)."
exit 0
