package docs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// verifiers are programs around the functions that webhooks.md shows. They get the secret, the time, the
// signature and the body as arguments. The one in Go is checked and not run: to link it takes seconds.
var verifiers = map[string]struct {
	run  []string // the name of the file comes behind it
	file string
	text string // %s is the function
}{
	"go": {[]string{"go", "vet"}, "main.go", `package main

import ("crypto/hmac"; "crypto/sha256"; "encoding/base64"; "fmt"; "net/http"; "os"; "slices"; "strconv"; "strings"; "time")

%s
func main() {
	a := os.Args
	h := http.Header{"Webhook-Id": {"t1"}, "Webhook-Timestamp": {a[2]}, "Webhook-Signature": {a[3]}}
	fmt.Println(verify(a[1], &http.Request{Header: h}, []byte(a[4])))
}
`},
	"js": {[]string{"node"}, "main.cjs", `%s
const [, , secret, at, signature, body] = process.argv;
console.log(verify(secret, { "webhook-id": "t1", "webhook-timestamp": at, "webhook-signature": signature }, body));
`},
	"python": {[]string{"python3"}, "main.py", `%s
import sys
_, secret, at, signature, body = sys.argv
print(str(verify(secret, {"webhook-id": "t1", "webhook-timestamp": at, "webhook-signature": signature}, body.encode())).lower())
`},
}

// The functions of the page accept what the server signs, and nothing else.
func TestTheVerifiersOfThePageOfWebhooksVerify(t *testing.T) {
	const body = `{"eventType":"resize"}`
	key := []byte("0123456789abcdef0123456789abcdef")
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	sign := func(at time.Time) (stamp, signature string) {
		m := hmac.New(sha256.New, key)
		fmt.Fprintf(m, "t1.%d.%s", at.Unix(), body)
		return fmt.Sprint(at.Unix()), "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
	}
	now, signed := sign(time.Now())
	old, signedThen := sign(time.Now().Add(-time.Hour))
	for _, b := range blocksOf(t, "webhooks.md") {
		v, ok := verifiers[b.kind]
		if !ok {
			continue
		}
		t.Run(b.kind, func(t *testing.T) {
			if _, err := exec.LookPath(v.run[0]); err != nil {
				t.Skipf("no %s is installed", v.run[0]) // it runs wherever there is one
			}
			dir := t.TempDir()
			write(t, filepath.Join(dir, v.file), fmt.Sprintf(v.text, b.text))
			if b.kind == "go" {
				goIn(t, dir, append(v.run, v.file)...)
				return
			}
			for _, c := range []struct{ stamp, signature, body, want string }{
				{now, signed, body, "true"},
				{now, signedThen + " " + signed, body, "true"}, // while a secret is replaced
				{now, signed, body + " ", "false"},
				{old, signedThen, body, "false"},
				{now, signedThen, body, "false"},
			} {
				cmd := exec.Command(v.run[0], append(v.run[1:len(v.run):len(v.run)], v.file, secret, c.stamp, c.signature, c.body)...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
					t.Errorf("of the signature at %s of %s it says %s, want %s: %v", c.stamp, c.body, got, c.want, err)
				}
			}
		})
	}
}
