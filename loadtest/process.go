package loadtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// clockTick is the unit of processor times in /proc: Linux fixes it to a
// hundredth of a second for programs.
const clockTick = 10 * time.Millisecond

// Process is a Meter of a process of this machine, read from /proc, which
// Linux has.
type Process struct{ pid int }

// ProcessOf is the process with that id.
func ProcessOf(pid int) Process { return Process{pid} }

func (p Process) file(name string) string { return filepath.Join("/proc", strconv.Itoa(p.pid), name) }

// CPU implements Meter: user and system time of all threads, in steps of a
// hundredth of a second.
func (p Process) CPU() (time.Duration, error) {
	data, err := os.ReadFile(p.file("stat"))
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	return parseCPU(data)
}

// parseCPU reads fields 14 and 15. The name in field 2 may hold anything, so
// it counts from the last bracket.
func parseCPU(stat []byte) (time.Duration, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("read processor time: %d fields are too few", len(fields))
	}
	var sum int64
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}
		sum += ticks
	}
	return time.Duration(sum) * clockTick, nil
}

// RSSBytes implements Meter.
func (p Process) RSSBytes() (int64, error) {
	data, err := os.ReadFile(p.file("statm"))
	if err != nil {
		return 0, fmt.Errorf("read memory in use: %w", err)
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0, fmt.Errorf("read memory in use: %d fields are too few", len(fields))
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read memory in use: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}
