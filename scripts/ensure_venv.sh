#!/bin/sh
# A virtual environment in $VENV, made with $PYTHON (3.11 or newer).
set -eu
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Python 3.11 or newer is needed; $PYTHON is $("$PYTHON" --version 2>&1)." >&2
    echo "If there is a newer one beside it, name it: make PYTHON=python3.12 setup" >&2
    exit 2
}
# One that was cut short while it was made has a python but no pip.
"$VENV/bin/python" -m pip --version >/dev/null 2>&1 && exit 0
rm -rf "$VENV"
"$PYTHON" -m venv "$VENV" >/dev/null 2>&1 && exit 0
rm -rf "$VENV"
package=$("$PYTHON" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
if [ "$(id -u)" -eq 0 ]; then
    become=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    become="sudo -n"
else
    echo "Python's venv module is missing. Install it as root: apt-get install $package" >&2
    exit 2
fi
command -v apt-get >/dev/null 2>&1 || {
    echo "Python's venv module is missing. Install it with this system's package manager." >&2
    exit 2
}
echo "Python's venv module is missing; installing $package."
$become apt-get update -qq || true
$become env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" ||
    $become env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv
"$PYTHON" -m venv "$VENV"
