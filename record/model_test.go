package record

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeq/wire"
)

// The model reads values by a list of their fields, with encoding/binary and no
// regard for speed, and prints them. It knows nothing of the forms of this package.

// modelFields has a line for each kind of value: number, name and type of each field.
var modelFields = map[string]string{
	"task": `1 command text,2 tenant text,3 priority int,4 status PENDING|IN_PROGRESS|COMPLETED|FAILED|CANCELLED,
		5 location PENDING_LIST|DELAYED_ZSET|INPROG_SET|DLQ_SET|NONE|LIMITED,6 attempts int,7 maxAttempts int,8 payloadBytes int,
		9 createdAtMs int,10 updatedAtMs int,11 seq uint,12 dueAtMs int,13 endedAtMs int,14 expiresAtMs int,15 expired flag,
		16 timeoutSeconds int,17 deliveries int,18 lastToken hex16,19 lastSubject text,20 lastWorkerId text,21 lastOverHttp flag,
		22 resultToken hex16,23 releases int,24 losses int,25 undelivered int,26 deadCause below4,27 error text,
		28 idempotencyKey text,29 fingerprint hex32,30 traceParent text,31 traceState text,32 payload raw,33 outcomeHere flag,34 result raw,35 labels text,36 handled flag,37 concurrencyKey text,38 webhook text,39 progress raw,40 printed flag,41 filesBegun int,42 filesListed raw,43 fileBytes int`,
	"lease": `1 delivery int,2 token hex16,3 session uuid,4 overHttp flag,5 subject text,6 workerId text,7 deadlineMs int,
		8 leaseForMs int,9 grantedAtMs int,10 runUntilMs int,11 progress raw,12 printed flag,13 filesBegun int,14 filesListed raw,15 fileBytes int`,
	"counters": `1 inProgress int,2 ready ints10,3 readyFloor uints10,4 readySinceMs ints10,5 delayed int,6 delayedFloorMs int,
		7 expiring int,8 expiringFloorMs int,9 leaseFloor uint,10 dead int,11 deadFloorMs int,12 deadBy ints4,13 failedFloorMs int,
		14 done int,15 doneFloorMs int,16 limited int,17 waitingBytes int,18 fileBytes int`,
	"marks": `1 seq uint,2 event uint,3 timeMs int,4 queues below4294967296`,
	"settings": `1 version int,2 paused flag,3 deleting flag,4 spread flag,5 maxAttempts int,6 leaseSeconds int,7 timeoutSeconds int,
		8 ttlSeconds int,9 backoff text,10 backoffBaseSeconds int,11 backoffMaxSeconds int,12 retentionSeconds int,13 dlqRetentionSeconds int,
		14 maxInProgress int,15 startsPerSecond int,16 perKeyInProgress int,17 perKeyStartsPerSecond int,18 target text,19 targetWindow int`,
	"named": `1 version int,2 value text`,
	"line":  `1 delivery int,2 workerId text,3 fromMs int,4 toMs int,5 cause text,6 closeCode int,7 error text,8 exited flag,9 exitCode int,10 signal text,11 by text,12 callback uuid`,
	"ended": `1 what below512,2 deliveries int`,
}

// modelValue is a value as the model has read it.
type modelValue struct {
	names []string
	texts map[string]string // as printed
	raw   map[string]string // as they stand
	newer string
}

// takeUvarint reads a varint in its shortest form.
func takeUvarint(data []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || !bytes.Equal(binary.AppendUvarint(nil, n), data[:size]) {
		return 0, nil, false
	}
	return n, data[size:], true
}

