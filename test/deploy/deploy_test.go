package deploy

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	chartloader "helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/strvals"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const (
	chartDir    = "../../deploy/helm/codeq"
	composeFile = "../../deploy/compose/compose.yaml"
)

// rendered is what a chart makes, by kind.
type rendered struct {
	sets     []apps.StatefulSet
	services []core.Service
	budgets  []policy.PodDisruptionBudget
	monitors []monitoring.ServiceMonitor
	notes    string
}

// valuesOf reads a file of values beside the chart; "" is none.
func valuesOf(t *testing.T, file string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if file == "" {
		return values
	}
	text, err := os.ReadFile(chartDir + "/" + file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := chartloader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func render(c *chart.Chart, values map[string]any) (map[string]string, error) {
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "codeq", Namespace: "queues", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// makeAll renders the chart and decodes each object strictly.
func makeAll(t *testing.T, values map[string]any) *rendered {
	t.Helper()
	files, err := render(load(t), values)
	if err != nil {
		t.Fatal(err)
	}
	r := &rendered{}
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			r.notes = text
			continue
		}
		for _, object := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
			var kind struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(object), &kind); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, object)
			}
			var err error
			switch kind.APIVersion + " " + kind.Kind {
			case " ":
			case "apps/v1 StatefulSet":
				r.sets, err = decoded(r.sets, object)
			case "v1 Service":
				r.services, err = decoded(r.services, object)
			case "policy/v1 PodDisruptionBudget":
				r.budgets, err = decoded(r.budgets, object)
			case "monitoring.coreos.com/v1 ServiceMonitor":
				r.monitors, err = decoded(r.monitors, object)
			default:
				err = fmt.Errorf("nothing decodes %s %s", kind.APIVersion, kind.Kind)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, object)
			}
		}
	}
	return r
}

func decoded[T any](all []T, text string) ([]T, error) {
	var object T
	err := yaml.UnmarshalStrict([]byte(text), &object)
	return append(all, object), err
}

func TestChartForOneNode(t *testing.T) {
	r := makeAll(t, map[string]any{"tokensSecret": "codeq-tokens"})
	if len(r.sets) != 1 || len(r.services) != 2 || len(r.budgets) != 0 || len(r.monitors) != 0 {
		t.Fatalf("it makes %d sets, %d services, %d budgets and %d monitors", len(r.sets), len(r.services), len(r.budgets), len(r.monitors))
	}
	if pod := r.sets[0].Spec.Template.Spec; len(pod.InitContainers) != 0 {
		t.Errorf("a server alone has the first container %s", pod.InitContainers[0].Name)
	}
	checkPods(t, r)
}

func TestChartForThreeNodes(t *testing.T) {
	r := makeAll(t, valuesOf(t, "values-three.yaml"))
	if len(r.sets) != 3 || len(r.services) != 2 || len(r.budgets) != 1 || len(r.monitors) != 1 {
		t.Fatalf("it makes %d sets, %d services, %d budgets and %d monitors", len(r.sets), len(r.services), len(r.budgets), len(r.monitors))
	}
	for i := range r.sets {
		first := r.sets[i].Spec.Template.Spec.InitContainers[0]
		verb := "join"
		if i == 0 {
			verb = "init"
		}
		if want := fmt.Sprintf("codeq-%d-0.codeq-nodes:8090", i); !slices.Contains(first.Args, verb) || !slices.Contains(first.Args, want) || !slices.Contains(first.Args, "--if-needed") {
			t.Errorf("node %d begins with %q", i, first.Args)
		}
	}
	for _, part := range []string{"codeq-0-0 -- /codeq cluster token", "--from-literal=node-1=", "--from-literal=node-2="} {
		if !strings.Contains(r.notes, part) {
			t.Errorf("the notes have no %q: %s", part, r.notes)
		}
	}
	checkPods(t, r)
}

