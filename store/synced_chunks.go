package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/bits"
)

// Pebble writes a log and a MANIFEST as blocks of chunks: a sum, a length, a
// kind, in a log its number and, since the format of today, how much of the log
// was synced when the chunk was made, then the data. A chunk lies in one block;
// where no header fits any more, the block ends with zeros.
const (
	chunkBlock     = 32 << 10
	plainHeader    = 7  // kinds 1 to 4, of a MANIFEST
	numberedHeader = 11 // kinds 5 to 8, of a log
	syncedHeader   = 19 // kinds 9 to 12, of a log

	// In each format the kinds are: whole record, first, middle and last part.
	wholeChunk, lastChunk = 0, 3
	firstNumberedKind     = 5
	firstSyncedKind       = 9
	endOfKinds            = 13
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk is the header of a chunk whose sum is right.
type chunk struct {
	size int
	part byte
	// synced is how much of the log was synced when the chunk was made.
	synced int64
}

// chunkScan is how far a log or a MANIFEST can be read.
type chunkScan struct {
	file logFile
	// end is behind the last chunk that can be read, records behind the last
	// that ends a record.
	end, records int64
	// proof is the place of a chunk behind end which says that more than end was
	// synced; 0 for none.
	proof int64
	// closed: the mark is there that Pebble writes when it closes a log.
	closed bool

	stopped bool
}

// scanChunks reads a log or a MANIFEST from its beginning.
func scanChunks(file logFile, r io.Reader) (*chunkScan, error) {
	s := &chunkScan{file: file}
	block := make([]byte, chunkBlock)
	for at := int64(0); ; at += chunkBlock {
		n, err := io.ReadFull(r, block)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
		s.take(at, block[:n])
		if n < chunkBlock || s.closed || s.proof > 0 {
			return s, nil
		}
	}
}

// take reads one block.
func (s *chunkScan) take(at int64, block []byte) {
	off := 0
	for !s.stopped && off < len(block) {
		rest := block[off:]
		c, ok := s.file.chunkAt(rest)
		switch {
		case ok:
			off += c.size
			s.end = at + int64(off)
			if c.part == wholeChunk || c.part == lastChunk {
				s.records = s.end
			}
		case s.end == s.records && s.file.closedAt(rest):
			s.end += numberedHeader
			s.records, s.closed, s.stopped = s.end, true, true
			return
		case len(block) == chunkBlock && len(rest) < s.file.header() && zeros(rest):
			if s.records == s.end {
				s.records = at + chunkBlock
			}
			s.end = at + chunkBlock
			return
		default:
			s.stopped = true
		}
	}
	s.search(at, block[off:], int64(off))
}

// search looks at every place behind the end for a chunk that was made after
// more than the end was synced. A chunk that does not say so proves nothing: a
// power cut keeps what was not synced in any order.
func (s *chunkScan) search(at int64, rest []byte, off int64) {
	if s.file.manifest {
		return
	}
	for i := range rest {
		if c, ok := s.file.chunkAt(rest[i:]); ok && c.synced > s.end {
			s.proof = at + off + int64(i)
			return
		}
	}
}

// header is the least that a block has room for before it ends with zeros.
func (f logFile) header() int {
	if f.manifest {
		return plainHeader
	}
	return syncedHeader
}

// chunkAt reads the chunk of this file that begins at b.
func (f logFile) chunkAt(b []byte) (c chunk, ok bool) {
	if len(b) < plainHeader {
		return c, false
	}
	kind, header := b[6], plainHeader
	switch {
	case kind == 0 || kind >= endOfKinds || f.manifest != (kind < firstNumberedKind):
		return c, false
	case kind >= firstSyncedKind:
		header = syncedHeader
	case kind >= firstNumberedKind:
		header = numberedHeader
	}
	c.size, c.part = header+int(binary.LittleEndian.Uint16(b[4:])), (kind-1)%4
	if c.size > len(b) || header > plainHeader && binary.LittleEndian.Uint32(b[7:]) != uint32(f.number) {
		return c, false
	}
	if header == syncedHeader {
		c.synced = int64(binary.LittleEndian.Uint64(b[numberedHeader:]))
	}
	return c, binary.LittleEndian.Uint32(b) == chunkSum(b[6:c.size])
}

// closedAt reports whether a log was closed here: the header of a chunk without
// a sum, with the number of the next log.
func (f logFile) closedAt(b []byte) bool {
	var mark [numberedHeader]byte
	mark[6] = firstNumberedKind
	binary.LittleEndian.PutUint32(mark[7:], uint32(f.number)+1)
	return !f.manifest && bytes.HasPrefix(b, mark[:])
}

func chunkSum(b []byte) uint32 {
	return bits.RotateLeft32(crc32.Checksum(b, castagnoli), 17) + 0xa282ead8
}

func zeros(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// firstLog is the number of the first log that a version needs, as one record of
// a MANIFEST says it, or 0 if it says nothing of it. It stands before everything
// but the name of the order of keys.
func firstLog(edit []byte) uint64 {
	const tagComparator, tagLogNumber = 1, 2
	tag, edit := uvarint(edit)
	if tag == tagComparator {
		var length uint64
		length, edit = uvarint(edit)
		tag, edit = uvarint(edit[min(length, uint64(len(edit))):])
	}
	if tag != tagLogNumber {
		return 0
	}
	number, _ := uvarint(edit)
	return number
}

// uvarint takes a number off b; 0 if there is none.
func uvarint(b []byte) (n uint64, rest []byte) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil
	}
	return n, b[size:]
}
