package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The members of the frames of a client. The first two are those of every protocol.
const (
	watchType = iota
	watchRef
	watchToken
	watchID
	watchKind
	watchCommands
	watchEveryMs
	watchRange
	watchTaskID
	watchCommand
	watchState
	watchLimit
	watchFilter
	watchCursor
	watchCauses
	watchFrom
	watchCreationID
	watchMaxPerSecond
)

var watchNames = []string{
	watchType: "type", watchRef: "ref", watchToken: "token", watchID: "id", watchKind: "kind",
	watchCommands: "commands", watchEveryMs: "everyMs", watchRange: "range", watchTaskID: "taskId",
	watchCommand: "command", watchState: "state", watchLimit: "limit", watchFilter: "filter",
	watchCursor: "cursor", watchCauses: "causes", watchFrom: "from", watchCreationID: "creationId", watchMaxPerSecond: "maxPerSecond",
}

const (
	subscribeBits = envelopeBits | 1<<watchID | 1<<watchKind
	// filteredBits has the members of a page with a filter.
	filteredBits = subscribeBits | 1<<watchLimit | 1<<watchFilter | 1<<watchCursor
)

// kindBits has the members of a subscribe of each kind.
var kindBits = map[string]uint64{
	WatchQueues:  subscribeBits | 1<<watchCommands | 1<<watchEveryMs | 1<<watchRange,
	WatchTask:    subscribeBits | 1<<watchTaskID,
	WatchPage:    filteredBits | 1<<watchCommand | 1<<watchState,
	WatchEvents:  subscribeBits | 1<<watchCommands | 1<<watchCauses | 1<<watchFrom | 1<<watchCreationID | 1<<watchMaxPerSecond,
	WatchWorkers: subscribeBits,
	WatchServer:  subscribeBits,
}

var watchFrames = dialect{
	names: &watchNames, task: watchTaskID,
	bits: map[string]uint64{
		"hello": envelopeBits | 1<<watchToken, "unsubscribe": envelopeBits | 1<<watchID,
		// watchSubscribe refuses the members of other kinds.
		"subscribe": 1<<(watchMaxPerSecond+1) - 1,
	},
}

var (
	watchIDRule    = textRule{code: CodeInvalidArgument, high: MaxWatchIDBytes, required: true, exact: true}
	everyRule      = integerRule{code: CodeInvalidArgument, low: MinWatchEveryMs, high: MaxWatchEveryMs, absent: DefaultWatchMs}
	watchLimitRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxWatchPage, absent: DefaultWatchPage}
	perSecondRule  = integerRule{code: CodeInvalidArgument, low: 1, high: MaxWatchPerSecond, absent: DefaultWatchEvents}
	creationRule   = textRule{code: CodeInvalidArgument, high: MaxWatchIDBytes}
)

// watchRanges are the ranges of history.
var watchRanges = []struct {
	name string
	ms   int64
}{{"5m", 300_000}, {"1h", 3_600_000}, {"24h", 86_400_000}, {"7d", 604_800_000}}

func rangeText(ms int64) string {
	for _, r := range watchRanges {
		if r.ms == ms {
			return r.name
		}
	}
	return ""
}

// ParseWatchRequest reads one text message of a client of the watch protocol, as
// ParseClientMessage does for sessions.
func ParseWatchRequest(data []byte) (frames []ClientFrame, violation *Error) {
	if len(data) > MaxWatchMessageBytes {
		return nil, Refuse(CodeTooLarge,
			fmt.Sprintf("message must be at most %d bytes, got %d", MaxWatchMessageBytes, len(data)))
	}
	return parseFrames(data, &watchFrames)
}

func (o *object) watchFrame(kind string, ref Ref) ClientFrame {
	switch kind {
	case "hello":
		return &Hello{Ref: ref, Token: o.text(watchToken, &openTextRule)}
	case "unsubscribe":
		return &WatchUnsubscribe{Ref: ref, ID: o.text(watchID, &watchIDRule)}
	case "subscribe":
		return o.watchSubscribe(ref)
	}
	return nil
}

func (o *object) watchSubscribe(ref Ref) *WatchSubscribe {
	f := &WatchSubscribe{Ref: ref, ID: o.text(watchID, &watchIDRule), Kind: o.word(watchKind, watchKinds)}
	bits, ok := kindBits[f.Kind]
	if !ok {
		return f
	}
	o.checkMembers(bits)
	switch f.Kind {
	case WatchQueues:
		f.Commands = o.patterns(watchCommands)
		f.EveryMs, f.RangeMs = int(o.integer(watchEveryMs, &everyRule)), o.rangeMs(watchRange)
	case WatchTask:
		f.TaskID = o.taskID(watchTaskID)
	case WatchPage:
		o.page(f)
	case WatchEvents:
		f.Commands, f.Causes = o.patterns(watchCommands), o.words(watchCauses, MaxWatchCauses)
		f.After, f.CreationID = o.positions(watchFrom), o.text(watchCreationID, &creationRule)
		f.MaxPerSecond = int(o.integer(watchMaxPerSecond, &perSecondRule))
	}
	return f
}

