package loadtest

import (
	"encoding/json"
	"fmt"

	"codeq/wire"
)

const (
	tasksPath = "/v1/codeq/tasks"
	batchPath = tasksPath + "/batch"
)

// httpPoster posts over HTTP; a producer waits for the answer inside Post.
type httpPoster struct {
	workload *Workload
	callers  []*httpCaller
	idle     chan *httpCaller
}

// httpCaller is what one request at a time needs.
type httpCaller struct {
	*caller
	tally   *Tally
	body    []byte
	payload []byte
	request wire.EnqueueRequest
	// workload says what is posted.
	workload *Workload
}

func newHTTPPoster(at *address, w *Workload, newTally func() *Tally) (*httpPoster, error) {
	l := &httpPoster{workload: w, idle: make(chan *httpCaller, w.Producers)}
	for range w.Producers {
		calls, err := newCaller(at)
		if err != nil {
			return nil, err
		}
		c := &httpCaller{caller: calls, tally: newTally(), workload: w}
		l.callers = append(l.callers, c)
		l.idle <- c
	}
	return l, nil
}

// close ends the connections; no producer posts any more.
func (l *httpPoster) close() {
	for _, c := range l.callers {
		c.close()
	}
}

// Post implements Poster.
func (l *httpPoster) Post(first uint64, count int) error {
	c := <-l.idle
	defer func() { l.idle <- c }()
	path := c.compose(first, count)
	status, answer, err := c.ask(path)
	if err != nil {
		return fmt.Errorf("post task over HTTP: %w", err)
	}
	c.tally.Begin()
	defer c.tally.End()
	if status < 200 || status > 299 {
		return c.refused(first, count, status, answer)
	}
	if count == 1 {
		return c.took(first, answer)
	}
	return c.tookBatch(first, count, answer)
}

// compose makes the body of a request and says where it is posted.
func (c *httpCaller) compose(first uint64, count int) (path string) {
	c.body = c.body[:0]
	path = tasksPath
	if count > 1 {
		path = batchPath
		c.body = append(c.body, `{"tasks":[`...)
	}
	for n := first; n < first+uint64(count); n++ {
		if n > first {
			c.body = append(c.body, ',')
		}
		c.payload = appendPayload(c.payload[:0], n, c.workload.PayloadBytes)
		c.request.Command, c.request.Payload = c.workload.CommandOf(n), c.payload
		c.body = wire.AppendEnqueueRequest(c.body, &c.request)
	}
	if count > 1 {
		c.body = append(c.body, "]}"...)
	}
	return path
}

// ask posts the body that was composed.
func (c *httpCaller) ask(path string) (status int, answer []byte, err error) {
	prefer := ""
	if path == batchPath {
		prefer = "return=minimal"
	}
	return c.post(path, prefer, c.body)
}

// refused notes the refusal of a whole request.
func (c *httpCaller) refused(first uint64, count, status int, answer []byte) error {
	refusal, err := wire.ParseError(answer)
	if err != nil || refusal.Code == "" {
		return fmt.Errorf("post task over HTTP: the server answered %d: %.200q", status, answer)
	}
	for n := first; n < first+uint64(count); n++ {
		c.tally.Refused(n, refusal)
	}
	return nil
}

func (c *httpCaller) took(n uint64, answer []byte) error {
	var f frame
	s := scan{data: answer}
	ok := s.object(func(name []byte) bool { return s.taskMember(name, &f) })
	id, idOK := readID(f.id)
	if !ok || !idOK {
		return fmt.Errorf("post task over HTTP: the answer is no task: %.200q", answer)
	}
	c.tally.Acked(n, id)
	return nil
}

// tookBatch reads the answer to a batch: an id or an error per task.
func (c *httpCaller) tookBatch(first uint64, count int, answer []byte) error {
	var batch struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := json.Unmarshal(answer, &batch); err != nil || len(batch.Results) != count {
		return fmt.Errorf("post batch over HTTP: %d answers to %d tasks: %.200q", len(batch.Results), count, answer)
	}
	for i, one := range batch.Results {
		n := first + uint64(i)
		if refusal, err := wire.ParseError(one); err == nil && refusal.Code != "" {
			c.tally.Refused(n, refusal)
			continue
		}
		if err := c.took(n, one); err != nil {
			return err
		}
	}
	return nil
}
