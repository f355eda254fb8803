package replica

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/store"
)

// A snapshot on its way to another node is: the position of its database (8 bytes) and a sum of it (4), then of
// each file the length of the name (2), its size (8), the name, the content and the SHA-256 of all that.
const (
	streamHeadBytes = 8 + 4
	fileHeadBytes   = 2 + 8
	fileFrameBytes  = fileHeadBytes + sha256.Size

	maxNameBytes = 255
)

// stream reads a snapshot as it is sent. One goroutine.
type stream struct {
	fs    vfs.FS
	dir   string
	names []string
	// check is called with each file before it is sent.
	check  func(path string) error
	closed func()

	current io.Reader
	file    vfs.File
	sum     hash.Hash
}

func newStream(fs vfs.FS, dir string, position uint64, check func(path string) error, closed func()) *stream {
	head := binary.LittleEndian.AppendUint64(nil, position)
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	return &stream{fs: fs, dir: dir, check: check, closed: closed, current: bytes.NewReader(head)}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for {
		n, err := s.current.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
}

// next goes to the sum of the file that was read, or to the next file.
func (s *stream) next() error {
	if s.file != nil {
		err := s.file.Close()
		s.file, s.current = nil, bytes.NewReader(s.sum.Sum(nil))
		return err
	}
	if len(s.names) == 0 {
		return io.EOF
	}
	name := s.names[0]
	s.names = s.names[1:]
	path := s.fs.PathJoin(s.dir, name)
	err := s.check(path)
	if err != nil {
		return fmt.Errorf("send snapshot: %w", err)
	}
	f, err := s.fs.Open(path)
	if err != nil {
		return fmt.Errorf("send snapshot: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("send snapshot: %w", err), f.Close())
	}
	head := binary.LittleEndian.AppendUint16(nil, uint16(len(name)))
	head = binary.LittleEndian.AppendUint64(head, uint64(info.Size()))
	s.file, s.sum = f, sha256.New()
	s.current = io.TeeReader(io.MultiReader(bytes.NewReader(append(head, name...)), io.LimitReader(f, info.Size())), s.sum)
	return nil
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.closed()
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// receive makes a directory of a stream, each file synced.
func receive(fs vfs.FS, dir string, r io.Reader) (position uint64, err error) {
	var head [streamHeadBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, fmt.Errorf("receive snapshot: %w", err)
	}
	if crc32.Checksum(head[:8], castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return 0, errors.New("receive snapshot: its head was damaged on its way")
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return 0, fmt.Errorf("receive snapshot: %w", err)
	}
	for {
		more, err := receiveFile(fs, dir, r)
		if err != nil {
			return 0, fmt.Errorf("receive snapshot: %w", err)
		}
		if !more {
			return binary.LittleEndian.Uint64(head[:]), store.SyncDir(fs, dir)
		}
	}
}

func receiveFile(fs vfs.FS, dir string, r io.Reader) (more bool, err error) {
	var head [fileHeadBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, err
	}
	size := int64(binary.LittleEndian.Uint64(head[2:]))
	name := make([]byte, binary.LittleEndian.Uint16(head[:]))
	if _, err := io.ReadFull(r, name); err != nil {
		return false, err
	}
	if len(name) == 0 || len(name) > maxNameBytes || strings.ContainsAny(string(name), `/\`) || size < 0 {
		return false, fmt.Errorf("a file of %d bytes named %q", size, name)
	}
	f, err := fs.Create(fs.PathJoin(dir, string(name)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return false, err
	}
	sum, sent := sha256.New(), [sha256.Size]byte{}
	sum.Write(append(head[:], name...))
	// The sum comes first: a file may change what it has written.
	_, err = io.CopyN(io.MultiWriter(sum, f), r, size)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if _, err := io.ReadFull(r, sent[:]); err != nil {
		return false, err
	}
	if !bytes.Equal(sum.Sum(nil), sent[:]) {
		return false, fmt.Errorf("%s was damaged on its way", name)
	}
	return true, nil
}
