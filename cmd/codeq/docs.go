package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"codeq/internal/docsite"
)

type docsCmd struct {
	Listen string `default:"127.0.0.1:0" help:"Address at which the documents are served."`
	Write  string `type:"path" placeholder:"DIR" help:"Directory into which the pages are written instead."`
}

// Help is the longer text of "codeq docs --help".
func (*docsCmd) Help() string {
	return `Serves the documents of this version to a browser, with a search. They are part of the program: no server of codeq and
no network is needed. With --write the same pages become files, which work from a directory and behind any web server.`
}

// docsAnnounced is what docs prints for programs.
type docsAnnounced struct {
	URL   string `json:"url,omitempty"`
	Dir   string `json:"dir,omitempty"`
	Files int    `json:"files"`
}

// Run serves the documents until it is stopped, or writes them.
func (d *docsCmd) Run(a *app) error {
	pages, err := docsite.New(version)
	if err != nil {
		return err
	}
	if d.Write != "" {
		if err := pages.Write(d.Write); err != nil {
			return fmt.Errorf("write the documents: %w", err)
		}
		if a.JSON {
			return a.writeJSON(docsAnnounced{Dir: d.Write, Files: pages.Len()})
		}
		a.say("%d files are in %s; open index.html there", pages.Len(), d.Write)
		return nil
	}
	return d.serve(a, pages)
}

func (d *docsCmd) serve(a *app, pages *docsite.Site) error {
	ctx, done := a.untilStopped()
	defer done()
	l, err := net.Listen("tcp", d.Listen)
	if err != nil {
		return fmt.Errorf("listen for browsers: %w", err)
	}
	url := "http://" + l.Addr().String() + "/"
	if a.JSON {
		err = a.writeJSON(docsAnnounced{URL: url, Files: pages.Len()})
	} else {
		err = a.writeLine([]byte(url))
		a.say("the documents of this version are served; Ctrl-C stops")
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second}
	over := context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve returns what is wrong
	defer over()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the documents: %w", err)
	}
	return nil
}
