package repository

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The manifests are held against the binary here, and among each other: nothing else reads them
// before a cluster does.

// object is a manifest, as far as the tests look into it.
type object map[string]any

// at returns what stands at a path of fields and indexes.
func (o object) at(t *testing.T, path ...any) any {
	t.Helper()
	var v any = map[string]any(o)
	for i, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			require.True(t, ok, "%v: %v is no object", o["kind"], path[:i])
			v, ok = m[p]
			require.True(t, ok, "%v has no %v", o["kind"], path[:i+1])
		case int:
			l, ok := v.([]any)
			require.True(t, ok && p < len(l), "%v: %v has no element %d", o["kind"], path[:i], p)
			v = l[p]
		}
	}
	return v
}

func (o object) objects(t *testing.T, path ...any) (list []object) {
	t.Helper()
	for _, e := range o.at(t, path...).([]any) {
		list = append(list, e.(map[string]any))
	}
	return list
}

const kubernetesDir = "deploy/kubernetes/"

// manifests are the objects that kustomization.yaml names, by kind and name.
func manifests(t *testing.T) map[string]object {
	var list struct {
		Resources []string
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, kubernetesDir+"kustomization.yaml")), &list))
	files, err := filepath.Glob(kubernetesDir + "*.yaml")
	require.NoError(t, err)
	require.Len(t, list.Resources, len(files)-1, "each file is a resource")
	all := map[string]object{}
	for _, file := range list.Resources {
		d := yaml.NewDecoder(bytes.NewReader([]byte(read(t, kubernetesDir+file))))
		for {
			var fields map[string]any
			err := d.Decode(&fields)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			o := object(fields)
			require.Regexp(t, `^(v1|apps/v1|policy/v1|networking\.k8s\.io/v1)$`, o["apiVersion"])
			require.Equal(t, "tarry", o.at(t, "metadata", "labels", "app.kubernetes.io/name"))
			require.NotContains(t, o["metadata"], "namespace", "that is the caller's")
			key := fmt.Sprint(o["kind"], " ", o.at(t, "metadata", "name"))
			require.NotContains(t, all, key)
			all[key] = o
		}
	}
	require.ElementsMatch(t, []string{
		"ServiceAccount tarry", "ConfigMap tarry", "Service tarry-nodes", "Service tarry", "StatefulSet tarry", "PodDisruptionBudget tarry", "NetworkPolicy tarry",
	}, slices.Collect(maps.Keys(all)))
	return all
}

func container(t *testing.T, all map[string]object) object {
	list := all["StatefulSet tarry"].objects(t, "spec", "template", "spec", "containers")
	require.Len(t, list, 1)
	return list[0]
}

// settings are those of the ConfigMap.
func settings(t *testing.T, all map[string]object) map[string]any {
	s := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(all["ConfigMap tarry"].at(t, "data", "tarry.yaml").(string)), &s))
	return s
}

func TestKubernetesSetsFlagsThatExist(t *testing.T) {
	all := manifests(t)
	flags := serverFlags(t)
	args := container(t, all).at(t, "args").([]any)
	require.Equal(t, "server", args[0])
	given := slices.Collect(maps.Keys(settings(t, all)))
	for _, arg := range args[1:] {
		name, _, found := strings.Cut(strings.TrimPrefix(arg.(string), "--"), "=")
		require.True(t, found, arg)
		given = append(given, name)
	}
	for i, name := range given {
		require.Contains(t, flags, name)
		require.NotContains(t, given[:i], name, "it is set twice")
	}
	// Variables of the image win over the file, so where both set something it is the same.
	for _, m := range regexp.MustCompile(`TARRY_([A-Z_]+)=([^ \\\n]+)`).FindAllStringSubmatch(read(t, "Dockerfile"), -1) {
		name := strings.ToLower(strings.ReplaceAll(m[1], "_", "-"))
		if value, set := settings(t, all)[name]; set && m[1] != "INSECURE" {
			require.Equal(t, m[2], value, name)
		}
	}
}

func TestKubernetesPortsMatch(t *testing.T) {
	all := manifests(t)
	named := map[string]string{} // port and protocol, by name
	for _, p := range container(t, all).objects(t, "ports") {
		named[p["name"].(string)] = fmt.Sprint(p["containerPort"], p["protocol"])
	}
	listens := map[string]string{"http": "http-addr", "cluster": "cluster-addr", "gossip": "gossip-addr", "gossip-udp": "gossip-addr", "beanstalk": "beanstalk-addr"}
	require.Len(t, named, len(listens))
	for name, setting := range listens {
		protocol := map[bool]string{true: "UDP", false: "TCP"}[strings.HasSuffix(name, "udp")]
		_, port, _ := strings.Cut(settings(t, all)[setting].(string), ":")
		require.Equal(t, port+protocol, named[name], name)
	}
	for _, service := range []string{"Service tarry", "Service tarry-nodes"} {
		for _, p := range all[service].objects(t, "spec", "ports") {
			require.Equal(t, named[p["targetPort"].(string)], fmt.Sprint(p["port"], p["protocol"]), "%s: %v", service, p["name"])
		}
	}
	opened := map[string]bool{}
	for _, rule := range all["NetworkPolicy tarry"].objects(t, "spec", "ingress") {
		require.NotEmpty(t, rule.at(t, "from"), "a rule without a source is for everybody")
		for _, p := range rule.objects(t, "ports") {
			opened[fmt.Sprint(p["port"], p["protocol"])] = true
		}
	}
	require.ElementsMatch(t, slices.Compact(slices.Sorted(maps.Values(named))), slices.Collect(maps.Keys(opened)))
}

