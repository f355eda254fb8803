package httpapi

import (
	"bytes"
	"errors"
	"sync"

	"codeq/internal/artifact"
	"codeq/shard"
	"codeq/wire"
)

// filesAtOnce is how many files of one request are written at a time.
const filesAtOnce = 5

// putContents makes files of the contents that a result has, before the result goes to its shard:
// the shard keeps only what is on disk. One that fails refuses the result. A result that is sent
// again after it was taken has its files already, and the shard compares no contents.
func (a *api) putContents(h *shard.Holder, r *wire.ResultRequest) (after func(refused bool), refusal *wire.Error) {
	return a.putContentsBy(filesAtOnce, h, r)
}

func (a *api) putContentsBy(atOnce int, h *shard.Holder, r *wire.ResultRequest) (after func(refused bool), refusal *wire.Error) {
	files := contentsOf(r)
	if len(files) == 0 {
		return func(bool) {}, nil
	}
	defer func() {
		if refusal != nil {
			a.o.Files.Refused(len(files))
		}
	}()
	room, all := a.o.Engine.Limits().Room(h.Tenant), int64(0)
	for _, f := range files {
		if int64(len(f.Content)) > a.o.Files.MaxBytes {
			return nil, fileTooLarge(a.o.Files.MaxBytes)
		}
		all += int64(len(f.Content))
	}
	begun, refusal := a.upload(&shard.Upload{Holder: *h, Begin: len(files)})
	if refusal != nil && refusal.Code == wire.CodeNotInProgress {
		for _, f := range files {
			f.Content = nil
		}
		return func(bool) {}, nil
	}
	if refusal == nil {
		refusal = room.Take(all)
	}
	if refusal != nil {
		return nil, refusal
	}
	after = func(refused bool) {
		room.GiveBack() // the shard counts the files of a result that it has taken
		for _, f := range files {
			if refused && f.File != "" {
				a.o.Files.Drop(artifact.Key{Task: h.TaskID, File: f.File})
			}
		}
		a.o.Files.Look(h.TaskID) // another sending of the result may have been the one that was taken
	}
	failed := make([]error, len(files))
	eachOf(len(files), atOnce, func(i int) {
		f := files[i]
		f.File = wire.FileName(begun.Delivery, begun.First+i)
		f.SizeBytes, f.SHA256, failed[i] = a.o.Files.Put(artifact.Key{Task: h.TaskID, File: f.File}, bytes.NewReader(f.Content))
		f.Content = nil
	})
	if err := errors.Join(failed...); err != nil {
		after(true)
		return nil, a.notStored(err)
	}
	return after, nil
}

// putContentsOfAll is putContents for a batch. It gives the items their refusals, and returns what
// is to do after the answer of an item, by its number.
func (a *api) putContentsOfAll(c *call, items []wire.ResultItem) map[int]func(refused bool) {
	var with []int
	for i := range items {
		item := &items[i]
		if item.Err == nil {
			item.Err = a.tokenMissing(item.Holder)
		}
		if item.Err == nil && len(contentsOf(&item.Request)) > 0 {
			with = append(with, i)
		}
	}
	made := make([]func(bool), len(with))
	eachOf(len(with), filesAtOnce, func(n int) {
		item := &items[with[n]]
		h := shard.Holder{Owner: c.owner(item.Holder), TaskRef: wire.TaskRef{TaskID: item.TaskID, Token: item.Token}}
		made[n], item.Err = a.putContentsBy(1, &h, &item.Request)
	})
	after := map[int]func(bool){}
	for n, i := range with {
		if made[n] != nil {
			after[i] = made[n]
		}
	}
	return after
}

// contentsOf are the artifacts of a result that come with their content.
func contentsOf(r *wire.ResultRequest) (with []*wire.Artifact) {
	for i := range r.Artifacts {
		if r.Artifacts[i].Content != nil {
			with = append(with, &r.Artifacts[i])
		}
	}
	return with
}

// eachOf calls do with the numbers below n, so many at a time.
func eachOf(n, atOnce int, do func(i int)) {
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i := range n {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			do(i)
		})
	}
	all.Wait()
}
