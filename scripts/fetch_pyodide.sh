#!/bin/sh
# What the lessons need of others to run in a browser, into the folder $1: Pyodide, which is Python as WebAssembly, from its
# npm package (licence MPL-2.0), and pydantic's core for it by pip, both checked against the sums below. $2 is the Python
# whose pip is asked. Both are kept there for the next time. Exit code 1, and why, where they cannot be had.
set -eu
version=314.0.7
npm_sum=d18bd7c4485f11da4b7dbfd790cd8114078c44eab488c517d9bcf31fda4eb6dc8c716930abe1db139bb2b860fcd8b37bcb6abe48dbe2ffa579244b0e943d91d4
target=$1
python=$2
core=$(sed -n 's/^pydantic_core==//p' "${0%/*}/../constraints.txt")
[ -s "$target/complete-$version-$core" ] && exit 0
mkdir -p "$target"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "make play: $1" >&2
    exit 1
}
command -v npm >/dev/null 2>&1 || fail "npm is missing, which fetches Pyodide (apt-get install npm)."
(cd "$folder" && npm pack --silent "pyodide@$version" >/dev/null 2>&1) || fail "npm could not fetch pyodide $version."
echo "$npm_sum  $folder/pyodide-$version.tgz" | sha512sum --check --quiet >/dev/null 2>&1 ||
    fail "pyodide $version is not what it was: its sum differs from the one in scripts/fetch_pyodide.sh."
tar -xzf "$folder/pyodide-$version.tgz" -C "$folder"
for name in pyodide.mjs pyodide.asm.mjs pyodide.asm.wasm python_stdlib.zip pyodide-lock.json README.md; do
    cp "$folder/package/$name" "$target/"
done

"$python" -m pip download --quiet --no-deps --only-binary=:all: --platform pyemscripten_2026_0_wasm32 --python-version 3.14 \
    --implementation cp --abi cp314 --dest "$target" "pydantic_core==$core" >/dev/null 2>&1 ||
    fail "pip could not fetch pydantic_core $core for WebAssembly."
echo done >"$target/complete-$version-$core"