func modelRead(kind string, data []byte) (*modelValue, bool) {
	if len(data) == 0 {
		return nil, false
	}
	v := &modelValue{texts: map[string]string{}, raw: map[string]string{}}
	types := map[int][2]string{}
	for _, field := range strings.Split(modelFields[kind], ",") {
		parts := strings.Fields(field)
		number, err := strconv.Atoi(parts[0])
		if err != nil {
			panic(err)
		}
		types[number] = [2]string{parts[1], parts[2]}
	}
	before := 0
	for len(data) > 0 {
		number, isBytes := int(data[0]>>1), data[0]&1 == 1
		n, rest, ok := takeUvarint(data[1:])
		if !ok || n == 0 || number <= before {
			return nil, false
		}
		var part []byte
		if isBytes {
			if n > uint64(len(rest)) {
				return nil, false
			}
			part, rest = rest[:n], rest[n:]
		}
		if known, is := types[number]; !is {
			v.newer += string(data[:len(data)-len(rest)])
		} else {
			text, ok := modelText(known[1], isBytes, n, part)
			if !ok {
				return nil, false
			}
			v.names = append(v.names, known[0])
			v.texts[known[0]], v.raw[known[0]] = text, string(part)
		}
		before, data = number, rest
	}
	return v, true
}

// modelText is the text of one field, false for one that cannot be.
func modelText(typ string, isBytes bool, n uint64, part []byte) (string, bool) {
	size := 0
	if i := strings.IndexAny(typ, "0123456789"); i > 0 {
		size, _ = strconv.Atoi(typ[i:])
		typ = typ[:i]
	}
	zero := len(bytes.Trim(part, "\x00")) == 0
	switch typ {
	case "int":
		return strconv.FormatInt(int64(n), 10), !isBytes
	case "uint":
		return strconv.FormatUint(n, 10), !isBytes
	case "below":
		return strconv.FormatUint(n, 10), !isBytes && n < uint64(size)
	case "flag":
		return "true", !isBytes && n == 1
	case "text":
		return strconv.Quote(string(part)), isBytes
	case "raw":
		return string(part), isBytes
	case "hex":
		return `"` + hex.EncodeToString(part) + `"`, isBytes && len(part) == size && !zero
	case "uuid":
		return fmt.Sprintf(`"%v"`, wire.SessionID(append(part, make([]byte, 16)...)[:16])), isBytes && len(part) == 16 && !zero
	case "ints", "uints":
		text, ok := modelList(typ, part, size)
		return text, isBytes && ok
	}
	words := strings.Split(typ, "|")
	if isBytes || n > uint64(len(words)) {
		return "", false
	}
	return strconv.Quote(words[n-1]), true
}

func modelList(typ string, part []byte, most int) (string, bool) {
	var texts []string
	for len(part) > 0 {
		n, rest, ok := takeUvarint(part)
		if !ok || len(rest) == 0 && n == 0 {
			return "", false
		}
		if typ == "ints" {
			texts = append(texts, strconv.FormatInt(int64(n), 10))
		} else {
			texts = append(texts, strconv.FormatUint(n, 10))
		}
		part = rest
	}
	return "[" + strings.Join(texts, ",") + "]", len(texts) <= most
}

