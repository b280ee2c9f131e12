package s3

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"tarry/internal/keyfile"
)

const (
	scheme = "s3://"

	// DefaultEndpoint is that of Amazon's own store.
	DefaultEndpoint = "https://s3.amazonaws.com"

	// silence is how long the store may take until its reply begins.
	silence = time.Minute
	// attempts bounds how often the library tries one request; it pauses in between.
	attempts = 4

	maxCredentials = 1 << 20 // bytes of a file with keys
)

// Is reports whether a place is in a bucket and not a path.
func Is(place string) bool { return strings.HasPrefix(place, scheme) }

// Split returns the bucket and the rest of s3://BUCKET/REST; the rest has no slash at its
// ends and may be empty.
func Split(place string) (bucket, rest string, err error) {
	bucket, rest, _ = strings.Cut(strings.TrimPrefix(place, scheme), "/")
	rest = strings.TrimSuffix(rest, "/")
	if err := s3utils.CheckValidBucketNameStrict(bucket); err != nil {
		return "", "", fmt.Errorf("%s: the name of the bucket: %w", place, err)
	}
	if rest != "" {
		if strings.HasPrefix(rest, "/") || strings.Contains(rest, "//") {
			return "", "", fmt.Errorf("%s has a name that is empty between two slashes", place)
		}
		if err := s3utils.CheckValidObjectNamePrefix(rest); err != nil {
			return "", "", fmt.Errorf("%s: the name in the bucket: %w", place, err)
		}
	}
	return bucket, rest, nil
}

// Access says how a store is reached, and as whom.
type Access struct {
	Endpoint string // http:// or https://, host and maybe port; empty: DefaultEndpoint
	Region   string // empty: the library finds it out
	// CredentialsFile is in the format of ~/.aws/credentials, and others must not be able to
	// read it. Empty: the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, that file in the
	// home directory, or the role of the machine, whichever is there first.
	CredentialsFile string
	CA              string // PEM file of authorities that sign the store's certificate; empty: the system's
}

// Check returns an error that names the flag that is wrong.
func (a *Access) Check() error {
	if _, err := a.endpoint(); err != nil {
		return err
	}
	if a.CredentialsFile == "" {
		return nil
	}
	if _, err := keyfile.Read(a.CredentialsFile, maxCredentials); err != nil {
		return fmt.Errorf("--s3-credentials-file: %w", err)
	}
	return nil
}

func (a *Access) endpoint() (*url.URL, error) {
	text := a.Endpoint
	if text == "" {
		text = DefaultEndpoint
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--s3-endpoint: %w", err)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("--s3-endpoint is %q; it takes https://HOST or http://HOST, with a port if needed and nothing behind it", u.Redacted())
	}
	return u, nil
}

// Open returns the bucket and prefix that place names. It asks the store for nothing.
func (a *Access) Open(place string) (*Bucket, error) {
	name, prefix, err := Split(place)
	if err != nil {
		return nil, err
	}
	if err := a.Check(); err != nil {
		return nil, err
	}
	u, err := a.endpoint()
	if err != nil {
		return nil, err
	}
	transport, err := a.transport()
	if err != nil {
		return nil, err
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: a.credentials(), Secure: u.Scheme == "https", Region: a.Region, Transport: boundedReplies{transport}, MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("--s3-endpoint: %w", err)
	}
	client.SetAppInfo("tarry", "1")
	if prefix != "" {
		prefix += "/"
	}
	return &Bucket{client: client, transport: transport, name: name, prefix: prefix}, nil
}

func (a *Access) transport() (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = silence
	t.MaxResponseHeaderBytes = maxHeader
	t.DisableCompression = true // the library needs the bytes as they are
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA == "" {
		return t, nil
	}
	pem, err := os.ReadFile(a.CA)
	if err != nil {
		return nil, fmt.Errorf("--s3-ca: %w", err)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--s3-ca: %s has no certificate in PEM", a.CA)
	}
	return t, nil
}

func (a *Access) credentials() *credentials.Credentials {
	if a.CredentialsFile != "" {
		return credentials.New(&credentials.FileAWSCredentials{Filename: a.CredentialsFile})
	}
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}})
}

// refusal is what the store replied in place of success.
type refusal struct{ minio.ErrorResponse }

func (r refusal) Error() string {
	return fmt.Sprintf("the store replied %s: %s", r.Code, r.ErrorResponse.Error())
}

// Is makes a missing object or bucket fs.ErrNotExist.
func (r refusal) Is(target error) bool {
	return target == fs.ErrNotExist && (r.Code == minio.NoSuchKey || r.Code == minio.NoSuchBucket || r.Code == minio.NoSuchUpload)
}

// plain returns err, or the refusal that it is.
func plain(err error) error {
	if answer := (minio.ErrorResponse{}); errors.As(err, &answer) {
		return refusal{answer}
	}
	return err
}
