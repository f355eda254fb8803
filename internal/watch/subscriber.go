package watch

import (
	"fmt"
	"slices"
	"strings"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/record"
	"codeq/wire"
)

// Bytes that a frame, or its part for one slot, has at most; a name can have escapes.
const (
	rowBytes   = 400
	nameBytes  = 2 << 10
	eventBytes = 4 << 10
	fixedBytes = 8 << 10
	// reportBytes has a text of the largest size whose bytes are all escaped.
	reportBytes = 6*wire.MaxOutputBytes + 1<<10
)

// framing is how frames become bytes.
type framing int

const (
	// asArray is one JSON array, for a WebSocket message.
	asArray framing = iota
	// asStream is a server-sent event for each frame.
	asStream
)

// Shows is what a subscription shows first that only the store has.
type Shows struct {
	Task *wire.Task
	// Page is the page that there is now; nil for the rows of one with a filter. Rows are
	// rows of it that were read again.
	Page *wire.WatchSnapshot
	Rows []*wire.Task
	// At is the vector of positions from before the task was read.
	At []uint64
	// Err refuses the subscription.
	Err *wire.Error
}

// Subscriber is one client as a value. One goroutine at a time may call its methods.
type Subscriber struct {
	board  *Board
	rights rights
	format framing
	list   []*subscription
	// answers are the answers that were not sent yet.
	answers []wire.ServerFrame
	// named has, by slot, the version of the name that the client knows.
	named    []uint64
	markAtMs int64
	records  []events.Record

	message []byte
	// room is how many bytes the message may still get.
	room int
}

// subscription is one subscription of a client.
type subscription struct {
	ask    *wire.WatchSubscribe
	filter filter
	tables
	stream
	page
}

// NewSubscriber makes the subscriber of a client, whose messages are those of a WebSocket, or says
// why it may not be one.
func NewSubscriber(board *Board, who *auth.Principal, nowMs int64) (*Subscriber, *wire.Error) {
	r, refusal := rightsOf(who)
	if refusal != nil {
		return nil, refusal
	}
	s := &Subscriber{board: board, rights: r, markAtMs: nowMs + wire.WatchMarkMs, records: make([]events.Record, readRecords)}
	s.answers = append(s.answers, &wire.WatchWelcome{
		CreationID: board.CreationID, Shards: len(board.At), Positions: board.Events.Positions(), Oldest: board.Events.Oldest(),
		ServerTimeMs: nowMs, TenantID: r.tenant, Admin: r.admin, Version: board.Version, Leader: board.Leader,
	})
	return s, nil
}

// Renew gives the subscriber the rights of a newer principal. With other rights each table begins
// again with a snapshot, and what the client may not see any more ends.
func (s *Subscriber) Renew(who *auth.Principal) *wire.Error {
	r, refusal := rightsOf(who)
	if refusal == nil && r.tenant != s.rights.tenant {
		refusal = wire.Refuse(wire.CodeForbidden, "the new token must be of the same tenant")
	}
	if refusal != nil {
		return refusal
	}
	changed := r != s.rights
	s.rights = r
	for _, w := range s.list {
		if changed {
			w.tables = tables{snapshot: true, history: w.history}
		}
		w.filter = s.filterOf(w.ask)
	}
	return nil
}

// Answers is how many answers wait. The caller takes no further frames of the client while there
// are many.
func (s *Subscriber) Answers() int { return len(s.answers) }

// Say puts a frame into the answers, such as Draining.
func (s *Subscriber) Say(f wire.ServerFrame) { s.answers = append(s.answers, f) }

// Take does what a frame of the client asks, or answers it with the refusal that it returns. shows
// is set for a kind that needs the store.
func (s *Subscriber) Take(nowMs int64, f wire.ClientFrame, shows *Shows) *wire.Error {
	ref, id := f.Reference(), ""
	var refusal *wire.Error
	switch f := f.(type) {
	case *wire.WatchSubscribe:
		if id, refusal = f.ID, s.check(f, shows); refusal == nil {
			s.ok(ref)
			s.subscribe(nowMs, f, shows)
			return nil
		}
	case *wire.WatchUnsubscribe:
		if id = f.ID; !s.unsubscribe(id) {
			refusal = wire.Refuse(wire.CodeNotFound, fmt.Sprintf("there is no subscription %.80q on this socket", id))
		}
	case *wire.Unknown:
		refusal = f.Err
	}
	if refusal != nil {
		s.Say(&wire.WatchError{ID: id, ErrorFrame: wire.ErrorFrame{Ref: ref, Err: refusal}})
		return refusal
	}
	s.ok(ref)
	return nil
}

func (s *Subscriber) ok(ref wire.Ref) {
	if ref.Present {
		s.Say(&wire.OK{Ref: ref})
	}
}

