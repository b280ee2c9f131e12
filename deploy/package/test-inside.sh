#!/bin/sh
# What .ci/test-packages runs inside its container, as a unit: installs, starts, upgrades and removes
# the packages /packages/old.deb and new.deb under systemd. The last line of its log is PASSED, or says
# what was wrong.
set -u

fail() {
	echo "FAILED: $*"
	systemctl status tarry --no-pager 2>&1 | tail -20
	journalctl -u tarry --no-pager -n 30 2>&1
	exit 1
}
show() { systemctl show tarry --property="$1" --value; }
# eventually WHAT COMMAND... waits up to two minutes.
eventually() {
	what=$1
	shift
	for _ in $(seq 240); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.5
	done
	fail "$what"
}
same() { [ "$1" = "$2" ] || fail "$3: got '$1', want '$2'"; }
other_pid() { pid=$(show MainPID) && [ "$pid" != 0 ] && [ "$pid" != "$1" ]; }
step() { echo "== $*"; }

step install
dpkg -i /packages/old.deb || fail "dpkg -i"
same "$(show ActiveState)" inactive "a node that is not configured must not be started"
same "$(systemctl is-enabled tarry)" disabled "nor enabled"
same "$(stat -c '%U %a' /etc/tarry/tarry.yaml)" "root 644" "configuration"
getent passwd tarry >/dev/null || fail "there is no user"
bash -n /usr/share/bash-completion/completions/tarry || fail "completion"
systemd-analyze verify --man=no tarry.service || fail "unit"

step start
printf 'node-id: packaged\n' >>/etc/tarry/tarry.yaml
systemctl enable --now tarry || fail "systemctl enable --now"
same "$(show ActiveState)" active "READY=1 was not seen"
eventually "ready" tarry ready
tarry add --topic t --id one --delay 1h body || fail "add"
same "$(stat -c '%U %a' /var/lib/tarry)" "tarry 700" "data"
pid=$(show MainPID)
same "$(stat -c %U "/proc/$pid")" tarry "user of the process"
grep -q '^CapEff:.*0000000000000000$' "/proc/$pid/status" || fail "the process has capabilities"
files=$(ulimit -Hn) # of the container, which may have less to give
[ "$files" -le 65536 ] 2>/dev/null || files=65536
grep -Eq "Max open files +$files +$files" "/proc/$pid/limits" || fail "limit of open files"
journalctl -u tarry --no-pager | grep -Eq 'level=(WARN|ERROR)' && fail "a node that is well warns"

step "kill -9: started again"
kill -9 "$pid"
eventually "another process" other_pid "$pid"
eventually "ready again" tarry ready
tarry get one >/dev/null || fail "the job is lost"

step "a node that hangs: the watchdog ends it"
mkdir -p /etc/systemd/system/tarry.service.d
printf '[Service]\nWatchdogSec=4s\nTimeoutAbortSec=2s\nRestartSec=1s\n' >/etc/systemd/system/tarry.service.d/fast.conf
systemctl daemon-reload && systemctl restart tarry || fail "restart"
pid=$(show MainPID)
sleep 10
same "$(show MainPID)" "$pid" "a node that responds was ended"
kill -STOP "$pid"
eventually "the watchdog" other_pid "$pid"
eventually "ready again" tarry ready
rm -r /etc/systemd/system/tarry.service.d && systemctl daemon-reload

step "exit code 2: started again once the setting is right; 3: not started again"
cp /etc/tarry/tarry.yaml /root/tarry.yaml
printf 'log-format: xml\n' >>/etc/tarry/tarry.yaml
systemctl restart tarry && fail "a wrong setting"
same "$(show ExecMainStatus)" 2 "wrong setting"
cp /root/tarry.yaml /etc/tarry/tarry.yaml
eventually "ready again by itself" tarry ready
sed 's/^node-id: .*/node-id: other/' /root/tarry.yaml >/etc/tarry/tarry.yaml
systemctl restart tarry && fail "the directory of another node"
same "$(show ActiveState) $(show ExecMainStatus) $(show NRestarts)" "failed 3 0" "the directory of another node"
cp /root/tarry.yaml /etc/tarry/tarry.yaml
systemctl restart tarry || fail "restart after the fix"

step upgrade
pid=$(show MainPID)
DEBIAN_FRONTEND=noninteractive dpkg -i /packages/new.deb || fail "dpkg -i"
same "$(show MainPID)" "$pid" "an upgrade must not restart the node"
same "$(tarry version)" "tarry v0.2.0" "version"
grep -q '^node-id: packaged$' /etc/tarry/tarry.yaml || fail "the configuration is lost"
systemctl restart tarry || fail "restart"
eventually "ready" tarry ready
tarry get one >/dev/null || fail "the job is lost"

step "stop, remove, purge"
systemctl stop tarry || fail "stop"
same "$(show ExecMainStatus) $(show Result)" "0 success" "stop"
systemctl start tarry || fail "start"
dpkg -r tarry || fail "dpkg -r"
pgrep -x tarry && fail "the node still runs"
[ ! -e /usr/bin/tarry ] || fail "the binary is still there"
[ -e /etc/tarry/tarry.yaml ] || fail "the configuration is gone before a purge"
dpkg -P tarry || fail "dpkg -P"
[ ! -e /etc/tarry/tarry.yaml ] || fail "the configuration is still there"
[ -e /var/lib/tarry/node.json ] || fail "THE DATA IS GONE"

step "install again: the data is used"
dpkg -i /packages/new.deb || fail "dpkg -i"
cp /root/tarry.yaml /etc/tarry/tarry.yaml
systemctl enable --now tarry || fail "start"
eventually "ready" tarry ready
tarry get one >/dev/null || fail "the job is lost"
echo PASSED
