package ops

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// lookTime bounds one question of a check to one node, or to DNS.
const lookTime = 5 * time.Second

// cluster checks a running cluster.
func (c *checkup) cluster(ctx context.Context, t *cli.Terminal) {
	members, err := t.Client.Cluster().Members(ctx)
	if err != nil {
		c.fail("cluster", "", "start the nodes, or give the address of one with --addr; tarry doctor --config checks a machine", "%s", cli.Explain(err))
		return
	}
	c.voters(members)
	c.health(ctx, t)
	c.clocks(ctx, t)
	leaders, releases := map[string][]string{}, map[string][]string{}
	for _, m := range members {
		if m.HTTPAddress == "" {
			c.fail("reply", m.ID, "start it; or tarry cluster remove, if it is gone for good", "it is down, and its HTTP address is not known")
			continue
		}
		c.name(ctx, m.ID, "its address for clients", m.HTTPAddress)
		c.name(ctx, m.ID, "its address for nodes", m.Address)
		if ready, ok := c.node(ctx, t, m); ok {
			if namesLeader(ready) {
				leaders[ready.Leader] = append(leaders[ready.Leader], m.ID)
			}
			releases[m.Version] = append(releases[m.Version], m.ID)
		}
	}
	c.agreement(leaders)
	if len(releases) > 1 {
		c.warn("versions", "", "finish the upgrade (docs/operations.md, Upgrade)", "the nodes run different releases: %s", groupsOf(releases))
	} else if len(releases) == 1 {
		c.ok("versions", "", "all that reply run the same release")
	}
}

// groupsOf writes which nodes say what.
func groupsOf(nodes map[string][]string) string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(nodes)) {
		list = append(list, fmt.Sprintf("%s (%s)", cli.Dash(what), strings.Join(nodes[what], ", ")))
	}
	return strings.Join(list, "; ")
}

func (c *checkup) voters(members []client.Member) {
	n := 0
	for _, m := range members {
		if m.Voter {
			n++
		}
	}
	switch {
	case n == 1 && len(members) > 1:
		c.warn("voters", "", "new nodes vote after 10 s; or add nodes", "only one node votes")
	case n > 1 && n%2 == 0:
		c.warn("voters", "", "use an odd number: add a node, or remove one", "%d nodes vote: no more may fail than of %d", n, n-1)
	default:
		c.ok("voters", "", "%s", nodesOf(n))
	}
}

func (c *checkup) health(ctx context.Context, t *cli.Terminal) {
	h, err := t.Client.Cluster().Health(ctx)
	if err != nil {
		c.fail("health", "", "", "%s", cli.Explain(err))
		return
	}
	const fix = "docs/troubleshooting.md, Reasons"
	for _, p := range h.Problems {
		if p.Severity == "critical" {
			c.fail("health", "", fix, "%s", p.Reason)
		} else {
			c.warn("health", "", fix, "%s", p.Reason)
		}
	}
	if len(h.Problems) == 0 {
		c.ok("health", "", "the leader finds nothing wrong; %d more voters may fail", h.FailureTolerance)
	}
	if h.Upgrade != "" {
		c.warn("versions", "", "finish the upgrade, or restart the node without --hold-version", "%s", h.Upgrade)
	}
}

func (c *checkup) clocks(ctx context.Context, t *cli.Terminal) {
	v, err := t.Client.Cluster().Clocks(ctx)
	if err != nil {
		c.warn("clock", "", "tarry cluster clock compares them, once there is a leader", "the clocks were not compared: %s", cli.Explain(err))
		return
	}
	if err := clockTrouble(v); err != nil {
		c.fail("clock", "", "run NTP on every node; tarry cluster clock shows the offsets", "%s", cli.Explain(err))
		return
	}
	c.ok("clock", "", "all that reply are within %g s of the majority", v.MaxOffset)
}

// name checks that a host:port resolves.
func (c *checkup) name(ctx context.Context, node, what, address string) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		c.fail("dns", node, "correct the name in DNS, or --advertise-host of the node", "%s %s does not resolve from here: %v", what, address, err)
		return
	}
	c.ok("dns", node, "%s resolves", host)
}

