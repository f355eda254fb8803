package loadtest

import (
	"bytes"
	"testing"

	"codeq/wire"
)

func TestPayloadSaysItsNumber(t *testing.T) {
	var scratch []byte
	for _, size := range []int{minPayloadBytes, 34, 48, 49, 50, 100, 1000, wire.MaxPayloadBytes} {
		w := Workload{PayloadBytes: size}
		for _, n := range []uint64{0, 1, 77, 1<<63 + 5, 1<<64 - 1} {
			p := w.Payload(n)
			if len(p) != size || wire.CheckJSON(p) != nil {
				t.Fatalf("payload of %d: %d bytes %.80s", size, len(p), p)
			}
			var got uint64
			var known, intact bool
			got, known, intact, scratch = numberOf(p, scratch)
			if got != n || !known || !intact {
				t.Fatalf("%d reads as %d, %v, %v", n, got, known, intact)
			}
		}
	}
}

func TestEveryChangedByteIsSeen(t *testing.T) {
	w := Canonical()
	p := w.Payload(12345)
	for i := range p {
		changed := bytes.Clone(p)
		changed[i] ^= 2
		n, known, intact, _ := numberOf(changed, nil)
		if known && intact && n == 12345 {
			t.Errorf("byte %d changed from %q and nobody saw it", i, p[i])
		}
	}
	for cut := range p {
		if n, known, intact, _ := numberOf(p[:cut], nil); known && intact && cut == len(p) {
			t.Errorf("cut to %d it is still %d", cut, n)
		}
	}
}
