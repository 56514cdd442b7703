#!/bin/sh
# Two short runs of the digits example: the same losses, from stream and graph and from run to run.
set -eu
run() { "$1" --epochs 3 --output loss.svg | sed "s/, [0-9]* us.*//" | grep -v -e "^A step" -e "^digits:"; }
first=$(run "$1")
second=$(run "$1")
[ "$first" = "$second" ] || { echo "two runs differ"; exit 1; }
echo "$first" | grep -q 'Losses of stream and graph are identical'
last=$("$1" --epochs 8 --output loss.svg --quiet | tail -n 1)
echo "$last"
echo "$last" | grep -Eq '^digits: accuracy=0\.9[0-9]+ identical=true nodes=16 replays=800 step_stream_us=[0-9.]+ step_graph_us=[0-9.]+$'
grep -q '</svg>' loss.svg
if "$1" --epochs zero >/dev/null 2>&1; then echo "a bad option was taken"; exit 1; fi
