#!/bin/sh
# All tests, or those that EXPRESSION (of pytest -m) names. The live ones, with Ray or Spark, are played one by one, since
# each wants the cores for itself. They leave a third of the cores idle all the same: the others fill it, as many side
# by side as there are cores. The scheduler gives these nothing that a live test could use (SCHED_IDLE), so they are
# given more time each. That class counts within a session alone where Linux shares the cores among sessions first
# (autogroup), and Ray's processes have one of their own: so the others get one of the least weight.
# Where that class cannot be had they come first. Both, whatever the other found.
# usage: run_tests.sh PYTHON [EXPRESSION]
set -u
python=$1 and=${2:+$2 and }

without_ray() {
    "$@" "$python" -m pytest -q -n logical -o timeout=1200 -m "${and}not (ray or spark)"
}

live() {
    "$python" -m pytest -q -m "${and}(ray or spark)"
}

giving_way='[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup; exec chrt --idle 0 "$@"'

if chrt --idle 0 true 2>/dev/null; then
    log=$(mktemp)
    without_ray exec setsid sh -c "$giving_way" giving_way >"$log" 2>&1 &
    others=$!
    trap 'kill -- -$others 2>/dev/null; rm -f "$log"' EXIT
    trap 'exit 130' INT TERM
    live
    of_live=$?
    echo "the tests without Ray or Spark, which were played beside those:"
    tail -n +1 -f --pid=$others "$log"
    wait $others
    of_others=$?
else
    without_ray
    of_others=$?
    live
    of_live=$?
fi
[ $of_others -eq 0 ] && [ $of_live -eq 0 ]
