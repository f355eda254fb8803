package main

import (
	"bytes"
	"fmt"
	"testing"

	"codeq/wire"
)

func TestLinesWithAMarkAreReportsAndNoOutput(t *testing.T) {
	for text, want := range map[string]string{
		"a\n::progress 40 half way\nb\n":   `"a\nb\n" [40 half way]`,
		"::progress 40%\n{\"a\":1}":        `"{\"a\":1}" [40]`,
		"::progress reading\r\n":           `"" [reading]`,
		"::progress 100":                   `"" [100]`,
		"::progress 101 of 200\n":          `"" [101 of 200]`,
		"::progress\n::progress \n":        `"::progress\n::progress \n" []`,
		"x ::progress 1\n":                 `"x ::progress 1\n" []`,
		"::prog":                           `"::prog" []`,
		"::progress 1\n::progress 2 x\n\n": `"\n" [1 2 x]`,
	} {
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			said := []string{}
			f := &markFilter{to: &out, found: func(p wire.ProgressRequest) {
				text := p.Note
				if p.HasPercent {
					text = fmt.Sprint(p.Percent)
					if p.Note != "" {
						text += " " + p.Note
					}
				}
				said = append(said, text)
			}}
			for rest := []byte(text); len(rest) > 0; {
				n, err := f.Write(rest[:min(size, len(rest))])
				if err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			f.end()
			if got := fmt.Sprintf("%q %v", out.String(), said); got != want {
				t.Errorf("%q in parts of %d is %s, want %s", text, size, got, want)
			}
		}
	}
}
