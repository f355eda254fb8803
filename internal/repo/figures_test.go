package repo

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxPackageLines is what a package of the program may have. Larger ones say in
// their doc comment why they are one.
const maxPackageLines = 2500

// largeAlready are the packages that had more when the rule was made. The
// numbers only fall: whoever makes such a package smaller lowers its number.
var largeAlready = map[string]int{
	"client":           6067,  // 41 leave an address that does not answer for the next one; 4 give a refusal for want of space back; 25 ask for a token that changes; 198 are handlers of several commands, batches, a logger and two errors; 4697, and 339 of the watch, which shares the loop and the links of sessions, and 90 of labels and searches; 44 watch pages and the server; 26 take tasks back and end sessions; 22 name a tenant and tell of a refused client certificate; 12 are concurrency keys; 38 set limits of tenants; 24 post webhooks, show queues of the server and read a secret; 15 hand a trace context on; 62 are webhooks of tenants; 78 reports progress and output, and show both of a task; 113 upload artifacts, list and get them; 28 wait for the alert that refuses a certificate; 145 know several addresses and the leader; 51 ask about the cluster and change its nodes
	"cmd/codeq":        10539, // 16 refuse an empty node, and read before a node is removed; 29 stop a file of lines at a full disk; 6 show clocks and disks of nodes; 26 make a node once; 10 refuse a directory of artifacts that one node alone has; 107 leave commands out of the program for Windows; 105 tell a supervisor how the server goes; 66 print the manual page and formats; 76 serve and write the documents; 73 are test-server, 109 conform; 664 of them are top and watch, which share table, output and exit codes; 4 have sockets watch a bench; 121 find tasks; 293 are the demo; 67 take tasks back and end sessions; 69 mint tokens, 18 open providers; 23 set and show limits of queues; 74 are TLS of server and commands, and their tenant; 26 set and show limits of concurrency keys; 164 are limits of tenants; 33 are webhooks and their secret; 6 hand a trace context on; 196 are webhooks of tenants; 213 send what programs print and their marks, and show both; 8 bound the bytes that wait; 17 set and show targets; 248 list and get artifacts, upload what programs leave, and name a bucket; 3 want a target for its window; 205 are the curves of bench, 24 read allocations; 115 find what a killed worker left, say which artifacts never fit and set one more limit; 335 make a cluster, show and change its nodes
	"internal/httpapi": 5736,  // 88 answer reads of one node from what it has; 11 name the level of the disk guard; 7 let every node make a backup; 116 of them are the way to events, 252 searches, 26 keep contents from who only views, 27 lead to the pages, 118 are their login; 114 read for clients that watch, searches too, 3 have a default of their own for reasons; 20 take tasks back and end sessions; 26 are commands of credentials for reading, and the tenant that an admin of all names, of sockets too; 4 are logins with tokens of providers; 22 take client certificates, 89 are headers for browsers and CORS; 4 count and list what concurrency keys hold back; 221 are limits of tenants and their headers; 35 show queues of the server and a secret; 3 read the headers of a trace; 294 are webhooks of tenants; 14 take reports over HTTP; 5 bound the bytes that wait; 17 say that a target fails; 381 are artifacts: uploads, contents of results, ranges; 118 are subscriptions; 21 look at the size of a file and the length of a type; 83 bound and count files and send who asks on to a bucket; 115 are a node of a cluster that does not lead, and where the leader is; 75 tell who waits at a leader that is none any more; 92 are the requests about the cluster
	"internal/peer":    2586,  // 21 show figures from what is known; 19 tell what a leader did not get; 9 refuse a port that cannot exist; 33 tell whether a node asks for credentials, and keep one that does not from leading; 40 tell which forms of the log it reads
	"internal/server":  3095,  // 34 send to the next leader what the last one did not get; 20 cut no request but those of a leader that is none any more; 1 lets such reads in; 23 share files with what nodes pass, 11 count their disks and refuse to lead; 11 show the machine of a node that follows; 2 know a directory that all nodes have; 34 tell a supervisor that the shards turn; 52 are the door where requests wait for the next leader; 374 of them are the node of a cluster and the times that it leads; 174 are the port of the nodes and what they say of themselves
	"internal/conform": 2749,  // 7 wait for a port; 119 scripts of 16 lines each are its data; 20 keep its bounds of time from failing an SDK on a busy machine
	"loadtest":         2688,  // 125 of them are sockets that watch during a run; 19 are allocations
	"session":          3144,  // 23 of them are what a list of sessions shows of a worker, 73 are what an admin does to one; 16 are a scope for each frame; 4 report a renewal that is refused; 43 are limits of tenants; 15 take reports; 5 tell where the leader is; 10 act for the tenant that the upgrade names
	"shard":            5899,  // 6 of them extend leases at a takeover, 37 of them are what events say, 6 write and delete labels, 17 take tasks back, 18 say who did what; 252 are the limits of queues, which are asked in the grant pass; 116 are named records of tenants; 413 are the limits of concurrency keys, which every move of a task with one asks; 142 count what waits of a tenant, and turns by weight; 81 make callbacks and put them off; 29 say in which trace a task is; 51 are webhooks of tenants; 121 keep what workers report; 13 use keys again, 33 count the bytes that wait; 19 let who has its token end what went to a target; 130 number and list the files of deliveries; 67 count the bytes of files
	"store":            7360,  // 40 are the store of a read at a node that follows; 1 stores what is free once a look; 17 count what is free on other disks; 38 draw another creation id for a cluster from a backup; 11 say what a takeover begins with; 360 of them let ended tasks share keys; 6 of them name the database for events, 63 are labels and lists of them, 16 tell what it has done, 6 read every queue for who watches; 43 are named records; 104 are the tasks that wait for concurrency keys; 1 is a webhook; 4 show it; 14 count the bytes that wait; 55 say which files of a task are of use; 77 count them anew after damage; 421 are the database of a node of a cluster; 1 do not close what would be written into; 75 give space back while it is short; 34 check a table before it is copied, 6 show the disk of a node that follows
	"wire":             8207,  // 2 show clocks and disks of nodes; with the frames of events, which share its scanner; 310 are labels and searches; 22 reserve commands, 13 outline a task; 7 are the line of an error that store and cmd/codeq each had; 43 are pages of searches in events, 7 name the total; 3 are a code and a reason; 12 match commands with prefixes; 2 are a code; 24 are limits of queues and the reason that names one; 8 are the home of a tenant and a code; 2 are the need for slow tasks; 45 are concurrency keys and their limits; 220 are limits of tenants; 105 are webhooks and callbacks; 107 read the trace contexts of the W3C; 294 are webhooks of tenants; 311 are reports and their frames; 7 bound the bytes that wait; 26 are targets; 169 are artifacts, their names and contents; 13 write each object of settings in its place; 157 are subscriptions; 9 refuse two files of one name; 29 are that limit, and the rule of a text in a file of its own; 8 tell where the leader of a cluster is; 39 are the status of a cluster and a code
}

