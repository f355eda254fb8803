package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

var (
	errPositions = errors.New("positions must have a number for each shard, from 0 on")
	errRow       = errors.New("a row must begin with its slot or time and have all figures")
)

// timeMs is Unix milliseconds, written as an RFC 3339 time; null leaves it 0.
type timeMs int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *timeMs) UnmarshalText(text []byte) error {
	ms, ok := ParseTimeMs(string(text))
	if !ok {
		return errors.New("a time must be RFC 3339, such as 2026-01-31T12:00:00Z")
	}
	*t = timeMs(ms)
	return nil
}

// ParseWatchMessage reads one message of a server of the watch protocol: an array of frames.
// Frames of an unknown type, unknown members and further figures in a row are passed over, so
// that a client works with a newer server.
func ParseWatchMessage(data []byte) ([]ServerFrame, error) {
	var list []json.RawMessage
	err := json.Unmarshal(data, &list)
	if err == nil && !utf8.Valid(data) {
		err = errors.New("it is not UTF-8")
	}
	frames := make([]ServerFrame, 0, len(list))
	for _, raw := range list {
		if err != nil {
			break
		}
		var f ServerFrame
		if f, err = parseWatchFrame(raw); f != nil && err == nil {
			frames = append(frames, f)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read message of events: %w", err)
	}
	return frames, nil
}

// parseWatchFrame reads one frame, nil if its type is not known.
func parseWatchFrame(raw []byte) (f ServerFrame, err error) {
	var head struct {
		Type string
		ID   string
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	switch head.Type {
	case "welcome":
		f = &WatchWelcome{}
	case "names":
		f = &WatchNames{}
	case "snapshot":
		f = &WatchSnapshot{}
	case "tick":
		f = &WatchTick{}
	case "points":
		f = &WatchPoints{}
	case "event":
		f = &WatchEvent{}
	case "gap":
		f = &WatchGap{}
	case "progress":
		f = &WatchProgress{}
	case "output":
		f = &WatchOutput{}
	case "mark":
		f = &WatchMark{}
	case "ok", "error", "draining":
		return parseCommonFrame(raw, head.ID)
	default:
		return nil, nil
	}
	err = json.Unmarshal(raw, f)
	if err == nil && !whole(f) {
		err = errors.New(head.Type + " lacks a task, a list or a positive number")
	}
	return f, err
}

// whole reports whether a frame can be used as it is.
func whole(f ServerFrame) bool {
	switch f := f.(type) {
	case *WatchSnapshot:
		return !slices.Contains(f.Tasks, nil)
	case *WatchTick:
		return !slices.Contains(f.Tasks, nil)
	case *WatchGap:
		return f.Shard >= 0
	case *WatchWelcome:
		return f.CreationID != "" && len(f.Positions) == f.Shards && len(f.Oldest) == f.Shards
	case *WatchProgress:
		return !f.Task.IsZero() && f.Number > 0
	case *WatchOutput:
		return !f.Task.IsZero() && f.Number > 0
	case *WatchEvent:
		return !f.Task.IsZero() && f.Number > 0 && f.Shard >= 0
	}
	return true
}

// parseCommonFrame reads a frame that sessions have as well.
func parseCommonFrame(raw []byte, id string) (ServerFrame, error) {
	frames, err := ParseServerMessage(raw)
	if err != nil {
		return nil, err
	}
	if e, ok := frames[0].(*ErrorFrame); ok {
		return &WatchError{ID: id, ErrorFrame: *e}, nil
	}
	return frames[0], nil
}

// UnmarshalJSON reads the frame as AppendWatchFrame writes it.
func (f *WatchWelcome) UnmarshalJSON(data []byte) error {
	type plain WatchWelcome
	in := struct {
		*plain
		ServerTime timeMs
	}{plain: (*plain)(f)}
	err := json.Unmarshal(data, &in)
	f.ServerTimeMs = int64(in.ServerTime)
	return err
}

// UnmarshalJSON reads the frame as AppendWatchFrame writes it.
func (f *WatchEvent) UnmarshalJSON(data []byte) error {
	type plain WatchEvent
	in := struct {
		*plain
		At timeMs
	}{plain: (*plain)(f)}
	err := json.Unmarshal(data, &in)
	f.AtMs = int64(in.At)
	return err
}

// UnmarshalJSON reads a list with the slot, and the tenant and command of its queue.
func (s *SlotName) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	const gone, named = 1, 3
	if len(list) != gone && len(list) < named {
		return errors.New("a name must be a slot, or a slot, a tenant and a command")
	}
	err := json.Unmarshal(list[0], &s.Slot)
	if len(list) >= named {
		err = errors.Join(err, json.Unmarshal(list[1], &s.Tenant), json.Unmarshal(list[2], &s.Command))
	}
	return err
}

// UnmarshalJSON reads a list with the slot and all figures.
func (r *QueueRow) UnmarshalJSON(data []byte) error {
	first, err := r.Figures.read(data)
	if r.Slot = uint32(first); err == nil && int64(r.Slot) != first {
		err = errRow
	}
	return err
}

// UnmarshalJSON reads a list with the time and all figures.
func (p *WatchPoint) UnmarshalJSON(data []byte) (err error) {
	p.AtMs, err = p.Figures.read(data)
	return err
}

// read reads a list of integers: first and the figures. More figures are passed over.
func (f *Figures) read(data []byte) (first int64, err error) {
	var list []int64
	if err := json.Unmarshal(data, &list); err != nil {
		return 0, err
	}
	if len(list) <= len(f) {
		return 0, errRow
	}
	copy(f[:], list[1:])
	return list[0], nil
}
