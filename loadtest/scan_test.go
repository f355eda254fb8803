package loadtest

import (
	"errors"
	"testing"

	"codeq/wire"
)

func message(frames ...wire.ServerFrame) []byte {
	m := []byte{'['}
	for i, f := range frames {
		if i > 0 {
			m = append(m, ',')
		}
		m = wire.AppendServerFrame(m, f)
	}
	return append(m, ']')
}

func sampleTask(n uint64, payload string) *wire.TaskFrame {
	return &wire.TaskFrame{
		Seq: 3, Token: wire.Token{1, byte(n)}, LeaseForMs: 5000, LeaseUntilMs: 1_700_000_000_000,
		Task: &wire.Task{
			ID: idOf(n), Command: "bench", Payload: []byte(payload), Status: wire.StatusInProgress,
			MaxAttempts: 5, Deliveries: 1, TenantID: "default", CreatedAtMs: 1_700_000_000_000, Error: `a "quoted" \ one`,
		},
	}
}

// collected are the frames of a message, each with its own copy.
func collected(data []byte) (frames []frame, err error) {
	var f frame
	err = scanMessage(data, &f, func(f *frame) error {
		frames = append(frames, *f)
		return nil
	})
	return frames, err
}

func TestScannerAgreesWithTheParser(t *testing.T) {
	data := message(
		&wire.OK{Ref: wire.Ref{Value: 17, Present: true}, TaskID: idOf(4)},
		sampleTask(5, `{"a":"x\\\"}","b":[1,{"id":"no"}],"payload":2}`),
		sampleTask(6, `" ] "`),
		sampleTask(7, `-1.5e3`),
		&wire.OK{Ref: wire.Ref{Value: 0, Present: true}},
		&wire.Draining{Reason: "shutdown"},
	)
	frames, err := collected(data)
	if err != nil || len(frames) != 6 {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
	agree(t, data)
}

// agree compares what both find in a message.
func agree(t *testing.T, data []byte) {
	t.Helper()
	want, err := wire.ParseServerMessage(append([]byte(nil), data...))
	if err != nil {
		return // the scanner trusts where the parser does not
	}
	got, err := collected(data)
	if err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	i := 0
	for _, w := range want {
		for i < len(got) && !alike(&got[i], w) {
			i++ // frames that the parser passes over
		}
		if i == len(got) {
			t.Fatalf("%q: %#v is not found", data, w)
		}
		i++
	}
}

func alike(f *frame, want wire.ServerFrame) bool {
	id, _ := readID(f.taskID)
	switch w := want.(type) {
	case *wire.OK:
		return string(f.kind) == "ok" && f.ref == w.Ref.Value && id == w.TaskID
	case *wire.TaskFrame:
		inner, _ := readID(f.id)
		token, _ := readToken(f.token)
		return string(f.kind) == "task" && inner == w.Task.ID && token == w.Token && string(f.payload) == string(w.Task.Payload)
	case *wire.ErrorFrame:
		refusal, err := refusalIn(f)
		return err == nil && refusal.Code == w.Err.Code
	}
	return f.kind != nil
}

func TestScannerTakesSpaceAndUnknownMembers(t *testing.T) {
	frames, err := collected([]byte(" [ { \"type\" : \"ok\" , \"new\" : { \"a\" : [ ] } , \"ref\" : -7 } , {} ] "))
	if err != nil || len(frames) != 2 || string(frames[0].kind) != "ok" || frames[0].ref != -7 {
		t.Errorf("%+v, %v", frames, err)
	}
	if frames, err := collected([]byte("[]")); err != nil || frames != nil {
		t.Errorf("%v, %v", frames, err)
	}
}

func TestScannerRefusesWhatIsCutShort(t *testing.T) {
	whole := message(sampleTask(5, `{"a":"x\\\"}","b":[1,2]}`), &wire.OK{Ref: wire.Ref{Value: 1, Present: true}})
	for cut := range whole {
		if _, err := collected(whole[:cut]); !errors.Is(err, errNoFrames) {
			t.Errorf("cut to %d: error %v", cut, err)
		}
	}
}

func TestIDsAreReadAsWireReadsThem(t *testing.T) {
	id := idOf(0x0123456789abcd)
	if got, ok := readID([]byte(id.String())); !ok || got != id {
		t.Errorf("%v reads as %v, %v", id, got, ok)
	}
	token := wire.Token{9, 8, 7}
	if got, ok := readToken([]byte(token.String())); !ok || got != token {
		t.Errorf("%v reads as %v, %v", token, got, ok)
	}
	for _, bad := range []string{"", "0", id.String() + "0", "g" + id.String()[1:]} {
		if _, ok := readID([]byte(bad)); ok {
			t.Errorf("%q is read as an id", bad)
		}
		if _, ok := readToken([]byte(bad)); ok {
			t.Errorf("%q is read as a token", bad)
		}
	}
}

func FuzzScanMessage(f *testing.F) {
	f.Add(message(sampleTask(1, `{}`), &wire.OK{Ref: wire.Ref{Value: 1, Present: true}, TaskID: idOf(1)}))
	f.Add(message(&wire.ErrorFrame{Err: wire.Refuse(wire.CodeOverloaded, "full")}))
	f.Add([]byte(`[{"type":"task","task":{"payload":"\\\""}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		frames, err := collected(data)
		if err != nil {
			return
		}
		for i := range frames {
			if !within(frames[i].raw, data) || !within(frames[i].payload, frames[i].raw) {
				t.Fatalf("%q: a frame reaches beyond its message", data)
			}
		}
	})
}

func within(part, whole []byte) bool { return len(part) <= len(whole) && cap(part) <= cap(whole) }

func BenchmarkScanTask(b *testing.B) {
	w := Canonical()
	one := sampleTask(1, string(w.Payload(1)))
	data := message(one, one, one, one, one, one, one, one)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	var f frame
	for b.Loop() {
		if err := scanMessage(data, &f, func(*frame) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseTask(b *testing.B) {
	w := Canonical()
	one := sampleTask(1, string(w.Payload(1)))
	data := message(one, one, one, one, one, one, one, one)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := wire.ParseServerMessage(data); err != nil {
			b.Fatal(err)
		}
	}
}
