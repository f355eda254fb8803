package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
)

// The day file has the points of the minute level beside the database, so that a chart shows
// the hour before a restart. It is written and never synced: a power cut costs its end. A
// file of half of maxFileBytes takes the place of the one before it, so that both together
// have at most maxFileBytes.

const (
	fileName     = "history"
	oldFileName  = "history.old"
	maxFileBytes = 64 << 20
	// maxLineBytes is more than the longest line: names, and 18 numbers of at most 5 bytes.
	maxLineBytes = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// dayFile is the newer of the two files.
type dayFile struct {
	fs   vfs.FS
	dir  string
	file vfs.File
	at   int64
	// most is how long one file becomes.
	most int64
	line []byte
}

// openDayFile reads both files and makes the newer one ready for more lines. What follows the
// first damaged line of the newer file is written over.
func openDayFile(fs vfs.FS, dir string, each func(q record.QueueKey, p *point)) (*dayFile, error) {
	d := &dayFile{fs: fs, dir: dir, most: maxFileBytes / 2}
	if _, err := d.read(oldFileName, each); err != nil {
		return nil, err
	}
	valid, err := d.read(fileName, each)
	if err != nil {
		return nil, err
	}
	d.file, err = fs.OpenReadWrite(fs.PathJoin(dir, fileName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	d.at = int64(valid)
	return d, nil
}

// read passes on the lines of a file up to the first damaged one, and returns their length.
func (d *dayFile) read(name string, each func(q record.QueueKey, p *point)) (valid int, err error) {
	file, err := d.fs.Open(d.fs.PathJoin(d.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open history: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes))
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, fmt.Errorf("read history: %w", err)
	}
	for {
		q, p, size := parseLine(data[valid:])
		if size == 0 {
			return valid, nil
		}
		each(q, &p)
		valid += size
	}
}

// add appends a point.
func (d *dayFile) add(q record.QueueKey, p *point) error {
	if d.at >= d.most {
		if err := d.turn(); err != nil {
			return err
		}
	}
	d.line = appendLine(d.line[:0], q, p)
	n, err := d.file.WriteAt(d.line, d.at)
	d.at += int64(n)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// turn begins a new file.
func (d *dayFile) turn() error {
	err := d.file.Close()
	if err == nil {
		err = d.fs.Rename(d.fs.PathJoin(d.dir, fileName), d.fs.PathJoin(d.dir, oldFileName))
	}
	if err == nil {
		d.file, err = d.fs.Create(d.fs.PathJoin(d.dir, fileName), vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return fmt.Errorf("begin a new file of the history: %w", err)
	}
	d.at = 0
	return nil
}

// appendLine adds a line: its length and checksum, and then time, names and figures.
func appendLine(dst []byte, q record.QueueKey, p *point) []byte {
	begin := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0)
	dst = binary.AppendUvarint(dst, uint64(p.atS))
	for _, name := range []string{q.Tenant, q.Command} {
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
	}
	for _, n := range p.figures {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	body := dst[begin+6:]
	binary.LittleEndian.PutUint16(dst[begin:], uint16(len(body)))
	binary.LittleEndian.PutUint32(dst[begin+2:], crc32.Checksum(body, castagnoli))
	return dst
}

// parseLine reads the first line, and returns its size, 0 for one that is damaged or not
// there as a whole.
func parseLine(data []byte) (q record.QueueKey, p point, size int) {
	if len(data) < 6 {
		return q, p, 0
	}
	n := int(binary.LittleEndian.Uint16(data))
	if n > maxLineBytes || len(data) < 6+n {
		return q, p, 0
	}
	body := data[6 : 6+n]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[2:]) {
		return q, p, 0
	}
	l := line{body: body}
	p.atS = l.number()
	q.Tenant, q.Command = l.name(), l.name()
	for i := range p.figures {
		if len(l.body) == 0 && i == pointFigures-1 {
			break // a line of a version that did not keep how many tasks are limited
		}
		p.figures[i] = l.number()
	}
	if l.damaged || len(l.body) > 0 {
		return q, p, 0
	}
	return q, p, 6 + n
}

// line is what is left of the body of a line.
type line struct {
	body    []byte
	damaged bool
}

func (l *line) number() uint32 {
	n, size := binary.Uvarint(l.body)
	if size <= 0 || n > 1<<32-1 {
		l.damaged = true
		return 0
	}
	l.body = l.body[size:]
	return uint32(n)
}

func (l *line) name() string {
	n := l.number()
	if l.damaged || int(n) > len(l.body) {
		l.damaged = true
		return ""
	}
	name := string(l.body[:n])
	l.body = l.body[n:]
	return name
}
