package config

import (
	"strings"
	"testing"
)

// withVariables resolves over an environment.
func withVariables(pairs ...string) error {
	from := Sources{Env: environment(pairs...), Beside: []string{"CODEQ_URL"}}
	for _, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		from.Variables = append(from.Variables, name)
	}
	_, err := Resolve(&sample{}, from)
	return err
}

func TestVariableThatIsNoSettingIsRefused(t *testing.T) {
	err := withVariables("CODEQ_SOMESIZE=4MiB", "CODEQ_ZZZ=hunter2", "CODEQ_On=true", "codeq_on=1", "PATH=/bin")
	want := "variable CODEQ_On is not known; did you mean CODEQ_ON?\n" +
		"variable CODEQ_SOMESIZE is not known; did you mean CODEQ_SOME_SIZE?\n" +
		"variable CODEQ_ZZZ is not known; known here: CODEQ_URL, CODEQ_WORD, CODEQ_CHOICE, CODEQ_OPEN, CODEQ_SOME_SIZE, CODEQ_FOR, CODEQ_ON, CODEQ_KEY"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestVariablesOfOthersAreLeftAlone(t *testing.T) {
	for _, pairs := range [][]string{
		{"CODEQ_WORD=x", "CODEQ_URL=http://x", "CODEQ_EMPTY="},
		// A service that is called codeq, as Kubernetes describes it to every pod.
		{"CODEQ_SERVICE_HOST=10.0.0.1", "CODEQ_SERVICE_PORT=8080", "CODEQ_SERVICE_PORT_HTTP=8080", "CODEQ_PORT=tcp://10.0.0.1:8080",
			"CODEQ_PORT_8080_TCP=tcp://10.0.0.1:8080", "CODEQ_PORT_8080_TCP_PROTO=tcp", "CODEQ_PORT_8080_TCP_ADDR=10.0.0.1"},
		// And one whose name begins so.
		{"CODEQ_ADMIN_SERVICE_HOST=10.0.0.2", "CODEQ_ADMIN_SERVICE_PORT=80", "CODEQ_ADMIN_PORT=tcp://10.0.0.2:80", "CODEQ_ADMIN_PORT_80_TCP_PORT=80"},
	} {
		if err := withVariables(pairs...); err != nil {
			t.Errorf("%v: %v", pairs, err)
		}
	}
	if err := withVariables("CODEQ_ADMIN_PORT=80"); err == nil {
		t.Error("a port of no service is taken")
	}
}
