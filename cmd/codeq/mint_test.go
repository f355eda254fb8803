package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAMintedTokenOpensAServer runs the example of docs/security.md.
func TestAMintedTokenOpensAServer(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(page), "$ codeq token mint ")
	line, rest, _ := strings.Cut(example, "\n")
	_, file, _ := strings.Cut(rest, "$ cat providers.yaml\n")
	file, _, ends := strings.Cut(file, "\n")
	if !found || !ends {
		t.Fatal("docs/security.md has no example of token mint")
	}
	dir := t.TempDir()
	in := func(text string) string {
		return strings.NewReplacer("dev.key", filepath.Join(dir, "dev.key"), "dev-keys.json", filepath.Join(dir, "dev-keys.json")).Replace(text)
	}
	args := strings.Fields(in(strings.TrimSuffix(line, " > token")))
	mint := func(more ...string) string {
		code, out, errs := codeq("", append(append([]string{"token", "mint"}, args...), more...)...)
		if code != exitFine {
			t.Fatalf("%d %s", code, errs)
		}
		return strings.TrimSpace(out)
	}
	token := mint()
	providers := filepath.Join(dir, "providers.yaml")
	if err := os.WriteFile(providers, []byte(in(file)), 0o600); err != nil {
		t.Fatal(err)
	}
	server := start(t, "serve", "--json", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--providers", providers)
	url := saysItServes(t, server).URL
	if code, _, errs := command(t, url, "enqueue", "build", "1", "--token", token); code != exitFine {
		t.Errorf("with the token: %d %s", code, errs)
	}
	for what, refused := range map[string]string{"of another queue": "may not use the command", "of no token": "requires a token", "of another key": "signature"} {
		queue, with := "build", token
		switch what {
		case "of another queue":
			queue = "mail"
		case "of no token":
			with = ""
		case "of another key":
			with = token[:len(token)-8] + "AAAAAAAA"
		}
		if code, _, errs := command(t, url, "enqueue", queue, "1", "--token", with); code != exitFailed || !strings.Contains(errs, refused) {
			t.Errorf("%s: %d %s", what, code, errs)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "dev.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	if code, out, _ := codeq("", "token", "mint", "--key", filepath.Join(dir, "dev.key"), "--subject", "b", "--json"); code != exitFine || !strings.Contains(out, `\"kty\":\"OKP\"`) || strings.Contains(out, `\"d\"`) {
		t.Errorf("as JSON: %d %s", code, out)
	}
	if code, _, errs := codeq("", "token", "mint", "--key", providers, "--subject", "b"); code == exitFine || !strings.Contains(errs, "no private key") {
		t.Errorf("a file that is no key: %d %s", code, errs)
	}
	if code, _, errs := codeq("", "token", "mint", "--key", filepath.Join(dir, "dev.key"), "--subject", "b", "--command", "a b"); code != exitWrong {
		t.Errorf("a bad command: %d %s", code, errs)
	}
}
