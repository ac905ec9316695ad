// Logs in once for each line of standard input and writes one record: `mechanism TAB user TAB password TAB port` in, a line of what came of it out.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func mechanism(name, user, password string) sasl.Mechanism {
	switch name {
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	return plain.Auth{User: user, Pass: password}.AsMechanism()
}

func attempt(name, user, password, port string) string {
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:"+port), kgo.SASL(mechanism(name, user, password)), kgo.DefaultProduceTopic("logins"),
		kgo.RetryTimeout(8*time.Second), kgo.RecordDeliveryTimeout(10*time.Second))
	if err != nil {
		return "other: " + err.Error()
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err = client.Ping(ctx); err == nil {
		err = client.ProduceSync(ctx, &kgo.Record{Value: []byte(user)}).FirstErr()
	}
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "login refused"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "mechanism refused"
	}
	return "other: " + strings.ReplaceAll(err.Error(), port, "PORT")
}

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		asked := strings.Split(lines.Text(), "\t")
		fmt.Println(attempt(asked[0], asked[1], asked[2], asked[3]))
	}
}
