#!/bin/sh
# dpkg calls it with "remove", "purge" or, for another version that follows, "upgrade"; rpm with
# the number of versions that stay. It never removes data.
set -e
case "$1" in
remove | purge | 0)
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload || true
	fi
	if [ -d /var/lib/tarry ] && [ "$1" != remove ]; then
		echo "The jobs of this node are still in /var/lib/tarry, which belongs to the user tarry. Remove both if nobody needs them."
	fi
	;;
esac
