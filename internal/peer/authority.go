package peer

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

const (
	authorityFor   = 20 * 365 * 24 * time.Hour
	certificateFor = 90 * 24 * time.Hour
	// renewAfter is how old the certificate of a node gets.
	renewAfter = 60 * 24 * time.Hour
	// backdated is how far the clock of another node may be behind.
	backdated = 24 * time.Hour
)

// authority signs the certificates of nodes. It does not change.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	roots       *x509.CertPool
	// pem and keyPEM are its two halves as the file has them.
	pem, keyPEM string
}

// newAuthority makes one.
func newAuthority(now time.Time) (*authority, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the authority: %w", err)
	}
	made := &x509.Certificate{
		Subject: pkix.Name{CommonName: "codeq cluster"}, NotBefore: now.Add(-backdated), NotAfter: now.Add(authorityFor),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, public, private)
	if err != nil {
		return nil, fmt.Errorf("make the authority: %w", err)
	}
	keyPEM, err := keyToPEM(private)
	if err != nil {
		return nil, err
	}
	return parseAuthority(toPEM(certificateBlock, der), keyPEM)
}

// parseAuthority reads a certificate and its key. Certificates behind the first one do not
// count.
func parseAuthority(certificatePEM, keyPEM string) (*authority, error) {
	pair, err := tls.X509KeyPair([]byte(certificatePEM), []byte(keyPEM))
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA || !pair.Leaf.BasicConstraintsValid {
		return nil, errors.New("read the authority: the certificate may not sign others: it must be that of an authority (CA:TRUE)")
	}
	a := &authority{certificate: pair.Leaf, key: key, roots: x509.NewCertPool(), pem: toPEM(certificateBlock, pair.Leaf.Raw), keyPEM: keyPEM}
	a.roots.AddCert(pair.Leaf)
	return a, nil
}

// digest is how a token names the authority.
func digestOf(authority *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(authority.Raw) }

// issue signs the certificate of a node for its key.
func (a *authority) issue(node string, public crypto.PublicKey, now time.Time) (string, error) {
	made := &x509.Certificate{
		Subject: pkix.Name{CommonName: "codeq node"}, DNSNames: []string{node},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(certificateFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if made.NotAfter.After(a.certificate.NotAfter) {
		made.NotAfter = a.certificate.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, made, a.certificate, public, a.key)
	if err != nil {
		return "", fmt.Errorf("sign a certificate: %w", err)
	}
	return toPEM(certificateBlock, der), nil
}

// nodeOf checks the certificates that the other side has shown, and returns the node that
// they stand for.
func (a *authority) nodeOf(shown []*x509.Certificate, now time.Time) (string, error) {
	if len(shown) == 0 {
		return "", errors.New("the other side has shown no certificate")
	}
	_, err := shown[0].Verify(x509.VerifyOptions{
		Roots: a.roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return "", fmt.Errorf("the certificate of the other side: %w", err)
	}
	if names := shown[0].DNSNames; len(names) == 1 && isNode(names[0]) {
		return names[0], nil
	}
	return "", errors.New("the certificate of the other side is that of no node")
}

// isNode reports whether a text is the id of a node: 32 hexadecimal digits.
func isNode(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(text) == 32
}

// newKey makes the key of a node.
func newKey() (crypto.Signer, string, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	keyPEM, err := keyToPEM(private)
	return private, keyPEM, err
}

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

func toPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func keyToPEM(key crypto.Signer) (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	return toPEM(keyBlock, der), nil
}
