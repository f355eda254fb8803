package websocket

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// caseTimeout is how long one case may take.
const caseTimeout = 10 * time.Second

// TestCases runs all cases over one run of the client, one connection after another.
func TestCases(t *testing.T) {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if _, err := exec.LookPath(python); err != nil {
		t.Skip("the client is a program in Python") // CI has one
	}
	cases := readCases(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = listener.Close() // nobody connects any more
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := exec.CommandContext(ctx, python, "-X", "dev", "-W", "error", "-B", "../../sdk/python/tests/echo.py",
		"http://"+listener.Addr().String(), fmt.Sprint(len(cases)))
	said := &bytes.Buffer{}
	client.Stdout, client.Stderr = said, said
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() {
		_ = listener.Close() // ends the wait for a client that does not come
	})
	for _, c := range cases {
		conn, err := listener.Accept()
		if err != nil {
			t.Errorf("no client came for case %s: %v", c.name, err)
			break
		}
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(conn); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		})
	}
	if err := client.Wait(); err != nil || said.Len() > 0 {
		t.Errorf("the client ended with %v:\n%s", err, said)
	}
}

// run plays one case over a connection and closes it.
func (c *testCase) run(conn net.Conn) error {
	defer func() {
		_ = conn.Close() // closed twice is no harm
	}()
	if err := conn.SetDeadline(time.Now().Add(caseTimeout)); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	if err := shakeHands(conn, in); err != nil {
		return fmt.Errorf("shake hands: %w", err)
	}
	written := make(chan error, 1)
	go func() { written <- c.write(conn) }()
	got, code, err := readAll(in)
	if code != noClose {
		_ = conn.Close() // the client has ended the session; what is still written is of no use
	}
	if writeErr := <-written; writeErr != nil && !c.ends {
		return fmt.Errorf("write: %w", writeErr)
	}
	if err != nil && !errors.Is(err, io.EOF) && c.code != noClose {
		return fmt.Errorf("read, after %d messages: %w", len(got), err)
	}
	if len(got) != len(c.want) {
		return fmt.Errorf("%d messages came, want %d; they are %v", len(got), len(c.want), got)
	}
	for i, f := range got {
		if f.opcode != c.want[i].opcode || !bytes.Equal(f.payload, c.want[i].payload) {
			return fmt.Errorf("message %d is %v, want %v", i+1, f, c.want[i])
		}
	}
	if code != c.code {
		return fmt.Errorf("the client closed with %d, want %d", code, c.code)
	}
	return nil
}

// write sends the frames of the case and, unless the client is to end it, a close frame.
func (c *testCase) write(conn net.Conn) error {
	sent := c.send
	if !c.ends {
		sent = append(sent, sending{bytes: []byte{0x80 | opClose, 2, 0x03, 0xe8}})
	}
	for _, s := range sent {
		step := s.chop
		if step == 0 {
			step = len(s.bytes)
		}
		for at := 0; at < len(s.bytes); at += step {
			if _, err := conn.Write(s.bytes[at:min(at+step, len(s.bytes))]); err != nil {
				return err
			}
		}
		if s.cut {
			return conn.Close()
		}
	}
	return nil
}

// shakeHands answers the request of a client, which must be right.
func shakeHands(conn net.Conn, in *bufio.Reader) error {
	request, err := http.ReadRequest(in)
	if err != nil {
		return err
	}
	key := request.Header.Get("Sec-WebSocket-Key")
	if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != 16 {
		return fmt.Errorf("the key is %q", key)
	}
	if extensions := request.Header.Get("Sec-WebSocket-Extensions"); extensions != "" {
		return fmt.Errorf("the client offers %s", extensions)
	}
	for name, want := range map[string]string{"Upgrade": "websocket", "Connection": "upgrade", "Sec-WebSocket-Version": "13"} {
		if got := request.Header.Get(name); !strings.EqualFold(got, want) {
			return fmt.Errorf("%s is %q", name, got)
		}
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"+
		"Sec-WebSocket-Protocol: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]), request.Header.Get("Sec-WebSocket-Protocol"))
	return err
}

// readAll reads frames up to a close frame, and returns its code, or to the end of the connection.
func readAll(in *bufio.Reader) (got []frame, code int, err error) {
	for {
		f, err := readFrame(in)
		switch {
		case err != nil:
			return got, noClose, err
		case f.opcode == opClose && len(f.payload) >= 2:
			return got, int(binary.BigEndian.Uint16(f.payload)), nil
		case f.opcode == opClose:
			return got, noCode, nil
		}
		got = append(got, f)
	}
}

// readFrame reads a frame, which must be whole, masked and without reserved bits.
func readFrame(in *bufio.Reader) (f frame, err error) {
	var head [2]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return f, err
	}
	if head[0]&0xf0 != 0x80 || head[1]&0x80 == 0 {
		return f, fmt.Errorf("a frame begins with %#x", head)
	}
	size := uint64(head[1] & 0x7f)
	if width := map[uint64]int{126: 2, 127: 8}[size]; width > 0 {
		wide := make([]byte, 8)
		if _, err := io.ReadFull(in, wide[8-width:]); err != nil {
			return f, err
		}
		size = binary.BigEndian.Uint64(wide)
	}
	var key [4]byte
	if _, err := io.ReadFull(in, key[:]); err != nil {
		return f, err
	}
	f = frame{head[0] & 0x0f, make([]byte, size)}
	_, err = io.ReadFull(in, f.payload)
	for i := range f.payload {
		f.payload[i] ^= key[i%4]
	}
	return f, err
}
