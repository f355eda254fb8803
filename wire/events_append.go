package wire

import (
	"fmt"
	"strconv"
)

// AppendWatchFrame appends one frame of a server as a JSON object. A message is an array of
// such objects; the caller appends the brackets and commas. ok, error and draining are those
// of sessions.
func AppendWatchFrame(dst []byte, f ServerFrame) []byte {
	switch f := f.(type) {
	case *WatchEvent:
		return appendWatchEvent(dst, f)
	case *WatchTick:
		dst = appendText(dst, `{"type":"tick","id":`, f.ID)
		dst = appendInt(dst, `,"t":`, f.AtMs)
		return append(AppendWatchState(dst, &f.WatchState), '}')
	case *WatchGap:
		dst = appendText(dst, `{"type":"gap","id":`, f.ID)
		dst = appendInt(dst, `,"shard":`, int64(f.Shard))
		dst = strconv.AppendUint(append(dst, `,"from":`...), f.From, 10)
		dst = strconv.AppendUint(append(dst, `,"to":`...), f.To, 10)
		dst = appendText(dst, `,"reason":`, f.Reason)
		dst = strconv.AppendUint(append(dst, `,"missed":`...), f.Missed, 10)
		return append(optText(dst, `,"of":`, f.Of), '}')
	case *WatchProgress:
		return appendWatchProgress(dst, f)
	case *WatchOutput:
		return appendWatchOutput(dst, f)
	case *WatchMark:
		return append(appendPositions(append(dst, `{"type":"mark","positions":`...), f.Positions), '}')
	case *WatchSnapshot:
		dst = appendText(dst, `{"type":"snapshot","id":`, f.ID)
		if f.At != nil {
			dst = appendPositions(append(dst, `,"at":`...), f.At)
		}
		dst = optInt(dst, `,"t":`, f.AtMs)
		if f.Scanned != nil {
			dst = appendInt(dst, `,"scanned":`, *f.Scanned)
		}
		dst = optText(dst, `,"cursor":`, f.Cursor)
		if f.More {
			dst = append(dst, `,"more":true`...)
		}
		return append(AppendWatchState(dst, &f.WatchState), '}')
	case *WatchNames:
		return appendWatchNames(dst, f)
	case *WatchPoints:
		return appendWatchPoints(dst, f)
	case *WatchWelcome:
		return appendWatchWelcome(dst, f)
	case *WatchError:
		dst = AppendServerFrame(dst, &f.ErrorFrame)
		return append(optText(dst[:len(dst)-len("}")], `,"id":`, f.ID), '}')
	}
	return AppendServerFrame(dst, f)
}

func appendWatchEvent(dst []byte, f *WatchEvent) []byte {
	dst = appendText(dst, `{"type":"event","id":`, f.ID)
	dst = appendInt(dst, `,"shard":`, int64(f.Shard))
	dst = strconv.AppendUint(append(dst, `,"n":`...), f.Number, 10)
	dst = appendTime(dst, `,"at":`, f.AtMs)
	dst = appendTaskID(dst, `,"task":`, f.Task)
	dst = optText(dst, `,"tenant":`, f.Tenant)
	dst = appendText(dst, `,"command":`, f.Command)
	dst = optText(dst, `,"from":`, string(f.From))
	dst = optText(dst, `,"to":`, string(f.To))
	dst = optText(dst, `,"status":`, string(f.Status))
	dst = appendText(dst, `,"cause":`, f.Cause)
	dst = optInt(dst, `,"delivery":`, int64(f.Delivery))
	dst = optText(dst, `,"worker":`, f.Worker)
	dst = appendInt(dst, `,"spentMs":`, f.SpentMs)
	return append(appendInt(dst, `,"attempts":`, int64(f.Attempts)), '}')
}

