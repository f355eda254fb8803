package client

import (
	"context"

	"codeq/wire"
)

// mostReports bounds the reports that wait to be sent; further output is dropped.
const mostReports = 1000

// Progress says how far the work is, in place of all that was said before. Who watches the task
// sees it, and it stays with the task after its end. It is sent without waiting for an answer, and
// lost while the worker has no connection. It may be called from any goroutine until the handler
// returns; later calls do nothing.
func (d Delivery) Progress(r wire.ProgressRequest) {
	if d.report != nil {
		d.report(func(ref wire.TaskRef) wire.ClientFrame { return &wire.Progress{TaskRef: ref, ProgressRequest: r} })
	}
}

// Output sends a piece of what the work prints, at most 16 KiB, to those who watch the task.
// stream is wire.StreamOut or wire.StreamErr. It is like Progress otherwise; the server keeps the
// last output of a task in memory.
func (d Delivery) Output(stream, text string) {
	if d.report != nil {
		r := wire.OutputRequest{Stream: stream, Text: text}
		d.report(func(ref wire.TaskRef) wire.ClientFrame { return &wire.Output{TaskRef: ref, OutputRequest: r} })
	}
}

type deliveryKey struct{}

// Report says how far the handler of Work is whose context this is: from 0 to 100 percent, less
// than 0 for nobody knows, and a sentence, which may be empty. See Delivery.Progress.
func Report(ctx context.Context, percent int, note string) {
	if d, ok := ctx.Value(deliveryKey{}).(Delivery); ok {
		d.Progress(wire.ProgressRequest{Percent: max(0, percent), HasPercent: percent >= 0, Note: note})
	}
}

// reporter is what lets the handler of a delivery report.
func (l *workerLoop) reporter(own context.Context, d *delivery) func(func(wire.TaskRef) wire.ClientFrame) {
	return func(frame func(wire.TaskRef) wire.ClientFrame) {
		select {
		case l.worker.events <- func() { l.sendReport(d, frame(d.ref)) }:
		case <-own.Done():
		}
	}
}

// sendReport sends a report over the present link, if there is one. A refusal of it has no answer
// for this worker: it comes without a ref.
func (l *workerLoop) sendReport(d *delivery, frame wire.ClientFrame) {
	if l.link != nil && d.state == running && d.lost == nil && len(l.out) < mostReports {
		l.out = append(l.out, frame)
	}
}
