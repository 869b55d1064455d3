package kubernetes

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// closing is how long a replica may take to end besides its STOP_TIMEOUT.
const closing = 30 * time.Second

// process is the program of examples/kubernetes with the environment of the manifest.
type process struct {
	*exec.Cmd
	base string
	log  *os.File
}

func startReplica(t *testing.T, program string, f *fleet, pod string) *process {
	t.Helper()
	dir := t.TempDir()
	list := urls(t)
	for i, n := range f.Nodes() {
		before, _, ok := strings.Cut(list[i], "@")
		require.True(t, ok)
		list[i] = before + "@" + n.Addr()
	}
	write(t, filepath.Join(dir, "urls"), strings.Join(list, "\n"))
	for _, file := range []string{"ca.crt", "client.crt", "client.key"} {
		write(t, filepath.Join(dir, file), read(t, filepath.Join(f.etc, file)))
	}
	address := valkeytest.FreeAddress(t)
	c := object[apps.Deployment](t, "replicas.yaml", "billing").Spec.Template.Spec.Containers[0]
	env := environment(c)
	env["POD_NAME"], env["POD_NAMESPACE"], env["POD_IP"], env["LISTEN"] = pod, "billing", "127.0.0.1", address
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	p := &process{Cmd: exec.Command(program), base: "http://" + address, log: log}
	for name, value := range env {
		p.Env = append(p.Env, name+"="+strings.Replace(value, c.VolumeMounts[0].MountPath, dir, 1))
	}
	p.Stdout, p.Stderr = log, log
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		if p.ProcessState == nil {
			require.NoError(t, p.Process.Kill())
			_ = p.Wait() // killed
		}
		require.NoError(t, log.Close())
		if t.Failed() {
			t.Log(read(t, log.Name()))
		}
	})
	return p
}

// status is that of a page; 0 while nobody answers.
func (p *process) status(path string) int {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(p.base + path)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// The program of the manifest, with its variables and files, on servers of the manifest: it is
// ready before the quarantine is over, answers all pages that the manifests name, stays alive and
// ready when the servers hang, and ends within its grace period then.
func TestReplicaOfTheManifests(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "replica")
	build := exec.Command("go", "build", "-o", program, "./kubernetes")
	build.Dir = "../../examples"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	f := setUp(t, "127.0.0.1")
	d := object[apps.Deployment](t, "replicas.yaml", "billing")
	probes := d.Spec.Template.Spec.Containers[0]

	r := startReplica(t, program, f, "billing-a")
	begun := time.Now()
	require.Eventually(t, func() bool { return r.status(probes.ReadinessProbe.HTTPGet.Path) == 200 }, patience, 20*time.Millisecond)
	t.Log("ready after", time.Since(begun).Round(time.Millisecond))
	require.Equal(t, 200, r.status(probes.LivenessProbe.HTTPGet.Path))
	require.Equal(t, 200, r.status("/metrics"))
	require.Eventually(t, func() bool { return r.status("/reports") == 200 }, patience, 20*time.Millisecond, "it leads")
	t.Log("leads after", time.Since(begun).Round(time.Millisecond))
	require.Equal(t, 200, r.status(probes.ReadinessProbe.HTTPGet.Path), "asked while there is a quorum")

	for _, n := range f.Nodes() {
		require.NoError(t, n.Freeze())
	}
	require.Eventually(t, func() bool { return r.status("/reports") == 503 }, patience, 50*time.Millisecond, "it leads no more")
	require.Equal(t, 200, r.status(probes.ReadinessProbe.HTTPGet.Path))
	require.Equal(t, 200, r.status(probes.LivenessProbe.HTTPGet.Path))
	second := startReplica(t, program, f, "billing-b")
	require.Eventually(t, func() bool { return second.status(probes.LivenessProbe.HTTPGet.Path) == 200 }, patience, 20*time.Millisecond)
	require.Equal(t, 503, second.status(probes.ReadinessProbe.HTTPGet.Path), "it has never reached a quorum")

	for _, p := range []*process{r, second} {
		ended := time.Now()
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.Eventually(t, func() bool { return p.status("/readyz") == 503 }, patience, 20*time.Millisecond)
		require.Equal(t, 200, p.status("/livez"))
		require.NoError(t, p.Wait())
		took := time.Since(ended)
		t.Log("with all nodes frozen it ends after", took.Round(time.Millisecond))
		require.Less(t, took, seconds(int32(*d.Spec.Template.Spec.TerminationGracePeriodSeconds)))
	}
}
