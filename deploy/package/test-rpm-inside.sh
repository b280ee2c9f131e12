#!/bin/sh
# What .ci/test-rpm runs inside its root directory: installs, upgrades and removes the packages
# /packages/old.rpm and new.rpm. The last line that it prints is PASSED, or says what was wrong.
set -u

fail() {
	echo "FAILED: $*"
	exit 1
}
same() { [ "$1" = "$2" ] || fail "$3: got '$1', want '$2'"; }
step() { echo "== $*"; }
# asked returns what the scriptlets asked systemctl for, and forgets it.
asked() {
	tr '\n' ';' </packages/systemctl.log
	: >/packages/systemctl.log
}

cat >/usr/bin/systemctl.new <<'SCRIPT'
#!/bin/sh
echo "$*" >>/packages/systemctl.log
SCRIPT
chmod 755 /usr/bin/systemctl.new && mv /usr/bin/systemctl.new /usr/bin/systemctl
: >/packages/systemctl.log
rm -rf /var/lib/rpm && rpm --initdb || fail "rpm --initdb"

step install
rpm -i --nodeps /packages/old.rpm || fail "rpm -i"
same "$(rpm -q --qf '%{NAME} %{VERSION}' tarry)" "tarry 0.1.0" "what is installed"
same "$(tarry version)" "tarry v0.1.0" "version"
same "$(stat -c '%U %a' /usr/bin/tarry)" "root 755" "binary"
same "$(stat -c '%U %a' /etc/tarry/tarry.yaml)" "root 644" "configuration"
same "$(stat -c '%U %a' /usr/lib/systemd/system/tarry.service)" "root 644" "unit"
same "$(getent passwd tarry | cut -d: -f6,7)" "/var/lib/tarry:/usr/sbin/nologin" "user"
same "$(rpm -qc tarry)" "/etc/tarry/tarry.yaml" "configuration files"
same "$(asked)" "daemon-reload;" "an install must neither start nor enable the node"
rpm -V --nodeps tarry || fail "rpm -V"
[ ! -e /var/lib/tarry ] || fail "an install must not make the data directory"

step "upgrade: the configuration and the data stay"
printf 'node-id: packaged\n' >>/etc/tarry/tarry.yaml
mkdir /var/lib/tarry && chown tarry:tarry /var/lib/tarry && echo '{}' >/var/lib/tarry/node.json
rpm -U --nodeps /packages/new.rpm || fail "rpm -U"
same "$(rpm -q --qf '%{VERSION}' tarry)" "0.2.0" "what is installed"
same "$(tarry version)" "tarry v0.2.0" "version"
grep -q '^node-id: packaged$' /etc/tarry/tarry.yaml || fail "the configuration is lost"
[ -e /usr/lib/systemd/system/tarry.service ] || fail "the old version took the unit along"
case $(asked) in
*disable* | *restart* | *stop*) fail "an upgrade must leave the node running" ;;
*daemon-reload*) ;;
*) fail "an upgrade must reload the units" ;;
esac
rpm -U --nodeps /packages/old.rpm 2>/dev/null && fail "an older version was installed over a newer one"

step remove
rpm -e tarry || fail "rpm -e"
case $(asked) in
*"disable --now tarry"*) ;;
*) fail "a removal must stop the node" ;;
esac
rpm -q tarry >/dev/null && fail "it is still in the database"
[ ! -e /usr/bin/tarry ] || fail "the binary is still there"
[ ! -e /etc/tarry/tarry.yaml ] || fail "rpm keeps a changed configuration as .rpmsave"
grep -q '^node-id: packaged$' /etc/tarry/tarry.yaml.rpmsave || fail "the configuration is lost"
[ -e /var/lib/tarry/node.json ] || fail "THE DATA IS GONE"
getent passwd tarry >/dev/null || fail "the user, who owns the data, is gone"

step "install again"
rpm -i --nodeps /packages/new.rpm || fail "rpm -i"
same "$(stat -c %U /var/lib/tarry)" tarry "owner of the data"
echo PASSED
