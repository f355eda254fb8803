package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"codeq/wire"
)

// Secrets makes the secrets of tenants from that of the data directory, so that they are the
// same for as long as the data is there. It may be used from any goroutine.
type Secrets []byte

// Of is the secret with which the callbacks of a tenant are signed.
func (s Secrets) Of(tenant string) string {
	return wire.SecretPrefix + base64.StdEncoding.EncodeToString(mac(s, "codeq webhook secret\x00"+tenant, nil))
}

func mac(key []byte, before string, body []byte) []byte {
	m := hmac.New(sha256.New, key)
	// hash.Hash documents that Write never fails.
	_, _ = m.Write([]byte(before))
	_, _ = m.Write(body)
	return m.Sum(nil)
}

// sign sets the headers of Standard Webhooks, and those of the original HTTP API, whose
// receivers know the text of the secret as their key.
func (s Secrets) sign(header http.Header, c *Call, unixSeconds int64) {
	secrets, at := c.Secrets, strconv.FormatInt(unixSeconds, 10)
	if len(secrets) == 0 {
		secrets = []string{s.Of(c.Tenant)}
	}
	var signatures []string
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(secret[len(wire.SecretPrefix):])
		if err != nil {
			panic("callback: the secret is no base64: " + err.Error())
		}
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac(key, c.ID+"."+at+".", c.Body)))
	}
	header.Set("Webhook-Id", c.ID)
	header.Set("Webhook-Timestamp", at)
	header.Set("Webhook-Signature", strings.Join(signatures, " "))
	header.Set("X-Codeq-Timestamp", at)
	header.Set("X-Codeq-Signature", hex.EncodeToString(mac([]byte(secrets[0]), at+".", c.Body)))
	header.Set("X-Codeq-Attempt", strconv.Itoa(c.Attempt))
}
