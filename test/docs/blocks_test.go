package docs

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeq/internal/yamlfile"
	"codeq/test/blackbox"
)

// Every block of every page is held by one rule: it is run, or it is read and counted.
//
// On the pages of runPages, in pages_test.go, only pictures and blocks of other products are not run. Each
// line of a block below <!-- from: PAGE --> stands in that page, which runs it. TestEveryExampleOfTheProtocolIsTrueAndNothingIsWithoutOne
// plays the pages of the protocol. Of the other pages these kinds of blocks are run, by the test that is named here.
var runElsewhere = map[string]string{
	"../sdk/python/README.md python":   "test_docs.py",
	"../sdk/typescript/README.md json": "package.test.mjs",
	"../sdk/typescript/README.md ts":   "package.test.mjs",
	"go.md go":                         "TestThePageOfGoRunsInAModuleOfItsOwn",
	"scaling.md yaml":                  "TestScaledObjectReadsWhatTheServerAnswers",
	"security.md console":              "TestAMintedTokenOpensAServer",
	"testing-your-code.md go":          "TestThePageOfTestsShowsTheFileThatRuns",
	"webhooks.md go":                   "TestTheVerifiersOfThePageOfWebhooksVerify",
	"webhooks.md js":                   "TestTheVerifiersOfThePageOfWebhooksVerify",
	"webhooks.md python":               "TestTheVerifiersOfThePageOfWebhooksVerify",
	"workers.md go":                    "TestThePageOfWorkersShowsTheFilesThatAreTested",
	"workers.md js":                    "TestThePageOfWorkersShowsTheFilesThatAreTested",
	"workers.md python":                "TestThePageOfWorkersShowsTheFilesThatAreTested",
	"workers.md sh":                    "TestThePageOfWorkersShowsTheFilesThatAreTested",
	"cli.md console":                   "TestU10AnswersInJSONAreAsThePageShowsThem",
}

// counted are the blocks that no test runs, by page and by kind or the product that they belong to. They are
// read as far as their language can be: data is parsed, and command lines of codeq are those of the program.
var counted = map[string]int{
	"../ARCHITECTURE.md text":             1,
	"../README.md text":                   1,
	"../sdk/python/README.md text":        3,
	"../sdk/typescript/README.md text":    3,
	"backup.md text":                      3,
	"cli.md Dockerfile":                   1,
	"cli.md sh":                           1,
	"cluster.md text":                     6,
	"concepts/cluster.md text":            1,
	"concepts/leases.md text":             1,
	"concepts/persistence.md text":        1,
	"concepts/queues-and-order.md text":   1,
	"concepts/retries.md text":            1,
	"concepts/sessions.md text":           1,
	"concepts/sharding.md text":           1,
	"concepts/task-and-result.md text":    1,
	"concepts/tenants.md text":            1,
	"config.md yaml":                      1,
	"containers.md text":                  2,
	"disk-full.md text":                   1,
	"go.md text":                          2,
	"guides/from-asynq.md asynq":          1,
	"guides/from-bullmq.md BullMQ":        1,
	"guides/from-bullmq.md text":          1,
	"guides/from-celery.md Celery":        1,
	"guides/from-sidekiq.md Ruby":         2,
	"guides/from-sidekiq.md Sidekiq":      1,
	"guides/from-sidekiq.md text":         1,
	"guides/from-sqs.md boto3":            1,
	"guides/idempotent-producers.md text": 1,
	"guides/nightly-batch.md text":        1,
	"guides/outbox.md PostgreSQL":         1,
	"guides/outbox.md text":               1,
	"guides/synchronous-calls.md text":    1,
	"install.md text":                     4, // what root types, twice, a file of settings, and a check of an archive
	"kubernetes.md text":                  2, // test/deploy renders the chart with the flags of helm
	"operations.md yaml":                  1,
	"scaling.md console":                  1,
	"scaling.md json":                     1,
	"sdk-guide.md text":                   1,
	"security.md text":                    4,
	"security.md yaml":                    3,
	"sizing.md text":                      1,
	"start.md text":                       5,
	"reference/admin-server.md text":      1,
	"reference/errors.md text":            1,
	"reference/events.md text":            1,
	"targets.md console":                  1,
	"targets.md json":                     1,
	"testing-your-code.md text":           1,
	"tracing.md text":                     1,
	"upgrading.md text":                   1,
	"webhooks.md console":                 5,
	"webhooks.md json":                    1,
	"workers.md text":                     1,
}

