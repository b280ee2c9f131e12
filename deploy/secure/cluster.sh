#!/bin/sh
# Starts three nodes in containers with all protection on (cluster.sh up), or removes the
# containers and keeps keys, token and data (cluster.sh down). `make cluster-secure` calls it.
# up can be repeated, also after it was interrupted.
set -eu
umask 077

tarry=${TARRY:-./tarry}
ports="${TARRY_PORT_1:-7500} ${TARRY_PORT_2:-7510} ${TARRY_PORT_3:-7520}"
dir=${TARRY_SECURE_DIR:-tarry-secure}
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
# The shell may have these from the file env of another such cluster.
unset TARRY_ADDR TARRY_TOKEN_FILE TARRY_TLS_CERT TARRY_TLS_KEY

# The containers run as whoever owns the keys, and not as root.
TARRY_USER=$(id -u):$(id -g)
[ "$(id -u)" != 0 ] || TARRY_USER=65532:65532
export TARRY_USER TARRY_SECURE_DIR="$dir" COMPOSE_PROJECT_NAME="${COMPOSE_PROJECT_NAME:-tarry-secure}"

compose() {
	${COMPOSE:-docker compose} -f "$(dirname "$0")/docker-compose.yml" "$@"
}

# make_keys makes all files at once: there are all of them or none.
make_keys() {
	new=$dir.new
	rm -rf "$new"
	mkdir "$new"
	"$tarry" cert ca --cluster secure --dir "$new"
	"$tarry" keygen "$new/gossip.keys"
	set -- --ca "$new/ca.crt" --ca-key "$new/ca.key"
	"$tarry" cert client operator "$@" --dir "$new"
	for node in n1 n2 n3; do
		keys=$new/$node/keys
		mkdir -p "$keys" "$new/$node/data" "$new/$node/audit"
		"$tarry" cert node $node "$@" --dir "$keys"
		"$tarry" cert server $node "$@" --dir "$keys" --host $node --host localhost --host 127.0.0.1
		for kind in node server; do
			for file in crt key; do mv "$keys/$kind-$node.$file" "$keys/$kind.$file"; done
		done
		cp "$new/ca.crt" "$new/gossip.keys" "$keys"
		chown -R "$TARRY_USER" "$new/$node"
	done
	rm "$new/gossip.keys" # each node has it, and replaces it when keys change
	mv "$new" "$dir"
}

# wait_ready waits until all nodes serve.
wait_ready() {
	for port in $ports; do
		tries=120
		until why=$("$tarry" ready --addr "https://127.0.0.1:$port" 2>&1); do
			tries=$((tries - 1))
			if [ $tries = 0 ]; then
				echo "the node on port $port is not ready: $why; see: docker logs $COMPOSE_PROJECT_NAME-n1 (-n2, -n3)" >&2
				exit 1
			fi
			sleep 1
		done
	done
}

# close_cluster makes the first token and enforces tokens. Until it has, only the operator's
# certificate opens the ports, so nobody else can have made a token before.
close_cluster() (
	export TARRY_CLIENT_CA=/keys/ca.crt TARRY_TLS_CERT="$dir/client-operator.crt" TARRY_TLS_KEY="$dir/client-operator.key"
	compose up -d
	wait_ready
	rm -f "$dir/root.token.new"
	set -- --addr "https://127.0.0.1:${ports%% *}" --patience 60s
	"$tarry" auth bootstrap "$@" --data-dir "$dir/n1/data" -o "$dir/root.token.new" >/dev/null
	"$tarry" auth mode enforce "$@" --token-file "$dir/root.token.new" >/dev/null
	mv "$dir/root.token.new" "$dir/root.token"
)

case ${1:-} in
down)
	compose down
	exit
	;;
up) ;;
*)
	echo "usage: $0 up|down" >&2
	exit 2
	;;
esac

[ -d "$dir" ] || make_keys >/dev/null
export TARRY_TLS_CA="$dir/ca.crt"
[ -e "$dir/root.token" ] || close_cluster
compose up -d
wait_ready

addr=
for port in $ports; do addr=$addr,https://127.0.0.1:$port; done
cat >"$dir/env" <<END
export TARRY_ADDR='${addr#,}'
export TARRY_TLS_CA='$dir/ca.crt'
export TARRY_TOKEN_FILE='$dir/root.token'
END
cat <<END
three nodes are ready, and do nothing for anybody without a token. To use them:

  . '$dir/env'   # the nodes, their authority and the first token, which may do everything
  $tarry add --topic mail --id m1 --delay 5s 'hello ann'
  $tarry reserve --topic mail --wait 60s
  $tarry finish m1 --token TOKEN   # the one that reserve printed
  $tarry token create shop --allow 'mail=add,consume' -o '$dir/shop.token'   # one for a client, with the least that it needs
  docker kill $COMPOSE_PROJECT_NAME-n1; $tarry cluster health; docker start $COMPOSE_PROJECT_NAME-n1

the dashboard: https://127.0.0.1:${ports%% *}/ui/ (sign in with the text of $dir/root.token;
  browsers warn until they trust $dir/ca.crt)
who did what: $dir/n1/audit/audit.log, and those of n2 and n3
to stop it: make cluster-secure-down; to remove its keys, token and jobs, too: rm -r '$dir'
END
