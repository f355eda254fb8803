package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template/parse"

	"codeq/internal/yamlfile"
)

// The files of deploy/ can be read, and each variable that they set is a setting: a short form of what
// make deploy-test does with Helm, Compose and the proxies themselves.
func TestFilesOfDeployAreRead(t *testing.T) {
	known, read := readPage(t, "config.md"), 0
	err := filepath.WalkDir("../deploy", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text := readPage(t, at)
		switch {
		case strings.Contains(at, "/templates/"):
			tree := parse.New(at)
			tree.Mode = parse.SkipFuncCheck // its functions are those of Helm
			_, err = tree.Parse(text, "", "", map[string]*parse.Tree{})
		case filepath.Ext(at) == ".yaml":
			_, err = yamlfile.Parse(at, []byte(text))
		case filepath.Ext(at) == ".json":
			_, err = parseJSON(text)
		default:
			return nil
		}
		for _, name := range regexp.MustCompile(`\bCODEQ_[A-Z_]+[A-Z]\b`).FindAllString(text, -1) {
			if name != "CODEQ_TOKEN" && !strings.Contains(known, "`"+name+"`") {
				t.Errorf("%s has %s, which is no setting", at, name)
			}
		}
		read++
		return err
	})
	if err != nil || read < 12 {
		t.Errorf("%d files were read: %v", read, err)
	}
}
