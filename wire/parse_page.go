package wire

import (
	"errors"
	"fmt"
	"math"
)

// The members of a page of tasks.
const (
	pageTasks = iota
	pageCursor
)

var pageNames = []string{pageTasks: "tasks", pageCursor: "cursor"}

// ParseTaskPage reads a page of a list of tasks and the cursor that leads to the
// next one, empty on the last.
func ParseTaskPage(data []byte) (tasks []*Task, cursor string, err error) {
	o := object{names: pageNames}
	if problem := o.scanAlone(data); problem != "" {
		return nil, "", errors.New("read page of tasks: page " + problem)
	}
	list, given := o.elements(pageTasks, CodeInvalidBody, math.MaxInt)
	if !given {
		o.refuse(CodeInvalidBody, pageTasks, "is required: a list")
	}
	cursor = o.text(pageCursor, &anyTextRule)
	for i, raw := range list {
		e := o.element(pageTasks, i, raw, taskNames, CodeInvalidBody)
		tasks = append(tasks, e.task(PayloadAsString))
		if e.err != nil {
			o.err = e.err
			break
		}
	}
	if o.err != nil {
		return nil, "", fmt.Errorf("read page of tasks: %s", o.err.Sentence)
	}
	return tasks, cursor, nil
}
