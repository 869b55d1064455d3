package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// config is what the environment says.
type config struct {
	nodes         []string      // TENURE_NODES_FILE: a file with their URLs, between spaces, lines or commas
	prefix        string        // TENURE_PREFIX
	ca, cert, key string        // TENURE_TLS_CA, TENURE_TLS_CERT, TENURE_TLS_KEY: files; none without TLS
	pod           string        // POD_NAME: the identity
	namespace     string        // POD_NAMESPACE
	ip            string        // POD_IP: where other replicas reach this one
	listen        string        // LISTEN
	stopTimeout   time.Duration // STOP_TIMEOUT: for runs and the leader's work to return
	label         string        // LEADER_LABEL: for the leader's pod; empty for none
	api           *podAPI       // with it
}

func newConfig(env func(string) string) (*config, error) {
	c := &config{
		prefix: env("TENURE_PREFIX"), ca: env("TENURE_TLS_CA"), cert: env("TENURE_TLS_CERT"), key: env("TENURE_TLS_KEY"),
		pod: env("POD_NAME"), namespace: env("POD_NAMESPACE"), ip: env("POD_IP"), listen: env("LISTEN"), label: env("LEADER_LABEL"),
	}
	urls, err := os.ReadFile(env("TENURE_NODES_FILE"))
	if err != nil {
		return nil, fmt.Errorf("TENURE_NODES_FILE: %w", err)
	}
	c.nodes = strings.FieldsFunc(string(urls), func(r rune) bool { return strings.ContainsRune(" \t\r\n,", r) })
	if c.stopTimeout, err = time.ParseDuration(env("STOP_TIMEOUT")); err != nil {
		return nil, fmt.Errorf("STOP_TIMEOUT: %w", err)
	}
	for name, value := range map[string]string{"TENURE_PREFIX": c.prefix, "POD_NAME": c.pod, "POD_IP": c.ip, "LISTEN": c.listen} {
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

// address is where other replicas reach this one.
func (c *config) address(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "http://" + net.JoinHostPort(c.ip, port)
}

// options are those of the Quorum.
func (c *config) options() ([]redlock.Option, error) {
	options := []redlock.Option{redlock.WithPrefix(c.prefix), redlock.WithIdentity(c.pod)}
	if c.ca == "" {
		return options, nil
	}
	trusted, err := pool(c.ca)
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, err
	}
	return append(options, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
		if o.TLSConfig != nil { // a URL with valkeys://, which has set the name to expect
			o.TLSConfig.RootCAs = trusted
			o.TLSConfig.Certificates = []tls.Certificate{own}
		}
	})), nil
}

// pool trusts the authority of the file.
func pool(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return trusted, nil
}

// serviceAccount is where a pod finds its account.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// inCluster is the API of the cluster that this pod is in.
func inCluster(env func(string) string) (*podAPI, error) {
	trusted, err := pool(serviceAccount + "ca.crt")
	if err != nil {
		return nil, fmt.Errorf("%w: the pod needs automountServiceAccountToken", err)
	}
	return &podAPI{
		base:   "https://" + net.JoinHostPort(env("KUBERNETES_SERVICE_HOST"), env("KUBERNETES_SERVICE_PORT")),
		token:  serviceAccount + "token",
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}},
	}, nil
}