func TestKubernetesProbesAskPathsThatExist(t *testing.T) {
	c := container(t, manifests(t))
	calls := read(t, "api/wire/calls.go")
	for probe, path := range map[string]string{"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"} {
		require.Equal(t, path, c.at(t, probe, "httpGet", "path"))
		require.Equal(t, "http", c.at(t, probe, "httpGet", "port"))
		require.Contains(t, calls, `Pattern: "GET `+path+`"`)
	}
}

func TestKubernetesNamesMatch(t *testing.T) {
	all := manifests(t)
	set := all["StatefulSet tarry"]
	headless := all["Service "+set.at(t, "spec", "serviceName").(string)]
	require.Equal(t, "None", headless.at(t, "spec", "clusterIP"))
	require.Equal(t, true, headless.at(t, "spec", "publishNotReadyAddresses"))
	require.Equal(t, "Parallel", set.at(t, "spec", "podManagementPolicy"), "one after the other they would wait for each other")
	labels := map[string]any{"app.kubernetes.io/name": "tarry"}
	require.Equal(t, labels, set.at(t, "spec", "template", "metadata", "labels"))
	for name, path := range map[string][]any{
		"StatefulSet tarry": {"spec", "selector", "matchLabels"}, "PodDisruptionBudget tarry": {"spec", "selector", "matchLabels"},
		"NetworkPolicy tarry": {"spec", "podSelector", "matchLabels"}, "Service tarry": {"spec", "selector"}, "Service tarry-nodes": {"spec", "selector"},
	} {
		require.Equal(t, labels, all[name].at(t, path...), name)
	}
	replicas := set.at(t, "spec", "replicas").(int)
	s := settings(t, all)
	require.Equal(t, replicas, s["bootstrap-expect"])
	var join []any
	for i := range replicas {
		join = append(join, fmt.Sprintf("tarry-%d.tarry-nodes:7302", i))
	}
	require.Equal(t, join, s["join"])
	require.Equal(t, 1, all["PodDisruptionBudget tarry"].at(t, "spec", "maxUnavailable"), "of %d", replicas)
	require.Greater(t, replicas-1, replicas/2)
}

func TestKubernetesMountsWhatTheNodeReads(t *testing.T) {
	all := manifests(t)
	set, c := all["StatefulSet tarry"], container(t, all)
	volumes := []string{}
	for _, v := range set.objects(t, "spec", "template", "spec", "volumes") {
		volumes = append(volumes, v["name"].(string))
	}
	for _, v := range set.objects(t, "spec", "volumeClaimTemplates") {
		volumes = append(volumes, v.at(t, "metadata", "name").(string))
	}
	var mounts []string
	for _, m := range c.objects(t, "volumeMounts") {
		require.Contains(t, volumes, m["name"])
		mounts = append(mounts, m["mountPath"].(string))
		require.Equal(t, m["mountPath"] != "/data", m["readOnly"] == true, m["name"])
	}
	require.Len(t, mounts, len(volumes))
	text := read(t, kubernetesDir+"statefulset.yaml") + read(t, kubernetesDir+"configmap.yaml")
	page := read(t, "docs/kubernetes.md")
	for _, path := range regexp.MustCompile(`(?m)(?:=|: )(/(?:tls|data|etc)/[^,\s]+)`).FindAllStringSubmatch(text, -1) {
		require.True(t, slices.ContainsFunc(mounts, func(m string) bool { return strings.HasPrefix(path[1], m+"/") || path[1] == m }), path[1])
		if file, isSecret := strings.CutPrefix(path[1], "/tls/"); isSecret {
			require.Contains(t, page, strings.ReplaceAll(file, "$(POD_NAME)", "tarry-0"), "the page says how to make it")
		}
	}
}

func TestKubernetesPodsHaveNoRights(t *testing.T) {
	all := manifests(t)
	pod := object(all["StatefulSet tarry"].at(t, "spec", "template", "spec").(map[string]any))
	c := container(t, all)
	user := regexp.MustCompile(`USER (\d+):`).FindStringSubmatch(read(t, "Dockerfile"))
	require.Equal(t, user[1], fmt.Sprint(pod.at(t, "securityContext", "runAsUser")))
	require.Equal(t, true, pod.at(t, "securityContext", "runAsNonRoot"))
	require.Equal(t, "RuntimeDefault", pod.at(t, "securityContext", "seccompProfile", "type"))
	require.Equal(t, false, pod.at(t, "automountServiceAccountToken"))
	require.Equal(t, false, c.at(t, "securityContext", "allowPrivilegeEscalation"))
	require.Equal(t, true, c.at(t, "securityContext", "readOnlyRootFilesystem"))
	require.Equal(t, []any{"ALL"}, c.at(t, "securityContext", "capabilities", "drop"))
	require.Equal(t, []any{"Ingress", "Egress"}, all["NetworkPolicy tarry"].at(t, "spec", "policyTypes"))
	// closeTime, drainTime and stopTime of cmd/tarry/internal/server/server.go are below ten seconds.
	require.GreaterOrEqual(t, pod.at(t, "terminationGracePeriodSeconds"), 30)
}
