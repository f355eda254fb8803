package wire

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// Artifact is a file that belongs to the result of a task: a link, or a file that the server
// keeps. In a result that a worker sends, one without URL and Content is a file that it has
// uploaded under this name in the same delivery.
type Artifact struct {
	Name string
	URL  string
	// ContentType, SizeBytes and SHA256, in hex, are those of a file that the server keeps. The
	// type is what the worker says; it may be empty.
	ContentType string
	SizeBytes   int64
	SHA256      string
	// File names it among the files of the task, empty for a link; see FileName.
	File string
	// Content is the file itself in a result that a worker sends, nil for none.
	Content []byte
}

// LeaseTokenHeader has the token of the delivery for which a file is uploaded.
const LeaseTokenHeader = "X-Codeq-Lease-Token"

var (
	artifactNameRule = textRule{code: CodeInvalidResult, high: MaxArtifactNameBytes, required: true, exact: true, problem: hiddenProblem}
	artifactURLRule  = textRule{code: CodeInvalidResult, high: MaxArtifactURLBytes, filled: true, exact: true}
	artifactTypeRule = textRule{code: CodeInvalidResult, high: MaxContentTypeBytes, exact: true, problem: asciiProblem}
	contentRule      = textRule{code: CodeInvalidResult, high: MaxHTTPBodyBytes}
	artifactsRule    = listRule{code: CodeInvalidResult, high: MaxArtifacts}
)

// members reads an artifact of a request. Clients of the original HTTP API send the contentType
// of a link, too, and nobody reads that; docs/from-codeq-http.md lists such members.
func (a *Artifact) members(c *coder) {
	c.text(`,"name":`, &a.Name, &artifactNameRule)
	c.content(`,"contentBase64":`, &a.Content)
	c.optText(`,"url":`, &a.URL, &artifactURLRule)
	c.notBoth(CodeInvalidResult, false)
	if a.URL != "" {
		if c.in != nil {
			c.field(`,"contentType":`)
		}
		return
	}
	c.optText(`,"contentType":`, &a.ContentType, &artifactTypeRule)
	if problem := pathProblem(a.Name); c.in != nil && a.Name != "" && problem != "" {
		c.in.refuseNamed(CodeInvalidResult, "name", problem)
	}
}

// content is a text that holds bytes as base64.
func (c *coder) content(lead string, content *[]byte) {
	if c.in == nil {
		if *content != nil {
			*c.out = append(base64.StdEncoding.AppendEncode(append(append(*c.out, lead...), '"'), *content), '"')
		}
		return
	}
	text := ""
	if c.text(lead, &text, &contentRule); !c.given() {
		return
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		c.in.refuse(CodeInvalidResult, c.last(), "must be base64 with its padding, RFC 4648 section 4")
	}
	*content = decoded
}

// link writes an artifact, or reads one of an answer or a record.
func (a *Artifact) link(c *coder) {
	c.text(`,"name":`, &a.Name, &anyTextRule)
	c.text(`,"url":`, &a.URL, &anyTextRule)
	c.optText(`,"contentType":`, &a.ContentType, &anyTextRule)
	integer(c, `,"sizeBytes":`, &a.SizeBytes, a.File != "" || a.SizeBytes != 0, &anyIntegerRule)
	c.optText(`,"sha256":`, &a.SHA256, &anyTextRule)
	c.optText(`,"file":`, &a.File, &anyTextRule)
}

var (
	artifactShape = shapeOf(new([]string), new(Artifact).members)
	linkShape     = shapeOf(new([]string), new(Artifact).link)
	filesShape    = shapeOf(new([]string), new(artifactList).members)
)

// newArtifacts are those of a request, artifacts those of an answer or a record.
func (c *coder) newArtifacts(lead string, list *[]Artifact) {
	if c.in != nil {
		*list, _ = readList(c, lead, &artifactsRule, artifactShape, (*Artifact).members)
		c.in.refuseNamesakes(*list)
		return
	}
	c.eachArtifact(lead, *list, true)
}

