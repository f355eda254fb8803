package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// benchPayload is an object of about size bytes, with the mix of strings,
// numbers and punctuation that payloads have.
func benchPayload(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i := 0; b.Len() < size-80; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"file-%06d.iso","bytes":%d,"path":"/srv/data/\u00e9/x","ok":true}`, i, i*7919)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func benchBody(size int) []byte {
	return fmt.Appendf(nil, `{"command":"sha256","priority":3,"idempotencyKey":"file-000017","payload":%s}`,
		benchPayload(size))
}

var benchSizes = []struct {
	name  string
	bytes int
}{{"300B", 300}, {"16KiB", 16 << 10}, {"1MiB", 1 << 20}}

func BenchmarkCheckJSON(b *testing.B) {
	for _, size := range benchSizes {
		data := benchPayload(size.bytes)
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckJSON(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStandardValid is what CheckJSON is measured against.
func BenchmarkStandardValid(b *testing.B) {
	data := benchPayload(16 << 10)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if !json.Valid(data) {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkParseEnqueueRequest(b *testing.B) {
	for _, size := range benchSizes[:2] {
		body := benchBody(size.bytes)
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseEnqueueRequest(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseClientMessage(b *testing.B) {
	frames := map[string]ClientFrame{
		"result": &Result{Ref: ref(17), TaskRef: sampleRef(1), ResultRequest: ResultRequest{
			Status: StatusCompleted, Result: []byte(`{"sha":"0123456789abcdef0123456789abcdef"}`),
		}},
		"enqueue": &Enqueue{Ref: ref(18), EnqueueRequest: EnqueueRequest{
			Command: "sha256", Payload: []byte(`{"file":"a.iso","n":1}`), MaxAttempts: 5, IdempotencyKey: "file-17",
		}},
	}
	for name, frame := range frames {
		message := AppendClientFrame([]byte("["), frame)
		for range 31 {
			message = AppendClientFrame(append(message, ','), frame)
		}
		message = append(message, ']')
		b.Run(name+"x32", func(b *testing.B) {
			b.SetBytes(int64(len(message)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseClientMessage(message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendServerFrame(b *testing.B) {
	frame := sampleServerFrames()["task"].(*TaskFrame)
	frame.Task.Payload = benchPayload(300)
	dst := AppendServerFrame(nil, frame)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendServerFrame(dst[:0], frame)
	}
}

func BenchmarkAppendTask(b *testing.B) {
	task := sampleTask()
	task.Payload = benchPayload(16 << 10)
	dst := AppendTask(nil, task, PayloadAsString)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendTask(dst[:0], task, PayloadAsString)
	}
}