// block is a fenced block of a page.
type block struct {
	page  string
	line  int
	kind  string
	file  string // that the page shows, "" if none
	other string // the product that it belongs to, "" for codeq
	from  string // the page that has all of its lines, "" if none
	text  string
}

func (b *block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// name is how the lists above call it.
func (b *block) name() string {
	if b.other != "" {
		return b.page + " " + b.other
	}
	return b.page + " " + b.kind
}

// blockMark is what stands before a block.
var blockMark = regexp.MustCompile(`^<!-- (file|other|from): (.+) -->$`)

// blocksOf lists the blocks of a page in their order. One without a kind is text.
func blocksOf(t *testing.T, page string) (all []*block) {
	t.Helper()
	var open *block
	lines := strings.Split(readPage(t, page), "\n")
	for i, line := range lines {
		switch {
		case open != nil && line == mark:
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, mark):
			kind, _, _ := strings.Cut(strings.TrimPrefix(line, mark)+" text", " ")
			if kind == "" {
				kind = "text"
			}
			open = &block{page: page, line: i + 1, kind: kind}
			switch m := blockMark.FindStringSubmatch(lines[max(i-1, 0)]); {
			case m == nil:
			case m[1] == "file":
				open.file = m[2]
			case m[1] == "from":
				open.from = m[2]
			default:
				open.other = m[2]
			}
			all = append(all, open)
		}
	}
	if open != nil {
		t.Fatalf("%s: the block does not end", open)
	}
	return all
}

// everyPage is every page for people: those below docs/, and four beside it.
func everyPage(t *testing.T) []string {
	t.Helper()
	return append(pagesBelow(t), "../README.md", "../ARCHITECTURE.md", "../sdk/python/README.md", "../sdk/typescript/README.md")
}

