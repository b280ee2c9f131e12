package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// object is a JSON object, as a test writes or reads one.
type object = map[string]any

var plainClient = &http.Client{Timeout: 30 * time.Second}

// post makes one call that must succeed.
func post(t *testing.T, addr, path string, body object) object {
	t.Helper()
	status, answer := try(t, addr, path, body)
	require.Equal(t, 2, status/100, "POST %s %v: %d %v", path, body, status, answer)
	return answer
}

// try makes one call that reaches the server.
func try(t *testing.T, addr, path string, body object) (int, object) {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	resp, err := plainClient.Post("http://"+addr+path, "application/json", bytes.NewReader(data))
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	answer := object{}
	require.NoError(t, json.Unmarshal(data, &answer), "%s", data)
	return resp.StatusCode, answer
}

// reserveOne waits for one job of a topic.
func reserveOne(t *testing.T, addr, topic string, wait float64) object {
	t.Helper()
	answer := post(t, addr, "/v1/reserve", object{"topics": []string{topic}, "max": 1, "wait": wait})
	jobs := answer["jobs"].([]any)
	require.Len(t, jobs, 1, "no job of topic %s within %v s", topic, wait)
	return jobs[0].(object)
}

func finish(t *testing.T, addr string, job object) {
	t.Helper()
	post(t, addr, "/v1/jobs/"+job["id"].(string)+"/finish", object{"token": job["token"]})
}
