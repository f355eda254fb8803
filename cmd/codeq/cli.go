package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	globals

	Serve     serveCmd     `cmd:"" help:"Run the server."`
	Token     tokenCmd     `cmd:"" name:"token" help:"Make a token for a server that wants one."`
	Work      workCmd      `cmd:"" help:"Run a program once for each task of a command."`
	Enqueue   enqueueCmd   `cmd:"" help:"Post a task, or one for each line of a file."`
	Result    resultCmd    `cmd:"" help:"Show the result of a task, and wait for it if asked to."`
	Task      taskCmd      `cmd:"" help:"Show a task."`
	Claim     claimCmd     `cmd:"" help:"Take a task, for a script that says itself what becomes of it."`
	Complete  completeCmd  `cmd:"" help:"End a claimed task with its result."`
	Nack      nackCmd      `cmd:"" help:"Have a claimed task tried again."`
	Release   releaseCmd   `cmd:"" help:"Hand a claimed task back as if it had not been taken."`
	Heartbeat heartbeatCmd `cmd:"" help:"Keep a claimed task for longer."`
	Cancel    cancelCmd    `cmd:"" help:"Cancel a task that has not ended."`
	Tasks     tasksCmd     `cmd:"" help:"List the tasks of a queue."`
	Queues    queuesCmd    `cmd:"" help:"Show the figures of every queue."`
	Dlq       dlqCmd       `cmd:"" help:"Work on dead letters."`
	Config    configCmd    `cmd:"" help:"Look at the settings of the server."`
	Health    healthCmd    `cmd:"" help:"See whether the server hands out work."`
	Queue     queueCmd     `cmd:"" help:"Show or change one queue."`
	Pause     pauseCmd     `cmd:"" help:"Keep the tasks of a queue from workers."`
	Resume    resumeCmd    `cmd:"" help:"End the pause of a queue."`
	Sessions  sessionsCmd  `cmd:"" help:"Show the sessions that are open, and what they hold."`
	Backup    backupCmd    `cmd:"" help:"Copy the data of the running server into a new directory."`
	Restore   restoreCmd   `cmd:"" help:"Make a data directory of a backup."`
	Doctor    doctorCmd    `cmd:"" help:"Examine the data directory of a server that does not run."`
	Bench     benchCmd     `cmd:"" help:"Measure a server under load, and check its answers."`
	Version   versionCmd   `cmd:"" help:"Show the version of this program and of the server."`
}

// globals are the flags that every command has.
type globals struct {
	URL   string `name:"url" env:"CODEQ_URL" default:"http://127.0.0.1:8080" help:"Address of the server."`
	Token string `env:"CODEQ_TOKEN" help:"Credential for the server, if it wants one."`
	JSON  bool   `name:"json" help:"Answer in JSON."`
}

const description = "codeq is a durable task queue: post tasks, have any program work on them, read the results."

// parser makes what reads a command line into c. exit is called when help was shown.
func (c *cli) parser(a *app, exit func(int)) *kong.Kong {
	parser, err := kong.New(c, append(readValues(),
		kong.Name("codeq"),
		kong.Description(description),
		kong.Writers(a.out, a.err),
		kong.Exit(exit),
		kong.Bind(a),
		kong.ValueFormatter(settingHelp(&c.Serve.Serve)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)...)
	if err == nil {
		err = kong.Visit(parser.Model, namePlaceholders)
	}
	if err != nil {
		panic(fmt.Sprintf("the command line does not hold together: %v", err))
	}
	return parser
}

// run does what a command line says and returns the exit code.
func run(args []string, a *app) int {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	var c cli
	helped := false
	out := &checkedOutput{to: a.out}
	a.out = out
	parser := c.parser(a, func(int) { helped = true })
	parsed, err := parser.Parse(args)
	if helped || out.lost != nil {
		return a.end(out.lost)
	}
	if err != nil {
		return a.end(wrongCommandLine(err, args, parser.Model))
	}
	a.globals, a.given = c.globals, givenFlags(parsed)
	if a.URL == "" && !a.given["url"] {
		a.URL = "http://" + defaultListen // as every variable, an empty CODEQ_URL counts as not set
	}
	defer a.endSayings()
	return a.end(parsed.Run(a))
}

// wrongCommandLine says what the parser found, and where the remedy is: at the
// command that was named, however deep it lies.
func wrongCommandLine(err error, args []string, model *kong.Application) error {
	help, at := "codeq", model.Node
	for _, arg := range args {
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == arg })
		if i >= 0 {
			at = at.Children[i]
			help += " " + arg
		}
	}
	return wrong("%w; \"%s --help\" shows what it takes", unknownFlag(err, args), help)
}

// unknownFlag says what an unknown flag may have been meant for. The parser itself
// takes a word like -5 or -foo for the flag of its first letter, and proposes -h, the
// one flag of a letter.
func unknownFlag(err error, args []string) error {
	said, unknown := strings.CutPrefix(err.Error(), "unknown flag ")
	name, hint, _ := strings.Cut(said, ", did you mean ")
	if !unknown || hint != "" && hint != `"-h"?` {
		return err
	}
	isWord := func(arg string) bool { return strings.HasPrefix(arg, name) }
	if i := slices.IndexFunc(args, isWord); i >= 0 && !strings.HasPrefix(name, "--") {
		return fmt.Errorf("there is no flag %s; a payload or another argument that begins with - goes to the end, behind --, as in -- %s",
			args[i], args[i])
	}
	return fmt.Errorf("unknown flag %s", name)
}