// node checks one member. It returns which leader that knows.
func (c *checkup) node(ctx context.Context, t *cli.Terminal, m client.Member) (ready cli.ReadyReply, ok bool) {
	address := addressOf(t, m)
	ready, err := t.Readiness(ctx, address)
	switch {
	case err != nil:
		c.fail("reply", m.ID, "start it, or let this machine reach its port", "%v", err)
		return ready, false
	case !ready.Ready:
		c.fail("ready", m.ID, "docs/troubleshooting.md, Reasons", "%s", cli.Dash(strings.Join(ready.Reasons, "; ")))
	default:
		c.ok("ready", m.ID, "it can serve clients")
	}
	for _, warning := range ready.Warnings {
		c.warn("ready", m.ID, "docs/troubleshooting.md, Reasons", "%s", warning)
	}
	values, err := metrics(ctx, t, address)
	if err != nil {
		c.warn("metrics", m.ID, "let this machine read /metrics", "disk, files and certificates were not checked: %v", err)
		return ready, true
	}
	c.gauges(m.ID, values)
	return ready, true
}

// agreement checks whom the nodes that reply take for the leader; "" is nobody.
func (c *checkup) agreement(leaders map[string][]string) {
	switch {
	case len(leaders) > 1:
		c.fail("members", "", "wait a second and run it again; if they still disagree, the network between them is broken", "the nodes disagree about the leader: %s", groupsOf(leaders))
	case leaders[""] != nil:
		c.fail("members", "", "start the voters that are down; if the disks of a majority are lost for good, see docs/operations.md, A lost majority", "no node that replies knows a leader, so nothing can be added or handed out")
	case len(leaders) == 1:
		c.ok("members", "", "all that reply know the same leader")
	}
}

// gauges checks what a node's metrics say.
func (c *checkup) gauges(node string, values map[string]float64) {
	if open, most := values["process_open_fds"], values["process_max_fds"]; most > 0 {
		switch {
		case open > 0.9*most:
			c.warn("files", node, "raise LimitNOFILE= or ulimit -n", "%.0f of %.0f files are open", open, most)
		default:
			c.ok("files", node, "%.0f of %.0f files are open", open, most)
		}
	}
	c.syncTime("disk", node, time.Duration(values["tarry_log_write_seconds"]*float64(time.Second)))
	free, mark := values["tarry_disk_free_bytes"], values["tarry_disk_low_water_bytes"]
	if values["tarry_disk_low"] == 1 {
		c.warn("space", node, "free space on the disk, or enlarge it (docs/operations.md, When a disk fills up)", "%s are free, below the mark of %s", cli.ByteSize(int64(free)), cli.ByteSize(int64(mark)))
	} else if free > 0 {
		c.ok("space", node, "%s are free", cli.ByteSize(int64(free)))
	}
	const expiry = `tarry_certificate_expiry_seconds{port="`
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if port, found := strings.CutPrefix(name, expiry); found {
			c.certificateEnd(node, strings.TrimSuffix(port, `"}`), time.Duration(values[name])*time.Second)
		}
	}
}

// Limits of the mean of a synced write: above slowSync, writes are noticeably late; above
// tooSlowSync a leader gives its leadership away.
const (
	slowSync    = 20 * time.Millisecond
	tooSlowSync = 500 * time.Millisecond
)

func (c *checkup) syncTime(name, node string, mean time.Duration) {
	const fix = "look for another process that uses the disk, a volume with a limit on operations, a failing disk"
	switch took := mean.Round(10 * time.Microsecond); {
	case mean <= 0:
	case mean >= tooSlowSync:
		c.fail(name, node, fix, "a synced write takes %v", took)
	case mean >= slowSync:
		c.warn(name, node, fix, "a synced write takes %v", took)
	default:
		c.ok(name, node, "a synced write takes %v", took)
	}
}

// endsSoon is how long before its end a certificate is a reason to act.
const endsSoon = 7 * 24 * time.Hour

func (c *checkup) certificateEnd(node, port string, left time.Duration) {
	const fix = "renew it: tarry cert renew (docs/tls.md)"
	switch days := left.Hours() / 24; {
	case left <= 0:
		c.fail("certificate", node, fix, "that of port %s has ended", port)
	case left < endsSoon:
		c.warn("certificate", node, fix, "that of port %s ends in %.1f days", port, days)
	default:
		c.ok("certificate", node, "that of port %s ends in %.0f days", port, days)
	}
}

// metrics reads the samples of a node, by name with labels.
func metrics(ctx context.Context, t *cli.Terminal, node string) (map[string]float64, error) {
	body, err := t.Fetch(ctx, node, cli.MetricsPage, lookTime)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			values[withoutShard(line[:at])] = v
		}
	}
	return values, lines.Err()
}

// withoutShard removes the label of the only shard.
func withoutShard(name string) string { return strings.TrimSuffix(name, `{shard="0"}`) }