// released is the version that the change log has first.
func released(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+) `).FindSubmatch(text)
	if number == nil {
		t.Fatal("the change log has no version")
	}
	return string(number[1])
}

// settings are those of docs/config.md.
func settings(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkPods checks what holds for each pod: no rights, a volume for the data, probes, and no variable
// that the server would refuse.
func checkPods(t *testing.T, r *rendered) {
	t.Helper()
	known, image := settings(t), "codeq:"+released(t)
	ports := map[string]bool{}
	for i := range r.sets {
		set := &r.sets[i]
		pod := &set.Spec.Template.Spec
		if set.Spec.ServiceName != "codeq-nodes" || *set.Spec.Replicas != 1 || len(set.Spec.VolumeClaimTemplates) != 1 {
			t.Errorf("%s has %d replicas, %d volumes and the service %s", set.Name, *set.Spec.Replicas, len(set.Spec.VolumeClaimTemplates), set.Spec.ServiceName)
		}
		if *pod.TerminationGracePeriodSeconds < 20 || *pod.EnableServiceLinks || *pod.AutomountServiceAccountToken || *pod.SecurityContext.RunAsUser != 65532 {
			t.Errorf("%s: %+v", set.Name, pod)
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := c.SecurityContext
			if !*s.ReadOnlyRootFilesystem || !*s.RunAsNonRoot || *s.AllowPrivilegeEscalation || !slices.Contains(s.Capabilities.Drop, "ALL") {
				t.Errorf("%s of %s has the rights %+v", c.Name, set.Name, s)
			}
			if c.Image != image {
				t.Errorf("%s of %s is the image %s", c.Name, set.Name, c.Image)
			}
		}
		server := pod.Containers[0]
		if server.LivenessProbe.HTTPGet.Path != "/healthz" || server.ReadinessProbe.HTTPGet.Path != "/readyz" {
			t.Errorf("%s is asked at %s and %s", set.Name, server.LivenessProbe.HTTPGet.Path, server.ReadinessProbe.HTTPGet.Path)
		}
		for _, variable := range server.Env {
			if !strings.Contains(known, "`"+variable.Name+"`") {
				t.Errorf("%s sets %s, which is no setting", set.Name, variable.Name)
			}
		}
		for _, port := range server.Ports {
			ports[port.Name] = true
		}
	}
	for _, service := range r.services {
		for _, port := range service.Spec.Ports {
			if !ports[port.TargetPort.String()] {
				t.Errorf("%s leads to the port %s, which no pod has", service.Name, port.TargetPort.String())
			}
		}
	}
}

// The lines of the page render, with the values that they set.
func TestLinesOfThePageRender(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^helm install codeq deploy/helm/codeq (.*)$`).FindAllSubmatch(page, -1)
	if len(lines) != 2 {
		t.Errorf("the page has %d lines of helm install", len(lines))
	}
	for _, line := range lines {
		file, sets := "", []string{}
		words := strings.Fields(string(line[1]))
		for i := 0; i+1 < len(words); i += 2 {
			switch words[i] {
			case "--values":
				file = strings.TrimPrefix(words[i+1], "deploy/helm/codeq/")
			case "--set":
				sets = append(sets, words[i+1])
			default:
				t.Fatalf("%s is not known here", words[i])
			}
		}
		values := valuesOf(t, file)
		if err := strvals.ParseInto(strings.Join(sets, ","), values); err != nil {
			t.Fatal(err)
		}
		for _, set := range makeAll(t, values).sets {
			if image := set.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/codeq:"+released(t) {
				t.Errorf("%s has the image %s", set.Name, image)
			}
		}
	}
}

// Without a word who may ask, the server would not start: the chart says it before.
func TestChartRefusesWhatCannotStart(t *testing.T) {
	for sentence, values := range map[string]map[string]any{
		"set tokensSecret": {},
		"nodes":            {"tokensSecret": "x", "nodes": 2},
		"storages":         {"tokensSecret": "x", "storages": map[string]any{}},
	} {
		if _, err := render(load(t), values); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%v renders with %v", values, err)
		}
	}
	if r := makeAll(t, map[string]any{"insecureNoAuth": true}); len(r.sets) != 1 {
		t.Error("a chart for everybody makes no server")
	}
}

func TestChartHasNothingToLint(t *testing.T) {
	for _, values := range []map[string]any{{"tokensSecret": "x"}, valuesOf(t, "values-three.yaml")} {
		for _, m := range lint.All(chartDir, values, "queues", true).Messages {
			if m.Severity >= support.WarningSev {
				t.Error(m)
			}
		}
	}
}

// The Compose file as Compose itself reads it, with its schema.
func TestComposeFileIsRead(t *testing.T) {
	text, err := os.ReadFile(composeFile)
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: "/srv", ConfigFiles: []types.ConfigFile{{Filename: composeFile, Content: text}},
	}, func(o *loader.Options) { o.SetProjectName("codeq", true) })
	if err != nil {
		t.Fatal(err)
	}
	server := project.Services["codeq"]
	if server.Image != "codeq:"+released(t) || !server.ReadOnly || !slices.Equal(server.CapDrop, []string{"ALL"}) || server.StopGracePeriod.String() != "30s" || len(server.Volumes) != 1 {
		t.Errorf("the server is %+v", server)
	}
	known := settings(t)
	for name := range server.Environment {
		if !strings.Contains(known, "`"+name+"`") {
			t.Errorf("the file sets %s, which is no setting", name)
		}
	}
}
