package push

import (
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/secretkeys"
	"tarry/job/jobpb"
)

func ringOf(t *testing.T, k secretkeys.Key) *secretkeys.Ring {
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, secretkeys.Create(path, k))
	r, err := secretkeys.Open(path)
	require.NoError(t, err)
	return r
}

// sealedFor sets the target with a secret that is sealed for a topic.
func (r *rig) sealedFor(topic string, ring *secretkeys.Ring) {
	r.target(func(s *jobpb.TopicSettings) {
		s.Push.Secret, s.Push.SealedSecret = "", ring.Seal(topic, secret)
	})
}

func TestASealedSecretSignsThePost(t *testing.T) {
	ring, posts := ringOf(t, secretkeys.NewKey()), make(chan *http.Request, 1)
	r := newRig(t, func(_ http.ResponseWriter, q *http.Request) { posts <- q })
	r.stop()
	r.pusher.secrets = ring
	r.start()
	r.sealedFor("t", ring)
	r.add(&jobpb.Add{Id: "a", Body: []byte("x")})
	r.becomes("a", jobpb.State_STATE_NONE)
	h := (<-posts).Header
	require.Equal(t, sign(secret, h.Get(headerTimestamp), "a", []byte("x")), h.Get(headerSignature))
	require.Empty(t, r.pusher.Problems())
}

// Without the secret nothing is posted: not unsigned, and not signed with what is sealed.
func TestWithoutTheKeyNothingIsPosted(t *testing.T) {
	made := ringOf(t, secretkeys.NewKey())
	for name, c := range map[string]struct {
		ring  *secretkeys.Ring
		topic string
		says  string
	}{
		"no keys":       {nil, "t", "this node does not have that key"},
		"another key":   {ringOf(t, secretkeys.NewKey()), "t", "this node does not have that key"},
		"another topic": {made, "other", "sealed for another topic"},
	} {
		t.Run(name, func(t *testing.T) {
			var posts atomic.Int32
			r := newRig(t, func(http.ResponseWriter, *http.Request) { posts.Add(1) })
			r.stop()
			r.pusher.secrets = c.ring
			r.start()
			r.sealedFor(c.topic, made)
			r.add(&jobpb.Add{Id: "a", MaxAttempts: 1})
			j := r.becomes("a", jobpb.State_STATE_DEAD)
			require.Contains(t, j.Reason, "push: the secret of the topic cannot be used: ")
			require.Contains(t, j.Reason, c.says)
			require.Equal(t, 1.0, r.counted("no_key"))
			require.Len(t, r.pusher.Problems(), 1)
			require.Contains(t, r.pusher.Problems()[0].Text, `1 topics, because it cannot open their push secrets; the first is "t"`)
			require.Zero(t, posts.Load())
			r.stop()
			require.Empty(t, r.pusher.Problems(), "another node leads")
			r.start()
		})
	}
}
