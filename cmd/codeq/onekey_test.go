package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// oneKey is what all the posters post.
const oneKey = `{"command":"once","payload":{"order":7},"idempotencyKey":"order/7"}`

// poster posts until it is answered and says which task it was given.
type poster func(ctx context.Context) (wire.TaskID, error)

// Two hundred callers post the same order at once, one by one and in batches that
// hold it twice, over HTTP and over sessions, while the server is killed with -9. They
// are all told of one task, then and after another restart.
func TestA47OneKeyMakesOneTaskWhateverHappens(t *testing.T) {
	s := newSurvival(t, 0)
	s.startServer()
	s.awaitReady()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p := newPosters(t, s.address)
	kinds := []poster{p.single, p.batch, p.session, p.message}
	told := make(chan wire.TaskID, 600)
	var all sync.WaitGroup
	half := make(chan struct{})
	for n := range 200 {
		all.Go(func() {
			// Each posts before and after the kill, and repeats what got no answer.
			told <- p.untilAnswered(ctx, kinds[n%len(kinds)])
			<-half
			told <- p.untilAnswered(ctx, kinds[(n+1)%len(kinds)])
		})
	}
	first := <-told
	s.killServer()
	close(half)
	s.startServer()
	s.awaitReady()
	all.Wait()
	close(told)
	answers := 1
	for id := range told {
		answers++
		if id != first {
			t.Errorf("one key made %v and %v", first, id)
		}
	}
	if answers != 400 {
		t.Errorf("%d of 400 posts were answered", answers)
	}
	s.killServer()
	s.startServer()
	s.awaitReady()
	if id := p.untilAnswered(ctx, p.single); id != first {
		t.Errorf("after another restart the key stands for %v, not %v", id, first)
	}
	p.mustConflict(first)
	figures, err := p.client.Queues(ctx)
	if err != nil || len(figures) != 1 || figures[0].Ready != 1 {
		t.Errorf("the queue holds %+v (%v)", figures, err)
	}
}

// posters share a client; each post over HTTP has a request of its own.
type posters struct {
	t       *testing.T
	address string
	url     string
	http    *http.Client
	client  *client.Client
	stream  *client.Session
}

func newPosters(t *testing.T, address string) *posters {
	t.Helper()
	p := &posters{t: t, address: address, url: "http://" + address + "/v1/codeq", http: &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}}
	var err error
	if p.client, err = client.New(address); err != nil {
		t.Fatal(err)
	}
	if p.stream, err = p.client.Dial(t.Context(), client.SessionOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stream.Close()
		p.client.Close()
		p.http.CloseIdleConnections()
	})
	return p
}

// untilAnswered posts again as long as there is no answer.
func (p *posters) untilAnswered(ctx context.Context, post poster) wire.TaskID {
	for ctx.Err() == nil {
		id, err := post(ctx)
		if err == nil {
			return id
		}
		select {
		case <-time.After(20 * time.Millisecond): // the server starts again
		case <-ctx.Done():
		}
	}
	p.t.Error("a post was never answered")
	return wire.TaskID{}
}

// ask sends one request.
func (p *posters) ask(ctx context.Context, path, body string) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	response, err := p.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, errors.Join(err, response.Body.Close())
}

func (p *posters) single(ctx context.Context) (wire.TaskID, error) {
	status, answer, err := p.ask(ctx, "/tasks", oneKey)
	if err != nil || status != http.StatusAccepted {
		return wire.TaskID{}, fmt.Errorf("%d %s: %w", status, answer, errors.Join(err, errors.ErrUnsupported))
	}
	task, err := wire.ParseTask(answer)
	if err != nil {
		return wire.TaskID{}, err
	}
	return task.ID, nil
}

// batch posts the order twice in one body.
func (p *posters) batch(ctx context.Context) (wire.TaskID, error) {
	status, answer, err := p.ask(ctx, "/tasks/batch", `{"tasks":[`+oneKey+`,{"command":""},`+oneKey+`]}`)
	var list struct {
		Results []struct{ Task json.RawMessage }
	}
	if err != nil || status != http.StatusOK {
		return wire.TaskID{}, fmt.Errorf("%d %s: %w", status, answer, errors.Join(err, errors.ErrUnsupported))
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return wire.TaskID{}, err
	}
	one, err := wire.ParseTask(list.Results[0].Task)
	if err != nil {
		return wire.TaskID{}, fmt.Errorf("%s: %w", answer, err)
	}
	two, err := wire.ParseTask(list.Results[2].Task)
	if err == nil && one.ID != two.ID {
		p.t.Errorf("one batch made %v and %v of one key", one.ID, two.ID)
	}
	return one.ID, err
}

func (p *posters) session(ctx context.Context) (wire.TaskID, error) {
	answer, err := p.stream.Enqueue(ctx, "once", json.RawMessage(`{"order":7}`), client.Key("order/7"))
	if err != nil {
		return wire.TaskID{}, err
	}
	return answer.TaskID, nil
}

// message posts the order twice in one message of a session of its own.
func (p *posters) message(ctx context.Context) (wire.TaskID, error) {
	peer, err := blackbox.Dial(ctx, p.address, &wire.Hello{WorkerID: "poster"})
	if err != nil {
		return wire.TaskID{}, err
	}
	defer peer.Close()
	answers, err := peer.AskTogether(ctx, 2, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Enqueue{Ref: ref, EnqueueRequest: wire.EnqueueRequest{
			Command: "once", Payload: []byte(`{"order":7}`), IdempotencyKey: "order/7",
		}}
	})
	if err != nil {
		return wire.TaskID{}, err
	}
	if answers[0].TaskID != answers[1].TaskID {
		p.t.Errorf("one message made %v and %v of one key", answers[0].TaskID, answers[1].TaskID)
	}
	return answers[0].TaskID, nil
}

// mustConflict posts another content under the key.
func (p *posters) mustConflict(first wire.TaskID) {
	p.t.Helper()
	status, answer, err := p.ask(p.t.Context(), "/tasks", `{"command":"once","payload":{"order":8},"idempotencyKey":"order/7"}`)
	if err != nil {
		p.t.Fatal(err)
	}
	refusal, err := wire.ParseError(answer)
	if err != nil || status != http.StatusConflict || refusal.Code != wire.CodeIdempotencyConflict || refusal.TaskID != first {
		p.t.Errorf("other content under the key: %d %s (%v)", status, answer, err)
	}
}
