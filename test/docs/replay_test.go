package docs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codeq/wire"
)

// exampleToken is how the page writes a token.
const exampleToken = "cq_EXAMPLE"

// replay sends the examples of pages, from top to bottom, to one server that
// lets everybody in and, where they say so, to one that wants tokens.
type replay struct {
	t             *testing.T
	open, guarded *site
	token         string
	names         names
	sockets       map[string]*socket
	exchanges     []*exchange
	frames        map[string]bool // types that were sent or heard
	stopping      sync.WaitGroup
}

func newReplay(t *testing.T) *replay {
	tokens, token := newTokens(t)
	r := &replay{
		t: t, open: openSite(t, nil), guarded: openSite(t, tokens), token: token,
		names: newNames(), sockets: map[string]*socket{}, frames: map[string]bool{},
	}
	t.Cleanup(r.stopping.Wait)
	return r
}

// play replays one example; an error names the line of the page.
func (r *replay) play(e *example) {
	var err error
	switch e.kind {
	case "http":
		err = r.exchange(e)
	case "session":
		err = r.dialogue(e, sessionsPath, wire.Subprotocol)
	case "events":
		// The numbers of events, slots and times depend on the examples before.
		r.names.loose = append(slices.Clone(volatile), "positions", "oldest", "at", "t", "shard", "n", "from", "to", "queues", "spentMs", "slot", "stepMs", "points",
			"commits", "syncs", "syncMicros", "drained", "waitMicros", "accepted", "sentence")
		err = r.dialogue(e, eventsPath, wire.WatchSubprotocol)
		r.names.loose = volatile
	case "replay":
		err = r.direct(e.lines[0])
	case "text":
	default:
		err = fmt.Errorf("a block of kind %q: must be http, session, events or text", e.kind)
	}
	if err != nil {
		r.t.Fatalf("%s:%d: %v", e.page, e.line, err)
	}
}

func (r *replay) site(e *example) *site {
	if e.says("tokens") {
		return r.guarded
	}
	return r.open
}

func (r *replay) fill(text string) string {
	return r.names.fill(strings.ReplaceAll(text, exampleToken, r.token))
}

// exchange sends a request and compares the answer.
func (r *replay) exchange(e *example) error {
	text := strings.Join(e.lines, "\n") + "\n"
	asked, answered, found := strings.Cut(text, "HTTP/1.1 ")
	if !found {
		return fmt.Errorf("the answer must begin with HTTP/1.1 and the status")
	}
	line, header, body, err := splitMessage(r.fill(asked))
	if err != nil {
		return err
	}
	method, path, _ := strings.Cut(line, " ")
	real := r.site(e).ask(method, path, body, header)
	r.exchanges = append(r.exchanges, real)
	status, header, body, err := splitMessage(answered)
	if err != nil {
		return err
	}
	if want := statusLine(real.status); status != want {
		return fmt.Errorf("the page says %s, the server %s %s", status, want, real.body)
	}
	for name := range header {
		if err := r.names.text(header.Get(name), real.header.Get(name)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	if !strings.HasPrefix(real.header.Get("Content-Type"), "application/json") {
		return linesAppear(body, real.body)
	}
	return r.same(body, real.body)
}

// same compares two JSON texts.
func (r *replay) same(page, real string) error {
	want, err := parseJSON(page)
	if err != nil {
		return err
	}
	got, err := parseJSON(real)
	if err != nil {
		return err
	}
	if err := r.names.value("", want, got); err != nil {
		return fmt.Errorf("%w\nthe server says %s", err, real)
	}
	return nil
}

// splitMessage takes apart a first line, header lines, an empty line and a
// body.
func splitMessage(text string) (first string, header http.Header, body string, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	head, body, found := strings.Cut(rest, "\n\n")
	if strings.HasPrefix(rest, "\n") {
		head, body, found = "", rest[1:], true
	}
	if !found {
		head, body = rest, ""
	}
	lines := textproto.NewReader(bufio.NewReader(strings.NewReader(strings.TrimSpace(head) + "\r\n\r\n")))
	fields, err := lines.ReadMIMEHeader()
	if err != nil {
		return "", nil, "", fmt.Errorf("read header lines: %w", err)
	}
	return first, http.Header(fields), strings.TrimSpace(body), nil
}

// linesAppear compares a text that is no JSON: every line of the page must be
// in the answer, its last word aside.
func linesAppear(page, real string) error {
	known := map[string]bool{}
	for line := range strings.Lines(real) {
		known[butLastWord(line)] = true
	}
	for line := range strings.Lines(page) {
		if strings.TrimSpace(line) != more && !known[butLastWord(line)] {
			return fmt.Errorf("the server has no line like %s", line)
		}
	}
	return nil
}

func butLastWord(line string) string {
	line = strings.TrimSpace(line)
	return line[:strings.LastIndex(line, " ")+1]
}

// direct does what happens beside the examples: "work COMMAND RESULT" completes
// the next task of a command, "stream PATH" reads server-sent events.
func (r *replay) direct(text string) error {
	if path, ok := strings.CutPrefix(text, "stream "); ok {
		return r.stream(path)
	}
	words := strings.SplitN(text, " ", 3)
	if len(words) != 3 || words[0] != "work" {
		return fmt.Errorf("unknown direction %q", text)
	}
	k := r.open.dial()
	k.say(`{"type":"hello","workerId":"ada"}`)
	k.say(`{"type":"subscribe","commands":["` + words[1] + `"]}`)
	for {
		var f struct {
			Type, LeaseToken string
			Ref              int
			Task             struct{ ID string }
		}
		if err := json.Unmarshal([]byte(k.hear()), &f); err != nil {
			return fmt.Errorf("read frame: %w", err)
		}
		switch {
		case f.Type == "error":
			return fmt.Errorf("the work was refused")
		case f.Type == "task":
			k.say(`{"type":"window","size":0}`)
			k.say(`{"type":"result","ref":1,"taskId":"` + f.Task.ID + `","leaseToken":"` + f.LeaseToken + `","result":` + words[2] + `}`)
		case f.Type == "ok" && f.Ref == 1:
			return r.leave(k)
		}
	}
}

// leave closes a session and waits until no list has it any more.
func (r *replay) leave(k *socket) error {
	if err := k.conn.WriteClose(1000, nil); err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	for until := time.Now().Add(patience); r.open.server.Sessions() > 0; runtime.Gosched() {
		if time.Now().After(until) {
			return fmt.Errorf("a session that its client has closed stays open")
		}
	}
	return nil
}

// The signs that begin a line of a dialogue.
const (
	saysClient = "→ "
	saysServer = "← "
	happens    = "· "
	closes     = "✕ "
)

// dialogue speaks one part of a session. The first part of a name opens it.
func (r *replay) dialogue(e *example, path, protocol string) error {
	name := strings.Join(e.words, " ")
	k := r.sockets[name]
	if k == nil {
		k = r.site(e).dialTo(path, protocol)
		r.sockets[name] = k
		r.exchanges = append(r.exchanges, &exchange{method: "GET", path: path, status: k.status})
	}
	lines := joinLines(e.lines)
	for i := 0; i < len(lines); i++ {
		switch sign, text := cutSign(lines[i]); sign {
		case saysClient:
			r.noteFrames(text)
			k.say(r.fill(text))
		case saysServer:
			first := i
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], saysServer) {
				i++
			}
			if err := r.expect(k, lines[first:i+1]); err != nil {
				return err
			}
		case closes:
			want, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("read close code: %w", err)
			}
			if got := k.closeCode(); got != want {
				return fmt.Errorf("the page says closed with %d, it was %d", want, got)
			}
		case happens:
			if err := r.happen(text); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a line without a sign: %s", lines[i])
		}
	}
	return nil
}

