// Logs in once for each line of standard input and writes one record: `mechanism TAB user TAB password TAB port TAB protocol TAB authority TAB certificate TAB key` in, a line of what came of it out.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func mechanism(name, user, password string) sasl.Mechanism {
	switch name {
	case "OAUTHBEARER":
		// The password is the path of a file with a token, which is read for each login.
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := os.ReadFile(password)
			return oauth.Auth{Token: string(token)}, err
		})
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	return plain.Auth{User: user, Pass: password}.AsMechanism()
}

// The file at `path` is a keytab.
func tickets(principal, path, service string) (sasl.Mechanism, error) {
	conf, err := config.Load(os.Getenv("KRB5_CONFIG"))
	if err != nil {
		return nil, err
	}
	keys, err := keytab.Load(path)
	if err != nil {
		return nil, err
	}
	user, realm, _ := strings.Cut(principal, "@")
	return kerberos.Auth{Client: client.NewWithKeytab(user, realm, keys, conf, client.DisablePAFXFAST(true)), Service: service, PersistAfterAuth: true}.AsMechanism(), nil
}

// PEM files; an empty certificate is none.
func secure(authority, certificate, key string) *tls.Config {
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if pem, err := os.ReadFile(authority); err == nil {
		config.RootCAs.AppendCertsFromPEM(pem)
	}
	if pair, err := tls.LoadX509KeyPair(certificate, key); err == nil {
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func attempt(asked []string) string {
	name, user, password, port, protocol := asked[0], asked[1], asked[2], asked[3], asked[4]
	options := []kgo.Opt{kgo.SeedBrokers("127.0.0.1:" + port), kgo.DefaultProduceTopic("logins"), kgo.RetryTimeout(8 * time.Second), kgo.RecordDeliveryTimeout(10 * time.Second)}
	if name == "GSSAPI" {
		tickets, err := tickets(user, password, asked[5])
		if err != nil {
			return "other: " + err.Error()
		}
		// Tickets are for names.
		options = append(options, kgo.SASL(tickets), kgo.SeedBrokers("localhost:"+port))
	} else if name != "" {
		options = append(options, kgo.SASL(mechanism(name, user, password)))
	}
	if strings.HasSuffix(protocol, "SSL") {
		options = append(options, kgo.DialTLSConfig(secure(asked[5], asked[6], asked[7])))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return "other: " + err.Error()
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	if err = client.Ping(ctx); err == nil {
		err = client.ProduceSync(ctx, &kgo.Record{Value: []byte(user)}).FirstErr()
	}
	for until := time.Now().Add(8 * time.Second); user == "held" && err == nil && time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		err = client.ProduceSync(ctx, &kgo.Record{Value: []byte(user)}).FirstErr()
	}
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "login refused"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "mechanism refused"
	case strings.Contains(err.Error(), "tls: "):
		return "TLS refused"
	}
	return "other: " + strings.ReplaceAll(err.Error(), port, "PORT")
}

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		asked := strings.Split(lines.Text(), "\t")
		fmt.Println(attempt(asked))
	}
}