func appendWatchWelcome(dst []byte, f *WatchWelcome) []byte {
	dst = appendText(dst, `{"type":"welcome","creationId":`, f.CreationID)
	dst = appendInt(dst, `,"shards":`, int64(f.Shards))
	dst = appendPositions(append(dst, `,"positions":`...), f.Positions)
	dst = appendPositions(append(dst, `,"oldest":`...), f.Oldest)
	dst = appendTime(dst, `,"serverTime":`, f.ServerTimeMs)
	dst = appendText(dst, `,"tenantId":`, f.TenantID)
	dst = strconv.AppendBool(append(dst, `,"admin":`...), f.Admin)
	dst = appendText(dst, `,"version":`, f.Version)
	if f.Leader != "" {
		dst = appendText(dst, `,"leader":`, f.Leader)
	}
	return append(appendTexts(dst, `,"features":`, f.Features), '}')
}

func appendPositions(dst []byte, p Positions) []byte {
	dst = append(dst, '{')
	for shard, n := range p {
		if shard > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, '"'), int64(shard), 10)
		dst = strconv.AppendUint(append(dst, `":`...), n, 10)
	}
	return append(dst, '}')
}

func appendWatchNames(dst []byte, f *WatchNames) []byte {
	dst = append(dst, `{"type":"names","queues":[`...)
	for i := range f.Queues {
		if i > 0 {
			dst = append(dst, ',')
		}
		q := &f.Queues[i]
		dst = appendInt(dst, "[", int64(q.Slot))
		if q.Command != "" {
			dst = appendText(appendText(dst, ",", q.Tenant), ",", q.Command)
		}
		dst = append(dst, ']')
	}
	return append(dst, "]}"...)
}

func appendWatchPoints(dst []byte, f *WatchPoints) []byte {
	dst = appendText(dst, `{"type":"points","id":`, f.ID)
	dst = appendInt(dst, `,"slot":`, int64(f.Slot))
	dst = appendInt(dst, `,"stepMs":`, f.StepMs)
	dst = append(dst, `,"points":[`...)
	for i := range f.Points {
		dst = appendFigures(dst, i, f.Points[i].AtMs, &f.Points[i].Figures)
	}
	return append(dst, "]}"...)
}

// appendFigures appends element i of a list: a slot or a time, and figures.
func appendFigures(dst []byte, i int, first int64, figures *Figures) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	dst = appendInt(dst, "[", first)
	for _, n := range figures {
		dst = appendInt(dst, ",", n)
	}
	return append(dst, ']')
}

// AppendWatchState appends the members of a state, each after a comma.
func AppendWatchState(dst []byte, s *WatchState) []byte {
	if s.Encoded != nil {
		return append(dst, s.Encoded...)
	}
	if s.Queues != nil {
		dst = append(dst, `,"queues":[`...)
		for i := range s.Queues {
			dst = appendFigures(dst, i, int64(s.Queues[i].Slot), &s.Queues[i].Figures)
		}
		dst = append(dst, ']')
	}
	if s.Task != nil {
		dst = AppendTask(append(dst, `,"task":`...), s.Task, PayloadAsString)
	}
	if s.Tasks != nil {
		dst = appendWatched(dst, `,"tasks":[`, len(s.Tasks), func(dst []byte, i int) []byte {
			return AppendTask(dst, s.Tasks[i], PayloadAsString)
		})
	}
	if s.Sessions != nil {
		dst = appendWatched(dst, `,"sessions":[`, len(s.Sessions), func(dst []byte, i int) []byte {
			return AppendSessionFigures(dst, &s.Sessions[i])
		})
	}
	if s.Server != nil {
		dst = appendServer(append(dst, `,"server":`...), s.Server)
	}
	if s.Needs != nil {
		dst = appendWatched(dst, `,"needs":[`, len(s.Needs), func(dst []byte, i int) []byte {
			return appendNeed(dst, &s.Needs[i])
		})
	}
	if s.Left != nil {
		dst = appendTexts(dst, `,"left":`, s.Left)
	}
	if s.Above != nil {
		dst = appendInt(dst, `,"above":`, *s.Above)
	}
	return dst
}

