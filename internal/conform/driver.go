package conform

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxLineBytes is the longest line of a driver.
	maxLineBytes = 4 << 20
	// endFor is how long a driver may take to end at the end of its input.
	endFor = time.Minute
	// tailBytes is how much of its standard error is shown.
	tailBytes = 2 << 10
)

// event is one line of a driver.
type event map[string]any

// String is the line.
func (e event) String() string {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Sprint(map[string]any(e))
	}
	return string(line)
}

// driver is the process of an SDK. Its events come in order from lines, which is closed at their end.
type driver struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan event
	said  tail
	// wrong is a line that is none, set before lines is closed.
	wrong error
}

// startDriver starts a driver; the end of ctx kills it.
func startDriver(ctx context.Context, command []string) (*driver, error) {
	d := &driver{cmd: exec.CommandContext(ctx, command[0], command[1:]...), lines: make(chan event, 10_000)}
	d.cmd.Stderr = &d.said
	in, err := d.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the driver: %w", err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the driver: %w", err)
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the driver: %w", err)
	}
	d.in = in
	go d.read(out)
	return d, nil
}

// read is the goroutine that reads lines.
func (d *driver) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 64<<10), maxLineBytes)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			d.wrong = fmt.Errorf("the driver printed %.200q, which is no JSON object", lines.Text())
			break
		}
		d.lines <- e
	}
	close(d.lines)
	_, _ = io.Copy(io.Discard, out) // so that the driver is not held up by a full pipe
}

// say writes a command.
func (d *driver) say(command any) error {
	line, err := json.Marshal(command)
	if err != nil {
		return fmt.Errorf("write a command: %w", err)
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the driver does not read commands: %w", err)
	}
	return nil
}

// terminate sends TERM.
func (d *driver) terminate() error { return d.cmd.Process.Signal(syscall.SIGTERM) }

// end closes the input, waits for the end of the process, and kills one that stays.
func (d *driver) end() error {
	_ = d.in.Close() // the process may have ended
	late := time.AfterFunc(endFor, func() { _ = d.cmd.Process.Kill() })
	for range d.lines { // the pipe must be read to its end before Wait
	}
	err := d.cmd.Wait()
	if !late.Stop() {
		return fmt.Errorf("the driver did not end within %v after its input had", endFor)
	}
	if err != nil {
		return fmt.Errorf("the driver ended with %w", err)
	}
	return nil
}

// tail keeps the end of what is written. Any goroutine.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String is what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
