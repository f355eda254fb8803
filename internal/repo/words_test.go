package repo

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// retired are words that the repository coined or used for several things, with
// what stands for them now. They are refused as parts of identifiers and of the
// names of metrics.
var retired = map[string]string{
	"seat": "consumer", "seats": "consumers",
	"crowd": "subscribers", "crowds": "subscribers",
	"wild": "wildcard", "basket": "claim sink",
	"owed": "leaked credit", "owe": "leak", "owes": "leaks", "forgive": "drop leaked credit",
	"astray": "misrouted", "strayed": "misrouted",
	"fence": "drain barrier", "fences": "drain barriers", "fenced": "drained",
	"outlet": "effect gate", "outlets": "effect gates",
	"reap": "remove", "reaps": "removal queue", "reaping": "removal",
	"crew": "worker loop", "crews": "worker loops", "hasten": "move earlier",
	"twin": "model", "twins": "models",
}

// retiredIn are words that mean what they say elsewhere, and in these packages meant
// something of their own.
var retiredIn = map[string]string{
	"index":           "floor floors stale looks sweep",
	"mailbox":         "standing noted",
	"internal/audit":  "floor floors",
	"record":          "loads heads behind fresh floor floors",
	"session":         "unit units room standing kept",
	"shard":           "unit units room kept floor floors stale looks sweep sweeps noted",
	"shardactor":      "unit units room kept floor floors",
	"internal/credit": "unit units room",
	"store":           "loads heads behind fresh floor floors",
	"test/sim":        "unit units room kept floor floors stale looks sweeps",
}

// coined are the retired words that prose may not have either: comments, texts in
// the code, documents and scripts. The others stay English.
var coined = regexp.MustCompile(`(?i)\b(?:seats?|crowds?|wild|baskets?|owed|astray|fences?|outlets?|reaps|crews?)\b`)

func wordRules() []rule {
	return []rule{{
		name:   "no retired word comes back",
		why:    "one thing has one word, the field's word if there is one: a private vocabulary stops every new reader",
		remedy: "use the word that the finding names, or one of the glossary at the end of ARCHITECTURE.md",
		tree:   retiredWords,
	}}
}

// retiredWords finds each identifier once a file, each metric and each line of text
// with a retired word.
func retiredWords(t *tree) (found []finding) {
	for _, f := range t.goFiles {
		if f.dir == "internal/repo" {
			continue // here they are named
		}
		list := slices.AppendSeq(strings.Fields(retiredIn[f.dir]), maps.Keys(retired))
		seen := map[string]bool{}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if word := firstOf(parts(n.Name), list); word != "" && !seen[n.Name] {
					seen[n.Name] = true
					found = append(found, f.at(n.Pos(), "%s: %s%s", n.Name, word, instead(word)))
				}
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if n.Kind == token.STRING && err == nil && strings.HasPrefix(text, "codeq_") {
					if word := firstOf(strings.Split(text, "_"), slices.Collect(maps.Keys(retired))); word != "" {
						found = append(found, f.at(n.Pos(), "%s: %s%s", text, word, instead(word)))
					}
				}
			}
			return true
		})
	}
	for _, f := range t.texts {
		if strings.HasPrefix(f.path, "internal/repo/") || !coined.MatchString(f.text) {
			continue
		}
		n := 0
		for line := range strings.Lines(f.text) {
			n++
			if word := coined.FindString(line); word != "" {
				found = append(found, finding{f.path, n, word + instead(word)})
			}
		}
	}
	return found
}

// instead says what stands for a retired word, if the table has it.
func instead(word string) string {
	if now := retired[strings.ToLower(word)]; now != "" {
		return ", now " + now
	}
	return ""
}

func firstOf(parts, list []string) string {
	for _, p := range parts {
		if slices.Contains(list, p) {
			return p
		}
	}
	return ""
}

// parts splits an identifier where a capital begins a word, in lower case.
func parts(name string) (words []string) {
	runes, start := []rune(name), 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) {
			begins := unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
			if !begins && runes[i] != '_' {
				continue
			}
		}
		words = append(words, strings.ToLower(strings.Trim(string(runes[start:i]), "_")))
		start = i
	}
	return words
}
