package wire

import "fmt"

// BatchItem is one element of a batch of tasks: a request that is good, or the
// refusal of one that is not. Bytes is the length of its text.
type BatchItem struct {
	Request EnqueueRequest
	Err     *Error
	Bytes   int
}

// ParseBatchRequest reads the body of POST /tasks/batch. Its elements stand
// alone: each is checked as the body of POST /tasks is, and one that fails
// carries its own refusal. The refusal that is returned is of the body as a
// whole. Payloads alias body, which the caller must not touch again.
func ParseBatchRequest(body []byte) ([]BatchItem, *Error) {
	b := batch{scanner: scanner{data: body}}
	if problem := b.alone(b.members); problem != "" {
		return nil, Refuse(CodeInvalidBody, "body "+problem)
	}
	if refusal := b.judge(); refusal != nil {
		return nil, refusal
	}
	return b.items, nil
}

// batch is the body of a batch under inspection. It is not an object with a
// list member, because the depth and the members of each element are judged by
// themselves, and because a list is to be walked once.
type batch struct {
	scanner
	items []BatchItem
	// tasks counts the members of that name; instead describes one that is no
	// list, empty if it is one.
	tasks   int
	instead string
	// count is the length of the list. What is over the limit is counted only.
	count   int
	tooDeep bool
}

const batchTasks = "tasks"

// members consumes the body.
func (b *batch) members() bool {
	b.pos++
	if b.peek() == '}' {
		b.pos++
		return true
	}
	for {
		b.space()
		start := b.pos
		if !b.memberName() || !b.member(b.data[start:b.pos]) {
			return false
		}
		if more, ok := b.separator('}'); !ok || !more {
			return ok
		}
	}
}

// member consumes the value of a member.
func (b *batch) member(name []byte) bool {
	isTasks := string(plainName(name)) == batchTasks
	if isTasks {
		b.tasks++
	}
	first := b.peek()
	if isTasks && b.tasks == 1 && first == '[' {
		return b.frames(b.item)
	}
	start := b.pos
	b.deepest = 0
	if !b.value(0) {
		return false
	}
	if isTasks {
		b.instead = describe(b.data[start:b.pos])
		return true
	}
	b.tooDeep = b.tooDeep || b.deepest > MaxNesting
	return true
}

// item consumes one element of the list.
func (b *batch) item() bool {
	index, start := b.count, b.pos
	b.count++
	if index >= MaxBatchTasks {
		return b.value(0)
	}
	if b.peek() != '{' {
		if !b.value(0) {
			return false
		}
		b.items = append(b.items, BatchItem{
			Err: Refuse(CodeInvalidBody, fmt.Sprintf("%s[%d] must be an object, got %s",
				batchTasks, index, describe(b.data[start:b.pos]))),
			Bytes: b.pos - start,
		})
		return true
	}
	o := object{names: requestNames, list: batchTasks, index: index}
	if !b.object(&o) {
		return false
	}
	o.judge(enqueueBits)
	item := BatchItem{Request: o.enqueueRequest(), Err: o.err, Bytes: b.pos - start}
	if o.err != nil {
		item.Request = EnqueueRequest{}
	}
	b.items = append(b.items, item)
	return true
}

// judge refuses what is wrong with the batch as a whole.
func (b *batch) judge() *Error {
	switch {
	case b.tasks > 1:
		return Refuse(CodeInvalidBody, batchTasks+" must not appear twice")
	case b.tooDeep:
		return Refuse(CodeInvalidBody, "a member "+problemTooDeep)
	case b.tasks == 0 || b.instead == "null":
		return Refuse(CodeInvalidArgument, fmt.Sprintf("%s is required: a list of 1 to %d tasks", batchTasks, MaxBatchTasks))
	case b.instead != "":
		return Refuse(CodeInvalidArgument, batchTasks+" must be a list, got "+b.instead)
	case b.count < 1 || b.count > MaxBatchTasks:
		return Refuse(CodeInvalidArgument,
			fmt.Sprintf("%s must have 1 to %d elements, got %d", batchTasks, MaxBatchTasks, b.count))
	}
	return nil
}
