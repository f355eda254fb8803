package wire

import (
	"encoding/json"
	"strconv"
)

// WatchProgress says how far the task of a subscription is.
type WatchProgress struct {
	ID string
	// Number rises with each report of any task, over restarts of the server too.
	Number uint64
	Task   TaskID
	TaskProgress
}

// WatchOutput is a piece of what the program prints that works on the task of a subscription.
type WatchOutput struct {
	ID string
	// Number is like that of WatchProgress.
	Number   uint64
	Task     TaskID
	AtMs     int64
	Delivery int
	OutputRequest
}

func (*WatchProgress) serverFrame() {}
func (*WatchOutput) serverFrame()   {}

func appendReport(dst []byte, kind, id string, number uint64, task TaskID) []byte {
	dst = appendText(append(append(append(dst, `{"type":"`...), kind...), '"'), `,"id":`, id)
	return appendTaskID(strconv.AppendUint(append(dst, `,"n":`...), number, 10), `,"task":`, task)
}

func appendWatchProgress(dst []byte, f *WatchProgress) []byte {
	dst = appendReport(dst, "progress", f.ID, f.Number, f.Task)
	c := writing(&dst)
	f.members(&c)
	return append(dst, '}')
}

func appendWatchOutput(dst []byte, f *WatchOutput) []byte {
	dst = appendReport(dst, "output", f.ID, f.Number, f.Task)
	dst = appendTime(dst, `,"at":`, f.AtMs)
	dst = appendInt(dst, `,"delivery":`, int64(f.Delivery))
	return append(appendText(appendText(dst, `,"stream":`, f.Stream), `,"text":`, f.Text), '}')
}

// UnmarshalJSON reads the frame as AppendWatchFrame writes it.
func (f *WatchProgress) UnmarshalJSON(data []byte) error {
	var in struct {
		ID       string
		N        uint64
		Task     TaskID
		Percent  *int
		Note     string
		Data     json.RawMessage
		At       timeMs
		Delivery int
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	f.ID, f.Number, f.Task, f.Note, f.AtMs, f.Delivery = in.ID, in.N, in.Task, in.Note, int64(in.At), in.Delivery
	if f.HasPercent = in.Percent != nil; f.HasPercent {
		f.Percent = *in.Percent
	}
	if string(in.Data) != "null" {
		f.Data = in.Data
	}
	return nil
}

// UnmarshalJSON reads the frame as AppendWatchFrame writes it.
func (f *WatchOutput) UnmarshalJSON(data []byte) error {
	var in struct {
		ID           string
		N            uint64
		Task         TaskID
		At           timeMs
		Delivery     int
		Stream, Text string
	}
	err := json.Unmarshal(data, &in)
	f.ID, f.Number, f.Task, f.AtMs, f.Delivery = in.ID, in.N, in.Task, int64(in.At), in.Delivery
	f.Stream, f.Text = in.Stream, in.Text
	return err
}
