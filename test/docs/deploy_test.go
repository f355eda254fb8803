package docs

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeq/internal/yamlfile"
	"codeq/record"
	"codeq/test/blackbox"
)

const (
	alertsFile     = "../deploy/prometheus/alerts.yaml"
	dashboardFile  = "../deploy/grafana/codeq.json"
	operationsPage = "operations.md"
)

// alert is one rule of alertsFile.
type alert struct {
	name, expr, severity, runbook string
	texts                         string // all annotations, one on each line
}

func readAlerts(t *testing.T) (all []alert) {
	t.Helper()
	root, err := yamlfile.Parse(alertsFile, []byte(readPage(t, alertsFile)))
	if err != nil {
		t.Fatal(err)
	}
	file := &spec{root}
	for _, group := range file.path(root, "groups").Items {
		for _, rule := range file.path(group, "rules").Items {
			a := alert{
				name: file.text(rule, "alert"), expr: file.text(rule, "expr"),
				severity: file.path(rule, "labels", "severity").Text, runbook: file.path(rule, "annotations", "runbook").Text,
			}
			for _, field := range file.path(rule, "annotations").Fields {
				a.texts += field.Value.Text + "\n"
			}
			all = append(all, a)
		}
	}
	if len(all) < 15 {
		t.Fatalf("read only the alerts %v", all)
	}
	return all
}

// panel is a part of the dashboard, or the dashboard: an expression may stand in
// each.
type panel struct {
	ID          int
	Type        string
	Title, Name string
	Description string
	Targets     []struct{ Expr, LegendFormat string }
	Expr        string
	TitleFormat string
	Query       string
	Panels      []panel
	Annotations struct{ List []panel }
	Templating  struct{ List []panel }
}

