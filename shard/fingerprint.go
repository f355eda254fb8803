package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"

	"codeq/wire"
)

// FingerprintOf is what must be equal for two requests with one idempotency
// key to be the same request: SHA-256 over command, payload bytes, priority
// and maxAttempts, and timeoutSeconds if it was posted, each behind its length.
// Times, the expiry and trace do not count.
func FingerprintOf(r *wire.EnqueueRequest) [32]byte {
	h := sha256.New()
	var length [8]byte
	part := func(data []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(data)))
		// hash.Hash documents that Write never fails.
		_, _ = h.Write(length[:])
		_, _ = h.Write(data)
	}
	part([]byte(r.Command))
	part(r.Payload)
	part([]byte{byte(r.Priority)})
	// What the queue says may change between two requests that are the same.
	part(binary.BigEndian.AppendUint64(nil, uint64(cmp.Or(r.MaxAttempts, wire.DefaultMaxAttempts))))
	if r.TimeoutSeconds != 0 {
		part(binary.BigEndian.AppendUint64(nil, uint64(r.TimeoutSeconds)))
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}
