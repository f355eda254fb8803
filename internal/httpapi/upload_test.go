package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"codeq/internal/paced"
	"codeq/wire"
)

// An upload may take any time as long as enough of it comes; one that stops coming, or breaks off,
// is given up and leaves no file.
func TestAnUploadThatStopsComingIsGivenUp(t *testing.T) {
	const size = 20 * paced.LeastBytes
	for name, u := range map[string]struct {
		every time.Duration
		parts int
		code  wire.Code
	}{
		"slow": {paced.Window - time.Second, 20, ""}, "nothing": {time.Second, 0, wire.CodeInvalidBody}, "half": {time.Second, 10, wire.CodeInvalidBody},
	} {
		t.Run(name, func(t *testing.T) {
			wireTest(t, func(t *testing.T, b *bench, c *byHand) {
				b.post(`{"command":"c","payload":1}`)
				task := b.claim(`{"commands":["c"],"leaseSeconds":3600}`)
				c.say(fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", task.path("artifacts/f"), size))
				for range u.parts {
					<-time.After(u.every)
					c.say(strings.Repeat("x", size/20))
				}
				g := c.hear("PUT")
				files, err := b.api.o.Files.Driver.Files(task.ID)
				if err != nil {
					t.Fatal(err)
				}
				if u.code == "" {
					if g.status != 200 || len(files) != 1 || !strings.Contains(g.body, fmt.Sprintf(`"sizeBytes":%d`, size)) {
						t.Errorf("%d %s, files %v", g.status, g.body, files)
					}
					return
				}
				g.mustRefuse(t, u.code)
				if len(files) > 0 {
					t.Errorf("files are left: %v", files)
				}
			})
		})
	}
}
