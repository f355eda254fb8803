package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"codeq/wire"
)

const (
	// partBytes is the size of a part of a large file, and what an upload holds in memory. S3
	// takes 10,000 parts.
	partBytes = 16 << 20
	// requestFor bounds one request but for the reading of a file.
	requestFor = 10 * time.Minute
	// answerFor is how long the storage may take until an answer begins.
	answerFor = time.Minute
	// linkFor is how long an address of a file gives it.
	linkFor = 5 * time.Minute
)

// Keys are the credentials for a storage.
type Keys struct{ Access, Secret, Session string }

// S3 keeps files in a bucket, those of a task under its id. Its methods may be called from any
// goroutine.
type S3 struct {
	client *s3.Client
	bucket string
	// prefix begins the key of every file, and ends with a slash.
	prefix string
}

// OpenS3 takes a part of a bucket, such as s3://files/codeq?region=eu-central-1, with
// &endpoint=https://HOST for a storage that is not Amazon's; below is a directory in it. It ends
// uploads that an earlier process has left under way.
func OpenS3(text, below string, keys Keys) (*S3, error) {
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "s3" || at.Host == "" || at.User != nil || at.Fragment != "" {
		return nil, errors.New("it must be like s3://BUCKET/PREFIX?region=eu-central-1, with &endpoint=https://HOST for another storage")
	}
	o := s3.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider(keys.Access, keys.Secret, keys.Session),
		// Other storages refuse checksums that they do not know.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired, ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		HTTPClient: &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: answerFor, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second}},
	}
	for name, values := range at.Query() {
		switch name {
		case "region":
			o.Region = values[0]
		case "endpoint":
			o.BaseEndpoint, o.UsePathStyle = aws.String(values[0]), true
		default:
			return nil, fmt.Errorf("%.40q is not known; known are region and endpoint", name)
		}
	}
	s := &S3{client: s3.New(o), bucket: at.Host, prefix: strings.TrimPrefix(strings.Trim(at.Path, "/")+"/", "/") + below + "/"}
	return s, s.abortAll()
}

// abortAll ends the uploads of large files that were cut off.
func (s *S3) abortAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), requestFor)
	defer cancel()
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &s.prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if isMissing(err) {
			return nil // so some storages say that there is none
		}
		if err != nil {
			return fmt.Errorf("list uploads under way: %w", err)
		}
		for _, u := range page.Uploads {
			if _, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: u.Key, UploadId: u.UploadId}); err != nil {
				return fmt.Errorf("end an upload that was cut off: %w", err)
			}
		}
	}
	return nil
}

func (s *S3) keyOf(k Key) *string { return aws.String(s.prefix + k.Task.String() + "/" + k.File) }

// Put implements Driver: one request for a small file, else parts.
func (s *S3) Put(k Key, r io.Reader) error {
	part := make([]byte, partBytes)
	n, err := io.ReadFull(r, part)
	if err == nil {
		return s.putParts(s.keyOf(k), r, part)
	}
	if err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestFor)
	defer cancel()
	_, err = s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: s.keyOf(k), Body: bytes.NewReader(part[:n])})
	return err
}

// putParts makes a file of a full part and what follows it. The file is there once all parts are.
func (s *S3) putParts(key *string, r io.Reader, part []byte) error {
	ctx := context.Background()
	begun, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: key})
	if err != nil {
		return err
	}
	var parts []types.CompletedPart
	for n, ended := len(part), false; err == nil && (!ended || n > 0); {
		number := aws.Int32(int32(len(parts) + 1))
		var sent *s3.UploadPartOutput
		if sent, err = s.sendPart(begun, number, part[:n]); err != nil {
			break
		}
		parts = append(parts, types.CompletedPart{ETag: sent.ETag, PartNumber: number})
		if ended {
			break
		}
		if n, err = io.ReadFull(r, part); err == io.EOF || err == io.ErrUnexpectedEOF {
			ended, err = true, nil
		}
	}
	if err == nil {
		_, err = s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &s.bucket, Key: key, UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
	}
	if err != nil {
		_, abortErr := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: key, UploadId: begun.UploadId})
		return errors.Join(err, abortErr)
	}
	return nil
}

