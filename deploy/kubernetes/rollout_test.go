package kubernetes

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"

	"github.com/tenure-dev/tenure/redlock"
)

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// A node is restarted no sooner than the one before votes again for every client and holders have
// put their keys back: in a rollout, which waits for minReadySeconds, and in a drain, whose budget
// counts pods that are ready and does not.
func TestRestartsOfNodesAreAQuarantineApart(t *testing.T) {
	set := object[apps.StatefulSet](t, "nodes.yaml", "node")
	require.GreaterOrEqual(t, seconds(set.Spec.MinReadySeconds), quarantine)
	require.Equal(t, apps.RollingUpdateStatefulSetStrategyType, set.Spec.UpdateStrategy.Type)
	require.Nil(t, set.Spec.UpdateStrategy.RollingUpdate, "one at a time is the default")
	ready := set.Spec.Template.Spec.Containers[0].ReadinessProbe
	require.GreaterOrEqual(t, seconds(ready.InitialDelaySeconds), resolving+quarantine+redlock.DefaultTTL)
	require.Nil(t, set.Spec.Template.Spec.Containers[0].LivenessProbe)
	require.Nil(t, set.Spec.Template.Spec.Containers[0].StartupProbe)
	budget := object[policy.PodDisruptionBudget](t, "nodes.yaml", "nodes")
	require.Equal(t, 1, budget.Spec.MaxUnavailable.IntValue())
	require.Nil(t, budget.Spec.UnhealthyPodEvictionPolicy)

	// All begin at once, also after an outage, and are seen before they are ready.
	require.Equal(t, apps.ParallelPodManagement, set.Spec.PodManagementPolicy)
	service := object[core.Service](t, "nodes.yaml", "nodes")
	require.True(t, service.Spec.PublishNotReadyAddresses)
	require.Equal(t, core.ClusterIPNone, service.Spec.ClusterIP)
	require.Equal(t, "kubernetes.io/hostname", set.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey)
}

// A node has room for twice what maxmemory allows.
func TestMemoryOfANode(t *testing.T) {
	conf, _ := configuration(t)
	require.Contains(t, conf, "\nmaxmemory 256mb\n")
	limit := object[apps.StatefulSet](t, "nodes.yaml", "node").Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
	require.GreaterOrEqual(t, limit, int64(2*256<<20))
}

// No replica is taken for available before the nodes can tell whether it belongs, none is killed
// for what the nodes do, and none before its work is over.
func TestRolloutOfReplicas(t *testing.T) {
	d := object[apps.Deployment](t, "replicas.yaml", "billing")
	require.Greater(t, seconds(d.Spec.MinReadySeconds), quarantine)
	require.Zero(t, d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue())
	c := d.Spec.Template.Spec.Containers[0]
	require.Nil(t, c.StartupProbe)
	require.Equal(t, "/livez", c.LivenessProbe.HTTPGet.Path)
	require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
	require.Less(t, c.ReadinessProbe.PeriodSeconds*c.ReadinessProbe.FailureThreshold, d.Spec.MinReadySeconds,
		"a replica that is refused after a quarantine is seen in time")
	stop, err := time.ParseDuration(environment(c)["STOP_TIMEOUT"])
	require.NoError(t, err)
	require.GreaterOrEqual(t, seconds(int32(*d.Spec.Template.Spec.TerminationGracePeriodSeconds)), stop+closing+5*time.Second)
	fields := make(map[string]string)
	for _, v := range c.Env {
		if v.ValueFrom != nil {
			fields[v.Name] = v.ValueFrom.FieldRef.FieldPath
		}
	}
	require.Equal(t, map[string]string{"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace", "POD_IP": "status.podIP"}, fields)

	// The files that the variables name are in the secrets.
	for _, file := range []string{"TENURE_NODES_FILE", "TENURE_TLS_CA", "TENURE_TLS_CERT", "TENURE_TLS_KEY"} {
		require.True(t, strings.HasPrefix(environment(c)[file], c.VolumeMounts[0].MountPath+"/"), file)
	}
}

// environment is what a container is given as it stands.
func environment(c core.Container) map[string]string {
	env := make(map[string]string)
	for _, v := range c.Env {
		env[v.Name] = v.Value
	}
	return env
}

// section is the part of docs/operations.md about Kubernetes.
func section(t *testing.T) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, "../../docs/operations.md"), "\n## Kubernetes\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// Settings that docs/operations.md names are those of the manifests, its commands name files that
// are there, and its code is the example's.
func TestPageSaysWhatTheManifestsSay(t *testing.T) {
	page := section(t)
	var manifests, program string
	for _, file := range files(t) {
		manifests += read(t, file)
	}
	for _, name := range []string{"main", "config", "leader", "label"} {
		program += read(t, "../../examples/kubernetes/"+name+".go")
	}
	settings := regexp.MustCompile("`([A-Za-z./]+: [^`]+)`").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(settings), 6)
	for _, setting := range settings {
		require.Contains(t, manifests, setting[1])
	}
	named := regexp.MustCompile(`(?:examples|deploy)/[a-z/-]+\.[a-z]+`).FindAllString(page, -1)
	require.Greater(t, len(named), 10)
	for _, file := range named {
		require.FileExists(t, "../../"+file)
	}
	for _, code := range []string{"scheduler.WithElection(\"reports\", elector.WithPayload(", "probes := health.New(q, jobs)", "mux.Handle(\"/readyz\", probes)"} {
		require.Contains(t, page, code)
		require.Contains(t, program, code)
	}
}

// The page builds the image that the Deployment names, and applies the filled-in copy of each
// template after the manifest that makes its namespace.
func TestPageAppliesAllInOrder(t *testing.T) {
	page := section(t)
	image := object[apps.Deployment](t, "replicas.yaml", "billing").Spec.Template.Spec.Containers[0].Image
	build := "docker build -f examples/kubernetes/Dockerfile -t " + image + " ."
	require.Contains(t, page, "\n"+build+"\ndocker push "+image+"\n")
	require.Contains(t, read(t, "../../examples/kubernetes/Dockerfile"), build)
	toolbox := object[core.Pod](t, "toolbox.yaml", "toolbox").Spec.Containers[0].Image
	require.Contains(t, page, "\ndocker build -f cmd/tenure/Dockerfile -t "+toolbox+" .\ndocker push "+toolbox+"\n")
	const all = "\nkubectl apply -k deploy/kubernetes "
	from := strings.Index(page, all)
	require.GreaterOrEqual(t, from, 0, "the namespaces are made first")
	for _, of := range []struct{ name, secret string }{{"nodes", "nodes-acl"}, {"replicas", "billing-nodes"}} {
		space := object[core.Secret](t, "secrets/"+of.name+".yaml", of.secret).Namespace
		object[core.Namespace](t, of.name+".yaml", space)
		command := `kubectl apply -f "$copies/` + of.name + `.yaml"`
		at := strings.Index(page[from:], "\n"+command+"\n")
		require.GreaterOrEqual(t, at, 0, "%s, after what it needs", command)
		from += at + 1
	}
}
