package main

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"codeq/wire"
)

// cli is the command line: a noun with its verbs, or a word for what has no noun. The
// tags, beside those of kong: eg is an example for the help, without names flags of
// every command that mean nothing to this one, for is the verb that a word stands for,
// choice is what completion offers for a value, and pages has it offer every command;
// checkBounds has those of numbers and times.
type cli struct {
	globals

	Serve   serveCmd   `cmd:"" group:"Run it" without:"url,token,tenant,ca,client-cert" eg:"codeq serve --data /var/lib/codeq --listen 127.0.0.1:8080" help:"Run the server."`
	Work    workCmd    `cmd:"" group:"Run it" help:"Run a program once for each task of a queue."`
	Enqueue enqueueCmd `cmd:"" group:"Run it" help:"Post a task, or one for each line of a file."`

	Task  taskCmd  `cmd:"" group:"Tasks" help:"Show tasks and cancel them, or claim and complete them by hand."`
	Queue queueCmd `cmd:"" group:"Tasks" help:"Show queues, pause them and change their settings."`
	Dlq   dlqCmd   `cmd:"" group:"Tasks" help:"Show, replay and purge dead letters."`

	clients
	Health  healthCmd  `cmd:"" group:"Operate" eg:"codeq health --wait 30s" help:"Report whether the server grants tasks."`
	Config  configCmd  `cmd:"" group:"Operate" help:"Show the settings of the server."`
	Tokens  tokenCmd   `cmd:"" name:"token" group:"Operate" without:"url,token,ca,client-cert" help:"Make a token for a server that requires one."`
	Backup  backupCmd  `cmd:"" group:"Operate" help:"Copy the data of the running server into a new directory."`
	Restore restoreCmd `cmd:"" group:"Operate" without:"url,token,tenant,ca,client-cert" help:"Make a data directory from a backup."`
	Doctor  doctorCmd  `cmd:"" group:"Operate" without:"url,token,tenant,ca,client-cert" eg:"codeq doctor /var/lib/codeq" help:"Check the data directory of a server that does not run."`
	Demo    demoCmd    `cmd:"" group:"Other" eg:"codeq demo" help:"Fill a server with a lively load for a look."`
	Bench   benchCmd   `cmd:"" group:"Operate" without:"tenant" eg:"codeq bench --seconds 5" help:"Measure a server under load and check every answer."`

	others
	short
}

// others are the commands about the program, and for those who test programs that use codeq or
// write an SDK.
type others struct {
	Docs       docsCmd       `cmd:"" group:"Other" without:"url,token,tenant,ca,client-cert" eg:"codeq docs\ncodeq docs --write ./site" help:"Show the documents of this version in a browser."`
	Completion completionCmd `cmd:"" group:"Other" without:"url,token,tenant,ca,client-cert,json,quiet" help:"Print the completion script for bash, zsh or fish."`
	Version    versionCmd    `cmd:"" group:"Other" eg:"codeq version" help:"Show the version of this program and of the server."`
	Help       helpCmd       `cmd:"" group:"Other" without:"url,token,tenant,ca,client-cert,json,quiet" pages:"" eg:"codeq help queue set\ncodeq help exit-codes" help:"Show the help of a command, the table of exit-codes, or the manual page."`
	TestServer testServerCmd `cmd:"" name:"test-server" group:"Other" without:"url,token,tenant,ca,client-cert" eg:"codeq test-server --until-eof" help:"Run a server for tests, in memory and with a clock that you move."`
	Conform    conformCmd    `cmd:"" group:"Other" without:"url,token,tenant,ca,client-cert" eg:"codeq conform -- ./driver" help:"Try an SDK in any language, named by its driver."`
}

// clients are the commands about who uses the server.
type clients struct {
	Session  sessionCmd  `cmd:"" group:"Operate" help:"Show the sessions of workers and producers."`
	Webhooks webhooksCmd `cmd:"" group:"Operate" help:"Show and change the URLs that get outcomes of tasks."`
	Limits   limitsCmd   `cmd:"" group:"Operate" help:"Show and change the limits of tenants."`
	Cluster  clusterCmd  `cmd:"" group:"Operate" help:"Make a cluster, and show and change its nodes."`
}

