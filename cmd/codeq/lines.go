package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"codeq/wire"
)

// lineFile is a file of JSON values, one on each line. It is read once, from the
// beginning to the end, by one goroutine.
type lineFile struct {
	file   *os.File // nil for standard input
	name   string
	size   int64 // in bytes when it was opened, -1 if that says nothing
	reader *bufio.Reader
	number int
	begun  bool // a line that is not blank has come
}

// openLines opens a file, or standard input ("-"). Reading ends when ctx does.
func openLines(ctx context.Context, name string, stdin io.Reader) (*lineFile, error) {
	f := &lineFile{name: name, size: -1}
	source := &stoppable{ctx: ctx, source: stdin}
	if name == "-" {
		f.name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, wrong("cannot open --file: %w", err)
		}
		info, err := file.Stat()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("look at %s: %w", name, err), file.Close())
		}
		if info.IsDir() {
			return nil, errors.Join(wrong("%s is a directory: --file takes a file with one JSON value on each line", name), file.Close())
		}
		if info.Mode().IsRegular() {
			f.size = info.Size()
		}
		f.file, source.source = file, file
	}
	f.reader = bufio.NewReaderSize(source, 64<<10)
	return f, nil
}

func (f *lineFile) close() {
	if f.file != nil {
		_ = f.file.Close() // it was only read
	}
}

// line is one line of a file, without the white space around it.
type line struct {
	number int
	data   []byte
	// tooLong: it has more bytes than a payload may have; data is the beginning.
	tooLong bool
	// size is how many bytes of the file lie behind the line before and before
	// the next one.
	size int
}

// maxLineBytes leaves some white space around a payload of any size, and
// maxHeadBytes is what is kept of a longer line.
const (
	maxLineBytes = wire.MaxPayloadBytes + 4096
	maxHeadBytes = 4096
)

// next is the next line that is not blank. After the last one the error is
// io.EOF. A file whose first line shows that it is no such file is refused.
func (f *lineFile) next() (line, error) {
	size := 0
	for {
		data, length, err := f.read()
		if err != nil {
			return line{}, err
		}
		f.number++
		size += length
		next := line{number: f.number, tooLong: length > maxLineBytes, size: size}
		next.data = bytes.Trim(bytes.TrimPrefix(data, []byte(wire.ByteOrderMark)), " \t\r\n")
		if !next.tooLong && len(next.data) == 0 {
			continue
		}
		if !f.begun {
			if err := checkFirst(data); err != nil {
				return line{}, wrong("%s: %w; nothing is posted", f.name, err)
			}
			f.begun = true
		}
		return next, nil
	}
}

// checkFirst says what is wrong with a whole file, by its first line.
func checkFirst(data []byte) error {
	plain, err := wire.PlainText(data)
	if err != nil {
		return err
	}
	// A carriage return may also stand inside a value.
	if wire.CheckJSON(bytes.TrimSpace(plain)) == nil {
		return nil
	}
	return wire.CheckLineEnds(plain)
}

// read reads up to the next line feed and says how many bytes that are. Of a
// line that is too long only the beginning is kept.
func (f *lineFile) read() (data []byte, length int, err error) {
	for {
		part, err := f.reader.ReadSlice('\n')
		length += len(part)
		data = append(data, part...)
		if length > maxLineBytes {
			data = data[:maxHeadBytes]
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && length > 0:
			return data, length, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, 0, io.EOF
		default:
			return nil, 0, fmt.Errorf("read %s: %w", f.name, err)
		}
	}
}

// lineKeys makes the idempotency keys of a run. A line has the same key in each run of the
// file, wherever it is in it, and equal lines have different keys.
type lineKeys struct {
	run string
	// seen counts equal lines by the beginning of their digest. Two different
	// lines that share it have different keys all the same.
	seen map[uint64]uint32
}

func (k *lineKeys) next(payload []byte) string {
	sum := sha256.Sum256(payload)
	head := binary.LittleEndian.Uint64(sum[:])
	k.seen[head]++
	return fmt.Sprintf("run:%s:%x:%d", k.run, sum, k.seen[head])
}
