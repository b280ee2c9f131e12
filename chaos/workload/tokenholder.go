package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// tokenHolder makes a token, adds jobs with it at several nodes at once, ends it, and goes on
// adding: from then on every node must refuse it.
type tokenHolder struct{ *producer }

func newTokenHolder(id int, c Config) client { return tokenHolder{makeProducer(id, c, c.Topics)} }

const (
	// holders use one token at once, each at a node of its own first.
	holders = 3
	// heldFor is the longest time for which a token is used before it is ended, and after.
	heldFor = time.Second
)

func (h tokenHolder) run(ctx context.Context) {
	defer h.close()
	for n := 0; ctx.Err() == nil; n++ {
		h.life(context.WithoutCancel(ctx), fmt.Sprintf("%s-h%d-%d", h.config.Name, h.id, n))
		sleep.For(ctx, between(h.rand, heldFor))
	}
}

// life is that of one token. Its text is lost when the outcome of the call that makes it is
// unknown.
func (h tokenHolder) life(ctx context.Context, name string) {
	path := "/v1/tokens/" + url.PathEscape(name)
	rules := map[string]any{"rules": []map[string]any{{"topics": h.topics, "verbs": []string{"add"}}}}
	made, outcome := h.recorded(ctx, http.MethodPut, path, rules, history.Op{Kind: history.Grant, Credential: name})
	if outcome != history.OK || made.Token == "" {
		return
	}
	end := func(credential string) { h.insistOnEnd(ctx, path, credential) }
	if h.rand.IntN(2) == 0 {
		h.use(ctx, made.Token, name, end)
		return
	}
	h.use(ctx, made.Token, name, func(credential string) {
		next, outcome := h.recorded(ctx, http.MethodPost, path+"/rotate", map[string]any{"overlap": 0}, history.Op{Kind: history.Revoke, Credential: credential})
		if outcome != history.OK || next.Token == "" {
			end(credential)
			return
		}
		now := h.rec.Now()
		h.rec.Record(history.Op{Kind: history.Grant, Client: h.id, Credential: credential + "-rotated", Invoke: now, Complete: now})
		h.use(ctx, next.Token, credential+"-rotated", end)
	})
}

// use adds jobs with a token until some time after it was ended.
func (h tokenHolder) use(ctx context.Context, token, credential string, end func(credential string)) {
	adding, stop := context.WithCancel(ctx)
	var users sync.WaitGroup
	for n := range holders {
		user := makeProducer(h.id, h.config, h.topics)
		user.token, user.at, user.rand = token, h.at+n, rand.New(rand.NewPCG(h.rand.Uint64(), 0))
		users.Go(func() {
			defer user.close()
			for think(adding, h.config, user.rand, 1) {
				j := user.make()
				j.ID = fmt.Sprintf("%s-%d-%d", credential, n, user.made)
				node, invoke := user.node(), h.rec.Now()
				a, outcome := user.call(ctx, http.MethodPost, "/v1/jobs", j, callTimeout)
				op := user.addOp(j, a, outcome, node, invoke)
				op.Credential = credential
				h.rec.Record(op)
				if user.made%4 == 0 {
					user.move()
				}
			}
		})
	}
	sleep.For(ctx, between(h.rand, heldFor))
	end(credential)
	sleep.For(ctx, between(h.rand, heldFor))
	stop()
	users.Wait()
}

// insistOnEnd deletes the token until that is acknowledged. One that is not there was deleted
// by a call whose outcome was unknown.
func (h tokenHolder) insistOnEnd(ctx context.Context, path, credential string) {
	for range endTries {
		op := history.Op{Kind: history.Revoke, Credential: credential, Client: h.id, Node: h.node(), Invoke: h.rec.Now()}
		a, outcome := h.call(ctx, http.MethodDelete, path, nil, callTimeout)
		if outcome == history.Fail && a.Code == "not_found" {
			outcome = history.OK
		}
		op.Outcome, op.Code, op.Complete = outcome, a.Code, h.rec.Now()
		h.rec.Record(op)
		if outcome == history.OK {
			return
		}
		time.Sleep(retryPause)
	}
}

// endTries bounds the calls that end one token, so that the load ends with a cluster that is
// away.
const endTries = 100