// short are short forms of frequent commands. Each is a verb of a noun.
type short struct {
	Tasks     tasksCmd     `cmd:"" hidden:"" for:"task list"`
	Find      findCmd      `cmd:"" hidden:"" for:"task find"`
	Result    resultCmd    `cmd:"" hidden:"" for:"task result"`
	Artifacts artifactsCmd `cmd:"" hidden:"" for:"task artifacts"`
	Watch     watchCmd     `cmd:"" hidden:"" for:"task watch"`
	Cancel    cancelCmd    `cmd:"" hidden:"" for:"task cancel"`
	Claim     claimCmd     `cmd:"" hidden:"" for:"task claim"`
	Complete  completeCmd  `cmd:"" hidden:"" for:"task complete"`
	Nack      nackCmd      `cmd:"" hidden:"" for:"task nack"`
	Release   releaseCmd   `cmd:"" hidden:"" for:"task release"`
	Heartbeat heartbeatCmd `cmd:"" hidden:"" for:"task heartbeat"`
	Queues    queuesCmd    `cmd:"" hidden:"" for:"queue list"`
	Top       topCmd       `cmd:"" hidden:"" for:"queue top"`
	Pause     pauseCmd     `cmd:"" hidden:"" for:"queue pause"`
	Resume    resumeCmd    `cmd:"" hidden:"" for:"queue resume"`
	Sessions  sessionsCmd  `cmd:"" hidden:"" for:"session list"`
}

// globals are the flags of all commands that have a use for them.
type globals struct {
	URL         string           `group:"For every command:" name:"url" env:"CODEQ_URL" default:"http://127.0.0.1:8080" help:"Address of the server, or those of the nodes of a cluster with commas between."`
	Token       string           `group:"For every command:" env:"CODEQ_TOKEN" help:"Token for the server, if it requires one."`
	Tenant      string           `group:"For every command:" env:"CODEQ_TENANT" help:"Tenant for which a credential with codeq:admin:all acts, or whose tasks a new token gives access to."`
	CA          string           `group:"For every command:" name:"ca" type:"path" env:"CODEQ_CA" placeholder:"FILE" help:"Certificates of issuers, in PEM, that are trusted instead of those of this machine."`
	ClientCert  string           `group:"For every command:" type:"path" env:"CODEQ_CLIENT_CERT" placeholder:"FILE" help:"Client certificate and its private key, in PEM, for a server that knows it."`
	JSON        bool             `group:"For every command:" name:"json" help:"Print the answer as JSON."`
	Quiet       bool             `group:"For every command:" short:"q" help:"Print only errors on standard error, and of tasks that are made or listed only the ids."`
	ShowVersion kong.VersionFlag `group:"For every command:" name:"version" help:"Show the version of this program."`
}

// defaultListen is the address of a server that was told none.
const defaultListen = "127.0.0.1:8080"

const description = "A durable task queue: any program works on tasks."

// parser builds what reads a command line into c. exit is called when help was shown.
// Only the commands that args names are built, because all of them take most of the time
// of a short command; all are built where args names none.
func (c *cli) parser(a *app, args []string, exit func(int)) *kong.Kong {
	options := append(readValues(),
		kong.Name("codeq"),
		kong.Description(description),
		kong.Vars{"version": programVersion()},
		kong.Writers(a.out, a.err),
		kong.Exit(exit),
		kong.Bind(a),
		kong.Help(showHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
	)
	helps := args == nil || slices.ContainsFunc(args, asksForHelp)
	if helps {
		options = append(options, kong.ValueFormatter(settingHelp(&c.Serve.Serve)))
	}
	if others := othersThan(args, helps); others != "" {
		options = append(options, kong.IgnoreFields(others))
	}
	parser, err := kong.New(c, options...)
	if err == nil && helps {
		err = cmp.Or(kong.Visit(parser.Model, namePlaceholders), explain(parser.Model))
	}
	if err != nil {
		panic(fmt.Sprintf("the command line does not hold together: %v", err))
	}
	return parser
}

// othersThan is a pattern of the fields of cli whose commands args does not name, empty
// if every command is needed. The page of a noun names its short words, and a short word
// has the page of its verb.
func othersThan(args []string, helps bool) string {
	var others []string
	needed := map[string]bool{}
	fields := reflect.VisibleFields(reflect.TypeFor[cli]())
	for i := range fields {
		if word, noun := wordsOf(&fields[i], helps); slices.Contains(args, word) {
			needed[noun] = true
		}
	}
	for i := range fields {
		if word, noun := wordsOf(&fields[i], helps); word != "" && !needed[noun] {
			others = append(others, fields[i].Name)
		}
	}
	if len(needed) == 0 || len(others) == 0 {
		return ""
	}
	return `^cli\.(` + strings.Join(others, "|") + ")$"
}

// wordsOf are the word of a command, empty for another field, and that of what is built
// together with it.
func wordsOf(field *reflect.StructField, helps bool) (word, noun string) {
	if _, isCommand := field.Tag.Lookup("cmd"); !isCommand {
		return "", ""
	}
	word = cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))
	noun, _, _ = strings.Cut(field.Tag.Get("for"), " ")
	if noun == "" || !helps {
		noun = word
	}
	return word, noun
}

// asksForHelp reports --help and -h, also among other flags of one letter.
func asksForHelp(arg string) bool {
	isWord := strings.HasPrefix(arg, "--")
	return isWord && strings.HasPrefix(arg, "--help") || !isWord && strings.HasPrefix(arg, "-") && strings.Contains(arg, "h")
}

