#!/bin/sh
# Makes the user of the node. It stays when the package is removed: it owns the data.
set -e
getent group tarry >/dev/null || groupadd --system tarry
getent passwd tarry >/dev/null || useradd --system --gid tarry --home-dir /var/lib/tarry --no-create-home --shell /usr/sbin/nologin tarry
