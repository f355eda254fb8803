package store

import (
	"fmt"
	"slices"

	"codeq/wire"
)

// TaskFiles is what the store knows of the files that were uploaded for a task.
type TaskFiles struct {
	// Found: there is such a task, and Ended: it has ended.
	Found, Ended bool
	// Delivery is the newest one, Named are the files that the result names.
	Delivery int
	Named    []string
}

// Needs reports whether a file is named by the result of its task, or may still be: a task that has
// not ended needs those of its newest delivery.
func (f *TaskFiles) Needs(file string) bool {
	if f.Ended {
		return slices.Contains(f.Named, file)
	}
	delivery := 0
	n, _ := fmt.Sscanf(file, "%d.", &delivery)
	return f.Found && (n == 0 || delivery >= f.Delivery)
}

// ReadFiles reads which files of a task are of use. It may not be durable yet, see WaitDurable.
func (s *Store) ReadFiles(id wire.TaskID) (f TaskFiles, err error) {
	err = s.withSnapshot(id, func(v *view) error {
		r, err := v.task(id)
		if err != nil || r == nil {
			return err
		}
		f = TaskFiles{Found: true, Ended: r.Status.Terminal(), Delivery: r.Deliveries}
		if !f.Ended {
			l, err := v.lease(r.Queue(), id)
			if err == nil && l != nil {
				f.Delivery = l.Delivery
			}
			return err
		}
		result, err := v.resultOf(r)
		if err != nil || result == nil {
			return err
		}
		for i := range result.Artifacts {
			f.Named = append(f.Named, result.Artifacts[i].File)
		}
		return nil
	})
	return f, err
}
