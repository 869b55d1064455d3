package kubernetes

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml"
)

const kustomization = "kustomization.yaml"

// files are the manifests.
func files(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.yaml", "secrets/*.yaml"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, slices.DeleteFunc(found, func(file string) bool { return file == kustomization })...)
	}
	require.Len(t, all, 8)
	return all
}

// documents are the objects of a file, as text.
func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	all := bytes.Split(text, []byte("\n---\n"))
	for i := range all {
		all[i] = append(all[i], '\n') // which a text at its end has
	}
	return all
}

// decode reads an object as the API server does that is told to be strict: a field that its type
// has not, or that is there twice, is an error.
func decode(t *testing.T, document []byte) runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme, rbac.AddToScheme, monitoring.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := decoder.Decode(document, nil, nil)
	require.NoError(t, err, "%s", document)
	return object
}

// object returns the one object of the type and name in the file.
func object[T any](t *testing.T, file, name string) *T {
	t.Helper()
	var found []*T
	for _, document := range documents(t, file) {
		if is, ok := any(decode(t, document)).(*T); ok && any(is).(meta.Object).GetName() == name {
			found = append(found, is)
		}
	}
	require.Len(t, found, 1, "%s: %s", file, name)
	return found[0]
}

func TestManifestsAreOfTheAPI(t *testing.T) {
	kinds := make(map[string]int)
	for _, file := range files(t) {
		for _, document := range documents(t, file) {
			object := decode(t, document)
			kinds[object.GetObjectKind().GroupVersionKind().Kind]++
			named, ok := object.(meta.Object)
			require.True(t, ok)
			if _, ok := object.(*core.Namespace); !ok {
				require.Contains(t, []string{"tenure", "billing"}, named.GetNamespace(), "%s: %s", file, named.GetName())
			}
		}
	}
	require.Equal(t, map[string]int{
		"Namespace": 2, "ConfigMap": 1, "Service": 3, "StatefulSet": 1, "Deployment": 1, "PodDisruptionBudget": 2, "NetworkPolicy": 3,
		"Pod": 1, "ServiceAccount": 1, "Secret": 2, "ServiceMonitor": 1, "PrometheusRule": 1, "Role": 1, "RoleBinding": 1,
	}, kinds)
}

// kubectl apply -k applies all manifests but templates of secrets and what is optional.
func TestKustomizationHasTheManifests(t *testing.T) {
	text, err := os.ReadFile(kustomization)
	require.NoError(t, err)
	var is struct {
		APIVersion, Kind string
		Resources        []string
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &is))
	require.Equal(t, "kustomize.config.k8s.io/v1beta1 Kustomization", is.APIVersion+" "+is.Kind)
	left := slices.DeleteFunc(files(t), func(file string) bool { return slices.Contains(is.Resources, file) })
	require.Equal(t, []string{"leader-label.yaml", "secrets/nodes.yaml", "secrets/replicas.yaml"}, left)
	require.Len(t, is.Resources, len(files(t))-len(left), "each once, and each is there")
}

// Each image has a version that stays what it is, and servers have one everywhere.
func TestImagesArePinned(t *testing.T) {
	compose, err := filepath.Glob("../compose/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, compose)
	servers, images := make(map[string]bool), regexp.MustCompile(`(?m)^\s*image: (\S+)$`)
	for _, file := range slices.Concat(files(t), compose, []string{"../../examples/observability/docker-compose.yml"}) {
		for _, image := range images.FindAllStringSubmatch(read(t, file), -1) {
			if strings.HasPrefix(image[1], "valkey/") {
				servers[image[1]] = true
			} else if filepath.Dir(file) == "." {
				require.Regexp(t, `:\d+\.\d+\.\d+$`, image[1], file)
			}
		}
	}
	require.Len(t, servers, 1, servers)
	for server := range servers {
		require.Regexp(t, `^valkey/valkey:\d+\.\d+\.\d+$`, server)
	}
}

// The toolbox reaches the nodes as a replica does: the same secrets, variables and label.
func TestToolboxIsLikeAReplica(t *testing.T) {
	pod, replica := object[core.Pod](t, "toolbox.yaml", "toolbox"), object[apps.Deployment](t, "replicas.yaml", "billing").Spec.Template
	require.Equal(t, replica.Spec.Volumes, pod.Spec.Volumes)
	require.Equal(t, replica.Spec.Containers[0].VolumeMounts, pod.Spec.Containers[0].VolumeMounts)
	require.NotEmpty(t, pod.Spec.Containers[0].Env)
	require.Subset(t, replica.Spec.Containers[0].Env, pod.Spec.Containers[0].Env)
	require.Equal(t, replica.Labels["tenure.dev/client"], pod.Labels["tenure.dev/client"])
	require.NotEqual(t, replica.Labels["app.kubernetes.io/name"], pod.Labels["app.kubernetes.io/name"], "no requests of the service")
}

// Pods may run where pod security is enforced at its strictest.
func TestPodsAreRestricted(t *testing.T) {
	for _, spec := range []core.PodSpec{
		object[apps.StatefulSet](t, "nodes.yaml", "node").Spec.Template.Spec,
		object[apps.Deployment](t, "replicas.yaml", "billing").Spec.Template.Spec,
		object[core.Pod](t, "toolbox.yaml", "toolbox").Spec,
	} {
		require.True(t, *spec.SecurityContext.RunAsNonRoot)
		require.Equal(t, core.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type)
		require.False(t, *spec.AutomountServiceAccountToken)
		for _, c := range spec.Containers {
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
			require.Equal(t, []core.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
			require.NotContains(t, c.Resources.Limits, core.ResourceCPU, "a process that is paused loses its leases")
			require.Equal(t, c.Resources.Requests.Memory(), c.Resources.Limits.Memory())
		}
		for _, v := range spec.Volumes {
			require.EqualValues(t, 0o440, *v.Projected.DefaultMode)
		}
	}
}

// What selects pods selects those of the manifests.
func TestSelectorsFitThePods(t *testing.T) {
	set := object[apps.StatefulSet](t, "nodes.yaml", "node")
	service := object[core.Service](t, "nodes.yaml", "nodes")
	deployment := object[apps.Deployment](t, "replicas.yaml", "billing")
	page := object[core.Service](t, "replicas.yaml", "billing")
	nodes, replicas := set.Spec.Template.Labels, deployment.Spec.Template.Labels
	for what, test := range map[string]struct{ selector, labels map[string]string }{
		"set":                {set.Spec.Selector.MatchLabels, nodes},
		"hosts":              {set.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels, nodes},
		"zones":              {set.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels, nodes},
		"service":            {service.Spec.Selector, nodes},
		"budget of nodes":    {object[policy.PodDisruptionBudget](t, "nodes.yaml", "nodes").Spec.Selector.MatchLabels, nodes},
		"policy of nodes":    {object[networking.NetworkPolicy](t, "nodes.yaml", "nodes").Spec.PodSelector.MatchLabels, nodes},
		"deployment":         {deployment.Spec.Selector.MatchLabels, replicas},
		"page":               {page.Spec.Selector, replicas},
		"budget of replicas": {object[policy.PodDisruptionBudget](t, "replicas.yaml", "billing").Spec.Selector.MatchLabels, replicas},
		"policy of replicas": {object[networking.NetworkPolicy](t, "replicas.yaml", "billing").Spec.PodSelector.MatchLabels, replicas},
		"policy of labels":   {object[networking.NetworkPolicy](t, "leader-label.yaml", "billing-label").Spec.PodSelector.MatchLabels, replicas},
		"monitor":            {object[monitoring.ServiceMonitor](t, "monitoring.yaml", "billing").Spec.Selector.MatchLabels, page.Labels},
		"clients":            {object[networking.NetworkPolicy](t, "nodes.yaml", "nodes").Spec.Ingress[0].From[0].PodSelector.MatchLabels, replicas},
		"their namespace": {object[networking.NetworkPolicy](t, "nodes.yaml", "nodes").Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels,
			object[core.Namespace](t, "replicas.yaml", "billing").Labels},
		"way to the nodes": {object[networking.NetworkPolicy](t, "replicas.yaml", "billing").Spec.Egress[0].To[0].PodSelector.MatchLabels, nodes},
	} {
		require.NotEmpty(t, test.selector, what)
		for label, value := range test.selector {
			require.Equal(t, value, test.labels[label], "%s: %s", what, label)
		}
	}
	require.Equal(t, service.Name, set.Spec.ServiceName)
	require.Equal(t, "http", object[monitoring.ServiceMonitor](t, "monitoring.yaml", "billing").Spec.Endpoints[0].Port)
	require.Equal(t, page.Spec.Ports[0].TargetPort.String(), deployment.Spec.Template.Spec.Containers[0].Ports[0].Name)
}

// The rules of the operator are those that promtool tests, which docs/operations.md explains:
// UPDATE=1 go test ./deploy/kubernetes -run Alerts writes the file.
func TestAlertsAreThoseOfTheExample(t *testing.T) {
	rules, err := filepath.Glob("../../examples/observability/prometheus/rules/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, rules)
	want := &monitoring.PrometheusRule{
		TypeMeta:   meta.TypeMeta{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule"},
		ObjectMeta: meta.ObjectMeta{Name: "tenure", Namespace: "billing", Labels: map[string]string{"app.kubernetes.io/name": "billing"}},
	}
	for _, file := range rules {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var spec monitoring.PrometheusRuleSpec
		require.NoError(t, yaml.UnmarshalStrict(text, &spec), file)
		want.Spec.Groups = append(want.Spec.Groups, spec.Groups...)
	}
	const file = "alerts.yaml"
	if os.Getenv("UPDATE") != "" {
		text, err := yaml.Marshal(want)
		require.NoError(t, err)
		head := "# The rules of examples/observability/prometheus/rules, whose comments explain them. Made from them by\n" +
			"# UPDATE=1 go test ./deploy/kubernetes -run Alerts; a test compares the two.\n"
		require.NoError(t, os.WriteFile(file, append([]byte(head), text...), 0o644))
	}
	require.Equal(t, want.Spec, object[monitoring.PrometheusRule](t, file, "tenure").Spec)
}
