package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var commit = time.Date(2026, 11, 23, 8, 30, 0, 0, time.UTC)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestVersionsOfPackagesGrow(t *testing.T) {
	for given, want := range map[string]string{
		"v1.2.0":             "1.2.0",
		"1.2.0-rc1":          "0.0.0+20261123083000.1.2.0.rc1",
		"v1.2.0-14-gcf4c602": "1.2.0+14.cf4c602",
		"v1.2.0-dirty":       "1.2.0+dirty",
		"cf4c602":            "0.0.0+20261123083000.cf4c602",
		"cf4c602-dirty":      "0.0.0+20261123083000.cf4c602.dirty",
		"1234567":            "0.0.0+20261123083000.1234567",
		"development":        "0.0.0+20261123083000.development",
		"v1.2.0-3-gab-dirty": "1.2.0+3.ab+dirty",
	} {
		if got := packageVersion(given, commit); got != want {
			t.Errorf("packageVersion(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestAnArchiveDependsOnItsFilesOnly(t *testing.T) {
	var one, two bytes.Buffer
	a, b := entry{"t/a", 0o755, []byte("binary")}, entry{"t/b", 0o644, []byte("text")}
	for _, err := range []error{writeArchive(&one, []entry{a, b}, commit), writeArchive(&two, []entry{b, a}, commit)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the order of the files matters")
	}
	z := must[*gzip.Reader](t)(gzip.NewReader(&one))
	r := tar.NewReader(z)
	for _, want := range []entry{a, b} {
		h := must[*tar.Header](t)(r.Next())
		data := must[[]byte](t)(io.ReadAll(r))
		if h.Name != want.name || h.Mode != want.mode || !h.ModTime.Equal(commit) || string(data) != string(want.data) {
			t.Errorf("got %+v with %q", h, data)
		}
	}
}

// The binary of this test is one that the Go linker made, with modules.
func TestABillNamesTheModulesOfABinary(t *testing.T) {
	self := must[string](t)(os.Executable())
	one := must[[]byte](t)(billOf(self, "v1", target{"linux", "amd64"}))
	two := must[[]byte](t)(billOf(self, "v1", target{"linux", "amd64"}))
	if !bytes.Equal(one, two) {
		t.Error("the same binary has two bills")
	}
	var bill struct {
		BOMFormat, SpecVersion string
		Components             []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(one, &bill); err != nil {
		t.Fatal(err)
	}
	if bill.BOMFormat != "CycloneDX" || bill.SpecVersion != "1.6" || strings.Contains(string(one), "timestamp") || strings.Contains(string(one), "serialNumber") {
		t.Errorf("%.400s", one)
	}
	found := map[string]bool{}
	for _, c := range bill.Components {
		found[c.Name] = true
		if !strings.HasPrefix(c.Purl, "pkg:golang/") || c.Version == "" {
			t.Errorf("component %+v", c)
		}
	}
	if !found["stdlib"] || !found["github.com/CycloneDX/cyclonedx-go"] {
		t.Errorf("components: %v", found)
	}
}

// testPackage makes a package around a script in the place of the binary, which takes no time to
// build.
func testPackage(t *testing.T, format, version string) []byte {
	t.Helper()
	work := t.TempDir()
	root := must[string](t)(filepath.Abs("../.."))
	e := extras{completions: map[string]string{}, man: []string{filepath.Join(work, "tarry-add.1"), filepath.Join(work, "tarry-backup.1")}}
	for _, page := range e.man {
		if err := os.WriteFile(page, []byte(".TH TARRY 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		e.completions[shell] = filepath.Join(work, "from."+shell)
		if err := os.WriteFile(e.completions[shell], []byte("# completion\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(work, "tarry"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	staged := must[string](t)(stage(work, e))
	t.Chdir(".") // back to here at the end
	return must[[]byte](t)(packageOf(format, filepath.Join(root, "deploy/package"), func(name string) string {
		return map[string]string{"PACKAGE_ARCH": "amd64", "PACKAGE_VERSION": version, "PACKAGE_ROOT": staged}[name]
	}, commit))
}

// need skips a test, loudly, where a tool is missing.
func need(t *testing.T, tool string) {
	if _, err := exec.LookPath(tool); err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED: no %s, so %s did not run\n", tool, t.Name())
		t.Skipf("SKIPPED: no %s", tool)
	}
}

// contents are lines that a listing of a package has: mode, owner and path.
var contents = []string{
	`-rwxr-xr-x +1? ?root[ /]+root .* (\./|/)usr/bin/tarry$`,
	`-rw-r--r-- +1? ?root[ /]+root .* (\./|/)etc/tarry/tarry.yaml$`,
	`-rw-r--r-- +1? ?root[ /]+root .* (\./|/)usr/lib/systemd/system/tarry.service$`,
	`-rw-r--r-- +1? ?root[ /]+root .* (\./|/)usr/share/bash-completion/completions/tarry$`,
	`-rw-r--r-- +1? ?root[ /]+root .* (\./|/)usr/share/man/man1/tarry-add.1.gz$`,
	`-rw-r--r-- +1? ?root[ /]+root .* (\./|/)usr/share/doc/tarry/README.md$`,
}

func requireContents(t *testing.T, listing string) {
	t.Helper()
	for _, line := range contents {
		if !regexp.MustCompile("(?m)^" + line).MatchString(listing) {
			t.Errorf("no line %s in\n%s", line, listing)
		}
	}
	if strings.Contains(listing, "/var/lib") {
		t.Error("the package owns the data")
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestTheDebPackage(t *testing.T) {
	need(t, "dpkg-deb")
	data := testPackage(t, "deb", "1.2.0")
	if !bytes.Equal(data, testPackage(t, "deb", "1.2.0")) {
		t.Error("made twice it has other bytes")
	}
	file := filepath.Join(t.TempDir(), "tarry.deb")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	requireContents(t, output(t, "dpkg-deb", "--contents", file))
	fields := output(t, "dpkg-deb", "--field", file)
	for _, line := range []string{"Package: tarry\n", "Version: 1.2.0\n", "Architecture: amd64\n", "Depends: passwd\n"} {
		if !strings.Contains(fields, line) {
			t.Errorf("no %q in\n%s", line, fields)
		}
	}
	dir := filepath.Join(t.TempDir(), "control")
	output(t, "dpkg-deb", "--control", file, dir)
	for _, script := range []string{"preinst", "postinst", "prerm", "postrm"} {
		path := filepath.Join(dir, script)
		output(t, "sh", "-n", path)
		if must[os.FileInfo](t)(os.Stat(path)).Mode().Perm() != 0o755 {
			t.Errorf("%s cannot be run", script)
		}
	}
	if conffiles := string(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "conffiles")))); conffiles != "/etc/tarry/tarry.yaml\n" {
		t.Errorf("conffiles: %q", conffiles)
	}
}

func TestTheRPMPackage(t *testing.T) {
	need(t, "rpm")
	data := testPackage(t, "rpm", "1.2.0")
	if !bytes.Equal(data, testPackage(t, "rpm", "1.2.0")) {
		t.Error("made twice it has other bytes")
	}
	file := filepath.Join(t.TempDir(), "tarry.rpm")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	requireContents(t, output(t, "rpm", "-qlvp", file))
	if got := output(t, "rpm", "-qp", "--qf", "%{NAME} %{VERSION} %{ARCH}", file); got != "tarry 1.2.0 x86_64" {
		t.Error(got)
	}
	if got := output(t, "rpm", "-qcp", file); got != "/etc/tarry/tarry.yaml\n" {
		t.Errorf("configuration: %q", got)
	}
	for _, want := range []string{"preinstall", "postinstall", "preuninstall", "postuninstall"} {
		if scripts := output(t, "rpm", "-qp", "--scripts", file); !strings.Contains(scripts, want+" scriptlet") {
			t.Errorf("no %s in\n%s", want, scripts)
		}
	}
}
