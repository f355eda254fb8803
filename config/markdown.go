package config

import (
	"fmt"
	"strings"
)

const documentHead = `# Settings of the server

<!-- Written by "go generate ./config" from the table in config/serve.go. -->

Every setting of ` + "`codeq serve`" + ` has one name. It can be given as a flag, as a
variable of the environment, or in a file in YAML or JSON that ` + "`--config FILE`" + `
(or ` + "`CODEQ_CONFIG`" + `) names. **A flag beats the environment, the environment beats the
file, the file beats the default.** A variable that is empty counts as not set. One
that begins with ` + "`CODEQ_`" + ` and is none of these is refused, but for those that
Kubernetes sets for its services (` + "`CODEQ_SERVICE_HOST`, `CODEQ_PORT`" + ` and the like) and
those of the other commands. A time is written like 30s, 1m30s, 2h or 7d; a number alone
is seconds. A value has no white space around it, no control characters and no
byte order mark; it is refused with them, and nothing is cut. Paths are relative to the directory in
which the server is started.

What is unknown, of the wrong type, out of range or contradictory is refused before
anything starts: the server says where it stands (flag, variable, or file and line) and
ends with exit code 2. ` + "`codeq serve --print-config`" + ` shows the values that would hold, each
with its origin, and starts nothing; ` + "`codeq config show`" + ` shows those of a running server in the
same form, to whoever has the scope ` + "`operator`" + `. With ` + "`--json`" + ` both do so for programs.

`

