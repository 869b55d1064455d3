package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// config has the settings from the environment, besides those that redlock.FromEnv reads.
type config struct {
	pod         string        // POD_NAME: the replica's identity
	namespace   string        // POD_NAMESPACE
	ip          string        // POD_IP: address at which other replicas reach this one
	listen      string        // LISTEN
	stopTimeout time.Duration // STOP_TIMEOUT: how long runs and the leader's work may take to return
	label       string        // LEADER_LABEL: label of the leader's pod; empty for none
	api         *podAPI       // set if there is a label
}

func newConfig(env func(string) string) (*config, error) {
	c := &config{
		pod: env("POD_NAME"), namespace: env("POD_NAMESPACE"), ip: env("POD_IP"), listen: env("LISTEN"), label: env("LEADER_LABEL"),
	}
	var err error
	if c.stopTimeout, err = time.ParseDuration(env("STOP_TIMEOUT")); err != nil {
		return nil, fmt.Errorf("STOP_TIMEOUT: %w", err)
	}
	for name, value := range map[string]string{"POD_NAME": c.pod, "POD_IP": c.ip, "LISTEN": c.listen} {
		if value == "" {
			return nil, fmt.Errorf("%s is not set: see deploy/kubernetes/replicas.yaml", name)
		}
	}
	if c.label != "" {
		if c.api, err = inCluster(env); err != nil {
			return nil, fmt.Errorf("LEADER_LABEL: %w", err)
		}
	}
	return c, nil
}

// address returns the URL at which other replicas reach this one.
func (c *config) address(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "http://" + net.JoinHostPort(c.ip, port)
}

// serviceAccount is the directory in which a pod finds its service account.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// inCluster returns the API of the cluster in which this pod runs.
func inCluster(env func(string) string) (*podAPI, error) {
	authority, err := os.ReadFile(serviceAccount + "ca.crt")
	if err != nil {
		return nil, fmt.Errorf("%w: the pod needs automountServiceAccountToken", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	return &podAPI{
		base:   "https://" + net.JoinHostPort(env("KUBERNETES_SERVICE_HOST"), env("KUBERNETES_SERVICE_PORT")),
		token:  serviceAccount + "token",
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}},
	}, nil
}
