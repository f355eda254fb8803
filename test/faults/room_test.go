package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"codeq/client"
	"codeq/wire"
)

// claimed takes a task over HTTP; nil while there is none, or no server.
func (x *site) claimed() (*wire.Task, wire.TaskRef) {
	answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/claim", fmt.Sprintf(`{"commands":[%q],"leaseSeconds":600,"waitSeconds":1}`, command))
	if err != nil || answer.Status != http.StatusOK {
		return nil, wire.TaskRef{}
	}
	task, token, err := wire.ParseClaimed(answer.Body)
	if err != nil {
		x.t.Errorf("a claim was answered with %s: %v", answer.Body, err)
		return nil, wire.TaskRef{}
	}
	return task, wire.TaskRef{TaskID: task.ID, Token: token}
}

// upload sends a file of a delivery, for a second at most.
func (x *site) upload(c *client.Client, d wire.TaskRef, name string, bytes int) error {
	ctx, cancel := context.WithTimeout(x.ctx, time.Second)
	defer cancel()
	_, err := c.Upload(ctx, d, &client.File{Name: name, Content: strings.NewReader(strings.Repeat("x", bytes)), SizeBytes: int64(bytes)})
	return err
}

// The files of a tenant have as many bytes as its limit says at most, whoever uploads, names, drops
// and replaces some at once, over shards and kills; and what is counted in the end is what the
// results name, to the byte.
func TestP08FilesOfATenantFitOverKills(t *testing.T) {
	const limit, tasks, workers = 4000, 60, 6
	x := newSite(t, "--shards", "4")
	c := x.sdk(x.server.Addr)
	if _, err := c.SetQueue(x.ctx, command, &wire.QueueSettings{Spread: true}); err != nil {
		t.Fatal(err)
	}
	x.limitTenant(&wire.TenantLimits{ArtifactBytes: limit})
	ids := x.post(command, tasks, 1)
	used := func() int64 {
		l, err := c.Limits(x.ctx, wire.DefaultTenant)
		if err != nil {
			t.Fatal(err)
		}
		if l.Used.Files > limit {
			t.Errorf("%d bytes are used, of %d", l.Used.Files, limit)
		}
		return l.Used.Files
	}
	var working sync.WaitGroup
	until := time.Now().Add(4 * time.Second)
	for n := range workers {
		working.Go(func() {
			random := rand.New(rand.NewPCG(8, uint64(n)))
			for time.Now().Before(until) {
				if task, d := x.claimed(); task != nil {
					x.leaveFiles(c, d, random)
				}
			}
		})
	}
	for range 3 {
		time.Sleep(900 * time.Millisecond) // while they work
		used()
		x.server.Kill()
		x.server.Start()
	}
	working.Wait()
	var named int64
	ended := 0
	for _, id := range ids {
		if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/cancel", ""); err == nil {
			continue
		}
		list, err := c.Artifacts(x.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			named += a.SizeBytes
		}
		ended++
	}
	if ended < 10 || named == 0 {
		t.Errorf("only %d tasks have ended, with %d bytes", ended, named)
	}
	x.eventually(patience, "what is counted is what results name", func() bool { return used() == named })
	x.post(command, 1, 1)
	task, d := x.claimed()
	if task == nil {
		t.Fatal("there is no task")
	}
	if err := x.upload(c, d, "rest", int(limit-named)); err != nil {
		t.Errorf("what is left of the limit: %v", err)
	}
	if err := x.upload(c, d, "more", 1); err == nil {
		t.Error("one byte more was taken")
	}
	used()
}

// leaveFiles uploads some files for a delivery, and ends it in some way.
func (x *site) leaveFiles(c *client.Client, d wire.TaskRef, random *rand.Rand) {
	var names []string
	for range 1 + random.IntN(4) {
		name := string(rune('a' + random.IntN(3)))
		err := x.upload(c, d, name, random.IntN(300))
		var refusal *wire.Error
		if errors.As(err, &refusal) && refusal.Code == wire.CodeLeaseLost {
			return
		}
		if err == nil && random.IntN(3) > 0 && !strings.Contains(strings.Join(names, ""), name) {
			names = append(names, name)
		}
	}
	var artifacts []string
	for _, name := range names {
		artifacts = append(artifacts, fmt.Sprintf(`{"name":%q}`, name))
	}
	if random.IntN(3) == 0 {
		artifacts = append(artifacts, `{"name":"z","contentBase64":"eHh4eA=="}`)
	}
	verb, body := "result", fmt.Sprintf(`"result":{},"artifacts":[%s]`, strings.Join(artifacts, ","))
	switch random.IntN(5) {
	case 0:
		verb, body = "nack", `"delaySeconds":0`
	case 1:
		verb, body = "abandon", ""
	}
	if body != "" {
		body = "," + body
	}
	// Without an answer, or with a refusal, the task is left as it is.
	_, _ = x.api.Do(x.ctx, http.MethodPost, "/tasks/"+d.TaskID.String()+"/"+verb, fmt.Sprintf(`{"leaseToken":"%v"%s}`, d.Token, body))
}
