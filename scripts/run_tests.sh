#!/bin/sh
# All tests, or those that EXPRESSION (of pytest -m) names. The live ones, with Ray, Spark or sockets that are waited for,
# are played one by one, since each wants the cores for itself. They leave a third of the cores idle all the same: the
# others fill it, as many side by side as there are cores, and give way. Where Linux shares the cores among sessions
# (autogroup), Ray's processes have one of their own, and niceness counts within a session alone: so the others get a
# session that counts a quarter as much. They are given more time each. Without `setsid` they come first. Both, whatever
# the other found.
# usage: run_tests.sh PYTHON [EXPRESSION]
set -u
python=$1 and=${2:+$2 and }

in_virtual_time() {
    "$@" "$python" -m pytest -q -n logical -o timeout=1200 -m "${and}not (ray or spark or sockets)"
}

live() {
    "$python" -m pytest -q -m "${and}(ray or spark or sockets)"
}

giving_way='[ ! -w /proc/self/autogroup ] || echo 6 >/proc/self/autogroup; exec nice -n 19 "$@"'

if command -v setsid >/dev/null; then
    log=$(mktemp) others=
    trap '[ -z "$others" ] || kill -- -"$others" 2>/dev/null; rm -f "$log"' EXIT
    trap 'exit 130' INT TERM
    in_virtual_time exec setsid sh -c "$giving_way" giving_way >"$log" 2>&1 &
    others=$!
    live
    of_live=$?
    echo "the other tests, which were played beside those:"
    tail -n +1 -f --pid=$others "$log" &
    wait $! # which a signal ends, as it does not end a command
    wait $others
    of_others=$?
else
    in_virtual_time
    of_others=$?
    live
    of_live=$?
fi
[ $of_others -eq 0 ] && [ $of_live -eq 0 ]