func (v *modelValue) String() string {
	var fields []string
	for _, name := range v.names {
		fields = append(fields, fmt.Sprintf("%q:%s", name, v.texts[name]))
	}
	if v.newer != "" {
		fields = append(fields, fmt.Sprintf(`"newer":"%x"`, v.newer))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// number is what a field says, 0 if it is not there.
func (v *modelValue) number(name string) int64 {
	n, _ := strconv.ParseInt(v.texts[name], 10, 64)
	return n
}

// modelPrint reads and prints a value, false for one that no program has written.
func modelPrint(kind string, data []byte) (string, bool) {
	if kind == "history" {
		return modelHistory(data)
	}
	v, ok := modelRead(kind, data)
	if !ok {
		return "", false
	}
	switch kind {
	case "task":
		p, size := v.number("priority"), int64(len(v.raw["payload"]))
		_, outcome := v.texts["outcomeHere"]
		return v.String(), v.raw["command"] != "" && p >= 0 && p <= wire.MaxPriority &&
			(size == 0 || size == v.number("payloadBytes")) && (outcome || v.raw["result"] == "")
	case "settings":
		return v.String(), v.number("version") >= 1
	case "named":
		return v.String(), v.number("version") >= 1 && v.raw["value"] != ""
	case "ended":
		what := v.number("what")
		status := []string{"", "COMPLETED", "FAILED", "CANCELLED"}[what&3]
		text := fmt.Sprintf("%s deliveries %d", status, v.number("deliveries"))
		text += []string{"", " exhausted", " released_too_often", " failed"}[what>>2&3]
		for i, word := range []string{" keyed", " bare", " whole", " labelled", " files"} {
			if what&(0x10<<i) != 0 {
				text += word
			}
		}
		return text, status != "" && v.number("deliveries") >= 0
	}
	return v.String(), true
}

func modelHistory(data []byte) (string, bool) {
	var lines []string
	for len(data) > 0 {
		n, rest, ok := takeUvarint(data)
		if !ok || n > uint64(len(rest)) {
			return "", false
		}
		v, ok := modelRead("line", rest[:n])
		if !ok {
			return "", false
		}
		v.newer = "" // it stays in the value, and is not read
		lines = append(lines, v.String())
		data = rest[n:]
	}
	return "[" + strings.Join(lines, ",") + "]", len(lines) <= MaxHistory
}

// readAndWrite reads a value, prints it and writes it again.
func readAndWrite(kind string, data []byte) (text string, again []byte, err error) {
	switch kind {
	case "task":
		var r Task
		err = ParseTask(wire.TaskID{}, data, &r)
		text, again = r.String(), AppendTask(nil, &r)
	case "lease":
		var l Lease
		err = ParseLease(data, &l)
		text, again = l.String(), AppendLease(nil, &l)
	case "counters":
		var c Counters
		err = ParseCounters(data, &c)
		text, again = c.String(), AppendCounters(nil, &c)
	case "marks":
		var m Marks
		err = ParseMarks(data, &m)
		text, again = m.String(), AppendMarks(nil, m)
	case "settings":
		var s Settings
		err = ParseSettings(data, &s)
		text, again = s.String(), AppendSettings(nil, &s)
	case "named":
		var n Named
		n, err = ParseNamed(NamedKey{}, data)
		text, again = n.String(), AppendNamed(nil, &n)
	case "ended":
		var e Ended
		e, err = ParseEnded(data)
		text, again = e.String(), AppendEnded(nil, e)
	default:
		var lines []wire.HistoryLine
		lines, err = ParseHistory(data)
		text, again = historyString(lines), nil
	}
	return text, again, err
}

// mustAgree holds a decoder against the model: both take a value or refuse it, print
// the same, and what was taken is written as the same bytes.
func mustAgree(t *testing.T, kind string, data []byte) {
	t.Helper()
	before := slices.Clone(data)
	want, ok := modelPrint(kind, data)
	got, again, err := readAndWrite(kind, data)
	if (err == nil) != ok {
		t.Fatalf("%s %x: %v, and the model takes it: %v", kind, data, err, ok)
	}
	if err != nil {
		return
	}
	if got != want {
		t.Fatalf("%s %x is\n%s, by the model\n%s", kind, data, got, want)
	}
	// What is newer in an entry of an ended task, and in a line, is not read.
	if !bytes.Equal(again, data) && kind != "history" && (kind != "ended" || bytes.HasPrefix(data, again) == false) {
		t.Fatalf("%s %x became %x", kind, data, again)
	}
	if !bytes.Equal(before, data) {
		t.Fatalf("%s %x was changed to %x by a look", kind, before, data)
	}
}

func TestSamplesAreWhatTheModelReads(t *testing.T) {
	for _, s := range samples(t) {
		kind, _, _ := strings.Cut(s.kind, "-")
		mustAgree(t, kind, s.value)
		for n := range s.value {
			mustAgree(t, kind, s.value[:n])
			changed := slices.Clone(s.value)
			for bit := range 8 {
				changed[n] = s.value[n] ^ 1<<bit
				mustAgree(t, kind, changed)
			}
		}
	}
}

// fuzzKind fuzzes the decoder of a kind, of which again is a part of readAndWrite.
func fuzzKind(f *testing.F, kind string, again func(data []byte) error) {
	for _, s := range samples(f) {
		if of, _, _ := strings.Cut(s.kind, "-"); of == kind {
			f.Add(s.value)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mustAgree(t, kind, data)
		if _, ok := modelPrint(kind, data); (again(data) == nil) != ok {
			t.Fatalf("%s %x is taken once and refused once", kind, data)
		}
	})
}

// FuzzTask holds ParseTask against the model.
func FuzzTask(f *testing.F) {
	fuzzKind(f, "task", func(data []byte) error { return ParseTask(wire.TaskID{}, data, &Task{}) })
}

// FuzzLease holds ParseLease against the model.
func FuzzLease(f *testing.F) {
	fuzzKind(f, "lease", func(data []byte) error { return ParseLease(data, &Lease{}) })
}

// FuzzCounters holds ParseCounters against the model.
func FuzzCounters(f *testing.F) {
	fuzzKind(f, "counters", func(data []byte) error { return ParseCounters(data, &Counters{}) })
}

// FuzzMarks holds ParseMarks against the model.
func FuzzMarks(f *testing.F) {
	fuzzKind(f, "marks", func(data []byte) error { return ParseMarks(data, &Marks{}) })
}

// FuzzSettings holds ParseSettings against the model.
func FuzzSettings(f *testing.F) {
	fuzzKind(f, "settings", func(data []byte) error { return ParseSettings(data, &Settings{}) })
}

// FuzzNamed holds ParseNamed against the model.
func FuzzNamed(f *testing.F) {
	fuzzKind(f, "named", func(data []byte) error {
		_, err := ParseNamed(NamedKey{}, data)
		return err
	})
}

// FuzzEnded holds ParseEnded against the model.
func FuzzEnded(f *testing.F) {
	fuzzKind(f, "ended", func(data []byte) error {
		_, err := ParseEnded(data)
		return err
	})
}

// FuzzHistory holds ParseHistory against the model.
func FuzzHistory(f *testing.F) {
	fuzzKind(f, "history", func(data []byte) error {
		_, err := ParseHistory(data)
		return err
	})
}

// FuzzPayloadWithin looks for the payload of whatever is a task.
func FuzzPayloadWithin(f *testing.F) {
	f.Add(AppendTask(nil, fullRecord(f)))
	f.Fuzz(func(t *testing.T, data []byte) {
		payload, within := PayloadWithin(data)
		var r Task
		if ParseTask(wire.TaskID{}, data, &r) == nil && (string(payload) != r.Payload || within != (r.Payload != "")) {
			t.Errorf("%q, %v of %v", payload, within, &r)
		}
	})
}

// FuzzPlainValues are the values of eight bytes and of sixteen.
func FuzzPlainValues(f *testing.F) {
	for _, data := range [][]byte{nil, AppendReadyAt(nil, 1_700_000_000_000), AppendReadyAt(nil, -1), bytes.Repeat([]byte{7}, 16), {1}} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		atMs, err := ParseReadyAt(data)
		if (err == nil) != (len(data) == 8) || err == nil && !bytes.Equal(AppendReadyAt(nil, atMs), data) {
			t.Errorf("%x is the time %d (%v)", data, atMs, err)
		}
		var id wire.TaskID
		err = ParseID(data, &id)
		if (err == nil) != (len(data) == len(id)) || err == nil && !bytes.Equal(id[:], data) {
			t.Errorf("%x is the id %v (%v)", data, id, err)
		}
	})
}
