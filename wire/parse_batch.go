package wire

import "fmt"

// BatchItem is one element of a batch of tasks: a request that is good, or the
// refusal of one that is not. Bytes is the length of its text.
type BatchItem struct {
	Request EnqueueRequest
	Err     *Error
	Bytes   int
}

// ResultItem is one element of a batch of results, likewise. TaskID is zero in a
// refusal of an element that names no task; in others it stands.
type ResultItem struct {
	TaskID TaskID
	Holder
	Request ResultRequest
	Err     *Error
	Bytes   int
}

func (i *ResultItem) members(c *coder) {
	c.taskID(`,"taskId":`, &i.TaskID)
	i.Holder.members(c)
	i.Request.members(c)
}

var itemShape = shapeOf(&requestNames, new(ResultItem).members)

// ParseBatchRequest reads the body of POST /tasks/batch. Its elements stand
// alone: each is checked as the body of POST /tasks is, and one that fails
// carries its own refusal. The refusal that is returned is of the body as a
// whole. Payloads alias body, which the caller must not touch again.
func ParseBatchRequest(body []byte) ([]BatchItem, *Error) {
	b := batch{scanner: scanner{data: body}, list: "tasks"}
	var items []BatchItem
	refusal := b.read(func(o *object, bytes int) {
		o.checkMembers(enqueueShape.bits)
		item := BatchItem{Bytes: bytes}
		item.Request.members(&coder{in: o, shape: enqueueShape})
		if o.err != nil {
			item = BatchItem{Err: o.err, Bytes: bytes}
		}
		items = append(items, item)
	})
	if refusal != nil {
		return nil, refusal
	}
	return items, nil
}

// ParseResultBatch reads the body of POST /tasks/batch/results in the same way:
// each element is the body of POST /tasks/{id}/result with the taskId in it.
// Results alias body.
func ParseResultBatch(body []byte) ([]ResultItem, *Error) {
	b := batch{scanner: scanner{data: body}, list: "results"}
	var items []ResultItem
	refusal := b.read(func(o *object, bytes int) {
		o.checkMembers(itemShape.bits)
		item := ResultItem{Bytes: bytes}
		item.members(&coder{in: o, shape: itemShape})
		if o.err != nil {
			item = ResultItem{TaskID: o.namedTask(fieldTaskID, 1<<fieldTaskID), Err: o.err, Bytes: bytes}
		}
		items = append(items, item)
	})
	if refusal != nil {
		return nil, refusal
	}
	return items, nil
}

// batch is the body of a batch under inspection. It is not an object with a
// list member, because the depth and the members of each element are judged by
// themselves, and because a list is to be walked once.
type batch struct {
	scanner
	// list is the name of the list, which is also the word for its elements.
	list string
	// visit gets each element, in order; one that is no object has its refusal.
	visit func(o *object, bytes int)
	// element is the one that visit gets; it is large, so there is one.
	element object
	// lists counts the members of that name; instead describes one that is no
	// list, empty if it is one.
	lists   int
	instead string
	// stranger is the first name that is not list, as it was scanned.
	stranger []byte
	// count is the length of the list. What is over the limit is counted only.
	count   int
	tooDeep bool
}

// read walks the body and returns what is wrong with it as a whole.
func (b *batch) read(visit func(o *object, bytes int)) *Error {
	b.visit = visit
	if problem := b.alone(b.members); problem != "" {
		return Refuse(CodeInvalidBody, "body "+problem)
	}
	return b.check()
}

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
	isList := string(plainName(name)) == b.list
	if isList {
		b.lists++
	} else if b.stranger == nil {
		b.stranger = name
	}
	first := b.peek()
	if isList && b.lists == 1 && first == '[' {
		return b.frames(b.item)
	}
	start := b.pos
	b.deepest = 0
	if !b.value(0) {
		return false
	}
	if isList {
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
		b.element = object{names: requestNames, err: Refuse(CodeInvalidBody, fmt.Sprintf("%s[%d] must be an object, got %s",
			b.list, index, describe(b.data[start:b.pos])))}
		b.visit(&b.element, b.pos-start)
		return true
	}
	b.element = object{names: requestNames, list: b.list, index: index}
	if !b.object(&b.element) {
		return false
	}
	b.visit(&b.element, b.pos-start)
	return true
}

// check refuses what is wrong with the batch as a whole.
func (b *batch) check() *Error {
	switch {
	case b.lists > 1:
		return Refuse(CodeInvalidBody, b.list+" must not appear twice")
	case b.tooDeep:
		return Refuse(CodeInvalidBody, "a member "+problemTooDeep)
	case b.stranger != nil:
		return Refuse(CodeUnknownMember, notKnown("", b.stranger, []string{b.list}))
	case b.lists == 0 || b.instead == "null":
		return Refuse(CodeInvalidArgument, fmt.Sprintf("%s is required: a list of 1 to %d %s", b.list, MaxBatchTasks, b.list))
	case b.instead != "":
		return Refuse(CodeInvalidArgument, b.list+" must be a list, got "+b.instead)
	case b.count < 1 || b.count > MaxBatchTasks:
		return Refuse(CodeInvalidArgument,
			fmt.Sprintf("%s must have 1 to %d elements, got %d", b.list, MaxBatchTasks, b.count))
	}
	return nil
}
