package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages writes the deb and the rpm package of a target, as deploy/package/nfpm.yaml says.
func (r *release) packages(t target, binary string, e extras) error {
	staged, err := stage(filepath.Dir(binary), e)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.root, "deploy/package")
	version := packageVersion(r.version, r.time)
	for _, format := range []string{"deb", "rpm"} {
		data, err := packageOf(format, dir, func(name string) string {
			return map[string]string{
				"PACKAGE_ARCH": t.arch, "PACKAGE_VERSION": version, "PACKAGE_ROOT": staged,
			}[name]
		}, r.time)
		if err != nil {
			return fmt.Errorf("make the %s package for %v: %w", format, t, err)
		}
		if err := r.put(fmt.Sprintf("tarry_%s_%s.%s", version, t.arch, format), data); err != nil {
			return err
		}
	}
	return nil
}

// packageOf makes one package from the description in dir, which becomes the working directory:
// its paths are relative to that. Nothing in it depends on the time or the machine.
func packageOf(format, dir string, variables func(string) string, at time.Time) ([]byte, error) {
	if err := os.Chdir(dir); err != nil {
		return nil, err
	}
	config, err := nfpm.ParseFileWithEnvMapping("nfpm.yaml", variables)
	if err != nil {
		return nil, err
	}
	info, err := config.Get(format)
	if err != nil {
		return nil, err
	}
	info = nfpm.WithDefaults(info)
	info.MTime = at
	info.RPM.BuildHost = "localhost"
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return nil, err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = packager.Package(info, &b)
	return b.Bytes(), err
}

// stage puts what is made for a package beside its binary: completions, and man pages as
// distributions have them.
func stage(dir string, e extras) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for shell, file := range e.completions {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, "completion."+shell), data, 0o644); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "man"), 0o755); err != nil {
		return "", err
	}
	for _, page := range e.man {
		data, err := os.ReadFile(page)
		if err != nil {
			return "", err
		}
		if data, err = compress(data); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, "man", filepath.Base(page)+".gz"), data, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// tagged is a version that git describe made from a tag, with the commits since then.
var tagged = regexp.MustCompile(`^v?(\d[0-9A-Za-z.]*)(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)

// packageVersion returns a version as dpkg and rpm compare them: a later commit has a later one.
func packageVersion(version string, at time.Time) string {
	m := tagged.FindStringSubmatch(version)
	if m == nil || !strings.Contains(m[1], ".") {
		return "0.0.0+" + at.UTC().Format("20060102150405") + "." + strings.ReplaceAll(version, "-", ".")
	}
	v := m[1]
	if m[2] != "" {
		v += "+" + m[2] + "." + m[3]
	}
	return v + strings.Replace(m[4], "-", "+", 1)
}
