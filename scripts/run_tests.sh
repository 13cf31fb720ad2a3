#!/bin/sh
# All tests, or those that EXPRESSION (of pytest -m) names: first those without Ray or Spark, as many side by side as
# there are cores; then the live ones, one by one, since each wants the cores for itself. Both, whatever the first found.
# usage: run_tests.sh PYTHON [EXPRESSION]
set -u
"$1" -m pytest -q -n logical -m "${2:+$2 and }not (ray or spark)"
without=$?
"$1" -m pytest -q -m "${2:+$2 and }(ray or spark)"
live=$?
[ $without -eq 0 ] && [ $live -eq 0 ]