// check is why a subscription is refused, nil if it is not.
func (s *Subscriber) check(f *wire.WatchSubscribe, shows *Shows) *wire.Error {
	bad := func(format string, args ...any) *wire.Error {
		return wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf(format, args...))
	}
	if s.find(f.ID) < 0 && len(s.list) >= wire.MaxWatches {
		return bad("a socket may have %d subscriptions; end one with unsubscribe", wire.MaxWatches)
	}
	if f.RangeMs > 0 && s.board.Points == nil {
		return bad("range is not served yet: this server keeps no history of figures")
	}
	for _, cause := range f.Causes {
		if !slices.Contains(causes, cause) {
			return wire.Refuse(wire.CodeInvalidArgument, wire.NotKnown("causes: ", cause, causes))
		}
	}
	if n := len(s.board.At); f.After != nil && len(f.After) != n {
		return bad("from must have the numbers of %d shards, 0 to %d, got %d", n, n-1, len(f.After))
	}
	if shows != nil {
		return shows.Err
	}
	return nil
}

// causes are the causes that an event can have.
var causes = func() (words []string) {
	for c := range record.Causes {
		if c > 0 {
			words = append(words, c.String())
		}
	}
	return words
}()

func (s *Subscriber) find(id string) int {
	return slices.IndexFunc(s.list, func(w *subscription) bool { return w.ask.ID == id })
}

func (s *Subscriber) subscribe(nowMs int64, f *wire.WatchSubscribe, shows *Shows) {
	s.unsubscribe(f.ID)
	w := &subscription{ask: f, filter: s.filterOf(f)}
	s.list = append(s.list, w)
	switch f.Kind {
	case wire.WatchQueues, wire.WatchWorkers, wire.WatchServer:
		w.tables = tables{snapshot: true, history: f.RangeMs > 0}
	case wire.WatchEvents:
		s.beginEvents(nowMs, w)
	case wire.WatchTask:
		s.beginTask(w, shows)
	case wire.WatchPage:
		s.beginPage(nowMs, w, shows)
	}
}

// filterOf decides which events a subscription is about. A page is of the tenant alone.
func (s *Subscriber) filterOf(f *wire.WatchSubscribe) filter {
	if f.Kind == wire.WatchPage {
		own := filter{rights: rights{tenant: s.rights.tenant}}
		if f.Command != "" {
			own.commands = []string{f.Command}
		}
		return own
	}
	return filter{rights: s.rights, commands: f.Commands, causes: f.Causes, joined: strings.Join(f.Commands, ",")}
}

// taskFor is a task as the client may see it.
func (s *Subscriber) taskFor(t *wire.Task) *wire.Task {
	if s.rights.contents {
		return t
	}
	return t.Outline()
}

func (s *Subscriber) unsubscribe(id string) bool {
	i := s.find(id)
	if i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
	}
	return i >= 0
}

// Next is the next message for the client, nil if there is none now. It has at most
// wire.MaxServerMessageBytes, unless one answer alone is larger. The bytes are valid until the
// next call.
func (s *Subscriber) Next(nowMs int64) []byte {
	s.message, s.room = s.message[:0], wire.MaxServerMessageBytes-len("[]")
	if s.putAnswers() {
		s.putShown(nowMs)
	}
	if s.format == asStream {
		return s.endStreamed(nowMs)
	}
	if nowMs >= s.markAtMs && s.room > fixedBytes {
		s.markAtMs = nowMs + wire.WatchMarkMs
		s.put(&wire.WatchMark{Positions: s.sent()})
	}
	if len(s.message) == 0 {
		return nil
	}
	s.message = append(s.message, ']')
	return s.message
}

// putAnswers puts answers into the message, and reports whether those were all.
func (s *Subscriber) putAnswers() bool {
	for len(s.answers) > 0 {
		if !s.putIfRoom(s.answers[0]) {
			return false
		}
		s.answers[0] = nil
		s.answers = s.answers[1:]
	}
	return true
}

// putShown puts what the subscriptions show into the message. Every subscription gets its turn
// first once.
func (s *Subscriber) putShown(nowMs int64) {
	if len(s.list) > 1 {
		s.list = append(s.list[1:], s.list[0])
	}
	for _, w := range s.list {
		switch w.ask.Kind {
		case wire.WatchQueues:
			s.putTables(nowMs, w)
		case wire.WatchWorkers:
			s.putWorkers(nowMs, w)
		case wire.WatchServer:
			s.putServer(nowMs, w)
		case wire.WatchPage:
			s.putPage(nowMs, w)
		default:
			s.putEvents(nowMs, w)
		}
	}
}

// sent are the positions up to which no subscription has more to send.
func (s *Subscriber) sent() wire.Positions {
	least := slices.Clone(s.board.At)
	for _, w := range s.list {
		for shard, after := range w.after {
			if w.task.IsZero() || shard == s.board.ShardOf(w.task) {
				least[shard] = min(least[shard], after)
			}
		}
	}
	return least
}

// putIfRoom appends a frame to the message if it has room or nothing else is in it, and reports
// whether it did.
func (s *Subscriber) putIfRoom(f wire.ServerFrame) bool {
	before := len(s.message)
	s.put(f)
	if s.room >= 0 || before == 0 {
		return true
	}
	s.room += len(s.message) - before
	s.message = s.message[:before]
	return false
}

// put appends a frame to the message.
func (s *Subscriber) put(f wire.ServerFrame) {
	before := len(s.message)
	switch {
	case s.format == asStream:
		s.message = s.appendStreamed(s.message, f)
	case before == 0:
		s.message = wire.AppendWatchFrame(append(s.message, '['), f)
	default:
		s.message = wire.AppendWatchFrame(append(s.message, ','), f)
	}
	s.room -= len(s.message) - before
}
