package record

import (
	"strings"
	"testing"
)

// What is printed of an endpoint, also of one that cannot be read, has no secret.
func TestAnEndpointIsPrintedWithoutItsSecrets(t *testing.T) {
	secret := "whsec_" + strings.Repeat("A", 32)
	n := Named{NamedKey: NamedKey{Tenant: "t", Kind: KindWebhook, Name: "n"}, Version: 3}
	n.Value = `{"url":"https://x.org/","state":"enabled","secret":"` + secret + `","oldSecret":"` + secret + `"}`
	key := AppendNamedKey(AppendSpan(nil, 0), n.NamedKey)
	for _, value := range [][]byte{AppendNamed(nil, &n), []byte(n.Value), append(AppendNamed(nil, &n), 0xff)} {
		if text := DescribeValue(key, value); strings.Contains(text, "whsec") {
			t.Error(text)
		}
	}
	if text := n.String(); text != `{"version":3,"value":"{\"url\":\"https://x.org/\",\"state\":\"enabled\"}"}` {
		t.Error(text)
	}
	n.Value = `{"secret":"` + secret
	if text := n.String(); strings.Contains(text, "whsec") {
		t.Error(text)
	}
}
