// Package environment reads from environment variables how the nodes of a prefix are reached.
// redlock.FromEnv takes the variables of the process; so does the command, with flags in their
// place.
package environment

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/valkey-io/valkey-go"
)

// The variables. Nodes, and the file of NodesFile, hold passwords.
const (
	Nodes     = "TENURE_NODES"
	NodesFile = "TENURE_NODES_FILE"
	CA        = "TENURE_TLS_CA"
	Cert      = "TENURE_TLS_CERT"
	Key       = "TENURE_TLS_KEY"
)

// Lookup returns the value of a variable, empty for none, and its source: the name of the variable
// or of a flag.
type Lookup func(variable string) (value, from string)

// Error is an invalid setting. It repeats no URL of a setting, because that may hold a password.
type Error struct{ From, Reason string }

func (e *Error) Error() string { return e.From + ": " + e.Reason }

// Limits of a file with nodes, and of a file with certificates or a key, in bytes.
const (
	maxNodesFile = 64 << 10
	maxPEMFile   = 1 << 20
)

// URLs returns the URLs of the nodes, and their source.
func URLs(get Lookup) (urls []string, from string, err error) {
	text, from := get(Nodes)
	file, inFile := get(NodesFile)
	switch {
	case text != "" && file != "":
		return nil, from, &Error{from, "is set, and so is " + inFile + ": set one of them"}
	case file != "":
		from = inFile
		read, err := readFile(file, from, maxNodesFile)
		if err != nil {
			return nil, from, err
		}
		text = strings.TrimPrefix(string(read), "\ufeff") // the byte order mark of editors on Windows
	case text == "":
		return nil, from, &Error{Nodes, "is not set: set it to the nodes' URLs with commas between them, such as " +
			"valkey://a.example.net,valkey://b.example.net,valkey://c.example.net, or " + NodesFile + " to a file with them"}
	}
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(l), "#") {
			urls = append(urls, strings.FieldsFunc(l, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })...)
		}
	}
	if len(urls) == 0 {
		return nil, from, &Error{from, "names no nodes"}
	}
	return urls, from, nil
}

// readFile reads a regular file of at most so many bytes. It refuses a device or a pipe, which may
// have no end.
func readFile(name, from string, most int64) (text []byte, err error) {
	if strings.Contains(name, "://") { // may hold a password: do not repeat it
		return nil, &Error{from, "is a URL, and has to be the name of a file"}
	}
	info, err := os.Stat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > most) {
		err = fmt.Errorf("%s is no regular file, or has more than %d bytes: name another", name, most)
	}
	if err == nil {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, &Error{from, err.Error()}
	}
	return text, nil
}

// TLS returns a function that adds to the options of a node whose URL is for TLS. The authority's
// file is read now. The client's certificate and key are read for each connection, so that they may
// be replaced.
func TLS(get Lookup) (func(url string, o *valkey.ClientOption), error) {
	ca, caFrom := get(CA)
	cert, certFrom := get(Cert)
	key, keyFrom := get(Key)
	var trusted *x509.CertPool
	if ca != "" {
		text, err := readFile(ca, caFrom, maxPEMFile)
		if err != nil {
			return nil, err
		}
		if trusted = x509.NewCertPool(); !trusted.AppendCertsFromPEM(text) {
			return nil, &Error{caFrom, ca + " has no certificate"}
		}
	}
	var own func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	switch {
	case cert != "" && key == "":
		return nil, &Error{certFrom, "a certificate needs its key: set " + Key + ", too"}
	case cert == "" && key != "":
		return nil, &Error{keyFrom, "a key needs its certificate: set " + Cert + ", too"}
	case cert != "":
		own = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			certificate, err := readFile(cert, certFrom, maxPEMFile)
			private, failed := readFile(key, keyFrom, maxPEMFile)
			if err := cmp.Or(err, failed); err != nil {
				return nil, err
			}
			pair, err := tls.X509KeyPair(certificate, private)
			if err != nil {
				return nil, &Error{certFrom + ", " + keyFrom, err.Error()}
			}
			return &pair, nil
		}
		if _, err := own(nil); err != nil {
			return nil, err
		}
	}
	return func(_ string, o *valkey.ClientOption) {
		if o.TLSConfig != nil {
			o.TLSConfig.RootCAs, o.TLSConfig.GetClientCertificate = trusted, own
		}
	}, nil
}
