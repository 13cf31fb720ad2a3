#!/bin/sh
# A bare Debian in the folder $1, as a root to try set-up in: Python, SSH and sudo, no compiler, no make, no Java. `$2…` are
# more packages of Debian. Needs root and debootstrap; Debian's packages are taken from where this computer takes its own.
set -eu
target=$1
shift
. /etc/os-release
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*debian* 2>/dev/null | sed '/^#/d' |
    grep -om 1 'https\?://[^ ]*debian[^ ]*')
with=python3,python3-venv,sudo,openssh-server,rsync,iproute2,ca-certificates,procps,netbase,tzdata
for package in "$@"; do
    with=$with,$package
done
debootstrap --variant=minbase --include="$with" "$VERSION_CODENAME" "$target" "$mirror"
