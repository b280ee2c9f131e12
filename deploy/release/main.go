// Command release makes what a release consists of, in one directory: for each target an archive
// with the static binary and a software bill of materials, deb and rpm packages for Linux, and the
// checksums of all of them. The same commit gives the same bytes, on whatever machine and at
// whatever path it is built.
//
// `make release` and `make packages` call it. It is a module of its own, outside of go.work, so
// that the packager's dependencies are none of the product.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// release is what is made, and from what.
type release struct {
	root    string // of the sources
	out     string // directory of the results
	version string // as tarry version prints it
	time    time.Time
	targets []target
	archive bool // archives and bills of materials, beside the packages
	files   []string
}

// target is a platform.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := &release{}
	targets := flag.String("targets", allTargets, "platforms to build for, a list of os/arch")
	flag.StringVar(&r.root, "root", "../..", "directory of the sources")
	flag.StringVar(&r.out, "out", "", "directory of the results; it must not exist or be empty")
	flag.StringVar(&r.version, "version", "", "version of the release")
	packages := flag.Bool("packages-only", false, "make only the packages for Linux")
	flag.Parse()
	r.archive = !*packages
	err := r.parse(*targets)
	if err == nil {
		err = r.make(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	for _, f := range r.files {
		fmt.Println(filepath.Join(r.out, f))
	}
}

// parse checks the command line.
func (r *release) parse(targets string) error {
	if r.out == "" || r.version == "" {
		return fmt.Errorf("-out and -version must be given")
	}
	for _, name := range strings.Split(targets, ",") {
		system, arch, found := strings.Cut(name, "/")
		if !found {
			return fmt.Errorf("-targets: %q is not os/arch", name)
		}
		r.targets = append(r.targets, target{system, arch})
	}
	var err error
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if found, err := os.ReadDir(r.out); err == nil && len(found) > 0 {
		return fmt.Errorf("-out: %s is not empty", r.out)
	}
	return os.MkdirAll(r.out, 0o755)
}

func (r *release) make(ctx context.Context) (err error) {
	if r.time, err = commitTime(ctx, r.root); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tarry-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	extras, err := r.extras(ctx, work)
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		binary := filepath.Join(work, t.os+"-"+t.arch, "tarry")
		if err := r.build(ctx, t, binary); err != nil {
			return err
		}
		if r.archive {
			if err := r.archiveOf(t, binary, extras); err != nil {
				return err
			}
		}
		if t.os == "linux" {
			if err := r.packages(t, binary, extras); err != nil {
				return err
			}
		}
	}
	return r.checksums()
}

// commitTime returns the time of the commit, which every file in the results has.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	out, err := exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%ct").Output()
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the commit: %w", err)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

// build compiles the static binary of a target. What the machine's environment could change is
// set here.
func (r *release) build(ctx context.Context, t target, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true",
		"-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", binary, "./cmd/tarry")
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOEXPERIMENT=", "GOWORK=off", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build for %v: %w", t, err)
	}
	return nil
}

// extras are files beside the binary, the same for all targets.
type extras struct {
	completions map[string]string // path by shell
	man         []string
}

// extras makes the completions with a binary for this machine, and the man pages with the test that knows the commands.
func (r *release) extras(ctx context.Context, work string) (extras, error) {
	e := extras{completions: map[string]string{}}
	host := filepath.Join(work, "host", "tarry")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", host, "./cmd/tarry")
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK=off")
	if err := cmd.Run(); err != nil {
		return e, fmt.Errorf("build for this machine: %w", err)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text, err := exec.CommandContext(ctx, host, "completion", shell).Output()
		if err != nil {
			return e, fmt.Errorf("make the completion for %s: %w", shell, err)
		}
		e.completions[shell] = filepath.Join(work, "completion."+shell)
		if err := os.WriteFile(e.completions[shell], text, 0o644); err != nil {
			return e, err
		}
	}
	folder := filepath.Join(work, "man")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return e, err
	}
	cmd = exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestManPages$", "./cmd/tarry", "-man", folder)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, os.Stderr, os.Stderr
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
	if err := cmd.Run(); err != nil {
		return e, fmt.Errorf("make the man pages: %w", err)
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	e.man = pages
	return e, err
}