func TestEveryBlockIsRunOrReadAndCounted(t *testing.T) {
	left := map[string]int{}
	for _, page := range everyPage(t) {
		for _, b := range blocksOf(t, page) {
			if b.from != "" {
				isFrom(t, b)
			}
			if b.from != "" || runElsewhere[b.name()] != "" || isPlayed(b) || runsHere(b) {
				continue
			}
			left[b.name()]++
			if err := b.read(); err != nil {
				t.Errorf("%s: %v", b, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if left[name] != counted[name] {
			t.Errorf("nothing runs %d blocks of %s, and the list has %d: have a test run it, or write \"%[2]s\": %[1]d into counted", left[name], name, counted[name])
		}
	}
	for name := range counted {
		if left[name] == 0 {
			t.Errorf("there is no block of %s any more", name)
		}
	}
}

// isFrom fails for a line of an excerpt that is not in its page. A line "…" leaves lines out.
func isFrom(t *testing.T, b *block) {
	t.Helper()
	page := readPage(t, filepath.Join(filepath.Dir(b.page), b.from))
	for line := range strings.Lines(b.text) {
		if line = strings.TrimSpace(line); line != more && !strings.Contains(page, line) {
			t.Errorf("%s: %s has no line %s", b, b.from, line)
		}
	}
}

// read reports whether a block is no text of its language, as far as that can be known here.
func (b *block) read() (err error) {
	switch b.kind {
	case "json":
		_, err = parseJSON(b.text)
	case "yaml":
		for _, document := range strings.Split(b.text, "---\n") {
			_, failed := yamlfile.Parse(b.String(), []byte(document))
			err = errors.Join(err, failed)
		}
	case "go":
		text := strings.ReplaceAll(b.text, more, "")
		if !strings.Contains(text, "package ") && !strings.HasPrefix(text, "func ") {
			text = "func _() {\n" + text + "}"
		}
		if !strings.Contains(text, "package ") {
			text = "package p\n" + text
		}
		_, err = parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	case "python":
		ask := exec.Command("python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())")
		ask.Stdin = strings.NewReader(strings.ReplaceAll(b.text, more, "..."))
		if err = ask.Run(); errors.Is(err, exec.ErrNotFound) {
			err = nil
		}
	}
	return err
}

// codeSpan is code within a sentence.
var codeSpan = regexp.MustCompile("`((?:\\./bin/)?codeq [^`]+)`")

// Each command of codeq that a page names, in a block or in a sentence, is one of the program, with its flags.
func TestEveryCommandOfThePagesIsOneOfTheProgram(t *testing.T) {
	program, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{} // what a command says of itself
	for _, page := range everyPage(t) {
		var lines []string
		for _, b := range blocksOf(t, page) {
			lines = append(lines, strings.Split(strings.ReplaceAll(b.text, "\\\n", " "), "\n")...)
		}
		for _, m := range codeSpan.FindAllStringSubmatch(readPage(t, page), -1) {
			lines = append(lines, strings.ReplaceAll(m[1], "\n", " "))
		}
		for _, line := range lines {
			command, flags := commandOf(line)
			if command == "" {
				continue
			}
			help, known := pages[command]
			if !known {
				out, err := exec.Command(program, append(strings.Fields(command), "--help")...).CombinedOutput()
				if err != nil {
					t.Errorf("%s: there is no command codeq %s: %s", page, command, line)
				}
				help = string(out)
				pages[command] = help
			}
			for _, flag := range flags {
				if !regexp.MustCompile(`--(\[no-\])?` + regexp.QuoteMeta(flag) + `\b`).MatchString(help) {
					t.Errorf("%s: codeq %s has no flag --%s: %s", page, command, flag, line)
				}
			}
		}
	}
	if len(pages) < 30 {
		t.Errorf("the pages have only %d commands", len(pages))
	}
}

// nouns are the words that have verbs.
var nouns = []string{"task", "queue", "dlq", "session", "webhooks", "limits", "cluster", "token", "config"}

// word is the form of a command and a verb.
var word = regexp.MustCompile(`^[a-z][a-z-]*$`)

// commandOf takes the command of codeq and the names of its flags out of a line, "" if it has none.
func commandOf(line string) (command string, flags []string) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
	line, _, _ = strings.Cut(line, " #")
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "codeq" && words[0] != "./bin/codeq" || !word.MatchString(words[1]) {
		return "", nil
	}
	command = words[1]
	if slices.Contains(nouns, command) && len(words) > 2 && word.MatchString(words[2]) {
		command += " " + words[2]
	}
	for _, w := range words[2:] {
		if w == "--" || strings.ContainsAny(w, "|&>;") {
			break
		}
		if flag, found := strings.CutPrefix(w, "--"); found {
			flag, _, _ = strings.Cut(flag, "=")
			flags = append(flags, strings.TrimPrefix(strings.TrimRight(flag, ".,:)"), "no-"))
		}
	}
	return command, flags
}

// isPlayed reports whether a block is an example of the protocol.
func isPlayed(b *block) bool { return slices.Contains(protocolPages, b.page) && b.kind != "text" }

// runsHere reports whether the pages of this test run a block.
func runsHere(b *block) bool {
	if !slices.ContainsFunc(runPages, func(pattern string) bool {
		fits, err := filepath.Match(pattern, b.page)
		return err == nil && fits
	}) {
		return false
	}
	return b.other == "" && b.from == "" && (b.kind == "console" || b.file != "")
}
