#!/bin/sh
# A virtual environment in $VENV, made with $PYTHON (3.11 or newer).
set -eu
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Python 3.11 or newer is needed; $PYTHON is $("$PYTHON" --version 2>&1)." >&2
    exit 2
}
[ -x "$VENV/bin/python" ] && exit 0
if ! "$PYTHON" -m venv "$VENV" 2>/dev/null; then
    rm -rf "$VENV"
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv
        "$PYTHON" -m venv "$VENV"
    else
        echo "Python's venv module is missing. Install it as root: apt-get install python3-venv" >&2
        exit 2
    fi
fi
