package wire

import "fmt"

// The streams of a program.
const (
	StreamOut = "stdout"
	StreamErr = "stderr"
)

var (
	percentRule = integerRule{code: CodeInvalidArgument, high: 100}
	noteRule    = textRule{code: CodeInvalidArgument, high: MaxNoteBytes, exact: true}
	streamRule  = textRule{code: CodeInvalidArgument, high: MaxOutputBytes, filled: true, problem: streamProblem}
	outputRule  = textRule{code: CodeInvalidArgument, high: MaxOutputBytes, required: true, exact: true, tooLong: CodeTooLarge}
)

func streamProblem(name string) string {
	if name != StreamOut && name != StreamErr {
		return fmt.Sprintf("must be stdout or stderr, got %.40q", name)
	}
	return ""
}

// ProgressRequest is the body of POST /tasks/{id}/progress and the fields of a progress frame: how
// far the work is. It has at least one of its members, and replaces what was said before.
type ProgressRequest struct {
	// Percent is from 0 to 100, if HasPercent.
	Percent    int
	HasPercent bool
	// Note is a sentence for people.
	Note string
	// Data is any JSON value, byte for byte; nil is none.
	Data []byte
}

func (r *ProgressRequest) members(c *coder) {
	given := integer(c, `,"percent":`, &r.Percent, r.HasPercent, &percentRule)
	if c.in != nil {
		r.HasPercent = given
	}
	c.optText(`,"note":`, &r.Note, &noteRule)
	c.optRaw(`,"data":`, &r.Data)
	if c.in == nil || c.in.answer {
		return
	}
	if len(r.Data) > MaxProgressBytes {
		c.in.refuse(CodeTooLarge, c.last(), fmt.Sprintf("must be at most %d bytes, got %d", MaxProgressBytes, len(r.Data)))
	}
	if !r.HasPercent && r.Note == "" && r.Data == nil {
		c.in.refuseNamed(CodeInvalidArgument, "percent", "is required, or note or data")
	}
}

// TaskProgress is how far the work on a task is, as its worker has said last.
type TaskProgress struct {
	ProgressRequest
	// AtMs is when the server took it, Unix milliseconds, and Delivery the delivery that was the
	// work.
	AtMs     int64
	Delivery int
}

func (p *TaskProgress) members(c *coder) {
	p.ProgressRequest.members(c)
	c.optTime(`,"at":`, &p.AtMs, &anyTimeRule)
	optInteger(c, `,"delivery":`, &p.Delivery, &anyIntegerRule)
}

var progressShape = shapeOf(new([]string), new(TaskProgress).members)

func (c *coder) progress(lead string, p **TaskProgress) {
	if c.in != nil {
		read := &TaskProgress{}
		if c.inner(lead, CodeInvalidBody, progressShape, read.members) {
			*p = read
		}
	} else if *p != nil {
		at := c.open(lead)
		(*p).members(c)
		c.close(at)
	}
}

// AppendProgress appends what a record keeps of it, a JSON object.
func AppendProgress(dst []byte, p *TaskProgress) []byte {
	c := writing(&dst)
	p.members(&c)
	return c.done()
}

// ReadProgress reads what AppendProgress wrote; nil for an empty text, and for any other.
func ReadProgress(text string) *TaskProgress {
	if text == "" {
		return nil
	}
	o, p := object{names: *progressShape.names, answer: true}, &TaskProgress{}
	if o.scanAlone([]byte(text)) != "" {
		return nil
	}
	if p.members(&coder{in: &o, shape: progressShape}); o.err != nil {
		return nil
	}
	return p
}

// Outline is the progress without what the worker wrote.
func (p *TaskProgress) Outline() *TaskProgress {
	if p == nil {
		return nil
	}
	plain := *p
	plain.Note, plain.Data = "", nil
	return &plain
}

// ParseProgressRequest reads the body of POST /tasks/{id}/progress and whose the delivery is. Data
// aliases body.
func ParseProgressRequest(body []byte) (*ProgressRequest, Holder, *Error) {
	return parseCall(body, progressCall, (*ProgressRequest).members)
}

// ParseOutputRequest reads the body of POST /tasks/{id}/output and whose the delivery is.
func ParseOutputRequest(body []byte) (*OutputRequest, Holder, *Error) {
	return parseCall(body, outputCall, (*OutputRequest).members)
}

// OutputRequest is the body of POST /tasks/{id}/output and the fields of an output frame: a piece of
// what the program prints that does the work.
type OutputRequest struct {
	// Stream is StreamOut or StreamErr; the empty one is StreamOut.
	Stream string
	// Text has its line ends.
	Text string
}

func (r *OutputRequest) members(c *coder) {
	c.optText(`,"stream":`, &r.Stream, &streamRule)
	c.text(`,"text":`, &r.Text, &outputRule)
}

// Progress says how far a delivery is.
type Progress struct {
	Ref
	TaskRef
	ProgressRequest
}

func (f *Progress) members(c *coder) {
	c.kind("progress", &f.Ref)
	f.TaskRef.members(c)
	f.ProgressRequest.members(c)
}

// Output is a piece of what the program of a delivery prints.
type Output struct {
	Ref
	TaskRef
	OutputRequest
}

func (f *Output) members(c *coder) {
	c.kind("output", &f.Ref)
	f.TaskRef.members(c)
	f.OutputRequest.members(c)
}
