#!/bin/sh
# One job's life on a single durable node: added with a delay, reserved by a
# waiting consumer, finished. The node runs in a directory of its own and stops
# at the end. TARRY names the binary (default ./tarry).
set -eu
tarry=${TARRY:-./tarry}
port=${PORT:-7390} # and the three ports after it
addr=127.0.0.1:$port
dir=$(mktemp -d)

"$tarry" server --data-dir "$dir/data" --http-addr "$addr" \
	--cluster-addr 127.0.0.1:$((port + 1)) --gossip-addr 127.0.0.1:$((port + 2)) \
	--beanstalk-addr 127.0.0.1:$((port + 3)) >"$dir/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$dir"' EXIT

tries=0
until "$tarry" ready --addr "$addr" >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ $tries -gt 100 ]; then cat "$dir/log" >&2; exit 1; fi
	sleep 0.1
done

show() { printf '\n$ tarry %s\n' "$*"; "$tarry" "$@" --addr "$addr"; }

show add --topic mail --id welcome-1 --delay 2s 'hello ann'
show get welcome-1
show reserve --topic mail --wait 10s
show finish welcome-1 --token 0-1-1 # the first reservation of the first job
show topics
