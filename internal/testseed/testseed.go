// Package testseed gives random tests their seeds: a new one each run, or the one that
// TEST_SEED names. Start at New.
package testseed

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// New returns the number in TEST_SEED or, if it is unset, a random one. A test must print
// the seed that it takes. New panics if TEST_SEED is no number from 0 to 2^64-1.
func New() uint64 {
	text := os.Getenv("TEST_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("TEST_SEED is no seed: %v", err))
	}
	return seed
}

// Each runs f a few times, each with a seed that is in the subtest's name.
func Each(t *testing.T, f func(t *testing.T, seed uint64)) {
	first := New()
	for i := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", first+i), func(t *testing.T) { f(t, first+i) })
	}
}
