package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"codeq/client"
	"codeq/wire"
)

type artifactsCmd struct {
	ID    string   `arg:"" name:"id" help:"Id of the task."`
	Names []string `arg:"" optional:"" name:"name" help:"Artifacts to get; without --to one, which is printed."`
	To    string   `type:"path" placeholder:"DIR" help:"Directory that gets the files: those that are named, else all. None of them may be there."`
}

// Run lists the artifacts of a task, or gets files of it.
func (c *artifactsCmd) Run(a *app) error {
	id, err := parseID(c.ID)
	if err != nil {
		return err
	}
	if len(c.Names) > 1 && c.To == "" {
		return wrong("several artifacts need a directory: name it with --to")
	}
	return a.ask(func(ctx context.Context, from *client.Client) error {
		list, err := from.Artifacts(ctx, id)
		if err != nil {
			return err
		}
		if len(c.Names) == 0 && c.To == "" {
			return a.showArtifacts(list)
		}
		chosen, err := c.choose(list)
		if err != nil {
			return err
		}
		if c.To == "" {
			return fetch(ctx, from, id, &chosen[0], a.out)
		}
		return c.save(ctx, a, from, id, chosen)
	})
}

func (a *app) showArtifacts(list []wire.Artifact) error {
	if a.JSON {
		return a.writeLine(a.answer)
	}
	if len(list) == 0 {
		a.say("the task has no artifacts")
		return nil
	}
	t := a.table(column{name: "NAME", least: 20}, column{name: "BYTES"}, column{name: "TYPE", spare: 2}, column{name: "SHA-256", spare: 1}, column{name: "URL", spare: 3})
	for i := range list {
		size := fmt.Sprint(list[i].SizeBytes)
		if list[i].File == "" {
			size = ""
		}
		t.row(list[i].Name, size, list[i].ContentType, list[i].SHA256, list[i].URL)
	}
	return t.write()
}

// choose are the files that the command names, all that the server keeps without names.
func (c *artifactsCmd) choose(list []wire.Artifact) (chosen []wire.Artifact, err error) {
	byName := map[string]*wire.Artifact{}
	for i := range list {
		if list[i].File != "" {
			byName[list[i].Name] = &list[i]
			if len(c.Names) == 0 {
				chosen = append(chosen, list[i])
			}
		}
	}
	for _, name := range c.Names {
		if byName[name] == nil {
			return nil, fmt.Errorf("the server keeps no file of the task that is named %q; codeq artifacts %s lists them", name, c.ID)
		}
		chosen = append(chosen, *byName[name])
	}
	return chosen, nil
}

// save gets files into the directory. A name never leads out of it.
func (c *artifactsCmd) save(ctx context.Context, a *app, from *client.Client, id wire.TaskID, chosen []wire.Artifact) error {
	if err := os.MkdirAll(c.To, 0o777); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	root, err := os.OpenRoot(c.To)
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is written through it by then
	for i := range chosen {
		if err := saveFile(ctx, root, from, id, &chosen[i]); err != nil {
			return err
		}
	}
	a.say("%d files are in %s", len(chosen), c.To)
	return nil
}

// saveFile gets one file. It has its name only when it is whole.
func saveFile(ctx context.Context, root *os.Root, from *client.Client, id wire.TaskID, file *wire.Artifact) error {
	name := filepath.FromSlash(file.Name)
	if _, err := root.Lstat(name); err == nil {
		return wrong("%s is there already: name another directory", name)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	part := fmt.Sprintf("%s.%d.part", name, os.Getpid())
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	err = errors.Join(fetch(ctx, from, id, file, f), f.Close())
	if err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("get %s: %w", file.Name, err), root.Remove(part))
	}
	return nil
}

// fetch writes a file to an output, and checks it.
func fetch(ctx context.Context, from *client.Client, id wire.TaskID, file *wire.Artifact, to io.Writer) error {
	content, err := from.Artifact(ctx, id, file.Name)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), content); err != nil {
		return fmt.Errorf("the file broke off: %w", err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != file.SHA256 {
		return errors.New("what came is not the file: its SHA-256 is another one")
	}
	return nil
}