// refuseNamesakes refuses two artifacts of one name, of which one is a file: that is got by its
// name.
func (o *object) refuseNamesakes(list []Artifact) {
	for i := range list {
		for j := range i {
			if list[i].Name == list[j].Name && (list[i].URL == "" || list[j].URL == "") {
				o.refuseNamed(CodeInvalidResult, fmt.Sprintf("artifacts[%d].name", i), "is the name of another artifact, too")
				return
			}
		}
	}
}

func (c *coder) artifacts(lead string, list *[]Artifact) {
	if c.in != nil {
		*list, _ = readList(c, lead, &anyListRule, linkShape, (*Artifact).link)
		return
	}
	c.eachArtifact(lead, *list, false)
}

// eachArtifact writes a list. It calls no function value: the coder would be on the heap then.
func (c *coder) eachArtifact(lead string, list []Artifact, request bool) {
	for i := range list {
		at := c.element(lead, i)
		if request {
			list[i].members(c)
		} else {
			list[i].link(c)
		}
		c.close(at)
	}
	c.endList(len(list))
}

// artifactList is the answer of GET /tasks/{id}/artifacts, and what the core keeps of the files of
// a delivery.
type artifactList struct{ artifacts []Artifact }

func (l *artifactList) members(c *coder) { c.artifacts(`,"artifacts":`, &l.artifacts) }

// AppendArtifacts appends artifacts as a JSON object with one list.
func AppendArtifacts(dst []byte, list []Artifact) []byte {
	if len(list) == 0 {
		return append(dst, `{"artifacts":[]}`...)
	}
	c := writing(&dst)
	(&artifactList{list}).members(&c)
	return c.done()
}

// ReadArtifacts reads what AppendArtifacts wrote; nothing of an empty text, and of any other.
func ReadArtifacts(text string) []Artifact {
	list, err := ParseArtifacts([]byte(text))
	if err != nil {
		return nil
	}
	return list
}

// ParseArtifacts reads the answer of GET /tasks/{id}/artifacts.
func ParseArtifacts(body []byte) ([]Artifact, error) {
	list, err := parseAnswer("artifacts", body, filesShape, (*artifactList).members)
	if err != nil {
		return nil, err
	}
	return list.artifacts, nil
}

// ParseArtifact reads the answer to an upload.
func ParseArtifact(body []byte) (*Artifact, error) {
	return parseAnswer("artifact", body, linkShape, (*Artifact).link)
}

// AppendArtifact appends an artifact as a JSON object, the answer to an upload.
func AppendArtifact(dst []byte, a *Artifact) []byte {
	c := writing(&dst)
	a.link(&c)
	return c.done()
}

// ArtifactNameProblem says what is wrong with the name of a file that the server keeps; "" if
// nothing is. It is a path as in a URL, without what would lead elsewhere, or show a person
// another name than the one that it is.
func ArtifactNameProblem(name string) string {
	_, problem := artifactNameRule.fault(name)
	return cmp.Or(problem, pathProblem(name))
}

func pathProblem(name string) string {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return `must be a path such as log.txt or plots/1.png, without empty parts, "." and ".."`
		}
	}
	return ""
}

func hiddenProblem(name string) string {
	for _, r := range name {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Zl, unicode.Zp) {
			return "must not hold control characters, or such as change the direction of text"
		}
	}
	return ""
}

// ContentTypeProblem says what is wrong with the media type of an artifact, "" if nothing is.
func ContentTypeProblem(text string) string {
	_, problem := artifactTypeRule.fault(text)
	return problem
}

func asciiProblem(text string) string {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return "must be printable ASCII, such as image/png"
		}
	}
	return ""
}

// ArtifactPath is the path of an artifact of a task, from the root of the server on.
func ArtifactPath(id TaskID, name string) string {
	return "/v1/codeq/tasks/" + id.String() + "/artifacts/" + url.PathEscape(name)
}

// FileName is the name of a file among those of its task: the delivery that made it, and its
// number among all that were begun.
func FileName(delivery, number int) string { return fmt.Sprintf("%d.%d", delivery, number) }