// page reads the members of a page.
func (o *object) page(f *WatchSubscribe) {
	f.Limit, f.Cursor = int(o.integer(watchLimit, &watchLimitRule)), o.text(watchCursor, &openTextRule)
	if f.Filter = o.given(watchFilter); f.Filter == nil {
		if f.Command = o.text(watchCommand, &commandRule); o.err == nil {
			o.err = CheckCommand(f.Command)
		}
		f.State = o.word(watchState, listStates)
		return
	}
	o.checkMembers(filteredBits)
	if f.Filter[0] != '{' {
		o.refuse(CodeInvalidArgument, watchFilter, "must be an object with the parameters of a search, got "+describe(f.Filter))
	}
	if o.err != nil {
		return
	}
	var search *TaskSearch
	if search, o.err = ParseTaskSearch(f.Filter, 0); o.err == nil {
		f.Command, f.State = search.Command, search.State
	}
}

// word reads a text that must be one of a few.
func (o *object) word(field int, known []string) string {
	text := o.text(field, &typeRule)
	if o.err == nil && !slices.Contains(known, text) {
		o.refuse(CodeInvalidArgument, field, fmt.Sprintf("must be one of %s, got %.40q", strings.Join(known, ", "), text))
	}
	return text
}

func (o *object) rangeMs(field int) int64 {
	text := o.text(field, &openTextRule)
	for _, r := range watchRanges {
		if r.name == text {
			return r.ms
		}
	}
	if text != "" {
		o.refuse(CodeInvalidArgument, field, fmt.Sprintf("must be 5m, 1h, 24h or 7d, got %.40q", text))
	}
	return 0
}

// words reads a list of strings; nil if it is absent.
func (o *object) words(field, high int) []string {
	list, _ := o.elements(field, CodeInvalidArgument, high)
	var words []string
	for i, raw := range list {
		if raw[0] != '"' {
			o.refuse(CodeInvalidArgument, field, fmt.Sprintf("must be a list of strings, got %s at %d", describe(raw), i))
			return nil
		}
		word, _ := decodeString(raw)
		words = append(words, word)
	}
	return words
}

// patterns reads a list of commands, prefixes of commands that end with ".*", or "*".
func (o *object) patterns(field int) []string {
	list := o.words(field, MaxWatchCommands)
	for i, pattern := range list {
		if problem := commandProblem(strings.TrimSuffix(pattern, ".*")); problem != "" && pattern != AllCommands {
			o.err = Refuse(CodeInvalidCommand, fmt.Sprintf("%s[%d] %s, but for .* at the end of a prefix", o.names[field], i, problem))
			return nil
		}
	}
	return list
}

// positions reads the number of every shard; nil if the member is absent.
func (o *object) positions(field int) Positions {
	raw := o.given(field)
	if raw == nil {
		return nil
	}
	var p Positions
	if raw[0] != '{' || p.UnmarshalJSON(raw) != nil {
		o.refuse(CodeInvalidArgument, field, `must have a number for every shard, such as {"0":17,"1":9}`)
		return nil
	}
	return p
}

// UnmarshalJSON reads the number of every shard, each once, in any order.
func (p *Positions) UnmarshalJSON(data []byte) error {
	var byName map[string]uint64
	if err := json.Unmarshal(data, &byName); err != nil {
		return err
	}
	// Names and numbers have no colon, so more of them are names that came twice.
	if len(byName) != bytes.Count(data, []byte(":")) {
		return errPositions
	}
	list := make(Positions, len(byName))
	for shard := range list {
		n, ok := byName[strconv.Itoa(shard)]
		if !ok {
			return errPositions
		}
		list[shard] = n
	}
	*p = list
	return nil
}

// AppendStreamID appends the id of a server-sent event: the database and the positions after
// which a client resumes.
func AppendStreamID(dst []byte, creationID string, p Positions) []byte {
	dst = append(append(dst, creationID...), '/')
	for shard, n := range p {
		if shard > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, n, 10)
	}
	return dst
}

// Resume makes the subscription begin after the id of a server-sent event, and reports whether
// it is one. That of kind task may have the number of a report at its end.
func (f *WatchSubscribe) Resume(id string) bool {
	creation, list, found := strings.Cut(id, "/")
	list, reported, hasReported := strings.Cut(list, "/")
	if n, err := strconv.ParseUint(reported, 10, 64); err == nil {
		f.Reported = n
	} else if hasReported {
		return false
	}
	var after Positions
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return false
		}
		after = append(after, n)
	}
	if found = found && creation != "" && len(creation) <= MaxWatchIDBytes; found {
		f.CreationID, f.After = creation, after
	}
	return found
}
