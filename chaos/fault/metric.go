package fault

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tarry/bench/localcluster"
)

// askTimeout bounds one request to one node, which a fault may keep busy.
const askTimeout = 5 * time.Second

// questions opens a connection for each request, because nodes stop and start.
var questions = &http.Client{Transport: localcluster.Authorized(&http.Transport{DisableKeepAlives: true}), Timeout: askTimeout}

// metric reads one number from a node's /metrics; name includes its labels.
func (e *Env) metric(ctx context.Context, n *localcluster.Node, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := questions.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask node %s for its metrics: %w", n.ID, err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read the metrics of node %s: %w", n.ID, err)
	}
	return 0, fmt.Errorf("node %s has no metric %s", n.ID, name)
}
