package loadtest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
)

// A payload is {"n":"<number, 16 digits>","pad":"<digits made of the number>"}.
const (
	payloadHead = `{"n":"`
	payloadMid  = `","pad":"`
	payloadTail = `"}`
	numberAt    = len(payloadHead)
	padAt       = numberAt + 2*8 + len(payloadMid)
	// minPayloadBytes is a payload with nothing in its pad.
	minPayloadBytes = padAt + len(payloadTail)
)

// appendPayload appends the payload of the task with that number. The pad
// repeats digits that only this number has, so that bytes that belong to
// another task cannot pass.
func appendPayload(dst []byte, n uint64, size int) []byte {
	start := len(dst)
	dst = appendHex(append(dst, payloadHead...), n)
	dst = append(dst, payloadMid...)
	var word [16]byte
	pad := appendHex(word[:0], mix(n))
	end := start + size - len(payloadTail)
	for len(dst) < end {
		dst = append(dst, pad[:min(len(pad), end-len(dst))]...)
	}
	return append(dst, payloadTail...)
}

// numberOf reads the number out of a payload and reports whether every byte
// is as appendPayload made it. scratch is overwritten and returned for the
// next call. known is false when there is no number in it at all.
func numberOf(payload, scratch []byte) (n uint64, known, intact bool, grown []byte) {
	if len(payload) < padAt {
		return 0, false, false, scratch
	}
	n, known = parseHex(payload[numberAt : numberAt+16])
	if !known {
		return 0, false, false, scratch
	}
	scratch = appendPayload(scratch[:0], n, max(len(payload), minPayloadBytes))
	return n, true, bytes.Equal(scratch, payload), scratch
}

func appendHex(dst []byte, n uint64) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], n)
	return hex.AppendEncode(dst, raw[:])
}

func parseHex(text []byte) (n uint64, ok bool) {
	var raw [8]byte
	if _, err := hex.Decode(raw[:], text); err != nil {
		return 0, false
	}
	return binary.BigEndian.Uint64(raw[:]), true
}

// mix spreads the bits of a number over all 64 (the finisher of splitmix64).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
