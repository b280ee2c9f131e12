#!/bin/sh
# dpkg calls it with "remove", or "upgrade" when another version follows; rpm with the number of
# versions that stay.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now tarry || true
	fi
	;;
esac