// happen does what a page tells between the lines.
func (r *replay) happen(text string) error {
	switch text {
	case "a second passes": // whoever waits for the next frame notices
	case "the server is told to stop":
		r.stopping.Go(r.open.shutdown)
	default:
		return fmt.Errorf("nobody knows how to make happen: %s", text)
	}
	return nil
}

// repeats reports whether a frame comes again and again while time passes.
func repeats(frame any) bool {
	members, ok := frame.(map[string]any)
	return ok && (members["type"] == "tick" || members["type"] == "mark")
}

// stream asks for server-sent events and reads the first one.
func (r *replay) stream(path string) error {
	request, err := http.NewRequest(http.MethodGet, "http://"+r.open.server.Addr()+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask for a stream: %w", err)
	}
	request.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask for a stream: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read as far as it matters
	lines := bufio.NewScanner(answer.Body)
	for _, want := range []string{"id: ", `data: {"type":"welcome"`} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			return fmt.Errorf("a line of the stream is %q, want %q", lines.Text(), want)
		}
	}
	r.exchanges = append(r.exchanges, &exchange{method: "GET", path: path, status: answer.StatusCode, header: answer.Header})
	return nil
}

// joinLines puts lines that begin with a space behind the one before.
func joinLines(lines []string) []string {
	var joined []string
	for _, line := range lines {
		if strings.HasPrefix(line, " ") && len(joined) > 0 {
			joined[len(joined)-1] += strings.TrimSpace(line)
			continue
		}
		joined = append(joined, line)
	}
	return joined
}

func cutSign(line string) (sign, text string) {
	for _, sign := range []string{saysClient, saysServer, happens, closes} {
		if text, found := strings.CutPrefix(line, sign); found {
			return sign, text
		}
	}
	return "", line
}

// noteFrames notes the types in a message of a client, which may be broken.
func (r *replay) noteFrames(message string) {
	v, err := parseJSON(message)
	if err != nil {
		return
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, f := range list {
		r.noteFrame(f)
	}
}

func (r *replay) noteFrame(f any) {
	if members, ok := f.(map[string]any); ok {
		r.frames[fmt.Sprint(members["type"])] = true
	}
}

// expect hears as many frames as the lines have. How they are spread over
// messages is the server's business, and so is the order of what shards say at
// the same time.
func (r *replay) expect(k *socket, lines []string) error {
	var wanted []any
	for _, line := range lines {
		v, err := parseJSON(strings.TrimPrefix(line, saysServer))
		if err != nil {
			return err
		}
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("a message of the server is always an array: %s", line)
		}
		wanted = append(wanted, list...)
	}
	for len(wanted) > 0 {
		heard := k.hear()
		real, err := parseJSON(heard)
		if err != nil {
			return err
		}
		at, err := r.find(wanted, real)
		if err != nil && repeats(real) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w\nthe server says %s", err, heard)
		}
		r.noteFrame(wanted[at])
		wanted = append(wanted[:at], wanted[at+1:]...)
	}
	return nil
}

// find is the place of the first frame that fits.
func (r *replay) find(wanted []any, real any) (int, error) {
	var first error
	for i, page := range wanted {
		names := r.names.clone()
		err := names.value("", page, real)
		if err == nil {
			r.names = names
			return i, nil
		}
		if first == nil {
			first = err
		}
	}
	return 0, first
}
