package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeq/wire"
)

// A body that stops coming is given up in the same time on every route that
// takes one, and one that comes late but in time is taken.
func TestSlowBodyIsGivenUpOnEveryRoute(t *testing.T) {
	for _, route := range Routes() {
		method, pattern, _ := strings.Cut(route, " ")
		path := strings.NewReplacer("{id}", unknownID, "{command}", "c").Replace(pattern)
		// Those of the others that have a body in front of them ignore it.
		readsNone := method != http.MethodPost && method != http.MethodPut || strings.HasSuffix(path, "/pause") || strings.HasSuffix(path, "/resume")
		if readsNone {
			continue
		}
		t.Run(route, func(t *testing.T) {
			head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n", method, path)
			wireTest(t, func(t *testing.T, b *bench, c *peer) {
				startedAt := time.Now()
				c.say(head + "{")
				g := c.hear(method)
				g.mustRefuse(t, wire.CodeInvalidBody)
				if waited := time.Since(startedAt); waited != bodyReadFor || !strings.Contains(g.body, bodyReadFor.String()) {
					t.Errorf("given up after %v with %s", waited, g.body)
				}
			})
			wireTest(t, func(t *testing.T, b *bench, c *peer) {
				c.say(head + "[")
				<-time.After(bodyReadFor - time.Second)
				c.say(strings.Repeat(" ", 18) + "]")
				g := c.hear(method)
				g.mustRefuse(t, wire.CodeInvalidBody) // read to its end, and no object
				if strings.Contains(g.body, bodyReadFor.String()) {
					t.Errorf("given up although it came: %s", g.body)
				}
			})
		})
	}
}
