#!/bin/sh
# dpkg calls it with "configure" and, on an upgrade, the version before; rpm with the number of
# versions that are installed then.
#
# It neither starts nor restarts the node: a node that starts before it is configured becomes a
# cluster of its own, and a cluster whose machines upgrade at the same time would stop.
set -e
case "$1:$2" in
configure: | 1:*) upgrade= ;;
*) upgrade=yes ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ -z "$upgrade" ]; then
	cat <<'TEXT'
Tarry is installed and not started. Set /etc/tarry/tarry.yaml first, then:
  systemctl enable --now tarry
TEXT
elif [ -d /run/systemd/system ] && systemctl -q is-active tarry; then
	cat <<'TEXT'
Tarry is upgraded; the node still runs the release before. When the cluster is healthy, one node
after the other, the leader last:
  systemctl restart tarry && tarry cluster health
TEXT
fi