// The figures of the whole program.
const (
	maxMedianFunction = 9   // lines
	longFunction      = 40  // lines
	oneLongOf         = 100 // functions: fewer than one of so many is longer than that
	minMedianFile     = 80  // lines
	maxMedianFile     = 130 // lines
)

// publicPackages are imported by programs that are not in this repository.
var publicPackages = []string{"client"}

func figureRules() []rule {
	return []rule{{
		name:   "a package has at most 2,500 lines",
		why:    "one person can know 2,500 lines, and the compiler keeps no walls inside a package",
		remedy: "move a part that stands alone into its own package; largeAlready in internal/repo/figures_test.go only falls, and the comment of such a package says why: it is one package because …",
		tree:   largePackages,
	}, {
		name:   "most functions are short, and files of middle length",
		why:    "a program of nine-line functions can be read like a text; longer functions need a map",
		remedy: "split the longest functions and files along their steps",
		tree:   figures,
	}, {
		name:   "exported names are used outside their package",
		why:    "each exported name is a promise that has to be kept, and a name that a reader has to know",
		remedy: "unexport it, or delete it; what only a test of the package needs is reached from a test inside the package",
		tree:   unusedExports,
	}}
}

func largePackages(t *tree) (found []finding) {
	lines, reason := map[string]int{}, map[string]bool{}
	for _, f := range t.goFiles {
		if f.product() {
			lines[f.dir] += f.lines()
			why := strings.Join(strings.Fields(f.ast.Doc.Text()), " ")
			reason[f.dir] = reason[f.dir] || strings.Contains(why, "It is one package because ")
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		if most := max(maxPackageLines, largeAlready[dir]); lines[dir] > most {
			found = append(found, finding{path.Join(dir, "doc.go"), 1, fmt.Sprintf("%d lines, more than %d", lines[dir], most)})
		}
		if lines[dir] > maxPackageLines && !reason[dir] {
			found = append(found, finding{path.Join(dir, "doc.go"), 1, fmt.Sprintf("%d lines, and no reason", lines[dir])})
		}
	}
	return found
}

func figures(t *tree) (found []finding) {
	var functions, files []int
	long := 0
	for _, f := range t.goFiles {
		if !f.product() {
			continue
		}
		files = append(files, f.lines())
		eachFunction(f, func(_ string, n ast.Node, _ *ast.FuncType) {
			if _, ok := n.(*ast.FuncDecl); !ok {
				return
			}
			lines := f.line(n.End()) - f.line(n.Pos()) + 1
			functions = append(functions, lines)
			if lines > longFunction {
				long++
			}
		})
	}
	if m := median(functions); m > maxMedianFunction {
		found = append(found, finding{".", 1, fmt.Sprintf("the median function has %d lines", m)})
	}
	if long*oneLongOf >= len(functions) && long > 0 {
		found = append(found, finding{".", 1, fmt.Sprintf("%d of %d functions have more than %d lines", long, len(functions), longFunction)})
	}
	if m := median(files); m < minMedianFile || m > maxMedianFile {
		found = append(found, finding{".", 1, fmt.Sprintf("the median file has %d lines", m)})
	}
	return found
}

func median(of []int) int {
	if len(of) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(of))[len(of)/2]
}

