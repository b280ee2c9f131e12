package repository

import (
	"fmt"
	"os"
	"testing"
)

// The tests name files as a reader of the repository does.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
