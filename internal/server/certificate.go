package server

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"codeq/internal/meter"
	"codeq/internal/yamlfile"
)

// TLSFiles are the files of a server that speaks TLS, in PEM.
type TLSFiles struct {
	Certificate, Key string
	// ClientCA are the issuers of client certificates; "" asks clients for none.
	ClientCA string
	// Least is the least version that clients may speak, as crypto/tls numbers it.
	Least uint16
}

// Certificate is the certificate of the server, in the last version of its files that was good.
// Any goroutine.
type Certificate struct {
	files   TLSFiles
	log     zerolog.Logger
	reload  sync.Mutex // held while the files are read
	current atomic.Pointer[shown]
	// bad: the files can not be used as they are now.
	bad atomic.Bool
}

// shown is what clients are shown by one version of the files. It does not change.
type shown struct {
	sum    [sha256.Size]byte // of the files
	pair   tls.Certificate
	config *tls.Config
}

// OpenCertificate reads the files. Warnings about them go to log.
func OpenCertificate(files TLSFiles, log zerolog.Logger) (*Certificate, error) {
	c := &Certificate{files: files, log: log}
	_, err := c.Reload()
	return c, err
}

// File is the path of the certificate.
func (c *Certificate) File() string { return c.files.Certificate }

// Beside are the other files.
func (c *Certificate) Beside() []string {
	return slices.DeleteFunc([]string{c.files.Key, c.files.ClientCA}, func(file string) bool { return file == "" })
}

// Count is the number of certificates that clients are shown: that of the server, and issuers.
func (c *Certificate) Count() int { return len(c.current.Load().pair.Certificate) }

// Reload reads the files again and reports whether they have changed. After an error, which names
// the file, everything stays as it was.
func (c *Certificate) Reload() (changed bool, err error) {
	c.reload.Lock()
	defer c.reload.Unlock()
	next, err := c.read()
	c.bad.Store(err != nil)
	if before := c.current.Load(); err != nil || before != nil && before.sum == next.sum {
		return false, err
	}
	c.warn(next.pair.Leaf)
	c.current.Store(next)
	return true, nil
}

func (c *Certificate) read() (*shown, error) {
	var texts [3][]byte
	all := sha256.New()
	for i, file := range []string{c.files.Certificate, c.files.Key, c.files.ClientCA} {
		if file == "" {
			continue
		}
		text, err := yamlfile.Read(file)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		texts[i] = text
		fmt.Fprintf(all, "%d %s", len(text), text)
	}
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("%s is no certificate for the key in %s: %w", c.files.Certificate, c.files.Key, err)
	}
	next := &shown{sum: [sha256.Size]byte(all.Sum(nil)), pair: pair, config: &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: c.files.Least, NextProtos: []string{"h2", "http/1.1"},
	}}
	if c.files.ClientCA == "" {
		return next, nil
	}
	issuers := x509.NewCertPool()
	if !issuers.AppendCertsFromPEM(texts[2]) {
		return nil, errors.New(c.files.ClientCA + " has no certificate of an issuer in PEM")
	}
	next.config.ClientAuth, next.config.ClientCAs = tls.VerifyClientCertIfGiven, issuers
	// A client that comes back is asked for its certificate again, which issuers of now must know.
	next.config.SessionTicketsDisabled = true
	return next, nil
}

// warn logs what is wrong with good files.
func (c *Certificate) warn(leaf *x509.Certificate) {
	if now := time.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		c.log.Warn().Str("file", c.files.Certificate).Time("from", leaf.NotBefore).Time("until", leaf.NotAfter).
			Msg("the certificate of the server is not valid now: clients refuse it")
	}
	const others = 0o077
	if info, err := os.Stat(c.files.Key); err == nil && info.Mode().Perm()&others != 0 {
		c.log.Warn().Str("file", c.files.Key).Stringer("mode", info.Mode().Perm()).
			Msg("others than its owner may read the private key of the server: give the file the mode 0600")
	}
}

// config is that of the listener; each handshake has the files of now.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load().config, nil }}
}

func (c *Certificate) writeMetrics(p *meter.Page) {
	bad := 0.0
	if c.bad.Load() {
		bad = 1
	}
	p.One("codeq_tls_certificate_end_seconds", meter.Gauge, "When the certificate of the server ends, in Unix time.",
		float64(c.current.Load().pair.Leaf.NotAfter.Unix()))
	p.One("codeq_tls_files_bad", meter.Gauge, "1 if the files of TLS have changed and can not be used; then those before count on.", bad)
}