func (s *S3) sendPart(of *s3.CreateMultipartUploadOutput, number *int32, part []byte) (*s3.UploadPartOutput, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestFor)
	defer cancel()
	return s.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &s.bucket, Key: of.Key, UploadId: of.UploadId, PartNumber: number, Body: bytes.NewReader(part),
	})
}

// Open implements Driver.
func (s *S3) Open(k Key) (io.ReadSeekCloser, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestFor)
	defer cancel()
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.keyOf(k)})
	if isMissing(err) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	return &object{of: s, key: s.keyOf(k), size: aws.ToInt64(head.ContentLength)}, nil
}

func isMissing(err error) bool {
	var refused smithy.APIError
	return errors.As(err, &refused) && slices.Contains([]string{"NotFound", "NoSuchKey", "NoSuchUpload"}, refused.ErrorCode())
}

// object is a file that is read: a request from the place on where the reading begins.
type object struct {
	of       *S3
	key      *string
	size, at int64
	body     io.ReadCloser
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	if o.at >= o.size {
		return 0, io.EOF
	}
	if o.body == nil {
		got, err := o.of.client.GetObject(context.Background(), &s3.GetObjectInput{
			Bucket: &o.of.bucket, Key: o.key, Range: aws.String(fmt.Sprintf("bytes=%d-", o.at)),
		})
		if err != nil {
			return 0, err
		}
		o.body = got.Body
	}
	n, err := o.body.Read(p)
	if o.at += int64(n); err == io.EOF && o.at < o.size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Seek implements io.Seeker.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	at := offset + map[int]int64{io.SeekCurrent: o.at, io.SeekEnd: o.size}[whence]
	if at < 0 {
		return 0, errors.New("seek before the begin of a file")
	}
	if at == o.at {
		return at, nil
	}
	o.at = at
	return at, o.Close()
}

// Close implements io.Closer.
func (o *object) Close() error {
	body := o.body
	if o.body = nil; body == nil {
		return nil
	}
	return body.Close()
}

// Link implements Linker.
func (s *S3) Link(k Key, disposition string) (string, error) {
	made, err := s3.NewPresignClient(s.client, s3.WithPresignExpires(linkFor)).PresignGetObject(context.Background(), &s3.GetObjectInput{
		Bucket: &s.bucket, Key: s.keyOf(k), ResponseContentType: aws.String(ContentType), ResponseContentDisposition: &disposition,
	})
	if err != nil {
		return "", err
	}
	return made.URL, nil
}

// Files implements Driver.
func (s *S3) Files(id wire.TaskID) (names []string, err error) {
	below := s.prefix + id.String() + "/"
	err = s.list(below, "", func(page *s3.ListObjectsV2Output) bool {
		for _, o := range page.Contents {
			names = append(names, strings.TrimPrefix(aws.ToString(o.Key), below))
		}
		return true
	})
	return names, err
}

// list calls each with every page of the keys below a prefix, until it returns false.
func (s *S3) list(prefix, delimiter string, each func(page *s3.ListObjectsV2Output) bool) error {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix}
	if delimiter != "" {
		in.Delimiter = &delimiter
	}
	for pages := s3.NewListObjectsV2Paginator(s.client, in); pages.HasMorePages(); {
		ctx, cancel := context.WithTimeout(context.Background(), requestFor)
		page, err := pages.NextPage(ctx)
		cancel()
		if err != nil {
			return err
		}
		if !each(page) {
			return nil
		}
	}
	return nil
}

// Remove implements Driver.
func (s *S3) Remove(k Key) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestFor)
	defer cancel()
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.keyOf(k)})
	if isMissing(err) {
		return nil
	}
	return err
}

// Forget implements Driver.
func (s *S3) Forget(id wire.TaskID) error {
	names, err := s.Files(id)
	for _, name := range names {
		err = errors.Join(err, s.Remove(Key{id, name}))
	}
	return err
}

// Tasks implements Driver.
func (s *S3) Tasks(each func(wire.TaskID) bool) error {
	return s.list(s.prefix, "/", func(page *s3.ListObjectsV2Output) bool {
		for _, p := range page.CommonPrefixes {
			text := strings.Trim(strings.TrimPrefix(aws.ToString(p.Prefix), s.prefix), "/")
			if id, ok := wire.ParseTaskID(text); ok && !each(id) {
				return false
			}
		}
		return true
	})
}
