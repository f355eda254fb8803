package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"codeq/wire"
)

// errChanged says that the second reading of a file was not like the first.
var errChanged = errors.New("the file changed while it was read: run it again when nobody writes to it")

// lineFile is a file of JSON values, one on each line. It is read twice: once
// for its digest and the number of lines, once for the lines, because the
// digest is in the key of every line.
type lineFile struct {
	file   *os.File
	name   string
	digest string // SHA-256 in hexadecimal
	count  int
	spool  bool // a copy of standard input, removed in the end
}

// openLines reads a file the first time. Standard input ("-") and whatever
// else can not be read twice is copied first.
func openLines(name string, stdin io.Reader) (*lineFile, error) {
	f := &lineFile{name: name}
	var source io.Reader = stdin
	if name == "-" {
		f.name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, wrong("can not open the file of lines: %w", err)
		}
		info, err := file.Stat()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("look at %s: %w", name, err), file.Close())
		}
		if info.IsDir() {
			return nil, errors.Join(wrong("%s is a directory: --file takes a file with one JSON value on each line", name), file.Close())
		}
		f.file, source = file, file
		if !info.Mode().IsRegular() {
			defer func() {
				_ = file.Close() // it was only read, and its copy is used
			}()
			f.file = nil
		}
	}
	if err := f.firstReading(source); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *lineFile) firstReading(source io.Reader) error {
	sum := sha256.New()
	count := &lineCounter{}
	sinks := []io.Writer{sum, count}
	if f.file == nil {
		spool, err := os.CreateTemp("", "codeq-lines-")
		if err != nil {
			return fmt.Errorf("make a file for a copy of %s: %w", f.name, err)
		}
		f.file, f.spool = spool, true
		sinks = append(sinks, spool)
	}
	if _, err := io.Copy(io.MultiWriter(sinks...), source); err != nil {
		return fmt.Errorf("read %s: %w", f.name, err)
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read %s again: %w", f.name, err)
	}
	f.digest, f.count = hex.EncodeToString(sum.Sum(nil)), count.lines()
	return nil
}

// key is the idempotency key of a line: the same file gives the same keys.
func (f *lineFile) key(number int) string {
	return fmt.Sprintf("sha256:%s:%d", f.digest, number)
}

func (f *lineFile) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	if f.spool {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	if err != nil {
		return fmt.Errorf("close %s: %w", f.name, err)
	}
	return nil
}

// lineCounter counts lines; the last one needs no line feed.
type lineCounter struct {
	feeds int
	open  bool
}

// Write never fails.
func (c *lineCounter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		c.feeds += bytes.Count(p, []byte("\n"))
		c.open = p[len(p)-1] != '\n'
	}
	return len(p), nil
}

func (c *lineCounter) lines() int {
	if c.open {
		return c.feeds + 1
	}
	return c.feeds
}

// line is one line of a file, without the white space around it.
type line struct {
	number int
	data   []byte
	// tooLong: it has more bytes than a payload may have; data is empty.
	tooLong bool
}

// lineReader reads the lines of the second reading.
type lineReader struct {
	file   *lineFile
	reader *bufio.Reader
	sum    hash.Hash
	number int
}

// maxLineBytes leaves some white space around a payload of any size.
const maxLineBytes = wire.MaxPayloadBytes + 4096

func (f *lineFile) lines() *lineReader {
	sum := sha256.New()
	return &lineReader{file: f, reader: bufio.NewReaderSize(io.TeeReader(f.file, sum), 64<<10), sum: sum}
}

// next is the next line that is not blank. After the last one the error is
// io.EOF, or errChanged if it was not the file of the first reading.
func (r *lineReader) next() (line, error) {
	for {
		data, tooLong, err := r.read()
		if err != nil {
			return line{}, err
		}
		r.number++
		data = bytes.Trim(data, " \t\r\n")
		if tooLong || len(data) > 0 {
			return line{number: r.number, data: data, tooLong: tooLong}, nil
		}
	}
}

// read reads up to the next line feed. Of a line that is too long nothing is
// kept.
func (r *lineReader) read() (data []byte, tooLong bool, err error) {
	for {
		part, err := r.reader.ReadSlice('\n')
		if len(data)+len(part) > maxLineBytes {
			tooLong, data = true, nil
		}
		if !tooLong {
			data = append(data, part...)
		}
		switch {
		case err == nil:
			return data, tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case !errors.Is(err, io.EOF):
			return nil, false, fmt.Errorf("read %s: %w", r.file.name, err)
		case len(data) > 0 || tooLong:
			return data, tooLong, nil
		case hex.EncodeToString(r.sum.Sum(nil)) != r.file.digest:
			return nil, false, errChanged
		}
		return nil, false, io.EOF
	}
}