func appendServer(dst []byte, f *ServerFigures) []byte {
	c := writing(&dst)
	f.members(&c)
	return c.done()
}

func appendNeed(dst []byte, n *Need) []byte {
	c := writing(&dst)
	n.members(&c)
	return c.done()
}

func appendWatched(dst []byte, lead string, n int, element func(dst []byte, i int) []byte) []byte {
	dst = append(dst, lead...)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = element(dst, i)
	}
	return append(dst, ']')
}

// AppendWatchRequest appends one frame of a client as a JSON object. A message is one such
// object, or an array of them. It panics for an Unknown, which is never sent.
func AppendWatchRequest(dst []byte, f ClientFrame) []byte {
	switch f := f.(type) {
	case *Hello:
		return append(optText(optRef(append(dst, `{"type":"hello"`...), f.Ref), `,"token":`, f.Token), '}')
	case *WatchUnsubscribe:
		dst = optRef(append(dst, `{"type":"unsubscribe"`...), f.Ref)
		return append(appendText(dst, `,"id":`, f.ID), '}')
	case *WatchSubscribe:
		return appendWatchSubscribe(dst, f)
	}
	panic(fmt.Sprintf("watch frame %T has no encoding", f))
}

func appendWatchSubscribe(dst []byte, f *WatchSubscribe) []byte {
	dst = optRef(append(dst, `{"type":"subscribe"`...), f.Ref)
	dst = appendText(dst, `,"id":`, f.ID)
	dst = appendText(dst, `,"kind":`, f.Kind)
	if f.Commands != nil {
		dst = appendTexts(dst, `,"commands":`, f.Commands)
	}
	dst = optInt(dst, `,"everyMs":`, int64(f.EveryMs))
	dst = optText(dst, `,"range":`, rangeText(f.RangeMs))
	dst = optTaskID(dst, `,"taskId":`, f.TaskID)
	if f.Filter == nil {
		dst = optText(optText(dst, `,"command":`, f.Command), `,"state":`, f.State)
	} else {
		dst = append(append(dst, `,"filter":`...), f.Filter...)
	}
	dst = optInt(dst, `,"limit":`, int64(f.Limit))
	dst = optText(dst, `,"cursor":`, f.Cursor)
	if f.Causes != nil {
		dst = appendTexts(dst, `,"causes":`, f.Causes)
	}
	if f.After != nil {
		dst = appendPositions(append(dst, `,"from":`...), f.After)
	}
	dst = optText(dst, `,"creationId":`, f.CreationID)
	return append(optInt(dst, `,"maxPerSecond":`, int64(f.MaxPerSecond)), '}')
}

// The functions below append one member each. lead is the text before the value: comma,
// name and colon. Functions that begin with opt append nothing for an empty value.

func appendInt(dst []byte, lead string, n int64) []byte {
	return strconv.AppendInt(append(dst, lead...), n, 10)
}

func optInt(dst []byte, lead string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return appendInt(dst, lead, n)
}

func appendText(dst []byte, lead, text string) []byte {
	return AppendQuoted(append(dst, lead...), text)
}

func optText(dst []byte, lead, text string) []byte {
	if text == "" {
		return dst
	}
	return appendText(dst, lead, text)
}

func appendTime(dst []byte, lead string, unixMs int64) []byte {
	return AppendTimeMs(append(dst, lead...), unixMs)
}

func appendTaskID(dst []byte, lead string, id TaskID) []byte {
	dst = append(append(dst, lead...), '"')
	return append(id.AppendTo(dst), '"')
}

func optTaskID(dst []byte, lead string, id TaskID) []byte {
	if id.IsZero() {
		return dst
	}
	return appendTaskID(dst, lead, id)
}

func optRef(dst []byte, ref Ref) []byte {
	if !ref.Present {
		return dst
	}
	return appendInt(dst, `,"ref":`, ref.Value)
}
