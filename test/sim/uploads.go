package sim

import (
	"fmt"
	"slices"

	"codeq/shard"
	"codeq/wire"
)

// Workers upload files. A file lasts if the result of its delivery names it, and no longer than its
// task; what a crash or a lost delivery leaves behind goes when the task ends, at the latest. The
// directory is in memory here, and its keeper looks at once. The numbers and names of files, and what
// the store says of them, are those of production.

// files are the directory of all tasks, which outlives every crash.
type files struct {
	stored []storedFile
	// due are the tasks whose files must be looked at.
	due []wire.TaskID
	// listed are the names that workers were told are listed.
	listed map[wire.TaskRef][]string
}

type storedFile struct {
	task wire.TaskID
	file string
}

// upload is a file on its way, of the worker of a delivery. file is its name once it is stored.
type upload struct {
	world *world
	owner shard.Owner
	ref   wire.TaskRef
	name  string
	file  string
	// breaks: the worker leaves before the file is listed.
	breaks bool
}

func sameArtifact(a, b wire.Artifact) bool {
	return a.Name == b.Name && a.URL == b.URL && a.File == b.File && a.SizeBytes == b.SizeBytes && a.SHA256 == b.SHA256
}

// upload numbers new files of a delivery, or lists one in place of an older one of its name.
func (m *model) upload(a *shard.Upload) {
	t := m.held(&a.Holder)
	if t == nil {
		return
	}
	m.confirm(t)
	want := shard.Uploaded{Delivery: t.deliveries, First: t.begun + 1}
	t.begun += a.Begin
	if a.Artifact != nil {
		listed := *a.Artifact
		listed.URL = fmt.Sprintf("/v1/codeq/tasks/%v/artifacts/%s", t.id, listed.Name)
		t.listed = slices.Clone(t.listed)
		if i := slices.IndexFunc(t.listed, func(o wire.Artifact) bool { return o.Name == listed.Name }); i >= 0 {
			want.Replaced, t.listed[i] = t.listed[i].File, listed
		} else {
			t.listed = append(t.listed, listed)
		}
	}
	if e := expect[*shard.Uploaded](m, a.Asker); e.Delivery != want.Delivery || e.First != want.First || e.Replaced != want.Replaced {
		violate("files are numbered and named as they come", "want %+v, got %+v for %+v", want, *e, t)
	}
}

// fileBytes are the bytes of the files that a task has: those that may be named, or that its result
// names.
func (t *task) fileBytes() (bytes int64) {
	has := t.listed
	if !t.open() && t.result != nil {
		has = t.result.Artifacts
	}
	for _, a := range has {
		if !t.removed {
			bytes += a.SizeBytes
		}
	}
	return bytes
}

// filesOf are the files that a result names, if the delivery has listed all of them.
func (t *task) filesOf(named []wire.Artifact) (found []wire.Artifact, all bool) {
	for _, a := range named {
		i := slices.IndexFunc(t.listed, func(o wire.Artifact) bool { return o.Name == a.Name })
		if i < 0 {
			return nil, false
		}
		found = append(found, t.listed[i])
	}
	return found, true
}

// uploadSome is a worker that uploads a file for a delivery, mostly one that it has.
func (w *world) uploadSome() {
	c := w.chance
	u := &upload{world: w, name: pick(c, []string{"log", "plot", "plot"}), breaks: c.oneIn(8)}
	if cl := pick(c, w.clients); len(cl.inHand) > 0 && !c.oneIn(6) {
		u.ref, u.owner = pick(c, cl.inHand).ref, shard.Owner{Tenant: cl.tenant, Subject: cl.subject}
	} else if len(w.overheard) > 0 {
		u.ref = pick(c, w.overheard)
	}
	t := w.model.tasks[u.ref.TaskID]
	if t == nil {
		return
	}
	if u.owner.Tenant == "" {
		u.owner = shard.Owner{Tenant: t.tenant, Subject: t.speaker()}
	}
	w.trace.say("  PUT file %s of %s by %s", u.name, w.name(u.ref.TaskID), u.owner.Subject)
	u.post(&shard.Upload{Begin: 1})
}

func (u *upload) post(m *shard.Upload) {
	call := func(to shard.Asker) shard.Message {
		m.Holder = shard.Holder{Asker: to, Owner: u.owner, TaskRef: u.ref}
		return m
	}
	(&request{world: u.world, call: call, about: u.ref.TaskID, upload: u}).post()
}

// goesOn stores a file that has its number, and has it listed.
func (u *upload) goesOn(e *shard.Uploaded) {
	f := &u.world.files
	if u.file != "" {
		if e.Replaced != "" {
			f.remove(storedFile{u.ref.TaskID, e.Replaced})
		}
		f.listed[u.ref] = append(f.listed[u.ref], u.name)
		return
	}
	u.file = fmt.Sprintf("%d.%d", e.Delivery, e.First)
	f.stored = append(f.stored, storedFile{u.ref.TaskID, u.file})
	if !u.breaks {
		u.post(&shard.Upload{Artifact: &wire.Artifact{Name: u.name, SizeBytes: int64(len(u.file)), SHA256: "ab", File: u.file}})
	}
}

// drop removes a file that no shard lists.
func (f *files) drop(u *upload) {
	if u != nil && u.file != "" {
		f.remove(storedFile{u.ref.TaskID, u.file})
	}
}

func (f *files) remove(gone storedFile) {
	f.stored = slices.DeleteFunc(f.stored, func(s storedFile) bool { return s == gone })
}

// filesNamed are artifacts of a result: some of those that were uploaded for the delivery, seldom another.
func (w *world) filesNamed(ref wire.TaskRef) (some []wire.Artifact) {
	if !w.shape.files || w.chance.oneIn(3) {
		return nil
	}
	if w.chance.oneIn(20) {
		return []wire.Artifact{{Name: "plot"}}
	}
	for _, name := range w.files.listed[ref] {
		if !slices.ContainsFunc(some, func(a wire.Artifact) bool { return a.Name == name }) {
			some = append(some, wire.Artifact{Name: name})
		}
	}
	return some
}

// lookAtAll is a start: the keeper looks at every task that has files.
func (f *files) lookAtAll() {
	f.due = f.due[:0]
	for _, s := range f.stored {
		f.due = append(f.due, s.task)
	}
}

// tidy is the keeper: it deletes the files that nobody needs of the tasks that are due, once what the
// store says of them is durable.
func (w *world) tidy() {
	if len(w.files.due) == 0 || w.server.unsynced {
		return
	}
	for _, id := range w.files.due {
		known, err := w.server.store.ReadFiles(id)
		if err != nil {
			violate("files can be looked at", "%v: %v", id, err)
		}
		w.files.stored = slices.DeleteFunc(w.files.stored, func(s storedFile) bool { return s.task == id && !known.Needs(s.file) })
	}
	w.files.due = w.files.due[:0]
}

// filesAreThere says that what a result names is stored.
func (w *world) filesAreThere(t *task) {
	for _, a := range t.result.Artifacts {
		if !slices.Contains(w.files.stored, storedFile{t.id, a.File}) {
			violate("a file that a result names is there", "%v of task %v, result %+v", a, t.id, t.result)
		}
	}
}

// noFileIsLeft says at the end of a world that all others have gone.
func (w *world) noFileIsLeft() {
	w.sync()
	w.tidy()
	for _, s := range w.files.stored {
		t := w.model.tasks[s.task]
		if t == nil || t.removed || !slices.ContainsFunc(t.result.Artifacts, func(a wire.Artifact) bool { return a.File == s.file }) {
			violate("a file that no result names goes", "%s of %+v", s.file, t)
		}
	}
}
