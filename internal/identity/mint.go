package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"codeq/internal/auth"
	"codeq/internal/yamlfile"
)

// Mint is what a token for development says.
type Mint struct {
	Issuer, Audience, Tenant, Subject string
	Scopes, Commands                  []string
	// At is when it is made, until when it ends.
	At, Until time.Time
}

const keyBlock = "PRIVATE KEY"

// OpenKey reads the private key in a file, PKCS #8 in PEM. A file that does not exist is made,
// with a new Ed25519 key, readable for its owner only.
func OpenKey(file string) (ed25519.PrivateKey, error) {
	text, err := yamlfile.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != keyBlock {
		return nil, fmt.Errorf("%s has no private key in PEM", file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, isEd25519 := parsed.(ed25519.PrivateKey)
	if err != nil || !isEd25519 {
		return nil, fmt.Errorf("%s has another key than one of Ed25519; name a file that does not exist, and it is made", file)
	}
	return key, nil
}

func makeKey(file string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("draw key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write key: %w", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make key file: %w", err)
	}
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}))
	return key, errors.Join(err, f.Sync(), f.Close())
}

// Token is a signed token that says m, and the key set with which it is checked.
func (m *Mint) Token(key ed25519.PrivateKey) (token, keys string, err error) {
	if problem := auth.CommandsProblem(m.Commands); problem != "" {
		return "", "", errors.New("the commands " + problem)
	}
	public, _ := key.Public().(ed25519.PublicKey) // that of Ed25519 is one
	sum := sha256.Sum256(public)
	id := hex.EncodeToString(sum[:8])
	made := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": m.Issuer, "aud": m.Audience, "tid": m.Tenant, "sub": m.Subject, "scope": m.Scopes, "eventTypes": m.Commands,
		"iat": m.At.Unix(), "exp": m.Until.Unix(),
	})
	made.Header["kid"] = id
	if token, err = made.SignedString(key); err != nil {
		return "", "", fmt.Errorf("sign token: %w", err)
	}
	set, err := json.Marshal(map[string][]jwk{"keys": {{
		Kty: "OKP", Kid: id, Use: "sig", Alg: "EdDSA", Crv: "Ed25519", X: base64.RawURLEncoding.EncodeToString(public),
	}}})
	if err != nil {
		return "", "", fmt.Errorf("write key set: %w", err)
	}
	return token, string(set), nil
}
