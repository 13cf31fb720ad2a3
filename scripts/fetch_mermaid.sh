#!/bin/sh
# The script that draws the pictures of states, from its npm package (MIT licence), into the folder $1. It is 3.6 MB and is
# not kept with the source. Never fails: without it the site shows such pictures as text.
set -u
version=11.17.2
target=$1
[ -s "$target/mermaid.min.js" ] && exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if command -v npm >/dev/null 2>&1 && (cd "$folder" && npm pack --silent "mermaid@$version" >/dev/null 2>&1); then
    tar -xzf "$folder/mermaid-$version.tgz" -C "$folder" package/dist/mermaid.min.js package/LICENSE &&
        mkdir -p "$target" &&
        cp "$folder/package/LICENSE" "$target/mermaid.LICENSE" &&
        cp "$folder/package/dist/mermaid.min.js" "$target/" && exit 0
fi
echo "mermaid $version could not be fetched with npm: pictures of states will be shown as text." >&2
exit 0