// unusedExports finds functions, types, constants and variables that no other
// package names, tests of other packages included. A type may also be part of
// another exported declaration; constants and variables of a group are one scale,
// and not looked at one by one.
func unusedExports(t *tree) (found []finding) {
	used := t.namesUsedOutside()
	for _, f := range t.goFiles {
		if !f.product() || f.ast.Name.Name == "main" || slices.Contains(publicPackages, f.dir) {
			continue
		}
		for _, decl := range f.ast.Decls {
			for _, name := range exportsOf(decl) {
				if full := f.dir + "." + name.Name; !used[full] {
					found = append(found, f.at(name.Pos(), "%s", name.Name))
				}
			}
		}
	}
	return found
}

// exportsOf lists the exported names of a declaration that must be used.
func exportsOf(decl ast.Decl) (names []*ast.Ident) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name)
			case *ast.ValueSpec:
				if len(d.Specs) == 1 {
					names = append(names, s.Names...)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(name *ast.Ident) bool { return !name.IsExported() })
}

// namesUsedOutside are the names that another package writes, as package.Name, and
// the types that stand in an exported declaration of their own.
func (t *tree) namesUsedOutside() map[string]bool {
	used := map[string]bool{}
	for _, f := range t.goFiles {
		dirs := map[string]string{} // by the name that the file gives the package
		imported(f, func(p string, _ finding) {
			if dir, ok := strings.CutPrefix(p, "codeq/"); ok && dir != f.dir {
				dirs[f.importName(p)] = dir
			}
		})
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && dirs[x.Name] != "" {
					used[dirs[x.Name]+"."+s.Sel.Name] = true
				}
			}
			return true
		})
		for _, decl := range f.ast.Decls {
			eachTypeShown(decl, func(name string) { used[f.dir+"."+name] = true })
		}
	}
	return used
}

// eachTypeShown visits the names in the signatures of exported functions and
// methods and in the fields and methods of exported types.
func eachTypeShown(decl ast.Decl, visit func(name string)) {
	var shown []ast.Node
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() {
			shown = append(shown, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && d.Tok == token.TYPE && s.Name.IsExported() {
				shown = append(shown, s.Type)
			}
		}
	}
	for _, n := range shown {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				visit(id.Name)
			}
			return true
		})
	}
}
