package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

const (
	maxKeysBytes = 512 << 10
	maxKeys      = 100
	minRSABits   = 2048
	maxRSABits   = 8192
)

// algorithms are those that a signature may have.
var algorithms = []string{"EdDSA", "ES256", "ES384", "ES512", "RS256", "RS384", "RS512"}

// key is one public key of an issuer.
type key struct {
	// id is what tokens call it; sum tells it from every other key.
	id     string
	sum    [sha256.Size]byte
	algs   []string // those for which it is good
	public crypto.PublicKey
}

// keySet are the keys of an issuer at a time. It does not change.
type keySet struct {
	keys   []key
	readMs int64
}

// find is the key for a token, nil if there is none. A token without the id of a key is good
// only with an issuer that has one key.
func (s *keySet) find(id, alg string) *key {
	for i := range s.keys {
		k := &s.keys[i]
		if k.id == id && id != "" || id == "" && len(s.keys) == 1 {
			if slices.Contains(k.algs, alg) {
				return k
			}
		}
	}
	return nil
}

// has reports whether a key is in the set.
func (s *keySet) has(sum [sha256.Size]byte) bool {
	return slices.ContainsFunc(s.keys, func(k key) bool { return k.sum == sum })
}

// parseKeys reads a JWKS (RFC 7517). Keys that this server does not use are left out: those of
// other kinds, those not for signatures, and private or secret ones. A set without a key is an error.
func parseKeys(text []byte) (*keySet, error) {
	if len(text) > maxKeysBytes {
		return nil, fmt.Errorf("the key set is over the limit of %d bytes", maxKeysBytes)
	}
	var set struct{ Keys []jwk }
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New("the key set is no JSON with a list of keys")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys, the limit is %d", len(set.Keys), maxKeys)
	}
	s := &keySet{}
	for i := range set.Keys {
		if k := set.Keys[i].key(); k != nil {
			s.keys = append(s.keys, *k)
		}
	}
	if len(s.keys) == 0 {
		return nil, errors.New("the key set has no key that is good for signatures")
	}
	return s, nil
}

// jwk is a key in a key set.
type jwk struct {
	Kty string `json:"kty"`
	Kid string `json:"kid,omitempty"`
	Use string `json:"use,omitempty"`
	Alg string `json:"alg,omitempty"`
	Crv string `json:"crv,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
	D   string `json:"d,omitempty"`
}

// key is the public key, nil if it is none for signatures.
func (j *jwk) key() *key {
	if j.Use != "" && j.Use != "sig" || j.D != "" || len(j.Kid) > maxKidBytes {
		return nil
	}
	k := &key{id: j.Kid}
	switch j.Kty {
	case "OKP":
		if x := unBase64(j.X); j.Crv == "Ed25519" && len(x) == ed25519.PublicKeySize {
			k.public, k.algs = ed25519.PublicKey(x), []string{"EdDSA"}
		}
	case "EC":
		k.public, k.algs = j.curveKey()
	case "RSA":
		n, e := new(big.Int).SetBytes(unBase64(j.N)), new(big.Int).SetBytes(unBase64(j.E))
		if bits := n.BitLen(); bits >= minRSABits && bits <= maxRSABits && e.BitLen() <= 31 && e.Int64() >= 3 && e.Bit(0) == 1 {
			k.public, k.algs = &rsa.PublicKey{N: n, E: int(e.Int64())}, []string{"RS256", "RS384", "RS512"}
		}
	}
	if j.Alg != "" && slices.Contains(k.algs, j.Alg) {
		k.algs = []string{j.Alg}
	} else if j.Alg != "" {
		return nil
	}
	if k.algs == nil {
		return nil
	}
	k.sum = sha256.Sum256(fmt.Append(nil, j.Kty, j.Crv, " ", j.X, " ", j.Y, " ", j.N, " ", j.E))
	return k
}

// curveKey is the key of an elliptic curve and its algorithm; nil if the point is not on it.
func (j *jwk) curveKey() (crypto.PublicKey, []string) {
	curves := map[string]struct {
		curve elliptic.Curve
		alg   string
	}{"P-256": {elliptic.P256(), "ES256"}, "P-384": {elliptic.P384(), "ES384"}, "P-521": {elliptic.P521(), "ES512"}}
	c, known := curves[j.Crv]
	if !known {
		return nil, nil
	}
	size := (c.curve.Params().BitSize + 7) / 8
	x, y := unBase64(j.X), unBase64(j.Y)
	if len(x) != size || len(y) != size {
		return nil, nil
	}
	public, err := ecdsa.ParseUncompressedPublicKey(c.curve, append(append([]byte{4}, x...), y...))
	if err != nil {
		return nil, nil
	}
	return public, []string{c.alg}
}

// unBase64 are the bytes of a text in base64url, nil if it is none.
func unBase64(text string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return b
}