const documentTail = `
## Rules between settings

- ` + "`tokens`" + ` and ` + "`insecure-no-auth`" + ` exclude one another. With neither, ` + "`listen`" + ` must be a
  loopback address.
- ` + "`public-host`" + ` is looked at without ` + "`tokens`" + ` only: with them a request may have any Host.
- Each shard has a mailbox of at least 12 MiB, and all of them may take half of
  ` + "`memory`" + `: 32 shards need 768MiB.
- ` + "`retention`" + ` and ` + "`dlq-retention`" + ` are whole milliseconds.

## What the memory is for

One eighth of ` + "`memory`" + ` is for memtables (four, of at most 64 MiB each), one eighth for
the block cache, one eighth for the mailboxes of all shards, one eighth for what sessions
have not read yet. One eighth may become garbage before the collector runs, which saves it
most of its work. The rest is for tasks in hand and sessions.

Answers over HTTP that their clients have not taken yet may hold one eighth as well, out of the
rest. While they do, requests whose answers can be large are refused with ` + "`overloaded`" + ` and
` + "`Retry-After: 1`" + ` before they are worked on: pages of tasks and reasons (each counts as 4 MiB until it
is made), tasks, results, queues and sessions that are read, claims, and enqueues of more than
16 KiB. Smaller enqueues, heartbeats and outcomes are taken all the same.

The whole is the limit that the collector keeps to, unless the variable ` + "`GOMEMLIMIT`" + `
says otherwise. Where that is less than ` + "`memory`" + `, the parts are sized by it instead, and the log
says so; with less than 64 MiB the server does not start. It is an aim and no wall: what has to be in memory at once, as with tens of
thousands of sessions, goes over it. The system counts the program itself on top of it, so
reckon with 64 MiB more than ` + "`memory`" + `, also as the limit of a container. The log warns at the
start where the control groups (version 2) allow less.

A backlog takes none of this by its length: the tasks that wait are in the store, and
memory has the heads of the queues. One backlog after the other finds the same memory. When
they have gone, the process gives back within minutes what the collector has freed, but not
the block cache and the memtables, which stay as large as they were.

## What the open files are for

The server raises its limit of open files (` + "`ulimit -n`" + `, ` + "`LimitNOFILE=`" + ` of a systemd unit) as far
as the system lets it, and shares it out when it starts. 64 are for the server itself; what it
inherited counts too. Half of the rest, 128 to 8192, is for the tables of the store: it keeps
half of those open, and reads and compactions may hold as many again. What is left is the number
of connections. An eighth of them, 16 at the least, is for requests over HTTP; the others may be
sessions. With a limit below 256 the server does not start. Where ` + "`max-sessions`" + ` is more than
fits, fewer are taken, and the log says at the start how many, and which limit would do.

| Limit | Connections | Sessions | Tables kept open |
|---|---|---|---|
| 256 | 64 | 48 | 64 |
| 1024 | 480 | 420 | 240 |
| 4096 | 2016 | 1764 | 1008 |
| 20000 | 11744 | 10276 | 4096 |

One connection more gets the place of one that has not sent a byte, the oldest first, or of one
that has had no request for a second. Where there is none, it is refused with 503 ` + "`overloaded`" + `.
So the store has its descriptors, whatever clients do. On ` + "`/metrics`" + `, ` + "`codeq_connections`" + `,
` + "`codeq_connections_limit`" + `, ` + "`codeq_connections_refused_total`" + `, ` + "`codeq_connections_displaced_total`" + `,
` + "`process_open_fds`" + ` and ` + "`process_max_fds`" + ` show it.

## Threads

The server has as many threads as processors, and one more for each call that waits for the disk;
some dozen in all. The Go runtime ends the process where it can make no thread, and no program
can refuse that. So the log warns at the start where ` + "`ulimit -u`" + ` or the control groups allow fewer
than 64 and the processors. ` + "`ulimit -u`" + ` counts all processes of the user, which the server does
not; root is exempt from it. What was answered is on disk in any case, and a restart recovers it.

## The clock

The engine's clock begins at the system clock's time and goes on by what really elapses, time in suspension included. A
step of the system clock therefore ends no lease and fires no delay. It never goes back, also not over a restart: it
begins no earlier than the newest time in the data directory.

So it can differ from the system clock, and then times of day (` + "`runAt`" + `, and when retention ends) come early or late
by the difference. The difference is worked off by running 1 % faster or slower: 36 s in an hour. From 10 s on the log
warns, and again every hour; ` + "`/readyz`" + ` has it as ` + "`clockDifferenceMs`" + `, and the metric is ` + "`codeq_clock_difference_seconds`" + `.
A restart takes over a system clock that is ahead of the engine's at once. One that is behind is not taken over: start
no server before the clock of the machine is right.

## What happens to the log

The log goes to standard error. A server that was started on a terminal says there what serves where and how to try
it, and with ` + "`--json`" + ` the same is one line of JSON on standard output; otherwise standard output stays empty. Neither holds
the server up: up to 4096 lines wait for a reader that is slow, and lines that nobody takes
(a reader that left or does not read, a full disk) are lost and counted in
` + "`codeq_log_lines_lost_total`" + ` on ` + "`/metrics`" + `. When lines can be written again, one says how many were
lost.

Beside what goes wrong the log has a line, at level info or warn, for

| ` + "`message`" + ` | When | Members |
|---|---|---|
| ` + "`started`" + ` | the server takes requests | ` + "`version`" + `, ` + "`address`" + `, ` + "`data`" + `, ` + "`created`" + `, ` + "`shards`" + `, ` + "`durability`" + `, ` + "`access`" + `, ` + "`pid`" + ` |
| ` + "`stopping`" + `, ` + "`stopped`" + ` | a signal has come, and everything has ended | ` + "`signal`" + `, ` + "`grace`" + `, ` + "`sessions`" + `; ` + "`tookMs`" + ` |
| ` + "`admin`" + ` | somebody with the scope ` + "`admin`" + ` has changed something, or with ` + "`operator`" + ` has copied the data | ` + "`tenant`" + `, ` + "`subject`" + `, ` + "`remote`" + `, ` + "`method`" + `, ` + "`path`" + `, ` + "`requestId`" + `, ` + "`status`" + `, ` + "`code`" + ` of a refusal; ` + "`done`" + ` and the filter where many tasks are meant, ` + "`settings`" + ` that were set |
| ` + "`refused: …`" + ` | a request was refused because of who sent it: no token or a wrong one, one that may not do this, another host or page | ` + "`remote`" + `, ` + "`what`" + `, ` + "`code`" + `, ` + "`tenant`" + ` and ` + "`subject`" + ` where they are known; at most 10 lines a second |
| ` + "`tokens read again`" + ` | the file of tokens has changed | ` + "`file`" + `, ` + "`tokens`" + ` |

Credentials, payloads and results are in no line.

A signal HUP reads the file of tokens again. A server that was started on a terminal (its standard
input or error is one), and not under nohup, stops in order instead, because a terminal sends HUP
when it closes.

## A file

` + "```yaml" + `
listen: 0.0.0.0:8080
data: /var/lib/codeq
tokens: /etc/codeq/tokens.yaml
memory: 1GiB
log-level: info
` + "```" + `

[tokens.md](tokens.md) describes the file of tokens.
`

// AppendMarkdown appends docs/config.md, the table of the settings of a
// pointer to a struct such as Serve.
func AppendMarkdown(dst []byte, of any) []byte {
	dst = append(dst, documentHead...)
	dst = append(dst, "| Setting | Default | Values | Meaning |\n|---|---|---|---|\n"...)
	rows := Table(of)
	for i := range rows {
		s := &rows[i]
		dst = fmt.Appendf(dst, "| `%s`<br>`%s`<br>`%s` | %s | %s | %s |\n", s.Name, s.Flag(), s.Env(),
			code(s.Default), s.values(), strings.ReplaceAll(s.Help, "|", "\\|"))
	}
	return append(dst, documentTail...)
}

func code(text string) string {
	if text == "" {
		return "none"
	}
	return "`" + text + "`"
}

// values says what a setting takes.
func (s *Setting) values() string {
	switch {
	case s.Enum != nil:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Range != "":
		low, high := s.bounds()
		return format(low) + " to " + format(high)
	}
	switch s.value().(type) {
	case bool:
		return "`true`, `false`"
	case Hosts, Origins:
		return "several, as a flag that is repeated, with commas between, or as a list in the file"
	}
	return "text"
}