func readDashboard(t *testing.T) (d panel) {
	t.Helper()
	if err := json.Unmarshal([]byte(readPage(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// query is an expression of Prometheus and the labels of its result that a text
// beside it shows.
type query struct {
	where, expr string
	shows       []string
}

var (
	shownLabel    = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
	labelQuery    = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	dashboardName = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$command", ".*")
)

func shownIn(text string) (labels []string) {
	for _, m := range shownLabel.FindAllStringSubmatch(text, -1) {
		labels = append(labels, m[1])
	}
	return labels
}

// queries are all expressions of a panel and what is in it.
func (p *panel) queries() (all []query) {
	if m := labelQuery.FindStringSubmatch(p.Query); m != nil {
		all = append(all, query{"variable " + p.Name, m[1], []string{m[2]}})
	}
	if p.Expr != "" {
		all = append(all, query{"annotation " + p.Name, p.Expr, shownIn(p.TitleFormat)})
	}
	for _, target := range p.Targets {
		all = append(all, query{"panel " + p.Title, target.Expr, shownIn(target.LegendFormat)})
	}
	for _, inner := range slices.Concat(p.Panels, p.Annotations.List, p.Templating.List) {
		all = append(all, inner.queries()...)
	}
	return all
}

// aLittleOfEverything is the /metrics of a server that took, delivered and ended
// tasks, has one in each order, was copied, and has a tenant with limits.
func aLittleOfEverything(t *testing.T) string {
	t.Helper()
	server := blackbox.Serve(t, "--otlp-endpoint", "http://127.0.0.1:1")
	api := blackbox.NewAPI(server.Addr)
	t.Cleanup(api.Close)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	do := func(method, path, body string) []byte {
		t.Helper()
		answer, err := api.Do(ctx, method, path, body)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return answer.Body
	}
	for _, end := range []string{"result", "nack", "release"} {
		do("POST", "/tasks", `{"command":"mail","payload":1,"maxAttempts":1}`)
		var task struct{ ID string }
		if err := json.Unmarshal(do("POST", "/tasks/claim", `{"commands":["mail"]}`), &task); err != nil {
			t.Fatal(err)
		}
		do("POST", "/tasks/"+task.ID+"/"+end, map[string]string{"result": `{"status":"COMPLETED","result":{}}`}[end])
	}
	do("GET", "/admin/backup", "")
	do("PUT", "/admin/limits/default", `{"pendingTasks":1}`)
	return server.Metrics()
}

// figuresOfTLS are the lines of /metrics that only a server with a certificate has.
func figuresOfTLS(t *testing.T) (lines string) {
	t.Helper()
	authority := blackbox.NewAuthority(t)
	cert, key := authority.Issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	server := blackbox.Serve(t, "--tls-cert", cert, "--tls-key", key)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: authority.Client("", "")}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + server.Addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if strings.Contains(line, "codeq_tls_") {
			lines += line
		}
	}
	return lines
}

// figuresOfANode are the lines of /metrics that only a node of a cluster has.
func figuresOfANode(t *testing.T) (lines string) {
	t.Helper()
	for line := range strings.Lines(firstNode(t).Metrics()) {
		if strings.Contains(line, "codeq_cluster_") {
			lines += line
		}
	}
	return lines
}

// Every series and label of the alerts and of the dashboard is in the /metrics of
// a server.
func TestE17AlertsAndDashboardReadSeriesThatExist(t *testing.T) {
	var all []query
	for _, a := range readAlerts(t) {
		all = append(all, query{"alert " + a.name, a.expr, shownIn(a.texts)})
	}
	dashboard := readDashboard(t)
	for _, q := range dashboard.queries() {
		q.expr = dashboardName.Replace(q.expr)
		all = append(all, q)
	}
	if len(all) < 60 {
		t.Fatalf("found only %d expressions", len(all))
	}
	exposed := readExposed(t, aLittleOfEverything(t)+figuresOfTLS(t)+figuresOfANode(t))
	for _, q := range all {
		if err := exposed.check(&q); err != nil {
			t.Errorf("%s: %s: %v", q.where, q.expr, err)
		}
	}
}

// The page has a section for each alert, which begins with its severity, and none
// for others.
func TestE17EveryAlertHasItsSection(t *testing.T) {
	_, part, found := strings.Cut(readPage(t, operationsPage), "\n## Alerts\n")
	part, _, _ = strings.Cut(part, "\n## ")
	if !found {
		t.Fatal("operations.md has no part about alerts")
	}
	sections := map[string]string{}
	for _, section := range strings.Split(part, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = strings.TrimSpace(text)
	}
	for _, a := range readAlerts(t) {
		if !strings.HasPrefix(sections[a.name], "*"+a.severity+".* ") || a.severity != "page" && a.severity != "ticket" {
			t.Errorf("%s has no section that begins with its severity *%s.*", a.name, a.severity)
		}
		if a.runbook != "docs/"+operationsPage+"#"+strings.ToLower(a.name) {
			t.Errorf("%s has the runbook %s", a.name, a.runbook)
		}
		delete(sections, a.name)
	}
	for name := range sections {
		t.Errorf("operations.md has a section %s, which is no alert", name)
	}
}

func TestE17EachPanelHasItsOwnNumberAndSaysWhatItShows(t *testing.T) {
	seen := map[any]bool{}
	for _, p := range readDashboard(t).Panels {
		if seen[p.ID] || seen[p.Title] || p.Type != "row" && p.Description == "" {
			t.Errorf("the panel %d, %q, has no description, or its number or title comes twice", p.ID, p.Title)
		}
		seen[p.ID], seen[p.Title] = true, true
	}
}

// commandLine is a command that a page tells its reader to run.
var commandLine = regexp.MustCompile("`codeq ((?:[a-z]+ ?)+)([^`]*)`")

// Every command of the page exists and has the flags that stand behind it.
func TestE17CommandsOfTheOperatorsExist(t *testing.T) {
	d := newDesk(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found := commandLine.FindAllStringSubmatch(readPage(t, operationsPage), -1)
	if len(found) < 10 {
		t.Fatalf("found only the commands %q", found)
	}
	for _, m := range found {
		help, err := d.shell(ctx, "codeq "+m[1]+" --help").Output()
		if err != nil || !strings.HasPrefix(string(help), "Usage: codeq "+strings.TrimSpace(m[1])+" ") {
			t.Errorf("codeq %s: %v, %.60s", m[1], err, help)
		}
		for _, word := range strings.Fields(m[2]) {
			if strings.HasPrefix(word, "-") && !strings.Contains(string(help), " "+word) {
				t.Errorf("codeq %s has no flag %s", m[1], word)
			}
		}
	}
}

// The unit is what systemd takes. Its exposure is the one that install.md says, as the version of systemd
// counts it that the page names.
func TestUnitIsVerifiedAndScored(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err) // it runs wherever systemd is installed; nothing is started here
	}
	program, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "codeq.service")
	text := strings.Replace(readPage(t, "../deploy/systemd/codeq.service"), "/usr/bin/codeq", program, 1)
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(analyze, "--man=no", "verify", unit).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	said, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", unit).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	version, err := exec.Command(analyze, "--version").Output()
	if words := strings.Fields(string(version)); err != nil || len(words) < 2 || !strings.Contains(readPage(t, "install.md"), "(systemd "+words[1]+")") {
		t.Logf("install.md has the exposure by another systemd than %s", version)
		return
	}
	score := regexp.MustCompile(`Overall exposure level for codeq.service: ([0-9.]+)`).FindSubmatch(said)
	if score == nil || !strings.Contains(readPage(t, "install.md"), "**"+string(score[1])+"** of 10") {
		t.Errorf("install.md does not say %s", score)
	}
}

// The page names the formats of this program, and each release has left its directory.
func TestUpgradingNamesFormatsAndReleases(t *testing.T) {
	page := readPage(t, "upgrading.md")
	s := blackbox.Serve(t)
	marker, err := filepath.Glob(filepath.Join(s.Dir, "db", "marker.format-version.*"))
	if err != nil || len(marker) != 1 {
		t.Fatal(marker, err)
	}
	number := strings.TrimLeft(strings.TrimPrefix(filepath.Ext(marker[0]), "."), "0")
	for _, row := range []string{fmt.Sprintf("| data directory | %d |", record.Format), "| tables and logs | " + number + " |"} {
		if !strings.Contains(page, "\n"+row) {
			t.Errorf("there is no row %s", row)
		}
	}
	released := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+) `).FindAllStringSubmatch(readPage(t, "../CHANGELOG.md"), -1)
	if len(released) == 0 {
		t.Error("the change log has no version")
	}
	for _, version := range released {
		if !strings.Contains(page, "\n| "+version[1]+" |") {
			t.Errorf("there is no row of %s", version[1])
		}
		for _, kind := range []string{"", "-node"} {
			if _, err := os.Stat("../test/rolling/testdata/" + version[1] + kind + ".tar.gz"); err != nil {
				t.Errorf("the directory of a release is not kept: %v", err)
			}
		}
	}
}
