package repository

import (
	"fmt"
	"os"
	"testing"
)

// The tests name files as a reader of the repository does. What TestMain does is not in the record by
// which the go command knows whether a result that it keeps still holds, so read, pages and sources call stay.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// stay tells the go command where the files are that a test is about to open. Otherwise it looks for them in
// the directory of the package, finds none, and takes the result of before whatever has changed.
func stay(t *testing.T) {
	if err := os.Chdir("."); err != nil {
		t.Fatal(err)
	}
}