// parse reads a command line. Without an error and a context it asked for help, which
// has been shown.
func (c *cli) parse(a *app, args []string) (*kong.Context, error) {
	helped := false
	parser := c.parser(a, args, func(int) { helped = true })
	parsed, err := parser.Parse(args)
	switch {
	case helped:
		return nil, nil
	case err != nil || !strings.HasPrefix(strings.Join(c.Work.Program, " "), "-"):
		err = cmp.Or(unknownVerb(args, parser.Model), err)
	case c.Work.Program[0] != "--":
		err = notProgram(c.Work.Program[0], parsed.Selected())
	}
	if err != nil {
		return nil, wrongCommandLine(err, args, parser.Model)
	}
	given := givenFlags(parsed)
	for _, flag := range parser.Model.Flags {
		if given[flag.Name] && meansNothing(flag, parsed.Selected()) {
			return nil, wrong("--%s means nothing to \"codeq %s\": leave it out", flag.Name, parsed.Selected().Path())
		}
	}
	return parsed, nil
}

// run carries out a command line and returns the exit code.
func run(args []string, a *app) int {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	var c cli
	out := &checkedOutput{to: a.out}
	a.out = out
	parsed, err := c.parse(a, args)
	a.helps = parsed == nil || parsed.Selected().Path() == "help" // without a command only help is printed
	if err != nil || parsed == nil || out.lost != nil {
		return a.end(cmp.Or(out.lost, err))
	}
	a.globals, a.given = c.globals, givenFlags(parsed)
	if a.URL == "" && !a.given["url"] {
		a.URL = "http://" + defaultListen // as every variable, an empty CODEQ_URL counts as not set
	}
	defer a.endDetached()
	return a.end(parsed.Run(a))
}

// wrongCommandLine is the error of the parser and the name of the page that helps, which
// is that of the innermost command in args.
func wrongCommandLine(err error, args []string, model *kong.Application) error {
	help, at := "codeq", model.Node
	for _, arg := range args {
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == arg })
		if i >= 0 {
			at = at.Children[i]
			help += " " + arg
		}
	}
	err = unknownFlag(err, args)
	said := strings.Replace(err.Error(), ": must ", " must ", 1)
	if two, both := strings.CutSuffix(said, " can't be used together"); both {
		said = fmt.Sprintf("give either %s, not both", strings.Replace(two, " and ", " or ", 1))
	}
	return wrong("%s; \"%s --help\" shows what it takes", said, help)
}

// unknownVerb proposes a verb for the first word after a noun that takes an id there, too;
// nil if no verb is near.
func unknownVerb(args []string, model *kong.Application) error {
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if i < 0 || i+1 >= len(args) {
		return nil
	}
	for _, noun := range model.Children {
		if noun.Name != args[i] || noun.DefaultCmd == nil {
			continue
		}
		verbs := []string{}
		for _, verb := range noun.Children {
			verbs = append(verbs, verb.Name)
		}
		if near := wire.Nearest(args[i+1], verbs); near != "" && near != args[i+1] {
			return fmt.Errorf("%.40q is no verb of %s, did you mean %q?", args[i+1], noun.Name, near)
		}
	}
	return nil
}

// notProgram is the error of an unknown flag of work, which the parser reads as the program.
func notProgram(word string, work *kong.Node) error {
	names := []string{}
	for _, flag := range slices.Concat(work.AllFlags(true)...) {
		names = append(names, flag.Name)
	}
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	hint := ""
	if near := wire.Nearest(name, names); near != "" {
		hint = fmt.Sprintf(", did you mean \"--%s\"?", near)
	}
	return fmt.Errorf("unknown flag %.40s%s; put the program after --", word, hint)
}

// unknownFlag makes the error of an unknown flag clearer: the parser reads a word like -5
// or -foo as the flag of its first letter, and proposes flags of one letter.
func unknownFlag(err error, args []string) error {
	said, unknown := strings.CutPrefix(err.Error(), "unknown flag ")
	name, hint, _ := strings.Cut(said, ", did you mean ")
	isLetter := func(word string) bool { return len(word) == 2 && word[0] == '-' }
	if !unknown || strings.Contains(hint, "--") && !slices.ContainsFunc(strings.Split(hint, `"`), isLetter) {
		return err
	}
	isWord := func(arg string) bool { return strings.HasPrefix(arg, name) }
	if i := slices.IndexFunc(args, isWord); i >= 0 && !strings.HasPrefix(name, "--") {
		return fmt.Errorf("there is no flag %s; put a payload or another argument that begins with - at the end, after --, as in -- %s",
			args[i], args[i])
	}
	return fmt.Errorf("unknown flag %s", name)
}
