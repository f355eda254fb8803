package replica

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/s2"

	"codeq/record"
)

// TestEntriesComeBack makes entries of random batches, some of which repeat themselves, and
// takes them apart.
func TestEntriesComeBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	packed := 0
	for range 300 {
		var sent []*waiting
		for range random.IntN(20) {
			b := make([]byte, random.IntN(2000))
			same := 1 + random.IntN(100)
			for i := range b {
				b[i] = byte(random.IntN(256))
				if same > 30 && i >= same {
					b[i] = b[i-same]
				}
			}
			sent = append(sent, &waiting{part: part{shard: random.IntN(record.MaxShards), number: random.Uint64(), bytes: b}})
		}
		want := head{kind: kindBatches, epoch: random.Uint64(), nowMs: random.Int64(), checked: random.Uint64(), digest: random.Uint64()}
		data := makeEntry(&want, sent, NewestForm)
		got, parts, err := parseEntry(data)
		if got.kind == kindPacked {
			packed++
			got.kind = kindBatches
		}
		if err != nil || got != want || len(parts) != len(sent) {
			t.Fatalf("%+v with %d batches came back as %+v with %d, error %v", want, len(sent), got, len(parts), err)
		}
		for i, p := range parts {
			if p.shard != sent[i].shard || p.number != sent[i].number || !bytes.Equal(p.bytes, sent[i].bytes) {
				t.Fatalf("batch %d of %d came back otherwise", i, len(parts))
			}
		}
		data[1+random.IntN(len(data)-1)] ^= 1 << random.IntN(8)
		if _, _, err := parseEntry(data); err == nil {
			t.Fatal("an entry with a flipped bit was taken")
		}
	}
	if packed < 100 {
		t.Errorf("%d of 300 entries were packed", packed)
	}
}

// TestEntriesArePacked says when an entry is packed, and that it is smaller then.
func TestEntriesArePacked(t *testing.T) {
	noise := make([]byte, 2*packFromBytes)
	for i := range noise {
		noise[i] = byte(rand.New(rand.NewPCG(uint64(i), 3)).Uint32())
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		form  int
		kind  byte
		most  int
	}{
		{"small", make([]byte, packFromBytes-100), NewestForm, kindBatches, packFromBytes},
		{"even", make([]byte, packFromBytes), NewestForm, kindPacked, 200},
		{"old", make([]byte, packFromBytes), formPlain, kindBatches, packFromBytes + 100},
		{"noise", noise, NewestForm, kindBatches, len(noise) + 100},
	} {
		data := makeEntry(&head{kind: kindBatches}, []*waiting{{part: part{bytes: c.bytes}}}, c.form)
		if data[0] != c.kind || len(data) > c.most {
			t.Errorf("%s: %d bytes are an entry of kind %d with %d bytes, want kind %d and at most %d", c.name, len(c.bytes), data[0], len(data), c.kind, c.most)
		}
	}
}

// FuzzEntry takes apart what a damaged log could hold under a right sum.
func FuzzEntry(f *testing.F) {
	one := []*waiting{{part: part{shard: 1, number: 2, bytes: make([]byte, packFromBytes)}}}
	f.Add(makeEntry(&head{kind: kindBatches}, one, NewestForm)[entryHeadBytes:], byte(kindPacked))
	f.Add(makeEntry(&head{kind: kindBatches}, one[:0], NewestForm), byte(kindBatches))
	f.Fuzz(func(t *testing.T, batches []byte, kind byte) {
		if n, err := s2.DecodedLen(batches); err == nil && n > 1<<20 {
			return // it would be made
		}
		data := append(make([]byte, entryHeadBytes), batches...)
		data[0] = kind
		binary.LittleEndian.PutUint32(data[1:], crc32.Checksum(data[5:], castagnoli))
		_, parts, err := parseEntry(data)
		if err != nil {
			return
		}
		for _, p := range parts {
			if p.shard < 0 || p.shard >= record.MaxShards {
				t.Fatalf("a batch of shard %d", p.shard)
			}
		}
	})
}
